"""State representations in which clusters are formed and distances are measured."""

from sb3_cesd.intrinsic.encoders.base import Encoder
from sb3_cesd.intrinsic.encoders.contrastive import ContrastiveEncoder
from sb3_cesd.intrinsic.encoders.fixed import FourierEncoder, IdentityEncoder
from sb3_cesd.intrinsic.encoders.icm import ICMEncoder
from sb3_cesd.intrinsic.encoders.make import ENCODERS, make_encoder
from sb3_cesd.intrinsic.encoders.temporal import TemporalEncoder

__all__ = [
    "ENCODERS",
    "ContrastiveEncoder",
    "Encoder",
    "FourierEncoder",
    "ICMEncoder",
    "IdentityEncoder",
    "TemporalEncoder",
    "make_encoder",
]
