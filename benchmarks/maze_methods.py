"""What the maze benchmark compares: a method is an algorithm with the maze entry of its yml file, and what differs from it."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

from entries import UNDONE, read_entry

MAZE = "MazeSquareA-v0"  # the entries of all mazes are the same


#: Exploration noise of all methods but the default of CeSD
WHITE_NOISE = {"exploration_noise": 0.2, "noise_correlation": 0.0}


class Method(NamedTuple):
    """
    :param algo: name in RL Zoo
    :param config: name of the yml file
    :param overrides: arguments of the constructor that differ from the yml file; those that are dicts are merged with it
    """

    algo: str
    config: str
    overrides: Mapping[str, Any] = MappingProxyType({})

    def arguments(self) -> dict[str, Any]:
        """
        :return: arguments of the constructor, and ``n_timesteps`` and ``n_envs``
        """
        return read_entry(self.config, MAZE, self.overrides)


MAIN: dict[str, Method] = {
    "cesd": Method("cesd", "cesd"),
    "released": Method("cesd", "cesd_released"),
    "apt": Method("apt", "apt"),
    "diayn": Method("diayn", "diayn"),
    "cic": Method("cic", "cic"),
    "dads": Method("dads", "dads"),
}


def with_white_noise(overrides: Mapping[str, Any] = MappingProxyType({})) -> Method:
    """
    :param overrides: what is varied
    :return: CeSD with the exploration noise of the other methods
    """
    return Method("cesd", "cesd", {**WHITE_NOISE, **overrides})


#: What the ablations vary an argument of
BASE = "noise=white"
APT_WITH_NOISE = "apt, noise=cesd"
ABLATIONS: dict[str, Method] = {
    BASE: with_white_noise(),
    **{f"alpha={alpha:g}": with_white_noise({"alpha": alpha}) for alpha in (0.1, 2.0, 10.0)},
    **{f"ensemble_size={size}": with_white_noise({"ensemble_size": size}) for size in (1, 2, 5)},
    **{f"kappa={kappa:g}": with_white_noise({"relabel_kwargs": {"kappa": kappa}}) for kappa in (0.25, 0.5, 1.0)},
    **{name: with_white_noise(overrides) for name, overrides in UNDONE.items()},
    APT_WITH_NOISE: Method("apt", "apt", {name: MAIN["cesd"].arguments()[name] for name in WHITE_NOISE}),
}
#: The same with another number of environments than the 20 of the yml file
ENVIRONMENTS: dict[str, Method] = {f"n_envs={n_envs}": Method("cesd", "cesd", {"n_envs": n_envs}) for n_envs in (1, 32)}
METHODS = {**MAIN, **ABLATIONS, **ENVIRONMENTS}
