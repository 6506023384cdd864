"""Skill-conditioned actor and critic of URLB's DDPG. By default, the critic is as wide as that of CeSD."""

import math
from collections.abc import Sequence
from typing import Any, ClassVar

import torch as th
from gymnasium import spaces
from stable_baselines3.common.policies import BaseModel, BasePolicy
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from torch import nn
from torch.nn import functional as F

from sb3_cesd.common.arguments import constructor_names
from sb3_cesd.common.observations import (
    SKILL,
    TensorObservation,
    check_has_skill,
    entries_of,
    plain_form,
    plain_space,
    to_features,
)
from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.common.torch_layers import create_normalized_mlp, create_orthogonal_mlp, select


def _split(obs: dict[str, th.Tensor], skill_space: SkillSpace) -> tuple[TensorObservation, th.Tensor]:
    """Split observations with skills into those without, in the precision of the skill, and skills as stored."""
    entries = {name: value.to(obs[SKILL].dtype) if value.is_floating_point() else value for name, value in obs.items()}
    return plain_form(entries_of(entries)), skill_space.decode(obs[SKILL])  # type: ignore[arg-type, return-value]


class SkillActor(BasePolicy):
    """
    Deterministic skill-conditioned policy: [features(s), z] -> MLP -> tanh.

    :param observation_space: observation space with a skill
    :param action_space: action space
    :param skill_space: space of the skills
    :param net_arch: sizes of the hidden layers
    :param features_extractor: network that extracts features of the observation without the skill
    :param activation_fn: activation of the hidden layers
    :param normalize_images: whether to normalize images or not
    :param layer_norm: whether LayerNorm and Tanh replace the activation of the first hidden layer, as in URLB
    """

    features_extractor: BaseFeaturesExtractor

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Box,
        skill_space: SkillSpace,
        net_arch: Sequence[int],
        features_extractor: BaseFeaturesExtractor,
        activation_fn: type[nn.Module] = nn.ReLU,
        normalize_images: bool = True,
        layer_norm: bool = True,
    ) -> None:
        super().__init__(
            observation_space,
            action_space,
            features_extractor=features_extractor,
            normalize_images=normalize_images,
            squash_output=True,
        )
        self.skill_space = skill_space
        self.plain_space = plain_space(observation_space)
        self.net_arch = net_arch
        self.activation_fn = activation_fn
        self.layer_norm = layer_norm
        input_dim = features_extractor.features_dim + skill_space.dim
        self.mu = create_normalized_mlp(input_dim, self.n_outputs, net_arch, activation_fn, layer_norm)

    @property
    def n_outputs(self) -> int:
        """Number of outputs of the network."""
        return get_action_dim(self.action_space)

    def _get_constructor_parameters(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in constructor_names(type(self)) if hasattr(self, name)}

    def outputs(self, observations: TensorObservation, skills: th.Tensor) -> th.Tensor:
        """Compute the outputs of the network before tanh, shape ``(n, n_outputs)``; for the arguments see :meth:`act`."""
        features = self.features_extractor(to_features(observations, self.plain_space, self.normalize_images))
        return self.mu(th.cat([features, self.skill_space.embed(skills, features.dtype)], dim=1))

    def act(self, observations: TensorObservation, skills: th.Tensor) -> th.Tensor:
        """
        Compute the actions of skills in [-1, 1], shape ``(n, action_dim)``, from observations without skills, and skills as
        stored in the replay buffer: indices, shape ``(n,)``, or vectors, shape ``(n, skill_dim)``.
        """
        return self.outputs(observations, skills).tanh()

    def sample(self, observations: TensorObservation, skills: th.Tensor) -> tuple[th.Tensor, th.Tensor | None]:
        """Sample actions of skills and their log-density, shape ``(n, 1)``: here ``None``, as nothing is random."""
        return self.act(observations, skills), None

    def forward(self, obs: dict[str, th.Tensor]) -> th.Tensor:
        """Compute the actions of the skills in the observations, as :meth:`act`."""
        return self.act(*_split(obs, self.skill_space))

    def obs_to_tensor(self, observation: Any) -> tuple[TensorObservation, bool]:
        check_has_skill(observation)
        return BasePolicy.obs_to_tensor(self, observation)

    def _predict(self, observation: dict[str, th.Tensor], deterministic: bool = False) -> th.Tensor:  # type: ignore[override]
        # Exploration noise of a deterministic policy is added by the algorithm
        return self(observation) if deterministic else self.sample(*_split(observation, self.skill_space))[0]


class SkillCritic(BaseModel):
    """
    One value function for all skills: [features(s), z, a] -> trunk -> MLP, ``n_critics`` times.

    :param observation_space: observation space with a skill
    :param action_space: action space
    :param skill_space: space of the skills
    :param net_arch: size of the trunk, then sizes of the hidden layers of each critic; the trunk is half as wide as
        they are by default, as in CeSD's code, while URLB has equal sizes
    :param features_extractor: network that extracts features of the observation without the skill
    :param activation_fn: activation within the critics
    :param n_critics: number of critics on the same trunk
    :param normalize_images: whether to normalize images or not
    :param layer_norm: the trunk is Linear, LayerNorm and Tanh, as in URLB; else Linear and the activation
    """

    #: Modules that map hidden features to values; what comes before them is the trunk
    head_modules: ClassVar[tuple[str, ...]] = ("q_networks",)
    #: Number of heads, over which losses are averaged
    n_heads: int = 1

    features_extractor: BaseFeaturesExtractor
    optimizer: th.optim.Optimizer

    def __init__(
        self,
        observation_space: spaces.Dict,
        action_space: spaces.Box,
        skill_space: SkillSpace,
        net_arch: Sequence[int],
        features_extractor: BaseFeaturesExtractor,
        activation_fn: type[nn.Module] = nn.ReLU,
        n_critics: int = 2,
        normalize_images: bool = True,
        layer_norm: bool = True,
    ) -> None:
        super().__init__(
            observation_space, action_space, features_extractor=features_extractor, normalize_images=normalize_images
        )
        self.plain_space = plain_space(observation_space)
        self.skill_space = skill_space
        self._make_layers(net_arch, activation_fn, n_critics, layer_norm)

    def _make_layers(self, net_arch: Sequence[int], activation_fn: type[nn.Module], n_critics: int, layer_norm: bool) -> None:
        input_dim = self.features_extractor.features_dim + self.skill_space.dim + get_action_dim(self.action_space)
        self.trunk = create_normalized_mlp(input_dim, -1, net_arch[:1], activation_fn, layer_norm)
        trunk_dim = net_arch[0] if net_arch else input_dim
        self.q_networks = nn.ModuleList(
            create_orthogonal_mlp(trunk_dim, self.n_outputs, net_arch[1:], activation_fn) for _ in range(n_critics)
        )

    @property
    def n_outputs(self) -> int:
        """Number of outputs of each critic."""
        return 1

    def outputs(self, observations: TensorObservation, actions: th.Tensor, skills: th.Tensor) -> list[th.Tensor]:
        """Evaluate each critic: one tensor of shape ``(n, n_outputs)`` each; for the arguments see :meth:`q_values`."""
        inputs = th.cat([self.extract(observations), actions], dim=1)
        hidden = self.trunk(th.cat([inputs, self.skill_space.embed(skills, inputs.dtype)], dim=1))
        return [q_network(hidden) for q_network in self.q_networks]

    def q_values(
        self, observations: TensorObservation, actions: th.Tensor, skills: th.Tensor, rows: th.Tensor | None = None
    ) -> list[th.Tensor]:
        """
        Compute the Q-values of (transition, skill) pairs.

        :param observations: observations without skills
        :param actions: scaled to [-1, 1], shape ``(batch_size, action_dim)``
        :param skills: skill of each pair: indices, shape ``(n_pairs,)``, or vectors, shape ``(n_pairs, skill_dim)``
        :param rows: transition of each pair, shape ``(n_pairs,)``; ``None`` pairs row j with ``skills[j]``
        :return: one tensor of shape ``(n_pairs, 1)`` per critic
        """
        return self.outputs(select(observations, rows), select(actions, rows), skills)

    def forward(self, obs: dict[str, th.Tensor], actions: th.Tensor) -> tuple[th.Tensor, ...]:
        """Compute the Q-values of the skills in the observations, one tensor of shape ``(n, 1)`` per critic, as in TD3."""
        observations, skills = _split(obs, self.skill_space)
        return tuple(self.q_values(observations, actions, skills))

    def extract(self, observations: TensorObservation) -> th.Tensor:
        """Extract features."""
        return self.features_extractor(to_features(observations, self.plain_space, self.normalize_images))

    def of_skill(self, name: str, value: th.Tensor, skill: int) -> th.Tensor:
        """Select the part of a parameter, or of a tensor of its shape, that belongs to a skill."""
        return value


class SuccessorCritic(SkillCritic):
    """
    Successor features psi of all skills: ``Q(s, a, z) = psi(s, a, z) . z`` (Barreto et al., "Successor Features for Transfer
    in Reinforcement Learning", 2017).

    Their dimension is that of the vector of a skill. For the arguments see :class:`SkillCritic`.
    """

    @property
    def n_outputs(self) -> int:
        return self.skill_space.dim

    def values_of(self, features: list[th.Tensor], skills: th.Tensor) -> list[th.Tensor]:
        """Compute ``psi . z`` of successor features, one tensor of shape ``(n, 1)`` per critic."""
        return [(psi * self.skill_space.directions(skills, psi.dtype)).sum(dim=1, keepdim=True) for psi in features]

    def q_values(
        self, observations: TensorObservation, actions: th.Tensor, skills: th.Tensor, rows: th.Tensor | None = None
    ) -> list[th.Tensor]:
        return self.values_of(super().q_values(observations, actions, skills, rows), skills)


#: Bounds of the logarithm of the standard deviation, before tanh
LOG_STD_MIN, LOG_STD_MAX = -5.0, 2.0


class StochasticSkillActor(SkillActor):
    """
    Skill-conditioned squashed Gaussian policy of SAC (Haarnoja et al., 2018): [features(s), z] -> MLP -> mean and log standard
    deviation, before tanh.

    :meth:`act` and deterministic predictions take the mean. The entropy coefficient belongs to the actor, so that one
    optimizer updates both: with ``"auto"`` it keeps the entropy at ``-action_dim / 2``, METRA's target (half of
    Stable-Baselines3's). For the other arguments see :class:`~sb3_cesd.skill_ddpg.networks.SkillActor`.

    :param ent_coef: the entropy coefficient: a number, ``"auto"`` or, with an initial value, e.g. ``"auto_0.1"``
    """

    def __init__(self, *args: Any, ent_coef: float | str = "auto", **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.ent_coef = ent_coef
        initial = 1.0 if ent_coef == "auto" else float(str(ent_coef).removeprefix("auto_"))
        if not initial > 0:
            raise ValueError(f"ent_coef={ent_coef} is not above 0: pass None for a deterministic policy.")
        log_ent_coef = th.tensor(math.log(initial))
        self.log_ent_coef = nn.Parameter(log_ent_coef, requires_grad=str(ent_coef).startswith("auto"))
        self.target_entropy = -get_action_dim(self.action_space) / 2

    @property
    def n_outputs(self) -> int:
        return 2 * super().n_outputs

    def act(self, observations: TensorObservation, skills: th.Tensor) -> th.Tensor:
        return self.outputs(observations, skills).chunk(2, dim=1)[0].tanh()

    def sample(self, observations: TensorObservation, skills: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Sample actions of skills and their log-density, with the reparametrisation trick."""
        means, log_stds = self.outputs(observations, skills).chunk(2, dim=1)
        log_stds = log_stds.clamp(LOG_STD_MIN, LOG_STD_MAX)
        noise = th.randn_like(means)
        unsquashed = means + log_stds.exp() * noise
        log_densities = -0.5 * noise.square() - log_stds - 0.5 * math.log(2 * math.pi)
        # log(1 - tanh(u)^2), without cancellation
        log_slopes = 2 * (math.log(2) - unsquashed - F.softplus(-2 * unsquashed))
        return unsquashed.tanh(), (log_densities - log_slopes).sum(dim=1, keepdim=True)

    def entropy_bonus(self, log_densities: th.Tensor) -> th.Tensor:
        """Compute the entropy bonus of Q-values, ``-alpha log pi``, shape ``(n, 1)``; alpha does not learn from it."""
        return -self.log_ent_coef.detach().exp() * log_densities

    def ent_coef_loss(self, log_densities: th.Tensor) -> th.Tensor:
        """Compute ``-mean[log alpha (log pi + target)]``: alpha rises while the entropy is below its target."""
        return -(self.log_ent_coef * (log_densities.detach() + self.target_entropy)).mean()

    def mean_state_dict(self) -> dict[str, th.Tensor]:
        """Get the weights of a :class:`~sb3_cesd.skill_ddpg.networks.SkillActor` that takes the mean action."""
        state = {name: value for name, value in self.state_dict().items() if name != "log_ent_coef"}
        last = f"mu.{len(self.mu) - 1}."
        return {name: value.chunk(2)[0] if name.startswith(last) else value for name, value in state.items()}
