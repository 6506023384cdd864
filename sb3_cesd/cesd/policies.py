from typing import Any, ClassVar

import torch as th
from gymnasium import spaces
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor, FlattenExtractor
from stable_baselines3.common.type_aliases import Schedule
from torch import nn

from sb3_cesd.common.torch_layers import RoutedEnsembleMLP, create_normalized_mlp, create_orthogonal_mlp, one_hot, route
from sb3_cesd.skill_ddpg.policies import SkillCritic, SkillPolicy


class EnsembleCritic(SkillCritic):
    """
    One value function a skill on a shared trunk: [features(s), a] -> Linear, LayerNorm, Tanh -> heads (paper, section 3.1).

    A skill selects its head, it is no input. With fewer heads than skills, skill z uses head ``z % ensemble_size``.

    With ``shared_value``, the value of a skill is that of one skill-conditioned value function plus what its head adds, which
    is nothing at first: what one skill learns about the environment then helps all of them, while the heads tell them apart.
    The trunk takes the skill as an input, too. Skills explore with the shared value alone. A single head has no others to
    differ from, so that the shared value takes its place.

    :param observation_space: plain observation space
    :param action_space: action space
    :param n_skills: number of skills
    :param ensemble_size: number of heads
    :param net_arch: size of the trunk, then sizes of the hidden layers of each head
    :param features_extractor: network that extracts features of the plain observation
    :param activation_fn: activation within the heads
    :param n_critics: independent ensembles on the same trunk
    :param shared_value: add one skill-conditioned value function to all heads
    :param share_features_extractor: see :class:`SkillCritic`
    """

    head_modules: ClassVar[tuple[str, ...]] = ("q_networks", "shared_networks")

    def __init__(
        self,
        observation_space: spaces.Box,
        action_space: spaces.Box,
        n_skills: int,
        ensemble_size: int,
        net_arch: list[int],
        features_extractor: BaseFeaturesExtractor,
        activation_fn: type[nn.Module] = nn.ReLU,
        n_critics: int = 2,
        shared_value: bool = True,
        share_features_extractor: bool = False,
    ) -> None:
        super().__init__(observation_space, action_space, features_extractor, share_features_extractor)
        self.n_skills = n_skills
        self.ensemble_size = ensemble_size
        self.shared_value = shared_value
        #: False to leave out what heads add to the shared value, and not to train them
        self.use_heads = True
        input_dim = features_extractor.features_dim + get_action_dim(action_space) + (n_skills if shared_value else 0)
        self.trunk = create_normalized_mlp(input_dim, -1, net_arch[:1])
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
        observations: th.Tensor,
        actions: th.Tensor,
        skills: th.Tensor,
        rows: th.Tensor | None = None,
    ) -> list[th.Tensor]:
        inputs = th.cat([self.extract(observations), actions], dim=1)
        if self.shared_value:
            inputs = inputs if rows is None else inputs.index_select(0, rows)
            hidden = self.trunk(th.cat([inputs, one_hot(skills, self.n_skills, inputs.dtype)], dim=1))
        else:
            # Of the transitions, not of the pairs: the same for all skills
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
        Every head on every transition, without a shared value; the reference the routed form is measured and tested against.

        :param observations: plain observations, shape ``(batch_size, obs_dim)``
        :param actions: shape ``(batch_size, action_dim)``
        :return: one tensor of shape ``(ensemble_size, batch_size, 1)`` for each of the ``n_critics``
        """
        assert not self.shared_value, "heads do not see the same hidden features"
        hidden = self.trunk(th.cat([self.extract(observations), actions], dim=1))
        return [q_network.forward_dense(hidden) for q_network in self.q_networks]  # type: ignore[operator]


class CeSDPolicy(SkillPolicy):
    """
    Policy class (with skill-conditioned actor and ensemble critic) for CeSD.

    :param observation_space: skill-augmented observation space
    :param action_space: action space
    :param lr_schedule: learning rate schedule (could be constant)
    :param n_skills: number of skills
    :param ensemble_size: number of critic heads, ``None`` for one a skill
    :param net_arch: sizes of the hidden layers, a list for both or ``dict(pi=[...], qf=[...])``. ``qf`` holds the size of the
        trunk, then those of the hidden layers of each head. Default ``dict(pi=[1024, 1024], qf=[512, 1024])``
    :param activation_fn: activation of the hidden layers but the first (which has LayerNorm and Tanh)
    :param features_extractor_class: features extractor of the plain observation
    :param features_extractor_kwargs: its arguments
    :param normalize_images: not used for vector observations
    :param optimizer_class: the optimizer, ``th.optim.Adam`` by default
    :param optimizer_kwargs: its arguments, excluding the learning rate; for Adam the default is ``dict(fused=True)``
    :param n_critics: number of critics of each skill, the target takes their minimum
    :param shared_value: add one skill-conditioned value function to all heads
    :param share_features_extractor: the critic uses the extractor of the actor, trained by the actor loss
    """

    critic: EnsembleCritic
    critic_target: EnsembleCritic

    def __init__(
        self,
        observation_space: spaces.Box,
        action_space: spaces.Box,
        lr_schedule: Schedule,
        n_skills: int,
        ensemble_size: int | None = None,
        net_arch: list[int] | dict[str, list[int]] | None = None,
        activation_fn: type[nn.Module] = nn.ReLU,
        features_extractor_class: type[BaseFeaturesExtractor] = FlattenExtractor,
        features_extractor_kwargs: dict[str, Any] | None = None,
        normalize_images: bool = True,
        optimizer_class: type[th.optim.Optimizer] = th.optim.Adam,
        optimizer_kwargs: dict[str, Any] | None = None,
        n_critics: int = 2,
        shared_value: bool = True,
        share_features_extractor: bool = False,
    ) -> None:
        self.shared_value = shared_value
        self.ensemble_size = n_skills if ensemble_size is None else ensemble_size
        super().__init__(
            observation_space,
            action_space,
            lr_schedule,
            n_skills,
            net_arch,
            activation_fn,
            features_extractor_class,
            features_extractor_kwargs,
            normalize_images,
            optimizer_class,
            optimizer_kwargs,
            n_critics,
            share_features_extractor,
        )

    def make_critic(self, features_extractor: BaseFeaturesExtractor | None = None) -> EnsembleCritic:
        return EnsembleCritic(
            self.plain_space,
            self.action_space,  # type: ignore[arg-type]
            self.n_skills,
            self.ensemble_size,
            self.critic_arch,
            self.make_plain_features_extractor() if features_extractor is None else features_extractor,
            self.activation_fn,
            self.n_critics,
            self.shared_value,
            self.share_features_extractor,
        ).to(self.device)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        data = super()._get_constructor_parameters()
        data.update(dict(ensemble_size=self.ensemble_size, shared_value=self.shared_value))
        return data


MlpPolicy = CeSDPolicy
