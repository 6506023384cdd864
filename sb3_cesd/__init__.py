from pathlib import Path

from sb3_cesd.baselines import APT, CIC, DADS, DIAYN
from sb3_cesd.cesd import CeSD
from sb3_cesd.common.vec_env import VecSkillObservation
from sb3_cesd.envs import make_batched, register_envs
from sb3_cesd.options import SkillOptions

__version__ = (Path(__file__).parent / "version.txt").read_text().strip()

register_envs()

__all__ = [
    "APT",
    "CIC",
    "DADS",
    "DIAYN",
    "CeSD",
    "SkillOptions",
    "VecSkillObservation",
    "__version__",
    "make_batched",
]
