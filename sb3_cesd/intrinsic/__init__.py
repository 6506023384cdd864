from sb3_cesd.intrinsic.apt import APTReward
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.intrinsic.cic import CICReward
from sb3_cesd.intrinsic.dads import DADSReward
from sb3_cesd.intrinsic.diayn import DIAYNReward
from sb3_cesd.intrinsic.encoders import ContrastiveEncoder, Encoder, FourierEncoder, ICMEncoder, IdentityEncoder
from sb3_cesd.intrinsic.extrinsic import ExtrinsicReward
from sb3_cesd.intrinsic.transition import TransitionReward

__all__ = [
    "APTReward",
    "CICReward",
    "ContrastiveEncoder",
    "DADSReward",
    "DIAYNReward",
    "Encoder",
    "ExtrinsicReward",
    "FourierEncoder",
    "ICMEncoder",
    "IdentityEncoder",
    "IntrinsicReward",
    "TransitionReward",
]
