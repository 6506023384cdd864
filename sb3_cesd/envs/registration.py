"""Ids of all environments."""

from typing import Any

import gymnasium as gym

from sb3_cesd.envs.mazes.layouts import HORIZON, MAZES

#: Length of an episode of each domain, in steps
HORIZONS: dict[str, int] = {"walker": 1000, "quadruped": 1000, "jaco": 250, "ant": 200, "half_cheetah": 200}

#: Domain -> tasks; a domain is a module of the folder ``robots``
TASKS = {
    "walker": ("stand", "walk", "run", "flip"),
    "quadruped": ("stand", "walk", "run", "jump"),
    "jaco": ("reach_top_left", "reach_top_right", "reach_bottom_left", "reach_bottom_right"),
}
#: Id -> (domain, task), e.g. ``JacoReachTopLeft-v0``
TASK_IDS: dict[str, tuple[str, str]] = {
    f"{domain.title()}{task.title().replace('_', '')}-v0": (domain, task) for domain, tasks in TASKS.items() for task in tasks
}
#: The same with ``<Domain>-v0``, which are for pre-training; their reward is that of the primal task, and is only reported
ROBOTS = {
    "Walker-v0": ("walker", "stand"),
    "Quadruped-v0": ("quadruped", "walk"),
    "Jaco-v0": ("jaco", "reach_top_left"),
    **TASK_IDS,
}

#: Id -> domain of the robots of METRA and its successors, for pre-training, with Gymnasium's models
LOCOMOTION: dict[str, str] = {"SkillAnt-v0": "ant", "SkillHalfCheetah-v0": "half_cheetah"}


def pixels_id(env_id: str) -> str:
    """Name the environment that observes pictures in place of vectors."""
    return env_id.replace("-v0", "Pixels-v0")


#: Id -> entry point, length of an episode, arguments
ENVS: dict[str, tuple[str, int, dict[str, Any]]] = {
    **{
        env_id: ("sb3_cesd.envs.robots.env:RobotEnv", HORIZONS[domain], {"domain": domain, "task": task})
        for env_id, (domain, task) in ROBOTS.items()
    },
    **{
        env_id: (f"sb3_cesd.envs.robots.locomotion:{env_id.removesuffix('-v0')}", HORIZONS[robot], {})
        for env_id, robot in LOCOMOTION.items()
    },
    **{env_id: ("sb3_cesd.envs.mazes.env:MazeEnv", HORIZON, {"layout": layout}) for env_id, layout in MAZES.items()},
}
#: The same for environments that observe pictures, e.g. ``MazeSquareAPixels-v0``; robots of URLB repeat each action
PIXEL_ENVS: dict[str, tuple[str, int, dict[str, Any]]] = {
    **{
        pixels_id(env_id): ("sb3_cesd.envs.robots.pixels:RobotPixelsEnv", ENVS[env_id][1] // 2, ENVS[env_id][2])
        for env_id in ROBOTS
    },
    "SkillAntPixels-v0": ("sb3_cesd.envs.robots.pixels:SkillAntPixels", HORIZONS["ant"], {}),
    **{
        pixels_id(env_id): ("sb3_cesd.envs.mazes.env:MazeEnv", HORIZON, {"layout": layout, "image_size": 32})
        for env_id, layout in MAZES.items()
    },
}


def register_envs() -> None:
    """Register all ids with Gymnasium; calling it again is harmless."""
    for env_id, (entry_point, n_steps, kwargs) in {**ENVS, **PIXEL_ENVS}.items():
        if env_id not in gym.registry:
            gym.register(env_id, entry_point, max_episode_steps=n_steps, kwargs=kwargs)
