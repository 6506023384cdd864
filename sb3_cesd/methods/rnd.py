from collections.abc import Sequence
from typing import Any

import torch as th
from torch import nn
from torch.nn import functional as F

from sb3_cesd.common.arguments import Positive, PositiveInt, checked
from sb3_cesd.common.torch_layers import create_orthogonal_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.intrinsic.particle_entropy import RunningVariance
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import Interval, hidden_sizes


class RNDReward(IntrinsicReward):
    """
    Error of a network that predicts a frozen random one, ``mean (g(s) - f(s))^2``, divided by its running standard deviation
    (Burda et al., "Exploration by Random Network Distillation", 2019): high in states that were seldom seen.

    States are normalised and clipped to +-5, and the predictor learns from a batch before the rewards of the same batch are
    computed. As in URLB, the error is that of s, and states are normalised by the statistics of their batch. In the paper it
    is that of s', normalised by running statistics.

    :param features_dim: number of outputs of both networks
    :param net_arch: sizes of their hidden layers
    :param clip: absolute value at which normalised states are clipped
    :param scale: factor of the reward
    """

    @checked
    def __init__(
        self,
        *sizes: Any,
        features_dim: PositiveInt = 128,
        net_arch: Sequence[int] = (256, 256),
        clip: Positive = 5.0,
        scale: Positive = 1.0,
    ) -> None:
        super().__init__(*sizes)
        self.clip = clip
        self.scale = scale
        self.predictor = create_orthogonal_mlp(self.obs_dim, features_dim, net_arch)
        self.target = create_orthogonal_mlp(self.obs_dim, features_dim, net_arch).requires_grad_(False)
        self.obs_norm = nn.BatchNorm1d(self.obs_dim, affine=False)
        self.statistics = RunningVariance()

    def errors(self, observations: th.Tensor) -> th.Tensor:
        """Compute the mean squared errors of normalised states, shape ``(batch_size,)``."""
        observations = observations.clamp(-self.clip, self.clip)
        return (self.predictor(observations) - self.target(observations)).square().mean(dim=1)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        # In training, normalises by the batch and updates the running statistics
        return self.errors(self.obs_norm(samples.observations)).mean()

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        # By the batch in training, else by the running statistics, which stay as they are
        statistics = (None, None) if self.training else (self.obs_norm.running_mean, self.obs_norm.running_var)
        normalised = F.batch_norm(samples.observations, *statistics, training=self.training, eps=self.obs_norm.eps)
        errors = self.errors(normalised)
        if self.training:
            self.statistics.update(errors[:, None])
        return self.scale * errors / (self.statistics.var.to(errors.dtype).sqrt() + 1e-8)


class RND(SkillDDPG):
    """
    Random Network Distillation (Burda et al., 2019): visit states that a network has not learned to predict yet.

    The reward is the same for all skills.

    Paper: https://arxiv.org/abs/1810.12894. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`RNDReward`.
    """

    reward_class = RNDReward
    search_space = {  # noqa: RUF012
        "intrinsic_kwargs": {"net_arch": hidden_sizes, "scale": Interval(0.1, 10.0), "features_dim": [64, 256, 512]}
    }
