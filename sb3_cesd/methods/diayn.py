import math
from collections.abc import Sequence
from typing import Any

import torch as th
from torch.nn import functional as F

from sb3_cesd.common.arguments import Positive, checked
from sb3_cesd.common.torch_layers import create_orthogonal_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import Interval, hidden_sizes


class DIAYNReward(IntrinsicReward):
    """
    ``log q(z | s') - log p(z)`` with a learned discriminator q and uniform p (Eysenbach et al., "Diversity is All You Need",
    2019, eq. 3): high where a state identifies its skill.

    :param net_arch: sizes of the hidden layers of the discriminator
    :param scale: factor of the reward
    """

    @checked
    def __init__(self, *sizes: Any, net_arch: Sequence[int] = (256, 256), scale: Positive = 1.0) -> None:
        super().__init__(*sizes)
        self.scale = scale
        self.discriminator = create_orthogonal_mlp(self.obs_dim, self.skill_space.n_skills, net_arch)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return F.cross_entropy(self.discriminator(samples.next_observations), samples.skills)

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        log_q = -F.cross_entropy(self.discriminator(samples.next_observations), samples.skills, reduction="none")
        return self.scale * (log_q + math.log(self.skill_space.n_skills))

    @th.no_grad()
    def predict_clusters(self, observations: th.Tensor) -> th.Tensor:
        return self.discriminator(observations).argmax(dim=1)


class DIAYN(SkillDDPG):
    """
    Diversity is All You Need (Eysenbach et al., 2019): each skill visits states that identify it.

    Paper: https://arxiv.org/abs/1802.06070. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`DIAYNReward`.
    """

    reward_class = DIAYNReward
    discrete_because = "as its discriminator classifies skills"
    search_space = {"intrinsic_kwargs": {"net_arch": hidden_sizes, "scale": Interval(0.1, 10.0)}}  # noqa: RUF012
