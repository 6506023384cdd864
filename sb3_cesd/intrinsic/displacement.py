"""The reward of METRA and its relatives: how far a step leads in the direction of the skill."""

from typing import ClassVar

import torch as th
from torch import nn

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.common.torch_layers import create_xavier_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward


class DisplacementReward(IntrinsicReward):
    """
    ``(phi(s') - phi(s)) . z``, the displacement of learned features phi in the direction of the skill z.

    The features have the dimension of the vector of a skill, and are learned from single steps. Discrete skills stand for the
    directions ``(one_hot - 1 / n) n / (n - 1)``, continuous ones for themselves. The rewards of an n-step window telescope to
    the displacement over the window, apart from the discount within it.

    A method implements the loss, which has to keep the features from growing without bound.

    :param obs_dim: size of the state
    :param action_dim: not used
    :param skill_space: space of the skills
    :param net_arch: sizes of the hidden layers of phi, ``[1024, 1024]`` by default
    :param scale: factor of the reward
    """

    needs_one_step: ClassVar[bool] = True

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        skill_space: SkillSpace,
        net_arch: list[int] | None = None,
        scale: float = 1.0,
    ) -> None:
        check_arguments("DisplacementReward", locals())
        super().__init__(obs_dim, action_dim, skill_space)
        self.scale = scale
        self.features = self.make_features([1024, 1024] if net_arch is None else net_arch)
        # A bias cancels in displacements
        self.features[-1].register_parameter("bias", None)

    def make_features(self, net_arch: list[int]) -> nn.Sequential:
        """
        Make the network phi.

        :param net_arch: sizes of its hidden layers
        :return: a map from states, shape ``(n, obs_dim)``, to features, shape ``(n, skill_dim)``
        """
        return create_xavier_mlp(self.obs_dim, self.skill_space.dim, net_arch)

    def displacements(self, observations: th.Tensor, next_observations: th.Tensor) -> th.Tensor:
        """
        Compute ``phi(s') - phi(s)``.

        :param observations: s, shape ``(n, obs_dim)``
        :param next_observations: s', shape ``(n, obs_dim)``
        :return: shape ``(n, skill_dim)``
        """
        # In one pass, as spectral normalisation changes the weights between passes
        before, after = self.features(th.cat([observations, next_observations])).chunk(2)
        return after - before

    def step_displacements(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        """
        Compute the displacements of single steps.

        :param samples: a batch of transitions
        :return: shape ``(batch_size, skill_dim)``
        """
        assert samples.one_step_observations is not None
        return self.displacements(samples.observations, samples.one_step_observations)

    def progress(self, displacements: th.Tensor, skills: th.Tensor) -> th.Tensor:
        """
        Compute how far displacements lead in the direction of skills.

        :param displacements: shape ``(n, skill_dim)``
        :param skills: skills as stored in the replay buffer
        :return: shape ``(n,)``
        """
        return (displacements * self.skill_space.directions(skills, displacements.dtype)).sum(dim=1)

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        displacements = self.displacements(samples.observations, samples.next_observations)
        return self.scale * self.progress(displacements, samples.skills)

    def goal_skill(self, observations: th.Tensor, goals: th.Tensor) -> th.Tensor:
        return self.skill_space.along(self.displacements(observations, goals))
