from typing import Annotated, Any

import torch as th

from sb3_cesd.common.arguments import build, checked
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.intrinsic.encoders import make_encoder
from sb3_cesd.intrinsic.particle_entropy import ParticleEntropy
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import ENCODER


class APTReward(IntrinsicReward):
    """
    Particle entropy of the whole batch (Liu and Abbeel, "Behavior from the Void: Unsupervised Active Pre-Training", 2021).

    The reward is the same for all skills, which differ only by chance. Distances are those of features of the intrinsic
    curiosity module. Their scale and clip are those of URLB's first version; later ones have ``scale`` "none" and ``clip`` 0,
    and reward the state that an action leaves.

    :param encoder: state representation, see :data:`~sb3_cesd.intrinsic.encoders.ENCODERS`
    :param encoder_kwargs: arguments of the encoder
    :param entropy_kwargs: arguments of :class:`~sb3_cesd.intrinsic.particle_entropy.ParticleEntropy`; here ``k`` is 8,
        ``scale`` "mean", ``clip`` 0.0001 and ``log1p`` True by default
    """

    @checked
    def __init__(
        self,
        *sizes: Any,
        encoder: str = "icm",
        encoder_kwargs: dict[str, Any] | None = None,
        entropy_kwargs: Annotated[dict[str, Any] | None, ParticleEntropy] = None,
    ) -> None:
        super().__init__(*sizes)
        self.encoder = make_encoder("encoder", encoder, encoder_kwargs, *sizes)
        entropy_kwargs = {"k": 8, "scale": "mean", "clip": 0.0001, "log1p": True, **(entropy_kwargs or {})}
        self.entropy = build("entropy_kwargs", ParticleEntropy, entropy_kwargs)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor | None:
        return self.encoder.loss(samples)

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return self.entropy(self.encoder(samples.next_observations))[0]


class APT(SkillDDPG):
    """
    Active Pre-Training (Liu and Abbeel, 2021): particle entropy alone, the same for all skills.

    Paper: https://arxiv.org/abs/2103.04551. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`APTReward`.
    """

    reward_class = APTReward
    search_space = {"intrinsic_kwargs": ENCODER}  # noqa: RUF012
