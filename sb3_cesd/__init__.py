from importlib import import_module
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sb3_cesd.cesd import CeSD
from sb3_cesd.common.vec_env import VecSkillObservation
from sb3_cesd.dreamer import APTDreamer, CeSDDreamer, DIAYNDreamer, SkillDreamer
from sb3_cesd.envs import make_batched, register_envs
from sb3_cesd.options import SkillOptions
from sb3_cesd.presets import preset
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg import SkillDDPG

if TYPE_CHECKING:
    from sb3_cesd import _method_names
    from sb3_cesd._method_names import *  # noqa: F403
    from sb3_cesd.show import show_skills

__version__ = (Path(__file__).parent / "version.txt").read_text().strip()

register_envs()

__all__ = [
    "METHODS",
    "APTDreamer",
    "CeSD",
    "CeSDDreamer",
    "DIAYNDreamer",
    "SkillDDPG",
    "SkillDreamer",
    "SkillOptions",
    "VecSkillObservation",
    "__version__",
    "make_batched",
    "preset",
    "show_skills",
]

if TYPE_CHECKING:
    __all__ += _method_names.__all__
else:
    # Each method by the name of its class: from sb3_cesd import DIAYN
    globals().update({method.__name__: method for method in METHODS.values()})
    __all__ += [method.__name__ for method in METHODS.values() if method is not CeSD]

    def __getattr__(name: str) -> Any:
        """Import slow modules on first use."""
        if name == "show_skills":
            return import_module("sb3_cesd.show").show_skills
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
