"""Methods of the maze benchmark: algorithms with the maze entry of their yml file, and variants."""

import inspect
from collections.abc import Mapping
from typing import Any, NamedTuple

from sb3_cesd import preset, registry
from sb3_cesd.common.arguments import merge

MAZE = "MazeSquareA-v0"  # the entries of all mazes are the same
#: Columns that identify a run, and an estimate by MINE
OF_MAZE = ("method", "maze", "seed", "n_timesteps")
OF_MINE = (*OF_MAZE, "n_iterations")
#: Environment steps of a run, as in the yml files; also those of rows without the column
N_TIMESTEPS = 36_000
#: Exploration noise of all methods except CeSD
WHITE_NOISE = {"exploration_noise": 0.2, "noise_correlation": 0.0}
#: Variants in which one departure of the defaults from the released code is undone
UNDONE: dict[str, dict[str, Any]] = {
    "log1p=True": {"intrinsic_kwargs": {"entropy_kwargs": {"log1p": True}}},
    "entropy=released": {"intrinsic_kwargs": {"entropy_kwargs": {"log1p": True, "scale": "variance"}}},
    "shared_value=False": {"policy_kwargs": {"shared_value": False}},
    "start=0": {"intrinsic_kwargs": {"constraint_kwargs": {"start": 0.0, "freeze_clusters": False}}},
}


#: Arguments that rows tell, though files at laptop scale leave them to the constructor
TOLD = ("n_skills", "skill_duration", "learning_rate", "buffer_size", "learning_starts", "batch_size")


def with_defaults(algo: str, arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Add what rows tell."""
    parameters = inspect.signature(registry.METHODS[algo]).parameters
    return {**{name: parameters[name].default for name in TOLD}, **arguments}


class Method(NamedTuple):
    """
    An algorithm with its arguments.

    :param algo: name in RL Zoo
    :param config: name of the yml file
    :param overrides: arguments of the constructor that differ from it; dictionaries are merged
    """

    algo: str
    config: str
    overrides: Mapping[str, Any] = {}

    def arguments(self) -> dict[str, Any]:
        """Return the arguments of the constructor, and ``n_envs``."""
        settings = preset("published" if self.config not in registry.METHODS else "laptop", MAZE, self.config)
        return merge({**with_defaults(self.algo, settings), "n_envs": settings.n_envs}, self.overrides)


MAIN: dict[str, Method] = {
    "cesd": Method("cesd", "cesd"),
    "released": Method("cesd", "cesd_released"),
    **{name: Method(name, name) for name in registry.METHODS if name != "cesd"},
}
#: The method of which the ablations vary an argument: CeSD with the noise of the others
BASE = "noise=white"
APT_WITH_NOISE = "apt, noise=cesd"
_VARIED: dict[str, dict[str, Any]] = {
    **{f"alpha={alpha:g}": {"intrinsic_kwargs": {"alpha": alpha}} for alpha in (0.1, 2.0, 10.0)},
    **{f"ensemble_size={size}": {"policy_kwargs": {"ensemble_size": size}} for size in (1, 2, 5)},
    **{f"kappa={kappa:g}": {"intrinsic_kwargs": {"relabel_kwargs": {"kappa": kappa}}} for kappa in (0.25, 0.5, 1.0)},
    **UNDONE,
}
ABLATIONS: dict[str, Method] = {
    BASE: Method("cesd", "cesd", WHITE_NOISE),
    **{name: Method("cesd", "cesd", {**WHITE_NOISE, **varied}) for name, varied in _VARIED.items()},
    APT_WITH_NOISE: Method("apt", "apt", {name: MAIN["cesd"].arguments()[name] for name in WHITE_NOISE}),
}
#: CeSD with other numbers of environments and skills than the 20 and 10 of the yml file
NUMBERS: dict[str, Method] = {
    f"{name}={n}": Method("cesd", "cesd", {name: n})
    for name, numbers in {"n_envs": (1, 32), "n_skills": (5, 20, 40)}.items()
    for n in numbers
}
#: The paper's setting, also with InfoNCE for the encoder (a loss it leaves open), and weights of a constraint from the start
PAPER: dict[str, Method] = {
    "paper": Method("cesd", "cesd_paper"),
    "paper, objective=infonce": Method(
        "cesd", "cesd_paper", {"intrinsic_kwargs": {"encoder_kwargs": {"objective": "infonce"}}}
    ),
    **{
        f"start=0, alpha={alpha:g}": Method("cesd", "cesd", merge(UNDONE["start=0"], {"intrinsic_kwargs": {"alpha": alpha}}))
        for alpha in (0.1, 1.0, 2.0, 10.0)
    },
}
METHODS = {**MAIN, **ABLATIONS, **NUMBERS, **PAPER}
