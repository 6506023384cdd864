"""State representations that are not learned."""

import math

import torch as th
from torch.nn import functional as F

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.intrinsic.encoders.base import Encoder


class IdentityEncoder(Encoder):
    """
    The state itself.

    :param obs_dim: size of the state
    :param action_dim: not used
    :param skill_space: not used
    """

    def __init__(self, obs_dim: int, action_dim: int, skill_space: SkillSpace) -> None:
        super().__init__(obs_dim)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        return observations


class FourierEncoder(Encoder):
    """
    Random Fourier features of a Gaussian kernel (Rahimi and Recht, 2007): ``sqrt(2 / m) cos(W s / length_scale + b)`` with
    ``W ~ N(0, 1)`` and ``b ~ U(0, 2 pi)``, drawn once. Nothing is learned.

    :param obs_dim: size of the state
    :param action_dim: not used
    :param skill_space: not used
    :param features_dim: m
    :param length_scale: distance over which states become dissimilar, in the units of the observation
    """

    weight: th.Tensor
    phase: th.Tensor

    def __init__(
        self, obs_dim: int, action_dim: int, skill_space: SkillSpace, features_dim: int = 64, length_scale: float = 1.0
    ) -> None:
        check_arguments("FourierEncoder", locals())
        super().__init__(features_dim)
        self.register_buffer("weight", th.randn(features_dim, obs_dim) / length_scale)
        self.register_buffer("phase", th.rand(features_dim) * 2 * math.pi)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        return math.sqrt(2 / self.features_dim) * th.cos(F.linear(observations, self.weight, self.phase))
