from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.intrinsic.encoders import ContrastiveEncoder, Encoder, FourierEncoder, IdentityEncoder

__all__ = ["ContrastiveEncoder", "Encoder", "FourierEncoder", "IdentityEncoder", "IntrinsicReward"]
