from pathlib import Path

from sb3_cesd.cesd import CeSD
from sb3_cesd.common.vec_env import VecSkillObservation
from sb3_cesd.envs import make_batched, register_envs
from sb3_cesd.options import SkillOptions
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg import SkillDDPG

__version__ = (Path(__file__).parent / "version.txt").read_text().strip()

register_envs()

_CLASSES = {method.__name__: method for method in METHODS.values()}

__all__ = [
    "METHODS",
    "CeSD",
    "SkillDDPG",
    "SkillOptions",
    "VecSkillObservation",
    "__version__",
    "make_batched",
]
__all__ += [name for name in _CLASSES if name not in __all__]


def __getattr__(name: str) -> type[SkillDDPG]:
    """Methods by the name of their class: ``from sb3_cesd import DIAYN``."""
    if name in _CLASSES:
        return _CLASSES[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_CLASSES})
