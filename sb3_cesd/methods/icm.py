from typing import Any

import torch as th

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.intrinsic.dynamics import DynamicsPredictors
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import hidden_sizes, pop


class ICMReward(IntrinsicReward):
    """
    Surprise, ``log(1 + ||s' - g(s, a)||)`` with a learned model g of the dynamics (Pathak et al., "Curiosity-driven
    Exploration by Self-supervised Prediction", 2017): high where an action does what was not foreseen.

    As in URLB, the model predicts the state itself, not features of it, so that the network that tells a from (s, s') does not
    change the reward; and the reward grows with the logarithm of the error, where the paper takes half of its square (eq. 6).
    Both networks learn from a batch before its rewards are computed.

    :param obs_dim: size of the state
    :param action_dim: size of the action
    :param skill_space: not used, the reward is the same for all skills
    :param net_arch: sizes of the hidden layers of both networks, ``[1024]`` by default
    :param scale: factor of the error, within the logarithm
    """

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        skill_space: SkillSpace,
        net_arch: list[int] | None = None,
        scale: float = 1.0,
    ) -> None:
        check_arguments("ICMReward", locals())
        super().__init__(obs_dim, action_dim, skill_space)
        self.scale = scale
        self.dynamics = DynamicsPredictors(obs_dim, action_dim, [1024] if net_arch is None else net_arch)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return self.dynamics.loss(samples.observations, samples.actions, samples.next_observations)

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        errors = self.dynamics.forward_errors(samples.observations, samples.actions, samples.next_observations)
        return (self.scale * errors).log1p()


class ICM(SkillDDPG):
    """
    Intrinsic Curiosity Module (Pathak et al., 2017): take actions whose outcome a learned model does not foresee.

    The reward is the same for all skills. It is good at exploring where the dynamics can be learned; noise, which nobody can
    foresee, keeps paying for ever (see :class:`~sb3_cesd.methods.disagreement.Disagreement`).

    Paper: https://arxiv.org/abs/1705.05363. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`ICMReward`: ``net_arch`` ([1024]) and ``scale`` (1).
    """

    reward_class = ICMReward

    @classmethod
    def draw_hyperparams(cls, trial: Any) -> dict[str, Any]:
        return {**super().draw_hyperparams(trial), "scale": trial.suggest_float("scale", 0.1, 10.0, log=True)}

    @classmethod
    def convert_hyperparams(cls, drawn: dict[str, Any]) -> dict[str, Any]:
        params = super().convert_hyperparams(drawn)
        return {"intrinsic_kwargs": {"net_arch": hidden_sizes(params)[:1], **pop(params, "scale")}, **params}
