"""Intrinsic rewards and their components."""

from sb3_cesd.intrinsic.base import ExtrinsicReward, IntrinsicReward
from sb3_cesd.intrinsic.encoders import ContrastiveEncoder, Encoder, FourierEncoder, ICMEncoder, IdentityEncoder
from sb3_cesd.intrinsic.particle_entropy import ParticleEntropy

__all__ = [
    "ContrastiveEncoder",
    "Encoder",
    "ExtrinsicReward",
    "FourierEncoder",
    "ICMEncoder",
    "IdentityEncoder",
    "IntrinsicReward",
    "ParticleEntropy",
]
