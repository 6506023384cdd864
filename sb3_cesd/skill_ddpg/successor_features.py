"""A critic that predicts successor features, whose product with a skill is its value."""

import torch as th

from sb3_cesd.common.observations import TensorObservation
from sb3_cesd.skill_ddpg.networks import SkillCritic
from sb3_cesd.skill_ddpg.policies import SkillPolicy


class SuccessorCritic(SkillCritic):
    """
    Successor features psi of all skills: ``Q(s, a, z) = psi(s, a, z) . z`` (Barreto et al., "Successor Features for Transfer
    in Reinforcement Learning", 2017).

    Their dimension is that of the vector of a skill. For the arguments see
    :class:`~sb3_cesd.skill_ddpg.networks.SkillCritic`.
    """

    @property
    def n_outputs(self) -> int:
        return self.skill_space.dim

    def values_of(self, features: list[th.Tensor], skills: th.Tensor) -> list[th.Tensor]:
        """
        Compute the values of successor features.

        :param features: psi, one tensor of shape ``(n, skill_dim)`` per critic
        :param skills: indices, shape ``(n,)``, or vectors, shape ``(n, skill_dim)``
        :return: ``psi . z``, one tensor of shape ``(n, 1)`` per critic
        """
        return [(psi * self.skill_space.directions(skills, psi.dtype)).sum(dim=1, keepdim=True) for psi in features]

    def q_values(self, observations: TensorObservation, actions: th.Tensor, skills: th.Tensor) -> list[th.Tensor]:
        return self.values_of(self.outputs(observations, actions, skills), skills)


class SuccessorPolicy(SkillPolicy):
    """
    Policy class with critics that predict successor features. The actor and the arguments are those of
    :class:`~sb3_cesd.skill_ddpg.policies.SkillPolicy`.
    """

    critic: SuccessorCritic
    critic_target: SuccessorCritic
    critic_class = SuccessorCritic
