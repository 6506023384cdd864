"""The algorithms of this package, by the name that RL Zoo's ``--algo`` takes."""

import pkgutil
from importlib import import_module

from sb3_cesd import methods
from sb3_cesd.cesd import CeSD
from sb3_cesd.dreamer import APTDreamer, CeSDDreamer, DIAYNDreamer
from sb3_cesd.skill_ddpg import SkillDDPG


def find_methods() -> dict[str, type[SkillDDPG]]:
    """Find CeSD and the algorithm of each module of :mod:`sb3_cesd.methods`, by the name of the class in lower case."""
    found: list[type[SkillDDPG]] = [CeSD]
    for module_info in pkgutil.iter_modules(methods.__path__):
        module = import_module(f"{methods.__name__}.{module_info.name}")
        for value in vars(module).values():
            # On Python 3.10, isinstance takes dict[str, int] for a class
            if issubclass(type(value), type) and issubclass(value, SkillDDPG) and value.__module__ == module.__name__:
                found.append(value)
    return {method.__name__.lower(): method for method in found}


#: Class of each method, CeSD first
METHODS: dict[str, type[SkillDDPG]] = find_methods()
#: These, and those that learn in the imagination of a world model
ALGORITHMS: dict[str, type[SkillDDPG]] = {
    **METHODS,
    "cesd_dreamer": CeSDDreamer,
    "apt_dreamer": APTDreamer,
    "diayn_dreamer": DIAYNDreamer,
}


def name_of(wanted: str) -> str | None:
    """Find the name of the algorithm whose class has this name, or which has it itself."""
    return next((name for name, algorithm in ALGORITHMS.items() if wanted in (name, algorithm.__name__)), None)
