from collections.abc import Sequence
from typing import Any

import torch as th

from sb3_cesd.common.arguments import Positive, checked
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.intrinsic.dynamics import DynamicsPredictors
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import Interval, one_hidden_size


class ICMReward(IntrinsicReward):
    """
    Surprise, ``log(1 + ||s' - g(s, a)||)`` with a learned dynamics model g (Pathak et al., "Curiosity-driven Exploration by
    Self-supervised Prediction", 2017): high where the outcome of an action was not predicted.

    As in URLB, the model predicts the state itself, so that the inverse model, which predicts a from (s, s'), does not affect
    the reward; and the reward is the logarithm of the error. In the paper, the model predicts features, which learn from the
    inverse model what actions change, and the reward is half the squared error (eq. 6). Both networks learn from a batch
    before its rewards are computed, with equal weights for both losses.

    :param net_arch: sizes of the hidden layers of both networks
    :param scale: factor of the error, within the logarithm
    """

    @checked
    def __init__(self, *sizes: Any, net_arch: Sequence[int] = (256,), scale: Positive = 1.0) -> None:
        super().__init__(*sizes)
        self.scale = scale
        self.dynamics = DynamicsPredictors(self.obs_dim, self.action_dim, net_arch)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return self.dynamics.loss(samples.observations, samples.actions, samples.next_observations)

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        errors = self.dynamics.forward_errors(samples.observations, samples.actions, samples.next_observations)
        return (self.scale * errors).log1p()


class ICM(SkillDDPG):
    """
    Intrinsic Curiosity Module (Pathak et al., 2017): take actions whose outcome a learned model does not predict.

    The reward is the same for all skills. It is good at exploring where the dynamics can be learned; unpredictable noise,
    however, is rewarded forever (see :class:`~sb3_cesd.methods.disagreement.Disagreement`).

    Paper: https://arxiv.org/abs/1705.05363. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`ICMReward`.
    """

    reward_class = ICMReward
    search_space = {"intrinsic_kwargs": {"net_arch": one_hidden_size, "scale": Interval(0.1, 10.0)}}  # noqa: RUF012
