import math
from typing import Any

import torch as th
from torch.nn import functional as F

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.common.torch_layers import create_orthogonal_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import to_intrinsic


class DIAYNReward(IntrinsicReward):
    """
    ``log q(z | s') - log p(z)`` with a learned discriminator q and uniform p (Eysenbach et al., "Diversity is All You Need",
    2019, eq. 3): high where a state identifies its skill.

    :param obs_dim: size of the state
    :param action_dim: not used
    :param skill_space: space of the skills, discrete
    :param net_arch: sizes of the hidden layers of the discriminator, ``[1024, 1024]`` by default
    :param scale: factor of the reward
    """

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        skill_space: SkillSpace,
        net_arch: list[int] | None = None,
        scale: float = 1.0,
    ) -> None:
        check_arguments("DIAYNReward", locals())
        super().__init__(obs_dim, action_dim, skill_space)
        self.scale = scale
        net_arch = [1024, 1024] if net_arch is None else net_arch
        self.discriminator = create_orthogonal_mlp(obs_dim, skill_space.n_skills, net_arch)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return F.cross_entropy(self.discriminator(samples.next_observations), samples.skills)

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        log_q = self.discriminator(samples.next_observations).log_softmax(dim=1)  # (batch_size, n_skills)
        log_q = log_q.gather(1, samples.skills[:, None]).squeeze(1)
        return self.scale * (log_q + math.log(self.skill_space.n_skills))

    @th.no_grad()
    def predict_clusters(self, observations: th.Tensor) -> th.Tensor:
        return self.discriminator(observations).argmax(dim=1)


class DIAYN(SkillDDPG):
    """
    Diversity is All You Need (Eysenbach et al., 2019): each skill visits states that identify it.

    Paper: https://arxiv.org/abs/1802.06070. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`DIAYNReward`: ``net_arch`` ([1024, 1024]) and ``scale`` (1).
    """

    reward_class = DIAYNReward
    discrete_because = "as its discriminator classifies skills"

    @classmethod
    def draw_hyperparams(cls, trial: Any) -> dict[str, Any]:
        return {**super().draw_hyperparams(trial), "scale": trial.suggest_float("scale", 0.1, 10.0, log=True)}

    @classmethod
    def convert_hyperparams(cls, drawn: dict[str, Any]) -> dict[str, Any]:
        return to_intrinsic(super().convert_hyperparams(drawn), "scale")
