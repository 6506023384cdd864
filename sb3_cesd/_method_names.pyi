# Written by `make format`, from the methods that are found
from sb3_cesd.methods.aps import APS
from sb3_cesd.methods.apt import APT
from sb3_cesd.methods.becl import BeCL
from sb3_cesd.methods.cic import CIC
from sb3_cesd.methods.csd import CSD
from sb3_cesd.methods.csf import CSF
from sb3_cesd.methods.dads import DADS
from sb3_cesd.methods.diayn import DIAYN
from sb3_cesd.methods.disagreement import Disagreement
from sb3_cesd.methods.icm import ICM
from sb3_cesd.methods.lsd import LSD
from sb3_cesd.methods.metra import METRA
from sb3_cesd.methods.protorl import ProtoRL
from sb3_cesd.methods.rnd import RND
from sb3_cesd.methods.smm import SMM

__all__ = [  # noqa: RUF022
    "APS",
    "APT",
    "BeCL",
    "CIC",
    "CSD",
    "CSF",
    "DADS",
    "DIAYN",
    "Disagreement",
    "ICM",
    "LSD",
    "METRA",
    "ProtoRL",
    "RND",
    "SMM",
]
