import math
from collections.abc import Sequence
from typing import Any

import torch as th
from torch import nn
from torch.nn import functional as F

from sb3_cesd.common.arguments import Positive, PositiveInt, checked
from sb3_cesd.common.torch_layers import create_orthogonal_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import Interval, hidden_sizes

#: Log-densities under other skills are clipped to within this of that under the followed skill
MAX_LOG_RATIO = 50.0


class DADSReward(IntrinsicReward):
    """
    ``log q(s' | s, z) - log mean_i q(s' | s, z_i)`` with learned skill dynamics q (Sharma et al., "Dynamics-Aware Unsupervised
    Discovery of Skills", 2020, eq. 6): high where a skill is predictable and differs from the others.

    As in the paper, q is a mixture of Gaussians of unit covariance over the change of the state, and states and changes are
    normalised as in batch normalisation. The change is that over the n-step window of the replay buffer. The z_i are all
    skills if they are discrete, else the followed skill and ``n_prior_samples`` others. As in the released code, each
    ``log q(s' | s, z_i)`` is clipped to within 50 of that of the followed skill.

    :param net_arch: sizes of the hidden layers of the skill dynamics
    :param n_experts: number of Gaussians of the mixture
    :param scale: factor of the reward
    :param n_prior_samples: number of continuous skills that the followed skill is compared with
    """

    @checked
    def __init__(
        self,
        *sizes: Any,
        net_arch: Sequence[int] = (256, 256),
        n_experts: PositiveInt = 4,
        scale: Positive = 1.0,
        n_prior_samples: PositiveInt = 16,
    ) -> None:
        super().__init__(*sizes)
        self.n_experts = n_experts
        self.scale = scale
        self.n_prior_samples = n_prior_samples
        self.obs_norm = nn.BatchNorm1d(self.obs_dim, affine=False)
        self.delta_norm = nn.BatchNorm1d(self.obs_dim, affine=False)
        # A weight and a mean for each expert
        self.dynamics = create_orthogonal_mlp(self.obs_dim + self.skill_space.dim, n_experts * (1 + self.obs_dim), net_arch)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        observations = self.obs_norm(samples.observations)
        deltas = self.delta_norm(samples.next_observations - samples.observations)
        return -self._log_density(observations, deltas, self.skill_space.embed(samples.skills, observations.dtype)).mean()

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        observations = self._normalize(self.obs_norm, samples.observations)
        deltas = self._normalize(self.delta_norm, samples.next_observations - samples.observations)
        if self.skill_space.discrete:
            skills = th.eye(self.skill_space.dim, dtype=observations.dtype, device=observations.device)
            log_q = self._log_densities(observations, deltas, skills)  # (batch_size, n_skills)
            own = log_q.gather(1, samples.skills[:, None]).squeeze(1)
        else:
            # The same for the whole batch
            skills = self.skill_space.draw_tensor(self.n_prior_samples, observations.device).to(observations.dtype)
            own = self._log_density(observations, deltas, samples.skills.to(observations.dtype))
            log_q = th.cat([own[:, None], self._log_densities(observations, deltas, skills)], dim=1)
        log_q = log_q.clamp(own[:, None] - MAX_LOG_RATIO, own[:, None] + MAX_LOG_RATIO)
        return self.scale * (own - log_q.logsumexp(dim=1) + math.log(log_q.shape[1]))

    def _log_densities(self, observations: th.Tensor, deltas: th.Tensor, skills: th.Tensor) -> th.Tensor:
        """Compute log q of every change under each of n skills, shape ``(batch_size, n)``."""
        n, batch_size = len(skills), len(observations)
        return self._log_density(
            observations.repeat_interleave(n, dim=0), deltas.repeat_interleave(n, dim=0), skills.repeat(batch_size, 1)
        ).view(batch_size, n)

    def _log_density(self, observations: th.Tensor, deltas: th.Tensor, skills: th.Tensor) -> th.Tensor:
        """Compute log q up to a constant, shape ``(n,)``, from normalised s and s' - s."""
        outputs = self.dynamics(th.cat([observations, skills], dim=1)).view(len(observations), self.n_experts, -1)
        log_weights = outputs[:, :, 0].log_softmax(dim=1)  # (n, n_experts)
        squares = (deltas[:, None] - outputs[:, :, 1:]).square().sum(dim=2)  # (n, n_experts)
        return (log_weights - squares / 2).logsumexp(dim=1)

    @staticmethod
    def _normalize(norm: nn.BatchNorm1d, values: th.Tensor) -> th.Tensor:
        """Normalise by the running statistics, in training too: rewards do not depend on the rest of the batch."""
        return F.batch_norm(values, norm.running_mean, norm.running_var, eps=norm.eps)


class DADS(SkillDDPG):
    """
    Dynamics-Aware Discovery of Skills (Sharma et al., 2020): skills whose outcomes are predictable and differ.

    As in the paper, skills are vectors drawn uniformly from [-1, 1]^d, by default with d = 16; ``skill_type="discrete"`` makes
    them one-hot.

    Paper: https://arxiv.org/abs/1907.01657. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`DADSReward`.
    """

    reward_class = DADSReward
    defaults = {"skill_type": "cube", "skill_dim": 16}  # noqa: RUF012
    search_space = {  # noqa: RUF012
        "intrinsic_kwargs": {
            "net_arch": hidden_sizes,
            "scale": Interval(0.1, 10.0),
            "n_experts": [1, 4, 8],
            "n_prior_samples": [16, 100],
        }
    }
