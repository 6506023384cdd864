from typing import Any, ClassVar

import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from sb3_cesd.common.arguments import PositiveInt, checked
from sb3_cesd.common.ensembles import RoutedEnsembleMLP, route
from sb3_cesd.common.observations import TensorObservation
from sb3_cesd.common.skills import SkillName, SkillSpace
from sb3_cesd.common.torch_layers import create_normalized_mlp, create_orthogonal_mlp
from sb3_cesd.skill_ddpg.networks import SkillCritic
from sb3_cesd.skill_ddpg.policies import SkillPolicy


class EnsembleCritic(SkillCritic):
    """
    One value function per skill on a shared trunk: [features(s), a] -> trunk -> heads (section 3.1 of the CeSD paper).

    The skill selects the head and is not an input. With fewer heads than skills, skill z uses head ``z % ensemble_size``.

    With ``shared_value``, the value of a skill is the sum of a skill-conditioned value function, shared by all skills, and the
    output of its head, which is zero at first. What one skill learns about the environment then helps all of them, while the
    heads learn how they differ. The trunk then takes the skill as an input, too. Skills explore with the shared value alone.
    A single head would have nothing to add, so the shared value replaces it.

    :param observation_space: observation space with a skill
    :param action_space: action space
    :param skill_space: space of the skills, discrete
    :param ensemble_size: number of heads
    :param net_arch: size of the trunk, then sizes of the hidden layers of each head
    :param features_extractor: network that extracts features of the observation without the skill
    :param activation_fn: activation within the heads
    :param n_critics: independent ensembles on the same trunk
    :param shared_value: add one skill-conditioned value function to all heads
    :param share_features_extractor: see :class:`~sb3_cesd.skill_ddpg.networks.SkillCritic`
    :param normalize_images: whether to normalize images or not
    :param layer_norm: see :class:`~sb3_cesd.skill_ddpg.networks.SkillCritic`
    """

    head_modules: ClassVar[tuple[str, ...]] = ("q_networks", "shared_networks")
    has_skill_heads = True

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Box,
        skill_space: SkillSpace,
        ensemble_size: int,
        net_arch: list[int],
        features_extractor: BaseFeaturesExtractor,
        activation_fn: type[nn.Module] = nn.ReLU,
        n_critics: int = 2,
        shared_value: bool = True,
        share_features_extractor: bool = False,
        normalize_images: bool = True,
        layer_norm: bool = True,
    ) -> None:
        self.ensemble_size = ensemble_size
        self.shared_value = shared_value
        super().__init__(
            observation_space,
            action_space,
            skill_space,
            net_arch,
            features_extractor,
            activation_fn,
            n_critics,
            share_features_extractor,
            normalize_images,
            layer_norm,
        )
        #: If false, heads neither add to the shared value nor learn
        self.use_heads = True

    @property
    def n_heads(self) -> int:  # type: ignore[override]
        """Number of heads, over which losses are averaged."""
        return self.ensemble_size

    def _make_layers(self, net_arch: list[int], activation_fn: type[nn.Module], n_critics: int, layer_norm: bool) -> None:
        ensemble_size, shared_value = self.ensemble_size, self.shared_value
        input_dim = self.features_extractor.features_dim + get_action_dim(self.action_space)
        input_dim += self.skill_space.dim if shared_value else 0
        self.trunk = create_normalized_mlp(input_dim, -1, net_arch[:1], activation_fn, layer_norm)
        trunk_dim = net_arch[0] if net_arch else input_dim
        self.q_networks, self.shared_networks = nn.ModuleList(), nn.ModuleList()
        if ensemble_size > 1 or not shared_value:
            for _ in range(n_critics):
                self.q_networks.append(RoutedEnsembleMLP(ensemble_size, trunk_dim, 1, net_arch[1:], activation_fn))
        if shared_value:
            for _ in range(n_critics):
                self.shared_networks.append(create_orthogonal_mlp(trunk_dim, 1, net_arch[1:], activation_fn))
            for q_network in self.q_networks:
                for parameter in q_network.layers[-1].parameters():  # type: ignore[union-attr, index]
                    nn.init.zeros_(parameter)

    def q_values(
        self,
        observations: TensorObservation,
        actions: th.Tensor,
        skills: th.Tensor,
        rows: th.Tensor | None = None,
    ) -> list[th.Tensor]:
        """
        Compute the Q-values of (transition, skill) pairs.

        :param observations: observations without skills
        :param actions: shape ``(batch_size, action_dim)``
        :param skills: skill of each pair, shape ``(n_pairs,)``
        :param rows: transition of each pair, shape ``(n_pairs,)``; ``None`` pairs row j with ``skills[j]``
        :return: one tensor of shape ``(n_pairs, 1)`` per critic
        """
        inputs = th.cat([self.extract(observations), actions], dim=1)
        if self.shared_value:
            inputs = inputs if rows is None else inputs.index_select(0, rows)
            hidden = self.trunk(th.cat([inputs, self.skill_space.embed(skills, inputs.dtype)], dim=1))
        else:
            # Once per transition, not per pair: it is the same for all skills
            hidden = self.trunk(inputs)
            hidden = hidden if rows is None else hidden.index_select(0, rows)
        shared_values = [network(hidden) for network in self.shared_networks]
        if not self.use_heads or not self.q_networks:
            return shared_values
        routing = route(skills % self.ensemble_size, self.ensemble_size)
        q_values = [q_network(hidden, routing) for q_network in self.q_networks]
        if self.shared_value:
            q_values = [own + shared for own, shared in zip(q_values, shared_values, strict=True)]
        return q_values

    def of_skill(self, name: str, value: th.Tensor, skill: int) -> th.Tensor:
        head = skill % self.ensemble_size
        return value[head : head + 1] if name.startswith("q_networks.") else value

    def q_values_dense(self, observations: th.Tensor, actions: th.Tensor) -> list[th.Tensor]:
        """
        Evaluate every head on every transition, without a shared value: the reference that the routed form is measured and
        tested against.

        :param observations: observations without skills
        :param actions: shape ``(batch_size, action_dim)``
        :return: one tensor of shape ``(ensemble_size, batch_size, 1)`` for each of the ``n_critics``
        """
        assert not self.shared_value, "heads do not see the same hidden features"
        hidden = self.trunk(th.cat([self.extract(observations), actions], dim=1))
        return [q_network.forward_dense(hidden) for q_network in self.q_networks]  # type: ignore[operator]


class CeSDPolicy(SkillPolicy):
    """
    Policy class (with skill-conditioned actor and ensemble critic) for CeSD.

    :param observation_space: observation space with a skill
    :param action_space: action space
    :param lr_schedule: learning rate schedule (could be constant)
    :param skill_space: space of the skills, discrete
    :param ensemble_size: number of critic heads, a divisor of the number of skills; ``None`` for one per skill. With fewer,
        one head serves several skills; with 1 and ``shared_value``, only the shared value is left.
    :param task_ensemble_size: number of critic heads that learn a task: 1 for that of the skill alone (Algorithm 2 of the
        paper), ``n_skills`` for all heads through the shared trunk, as in the released code.
    :param is_task: whether a task is learned; set by the algorithm
    :param net_arch: sizes of the hidden layers, a list for both or ``dict(pi=[...], qf=[...])``. ``qf`` holds the size of the
        trunk, then those of the hidden layers of each head. Default ``dict(pi=[1024, 1024], qf=[512, 1024])``
    :param activation_fn: activation of the hidden layers
    :param features_extractor_class: features extractor of the observation without the skill; ``None`` for
        ``FlattenExtractor``, or ``CombinedExtractor`` for dictionaries
    :param features_extractor_kwargs: its arguments
    :param normalize_images: whether to scale images to [0, 1]
    :param optimizer_class: the optimizer, ``th.optim.Adam`` by default
    :param optimizer_kwargs: its arguments, excluding the learning rate; for Adam the default is ``dict(fused=True)``
    :param n_critics: number of critics of each skill; the target takes their minimum
    :param shared_value: add one skill-conditioned value function to all heads
    :param share_features_extractor: the critic uses the features extractor of the actor, which the actor loss trains
    :param skill: skill to follow for observations without one
    :param ent_coef: entropy coefficient of a stochastic actor, ``None`` for a deterministic one
    :param layer_norm: whether LayerNorm and Tanh replace the activation of the first hidden layer in actor and trunk, as in
        URLB
    """

    critic: EnsembleCritic
    critic_target: EnsembleCritic

    @checked
    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Box,
        lr_schedule: Schedule,
        skill_space: SkillSpace | None = None,
        ensemble_size: PositiveInt | None = None,
        task_ensemble_size: PositiveInt = 1,
        is_task: bool = False,
        net_arch: list[int] | dict[str, list[int]] | None = None,
        activation_fn: type[nn.Module] = nn.ReLU,
        features_extractor_class: type[BaseFeaturesExtractor] | None = None,
        features_extractor_kwargs: dict[str, Any] | None = None,
        normalize_images: bool = True,
        optimizer_class: type[th.optim.Optimizer] = th.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
        n_critics: PositiveInt = 2,
        shared_value: bool = True,
        share_features_extractor: bool = False,
        skill: SkillName | None = None,
        ent_coef: float | str | None = None,
        layer_norm: bool = True,
    ) -> None:
        self.shared_value = shared_value
        self.ensemble_size = ensemble_size
        self.task_ensemble_size = task_ensemble_size
        self.is_task = is_task
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            skill_space,
            net_arch,
            activation_fn,
            features_extractor_class,
            features_extractor_kwargs,
            normalize_images,
            optimizer_class,
            optimizer_kwargs,
            n_critics,
            share_features_extractor,
            skill,
            ent_coef,
            layer_norm,
        )

    @property
    def n_heads(self) -> int:
        """Number of critic heads, over which the losses are averaged."""
        if self.is_task:
            return self.task_ensemble_size
        return self.n_skills if self.ensemble_size is None else self.ensemble_size

    def make_critic(self, features_extractor: BaseFeaturesExtractor | None = None) -> EnsembleCritic:
        self._check_ensemble_size()
        return EnsembleCritic(
            self.observation_space,  # type: ignore[arg-type]
            self.action_space,  # type: ignore[arg-type]
            self.skill_space,
            self.n_heads,
            self.critic_arch,
            self.make_plain_features_extractor() if features_extractor is None else features_extractor,
            self.activation_fn,
            self.n_critics,
            self.shared_value,
            self.share_features_extractor,
            self.normalize_images,
            self.layer_norm,
        )

    def _check_ensemble_size(self) -> None:
        for name in ("ensemble_size", "task_ensemble_size"):
            heads = getattr(self, name)
            if heads is None:
                continue
            if self.n_skills % heads != 0:
                raise ValueError(
                    f"{name}={heads} does not divide n_skills={self.n_skills}: each head serves the same number of skills, "
                    f"pass a divisor of n_skills (or leave {name} out)."
                )

    def _get_constructor_parameters(self) -> dict[str, Any]:
        data = super()._get_constructor_parameters()
        names = ("ensemble_size", "task_ensemble_size", "is_task", "shared_value")
        data.update({name: getattr(self, name) for name in names})
        return data


MlpPolicy = CeSDPolicy
