"""Methods of the maze benchmark: algorithms with the maze entry of their yml file, and variants."""

import inspect
from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from entries import UNDONE, read_entry

from sb3_cesd import registry
from sb3_cesd.common.merging import merge

MAZE = "MazeSquareA-v0"  # the entries of all mazes are the same


#: Exploration noise of all methods except CeSD
WHITE_NOISE = {"exploration_noise": 0.2, "noise_correlation": 0.0}


class Method(NamedTuple):
    """
    An algorithm with its arguments.

    :param algo: name in RL Zoo
    :param config: name of the yml file
    :param overrides: arguments of the constructor that differ from the yml file, see :func:`~entries.read_entry`
    """

    algo: str
    config: str
    overrides: Mapping[str, Any] = MappingProxyType({})

    def arguments(self) -> dict[str, Any]:
        """
        Read the yml file.

        :return: arguments of the constructor, and ``n_timesteps`` and ``n_envs``
        """
        return read_entry(self.config, MAZE, self.overrides)


#: Default number of environment steps of a run, as in the yml files; also that of rows without the column
N_TIMESTEPS = 36_000

MAIN: dict[str, Method] = {
    "cesd": Method("cesd", "cesd"),
    "released": Method("cesd", "cesd_released"),
    **{name: Method(name, name) for name in registry.METHODS if name != "cesd"},
}


def with_white_noise(overrides: Mapping[str, Any] = MappingProxyType({})) -> Method:
    """
    Create a variant of CeSD.

    :param overrides: arguments that differ
    :return: CeSD with the exploration noise of the other methods
    """
    return Method("cesd", "cesd", merge(WHITE_NOISE, overrides))


def with_continuous_skills() -> dict[str, Method]:
    """
    Find the methods that have continuous skills by default; in mazes, the entries of all methods have discrete ones.

    :return: these methods with continuous skills, of which ten are played
    """
    parameters = {name: inspect.signature(method.__init__).parameters for name, method in registry.METHODS.items()}
    skill_types = {name: of_method["skill_type"].default for name, of_method in parameters.items()}
    return {
        f"{name}, skills={skill_type}": Method(
            name, name, {"skill_type": skill_type, "skill_dim": parameters[name]["skill_dim"].default}
        )
        for name, skill_type in skill_types.items()
        if skill_type != "discrete"
    }


#: The method of which the ablations vary an argument
BASE = "noise=white"
APT_WITH_NOISE = "apt, noise=cesd"
ABLATIONS: dict[str, Method] = {
    BASE: with_white_noise(),
    **{f"alpha={alpha:g}": with_white_noise({"intrinsic_kwargs": {"alpha": alpha}}) for alpha in (0.1, 2.0, 10.0)},
    **{f"ensemble_size={size}": with_white_noise({"policy_kwargs": {"ensemble_size": size}}) for size in (1, 2, 5)},
    **{
        f"kappa={kappa:g}": with_white_noise({"intrinsic_kwargs": {"relabel_kwargs": {"kappa": kappa}}})
        for kappa in (0.25, 0.5, 1.0)
    },
    **{name: with_white_noise(overrides) for name, overrides in UNDONE.items()},
    APT_WITH_NOISE: Method("apt", "apt", {name: MAIN["cesd"].arguments()[name] for name in WHITE_NOISE}),
}
#: CeSD with another number of environments than the 20 of the yml file
ENVIRONMENTS: dict[str, Method] = {f"n_envs={n_envs}": Method("cesd", "cesd", {"n_envs": n_envs}) for n_envs in (1, 32)}
#: CeSD with another number of skills than the 10 of the yml file
NUMBERS: dict[str, Method] = {f"n_skills={n}": Method("cesd", "cesd", {"n_skills": n}) for n in (5, 20, 40)}
CONTINUOUS = with_continuous_skills()
METHODS = {**MAIN, **ABLATIONS, **ENVIRONMENTS, **NUMBERS, **CONTINUOUS}
