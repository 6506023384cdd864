from typing import Any

import torch as th

from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.common.utils import build
from sb3_cesd.intrinsic.encoders import make_encoder
from sb3_cesd.intrinsic.particle_entropy import ParticleEntropy
from sb3_cesd.intrinsic.transition import TransitionReward


class APTReward(TransitionReward):
    """
    Particle entropy of the whole batch (Liu and Abbeel, "Behavior from the Void: Unsupervised Active Pre-Training", 2021).

    The same reward for every skill: skills differ only as far as chance makes them. The defaults are those of URLB, which
    measures distances in features of the intrinsic curiosity module.

    :param obs_dim: size of the state
    :param action_dim: size of the action
    :param n_skills: number of skills
    :param encoder: state representation, see :mod:`sb3_cesd.intrinsic.encoders`
    :param encoder_kwargs: arguments of the encoder
    :param entropy_kwargs: arguments of :class:`~sb3_cesd.intrinsic.particle_entropy.ParticleEntropy`; here ``k`` is 12,
        ``scale`` "variance", ``clip`` 0 and ``log1p`` True by default
    """

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        n_skills: int,
        encoder: str = "icm",
        encoder_kwargs: dict[str, Any] | None = None,
        entropy_kwargs: dict[str, Any] | None = None,
    ) -> None:
        super().__init__()
        self.encoder = make_encoder(encoder, obs_dim, action_dim, n_skills, encoder_kwargs or {})
        published = {"k": 12, "scale": "variance", "clip": 0.0, "log1p": True}
        self.entropy = build("entropy_kwargs", ParticleEntropy, {**published, **(entropy_kwargs or {})})

    def check_batch_size(self, batch_size: int) -> None:
        self.entropy.check_batch_size(batch_size)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor | None:
        return self.encoder.loss(samples)

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        features = self.encoder(samples.next_observations)  # (batch_size, features_dim)
        one_group = th.zeros_like(samples.skills)
        return self.entropy(features, one_group, 1)[0]
