import math
from collections.abc import Sequence
from typing import Any, Literal

import torch as th
from torch import nn

from sb3_cesd.common.arguments import NonNegative, Positive, checked
from sb3_cesd.common.torch_layers import create_xavier_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import MakeOptimizer
from sb3_cesd.methods.metra import METRA_DEFAULTS, METRAReward
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import Interval, hidden_sizes


class ChangeDensity(nn.Module):
    """A Gaussian density of the change of the state, ``q(s' - s | s) = N(mu(s), diag(sigma(s))^2)``."""

    #: Limits of log sigma
    LIMITS = (math.log(1e-6), math.log(1e6))

    def __init__(self, obs_dim: int, net_arch: Sequence[int]) -> None:
        super().__init__()
        self.mean = create_xavier_mlp(obs_dim, obs_dim, net_arch)
        self.log_std = create_xavier_mlp(obs_dim, obs_dim, net_arch)

    def forward(self, observations: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """Compute mu and log sigma, both of shape ``(n, obs_dim)``."""
        return self.mean(observations), self.log_std(observations).clamp(*self.LIMITS)

    def loss(self, observations: th.Tensor, changes: th.Tensor) -> th.Tensor:
        """Compute the mean of ``-log q``."""
        mean, log_std = self(observations)
        squares = ((changes - mean) / log_std.exp()).square()
        return (squares / 2 + log_std + math.log(2 * math.pi) / 2).sum(dim=1).mean()


class CSDReward(METRAReward):
    """
    ``(phi(s') - phi(s)) . z`` with features phi in which steps are the longer, the harder they are to achieve (Park et al.,
    "Controllability-Aware Unsupervised Skill Discovery", 2023).

    As METRA, except for the bound on the squared step, which is ``mean_i w_i (s'_i - s_i - mu_i)^2``: with a Gaussian density
    of changes, ``N(mu(s), sigma(s))``, learned by maximum likelihood, rare changes count more.

    :param net_arch: sizes of the hidden layers of phi and of both networks of the density
    :param lambda_init: initial value of the dual variable
    :param slack: slack of the constraint: a squared step gains nothing by staying further than this below its bound
    :param norm: how the squared step is summed up, see :class:`~sb3_cesd.methods.metra.METRAReward`
    :param weights: w: ``"normalized"`` divides 1 / sigma by its geometric mean over the dimensions before squaring, as in the
        released code; ``"precision"`` is 1 / sigma^2
    :param scale: factor of the reward
    """

    @checked
    def __init__(
        self,
        *sizes: Any,
        net_arch: Sequence[int] = (256, 256),
        lambda_init: Positive = 3000.0,
        slack: NonNegative = 1e-6,
        norm: Literal["mean", "sum"] = "mean",
        weights: Literal["normalized", "precision"] = "normalized",
        scale: Positive = 10.0,
    ) -> None:
        super().__init__(*sizes, net_arch=net_arch, lambda_init=lambda_init, slack=slack, norm=norm, scale=scale)
        self.weights = weights
        self.density = ChangeDensity(self.obs_dim, net_arch)

    def set_optimizers(self, make_optimizer: MakeOptimizer) -> None:
        super().set_optimizers(make_optimizer)
        self.density_optimizer = make_optimizer(list(self.density.parameters()))

    @th.no_grad()
    def bounds(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        mean, log_std = self.density(samples.observations)
        if self.weights == "normalized":
            log_std = log_std - log_std.mean(dim=1, keepdim=True)
        weights = (-2 * log_std).exp()  # w, (batch_size, obs_dim)
        return (weights * (self._changes(samples) - mean).square()).mean(dim=1)

    def update(self, samples: SkillReplayBufferSamples) -> None:
        super().update(samples)
        density_loss = self.density.loss(samples.observations, self._changes(samples))
        self.step(self.density_optimizer, density_loss)
        self.logs["train/density_loss"] = density_loss.detach()

    def _changes(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        assert samples.one_step_observations is not None
        return samples.one_step_observations - samples.observations


class CSD(SkillDDPG):
    """
    Controllability-aware Skill Discovery (Park et al., 2023): skills that make changes that are hard to achieve.

    METRA measures how many steps a change takes and LSD how far it is between observations; CSD measures how unlikely it is,
    so that objects that seldom move (in manipulation, for instance) matter more than the agent's own body. As with METRA,
    ``goal_skill`` finds the skill that leads to a goal.

    As published, skills are discrete (16 of them), each kept for an episode. The policy is that of
    :class:`~sb3_cesd.methods.metra.METRA`. The released code learns on-policy: after 10 episodes, it makes 64 updates
    of policy and critics and then 32 of the features, all with 1024 transitions. It also fixes the entropy coefficient
    (``ent_coef=0.03`` for the ant, ``0.1`` for the half-cheetah).

    Paper: https://arxiv.org/abs/2302.05103. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`CSDReward`.
    """

    reward_class = CSDReward
    defaults = {**METRA_DEFAULTS, "skill_type": "discrete", "skill_dim": None}  # noqa: RUF012
    search_space = {  # noqa: RUF012
        "intrinsic_kwargs": {
            "net_arch": hidden_sizes,
            "lambda_init": Interval(30.0, 10_000.0),
            "slack": Interval(1e-7, 1e-3),
            "weights": ["normalized", "precision"],
            "scale": Interval(1.0, 100.0),
        }
    }
