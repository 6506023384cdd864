from collections.abc import Sequence
from typing import Any, Literal

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
    computed. By default, as in URLB, the error is that of s, and states are normalised by the statistics of their batch. In
    the paper it is that of s' (``state="next"``), normalised by running statistics (``obs_statistics="running"``,
    here exponential averages over some ten batches).

    :param features_dim: number of outputs of both networks
    :param net_arch: sizes of their hidden layers
    :param clip: absolute value at which normalised states are clipped
    :param scale: factor of the reward
    :param state: whether the error is that of the ``"current"`` state s or of the ``"next"`` one, n steps later
    :param obs_statistics: mean and variance that normalise states in training, those of the ``"batch"`` or ``"running"`` ones
    """

    @checked
    def __init__(
        self,
        *sizes: Any,
        features_dim: PositiveInt = 128,
        net_arch: Sequence[int] = (256, 256),
        clip: Positive = 5.0,
        scale: Positive = 1.0,
        state: Literal["current", "next"] = "current",
        obs_statistics: Literal["batch", "running"] = "batch",
    ) -> None:
        super().__init__(*sizes)
        self.clip = clip
        self.scale = scale
        self.state = state
        self.obs_statistics = obs_statistics
        self.predictor = create_orthogonal_mlp(self.obs_dim, features_dim, net_arch)
        self.target = create_orthogonal_mlp(self.obs_dim, features_dim, net_arch).requires_grad_(False)
        self.obs_norm = nn.BatchNorm1d(self.obs_dim, affine=False)
        self.statistics = RunningVariance()

    def errors(self, observations: th.Tensor) -> th.Tensor:
        """Compute the mean squared errors of normalised states, shape ``(batch_size,)``."""
        observations = observations.clamp(-self.clip, self.clip)
        return (self.predictor(observations) - self.target(observations)).square().mean(dim=1)

    def states(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return samples.observations if self.state == "current" else samples.next_observations

    def normalised(self, states: th.Tensor) -> th.Tensor:
        """Normalise states by the statistics of their batch (in training, by default), or by the running ones, unchanged."""
        by_batch = self.training and self.obs_statistics == "batch"
        statistics = (None, None) if by_batch else (self.obs_norm.running_mean, self.obs_norm.running_var)
        return F.batch_norm(states, *statistics, training=by_batch, eps=self.obs_norm.eps)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        states = self.states(samples)
        # In training, normalises by the batch and updates the running statistics
        normalised = self.obs_norm(states)
        if self.obs_statistics == "running":
            normalised = self.normalised(states)
        return self.errors(normalised).mean()

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        errors = self.errors(self.normalised(self.states(samples)))
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
