from typing import Any

import gymnasium as gym

from sb3_cesd.envs.mazes.ids import HORIZON, MAZES
from sb3_cesd.envs.robots.ids import HORIZONS, LOCOMOTION, ROBOTS

#: Classes of METRA's robots
_SKILL_ROBOTS = {"ant": "SkillAnt", "half_cheetah": "SkillHalfCheetah"}
#: Id -> entry point, length of an episode, arguments
ENVS: dict[str, tuple[str, int, dict[str, Any]]] = {
    **{
        env_id: ("sb3_cesd.envs.robots.env:RobotEnv", HORIZONS[domain], {"domain": domain, "task": task})
        for env_id, (domain, task) in ROBOTS.items()
    },
    **{
        env_id: (f"sb3_cesd.envs.robots.locomotion:{_SKILL_ROBOTS[robot]}", HORIZONS[robot], {})
        for env_id, robot in LOCOMOTION.items()
    },
    **{env_id: ("sb3_cesd.envs.mazes.env:MazeEnv", HORIZON, {"layout": layout}) for env_id, layout in MAZES.items()},
}


def register_envs() -> None:
    """Register all ids with Gymnasium; calling it again is harmless."""
    for env_id, (entry_point, n_steps, kwargs) in ENVS.items():
        known = gym.registry.get(env_id)
        if known is None or known.entry_point != entry_point:
            gym.register(env_id, entry_point, max_episode_steps=n_steps, kwargs=kwargs)
