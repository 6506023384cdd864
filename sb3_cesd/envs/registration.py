from typing import Any, NamedTuple

from gymnasium.envs.registration import register, registry

from sb3_cesd.envs.maze_registration import HORIZON, MAZES


class EnvEntry(NamedTuple):
    """
    One environment id.

    :param entry_point: ``module:callable``
    :param max_episode_steps: length of an episode, in steps
    :param kwargs: arguments of the callable
    """

    entry_point: str
    max_episode_steps: int
    kwargs: dict[str, Any]


def _robot(domain: str, task: str, max_episode_steps: int) -> EnvEntry:
    return EnvEntry("sb3_cesd.envs.robot:RobotEnv", max_episode_steps, {"domain": domain, "task": task})


#: All ids. ``<Domain>-v0`` are for pre-training; their reward is that of the primal task and only reported.
ENVS: dict[str, EnvEntry] = {
    "Walker-v0": _robot("walker", "stand", 1000),
    "WalkerStand-v0": _robot("walker", "stand", 1000),
    "WalkerWalk-v0": _robot("walker", "walk", 1000),
    "WalkerRun-v0": _robot("walker", "run", 1000),
    "WalkerFlip-v0": _robot("walker", "flip", 1000),
    "Quadruped-v0": _robot("quadruped", "walk", 1000),
    "QuadrupedStand-v0": _robot("quadruped", "stand", 1000),
    "QuadrupedWalk-v0": _robot("quadruped", "walk", 1000),
    "QuadrupedRun-v0": _robot("quadruped", "run", 1000),
    "QuadrupedJump-v0": _robot("quadruped", "jump", 1000),
    "Jaco-v0": _robot("jaco", "reach_top_left", 250),
    "JacoReachTopLeft-v0": _robot("jaco", "reach_top_left", 250),
    "JacoReachTopRight-v0": _robot("jaco", "reach_top_right", 250),
    "JacoReachBottomLeft-v0": _robot("jaco", "reach_bottom_left", 250),
    "JacoReachBottomRight-v0": _robot("jaco", "reach_bottom_right", 250),
    **{env_id: EnvEntry("sb3_cesd.envs.maze:MazeEnv", HORIZON, {"layout": layout}) for env_id, layout in MAZES.items()},
}


def register_envs() -> None:
    """Register all ids with Gymnasium; harmless when called again."""
    for env_id, entry in ENVS.items():
        if env_id not in registry:
            register(
                env_id, entry_point=entry.entry_point, max_episode_steps=entry.max_episode_steps, kwargs=dict(entry.kwargs)
            )
