import warnings
from typing import Any, NamedTuple

from gymnasium.envs.registration import register, registry

from sb3_cesd.envs.mazes.ids import HORIZON, MAZES
from sb3_cesd.envs.robots.ids import HORIZONS, LOCOMOTION, ROBOTS


class EnvEntry(NamedTuple):
    """
    How an environment id is registered with Gymnasium.

    :param entry_point: ``module:callable``
    :param max_episode_steps: length of an episode, in steps
    :param kwargs: arguments of the callable
    """

    entry_point: str
    max_episode_steps: int
    kwargs: dict[str, Any]


#: All ids
ENVS: dict[str, EnvEntry] = {
    **{
        env_id: EnvEntry("sb3_cesd.envs.robots.env:RobotEnv", HORIZONS[domain], {"domain": domain, "task": task})
        for env_id, (domain, task) in ROBOTS.items()
    },
    **{
        env_id: EnvEntry("sb3_cesd.envs.robots.locomotion:LocomotionEnv", HORIZONS[robot], {"robot": robot})
        for env_id, robot in LOCOMOTION.items()
    },
    **{env_id: EnvEntry("sb3_cesd.envs.mazes.env:MazeEnv", HORIZON, {"layout": layout}) for env_id, layout in MAZES.items()},
}


def register_envs() -> None:
    """Register all ids with Gymnasium, except those that another package has registered; calling it again is harmless."""
    for env_id, entry in ENVS.items():
        if env_id in registry and registry[env_id].entry_point != entry.entry_point:
            warnings.warn(
                f"{env_id} is not that of sb3_cesd, since it was registered with {registry[env_id].entry_point} before: "
                "import sb3_cesd without the package that does so.",
                stacklevel=2,
            )
        if env_id not in registry:
            register(
                env_id, entry_point=entry.entry_point, max_episode_steps=entry.max_episode_steps, kwargs=dict(entry.kwargs)
            )
