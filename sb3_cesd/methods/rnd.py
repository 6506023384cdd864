from typing import Any

import torch as th
from torch import nn
from torch.nn import functional as F

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.choices import ObservationStatistics, TransitionEnd
from sb3_cesd.common.running_mean_std import RunningVariance
from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.common.torch_layers import create_orthogonal_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import to_intrinsic


class RNDReward(IntrinsicReward):
    """
    Error of a network that predicts a frozen random one, ``mean (g(s) - f(s))^2``, divided by its running standard deviation
    (Burda et al., "Exploration by Random Network Distillation", 2019): high in states that were seldom seen.

    States are normalised and clipped to +-5, and the predictor learns from a batch before the rewards of the same batch are
    computed. By default, as in URLB, the error is that of s, and states are normalised by the statistics of their batch. In
    the paper it is that of s' (``state="next"``), normalised by running statistics (``obs_statistics="running"``,
    here exponential averages over some ten batches).

    :param obs_dim: size of the state
    :param action_dim: not used
    :param skill_space: not used, the reward is the same for all skills
    :param features_dim: number of outputs of both networks
    :param net_arch: sizes of their hidden layers, ``[1024, 1024]`` by default
    :param clip: absolute value at which normalised states are clipped
    :param scale: factor of the reward
    :param state: whether the error is that of the ``"current"`` state s or of the ``"next"`` one, n steps later
    :param obs_statistics: mean and variance that normalise states in training, those of the ``"batch"`` or ``"running"`` ones
    """

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        skill_space: SkillSpace,
        features_dim: int = 512,
        net_arch: list[int] | None = None,
        clip: float = 5.0,
        scale: float = 1.0,
        state: TransitionEnd = "current",
        obs_statistics: ObservationStatistics = "batch",
    ) -> None:
        check_arguments("RNDReward", locals())
        super().__init__(obs_dim, action_dim, skill_space)
        self.clip = clip
        self.scale = scale
        self.state = state
        self.obs_statistics = obs_statistics
        net_arch = [1024, 1024] if net_arch is None else net_arch
        self.predictor = create_orthogonal_mlp(obs_dim, features_dim, net_arch)
        self.target = create_orthogonal_mlp(obs_dim, features_dim, net_arch).requires_grad_(False)
        self.obs_norm = nn.BatchNorm1d(obs_dim, affine=False)
        self.statistics = RunningVariance()

    def check_batch_size(self, batch_size: int) -> None:
        if batch_size < 2:
            raise ValueError(f"batch_size={batch_size} has no variance to normalise by: raise batch_size.")

    def errors(self, observations: th.Tensor) -> th.Tensor:
        """
        Compute the errors of the predictor.

        :param observations: normalised states, shape ``(batch_size, obs_dim)``
        :return: mean squared errors, shape ``(batch_size,)``
        """
        observations = observations.clamp(-self.clip, self.clip)
        return (self.predictor(observations) - self.target(observations)).square().mean(dim=1)

    def states(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        """
        Select the states whose error is computed.

        :param samples: a batch of transitions
        :return: s or s', shape ``(batch_size, obs_dim)``
        """
        return samples.observations if self.state == "current" else samples.next_observations

    def normalised(self, states: th.Tensor) -> th.Tensor:
        """
        Normalise states by the statistics of their batch (in training, by default), or by the running ones, unchanged.

        :param states: shape ``(batch_size, obs_dim)``
        :return: the same, normalised
        """
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
            one_group = th.zeros(len(errors), dtype=th.long, device=errors.device)
            self.statistics.update(errors[:, None], one_group, 1, one_group == 0)
        return self.scale * errors / (self.statistics.var.to(errors.dtype).sqrt() + 1e-8)


class RND(SkillDDPG):
    """
    Random Network Distillation (Burda et al., 2019): visit states that a network has not learned to predict yet.

    The reward is the same for all skills.

    Paper: https://arxiv.org/abs/1810.12894. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`RNDReward`: ``features_dim`` (512), ``net_arch`` ([1024, 1024]), ``clip`` (5),
    ``scale`` (1), ``state`` ("current") and ``obs_statistics`` ("batch").
    """

    reward_class = RNDReward

    @classmethod
    def draw_hyperparams(cls, trial: Any) -> dict[str, Any]:
        return {
            **super().draw_hyperparams(trial),
            "scale": trial.suggest_float("scale", 0.1, 10.0, log=True),
            "features_dim": trial.suggest_categorical("features_dim", [64, 256, 512]),
        }

    @classmethod
    def convert_hyperparams(cls, drawn: dict[str, Any]) -> dict[str, Any]:
        return to_intrinsic(super().convert_hyperparams(drawn), "scale", "features_dim")
