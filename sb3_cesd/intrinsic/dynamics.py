"""Rewards and models of the change from one state to the next."""

from collections.abc import Sequence
from typing import Any, ClassVar

import torch as th
from torch import nn

from sb3_cesd.common.arguments import Positive, checked
from sb3_cesd.common.torch_layers import create_orthogonal_mlp, create_xavier_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward


class DisplacementReward(IntrinsicReward):
    """
    ``(phi(s') - phi(s)) . z``, the displacement of learned features phi in the direction of the skill z: the reward of METRA
    and its relatives.

    The features have the dimension of the vector of a skill, and are learned from single steps. Discrete skills stand for the
    directions ``(one_hot - 1 / n) n / (n - 1)``, continuous ones for themselves. The rewards of an n-step window telescope to
    the displacement over the window, apart from the discount within it.

    A method implements the loss, which has to keep the features from growing without bound.

    :param net_arch: sizes of the hidden layers of phi
    :param scale: factor of the reward
    """

    needs_one_step: ClassVar[bool] = True

    @checked
    def __init__(self, *sizes: Any, net_arch: Sequence[int] = (256, 256), scale: Positive = 1.0) -> None:
        super().__init__(*sizes)
        self.scale = scale
        self.features = self.make_features(net_arch)
        # A bias cancels in displacements
        self.features[-1].register_parameter("bias", None)

    def make_features(self, net_arch: Sequence[int]) -> nn.Sequential:
        """Make phi, from states, shape ``(n, obs_dim)``, to features, shape ``(n, skill_dim)``."""
        return create_xavier_mlp(self.obs_dim, self.skill_space.dim, net_arch)

    def displacements(self, observations: th.Tensor, next_observations: th.Tensor) -> th.Tensor:
        """Compute ``phi(s') - phi(s)``, shape ``(n, skill_dim)``, from s and s', both of shape ``(n, obs_dim)``."""
        # In one pass, as spectral normalisation changes the weights between passes
        before, after = self.features(th.cat([observations, next_observations])).chunk(2)
        return after - before

    def step_displacements(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        """Compute the displacements of single steps, shape ``(batch_size, skill_dim)``."""
        assert samples.one_step_observations is not None
        return self.displacements(samples.observations, samples.one_step_observations)

    def progress(self, displacements: th.Tensor, skills: th.Tensor) -> th.Tensor:
        """Compute how far displacements lead in the direction of skills, shape ``(n,)``."""
        return (displacements * self.skill_space.directions(skills, displacements.dtype)).sum(dim=1)

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        displacements = self.displacements(samples.observations, samples.next_observations)
        return self.scale * self.progress(displacements, samples.skills)

    def goal_skill(self, observations: th.Tensor, goals: th.Tensor) -> th.Tensor:
        return self.skill_space.along(self.displacements(observations, goals))


class DynamicsPredictors(nn.Module):
    """
    Forward model, s' from (s, a), and inverse model, a from (s, s'), of the intrinsic curiosity module (Pathak et al., 2017,
    eq. 4 and eq. 1). As in URLB, they minimise the Euclidean norms of their errors.

    :param obs_dim: size of the states, or of their features
    :param action_dim: size of the action
    :param net_arch: sizes of the hidden layers of both networks
    """

    def __init__(self, obs_dim: int, action_dim: int, net_arch: Sequence[int]) -> None:
        super().__init__()
        self.forward_net = create_orthogonal_mlp(obs_dim + action_dim, obs_dim, net_arch)
        self.backward_net = create_orthogonal_mlp(2 * obs_dim, action_dim, net_arch)

    def forward_errors(self, observations: th.Tensor, actions: th.Tensor, next_observations: th.Tensor) -> th.Tensor:
        """Compute the errors of the predicted s', shape ``(n,)``; actions are in [-1, 1]."""
        predicted = self.forward_net(th.cat([observations, actions], dim=1))
        return (next_observations - predicted).norm(dim=1)

    def loss(self, observations: th.Tensor, actions: th.Tensor, next_observations: th.Tensor) -> th.Tensor:
        """Compute the mean error of the states plus the mean error of the actions."""
        forward_errors = self.forward_errors(observations, actions, next_observations)
        predicted_actions = self.backward_net(th.cat([observations, next_observations], dim=1)).tanh()
        return forward_errors.mean() + (actions - predicted_actions).norm(dim=1).mean()
