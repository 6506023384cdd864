import math

import torch as th
from torch import nn
from torch.nn import functional as F

from sb3_cesd.common.torch_layers import create_orthogonal_mlp, one_hot
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.common.utils import check_positive, check_positive_integer
from sb3_cesd.intrinsic.transition import TransitionReward


class DADSReward(TransitionReward):
    """
    ``log q(s' | s, z) - log mean_i q(s' | s, z_i)`` with learned skill dynamics q (Sharma et al., "Dynamics-Aware Unsupervised
    Discovery of Skills", 2020, eq. 6): high where a skill is predictable and unlike the others.

    As in the paper, q is a mixture of Gaussians of unit covariance over the change of the state, and states and changes are
    normalised as by batch normalisation. The change is that over the n-step window of the replay buffer. With one-hot skills
    the mean over skills is exact; the paper draws continuous ones.

    :param obs_dim: size of the state
    :param action_dim: not used
    :param n_skills: number of skills
    :param net_arch: sizes of the hidden layers of the skill dynamics, ``[1024, 1024]`` by default
    :param n_experts: number of Gaussians of the mixture
    :param scale: factor of the reward
    """

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        n_skills: int,
        net_arch: list[int] | None = None,
        n_experts: int = 4,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        check_positive_integer(n_experts=n_experts)
        check_positive(scale=scale)
        self.n_skills = n_skills
        self.n_experts = n_experts
        self.scale = scale
        self.obs_norm = nn.BatchNorm1d(obs_dim, affine=False)
        self.delta_norm = nn.BatchNorm1d(obs_dim, affine=False)
        net_arch = [1024, 1024] if net_arch is None else net_arch
        # A weight and a mean for each expert
        self.dynamics = create_orthogonal_mlp(obs_dim + n_skills, n_experts * (1 + obs_dim), net_arch)

    def check_batch_size(self, batch_size: int) -> None:
        if batch_size < 2:
            raise ValueError(f"batch_size={batch_size} has no variance to normalise by: raise batch_size.")

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        observations = self.obs_norm(samples.observations)
        deltas = self.delta_norm(samples.next_observations - samples.observations)
        return -self._log_density(observations, deltas, one_hot(samples.skills, self.n_skills, observations.dtype)).mean()

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        observations = self._normalize(self.obs_norm, samples.observations)
        deltas = self._normalize(self.delta_norm, samples.next_observations - samples.observations)
        skills = th.eye(self.n_skills, dtype=observations.dtype, device=observations.device)
        batch_size = len(observations)
        log_q = self._log_density(
            observations.repeat_interleave(self.n_skills, dim=0),
            deltas.repeat_interleave(self.n_skills, dim=0),
            skills.repeat(batch_size, 1),
        ).view(batch_size, self.n_skills)
        own = log_q.gather(1, samples.skills[:, None]).squeeze(1)
        return self.scale * (own - log_q.logsumexp(dim=1) + math.log(self.n_skills))

    def _log_density(self, observations: th.Tensor, deltas: th.Tensor, skills: th.Tensor) -> th.Tensor:
        """
        :param observations: normalised s, shape ``(n, obs_dim)``
        :param deltas: normalised s' - s, shape ``(n, obs_dim)``
        :param skills: one-hot, shape ``(n, n_skills)``
        :return: log q up to a constant, shape ``(n,)``
        """
        outputs = self.dynamics(th.cat([observations, skills], dim=1)).view(len(observations), self.n_experts, -1)
        log_weights = outputs[:, :, 0].log_softmax(dim=1)  # (n, n_experts)
        squares = (deltas[:, None] - outputs[:, :, 1:]).square().sum(dim=2)  # (n, n_experts)
        return (log_weights - squares / 2).logsumexp(dim=1)

    @staticmethod
    def _normalize(norm: nn.BatchNorm1d, values: th.Tensor) -> th.Tensor:
        """Normalise by the running statistics, in training too: rewards do not depend on the rest of the batch."""
        return F.batch_norm(values, norm.running_mean, norm.running_var, eps=norm.eps)
