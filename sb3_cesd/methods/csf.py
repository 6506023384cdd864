from collections.abc import Sequence
from typing import Any

import torch as th

from sb3_cesd.common.arguments import NonNegative, Positive, PositiveInt, checked
from sb3_cesd.common.type_aliases import SkillPairs, SkillReplayBufferSamples
from sb3_cesd.intrinsic.dynamics import DisplacementReward
from sb3_cesd.methods.metra import METRA_DEFAULTS
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.policies import SUCCESSOR_POLICIES, SuccessorCritic, SuccessorPolicy
from sb3_cesd.skill_ddpg.search_space import Interval, hidden_sizes


class CSFReward(DisplacementReward):
    """
    ``(phi(s') - phi(s)) . z`` with contrastive features phi (Zheng et al., "Can a MISL Fly? Analysis and Ingredients for
    Mutual Information Skill Learning", 2025).

    The features maximise ``mean[(phi(s') - phi(s)) . z - w log sum_i exp((phi(s') - phi(s)) . z_i)]`` over single steps, with
    skills z_i drawn afresh for each batch: with w = 1, a lower bound of the mutual information of skill and step, up to a
    constant. This needs neither a constraint nor a dual variable.

    :param net_arch: sizes of the hidden layers of phi
    :param n_negatives: number of skills z_i
    :param negatives_weight: w
    :param scale: factor of the reward
    """

    @checked
    def __init__(
        self,
        *sizes: Any,
        net_arch: Sequence[int] = (256, 256),
        n_negatives: PositiveInt = 256,
        negatives_weight: NonNegative = 5.0,
        scale: Positive = 1.0,
    ) -> None:
        super().__init__(*sizes, net_arch=net_arch, scale=scale)
        self.n_negatives = n_negatives
        self.negatives_weight = negatives_weight

    def draw_directions(self, device: th.device, dtype: th.dtype) -> th.Tensor:
        """Draw the directions of the negative skills z_i, shape ``(n_negatives, skill_dim)``."""
        vectors = self.skill_space.draw_tensor(self.n_negatives, device)
        return self.skill_space.directions(self.skill_space.decode(vectors), dtype)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        displacements = self.step_displacements(samples)
        others = displacements @ self.draw_directions(displacements.device, displacements.dtype).T  # (batch_size, n_negatives)
        return (self.negatives_weight * others.logsumexp(dim=1) - self.progress(displacements, samples.skills)).mean()

    @th.no_grad()
    def relabel(self, samples: SkillReplayBufferSamples) -> SkillReplayBufferSamples:
        """Replace rewards by ``phi(s') - phi(s)``, ``(batch_size, skill_dim)``, which successor features sum up."""
        displacements = self.scale * self.displacements(samples.observations, samples.next_observations)
        self.logs["intrinsic/reward"] = self.progress(displacements, samples.skills).mean()
        pairs = SkillPairs(None, samples.skills, samples.skills, displacements)
        return samples._replace(rewards=displacements, pairs=pairs, actor_skills=samples.skills)


class CSF(SkillDDPG):
    """
    Contrastive Successor Features (Zheng et al., 2025): METRA's reward learned by mutual information alone, with a critic of
    successor features.

    It covers about as much of the state space as METRA with fewer parts: no constraint and no dual variable. As with METRA,
    ``goal_skill`` finds the skill that leads to a goal, and skills are directions kept for an episode: in two dimensions, as
    published for ant and half-cheetah (4 for the quadruped).

    Paper: https://arxiv.org/abs/2412.08021. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`CSFReward`.
    """

    policy_aliases = SUCCESSOR_POLICIES
    policy: SuccessorPolicy
    critic: SuccessorCritic
    critic_target: SuccessorCritic

    reward_class = CSFReward
    defaults = METRA_DEFAULTS
    search_space = {  # noqa: RUF012
        "intrinsic_kwargs": {"net_arch": hidden_sizes, "n_negatives": [64, 256, 1024], "negatives_weight": Interval(1.0, 10.0)}
    }

    def critic_loss(self, replay_data: SkillReplayBufferSamples) -> th.Tensor:
        """
        Compute the squared TD errors of the successor features, whose target is ``phi(s') - phi(s) + gamma psi'(s', a', z)``
        of the critic with the smaller ``psi' . z``; for a task, those of the Q-values.
        """
        if self.reward == "extrinsic":
            return super().critic_loss(replay_data)
        skills = replay_data.skills
        with th.no_grad():
            # The target has no entropy term, as in the released code
            next_actions, _ = self._sample_actions(replay_data.next_observations, skills)
            next_features = self.critic_target.outputs(replay_data.next_observations, next_actions, skills)
            next_values = th.stack(self.critic_target.values_of(next_features, skills))  # (n_critics, batch_size, 1)
            smaller = next_values.argmin(dim=0, keepdim=True).expand(1, *next_features[0].shape)
            chosen = th.stack(next_features).gather(0, smaller).squeeze(0)  # (batch_size, skill_dim)
            target = replay_data.rewards + (1 - replay_data.dones) * replay_data.discounts * chosen
        current = self.critic.outputs(replay_data.observations, replay_data.actions, skills)
        return th.stack([(features - target).square().mean() for features in current]).sum()
