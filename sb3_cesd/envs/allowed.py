"""Table of the valid arguments of environments; all other arguments are in :mod:`sb3_cesd.common.allowed`."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym

from sb3_cesd.common.rules import BOOLEAN, COUNT, INTEGER, POSITIVE, TEXT, Rule, check_by, instance, is_integer, optional
from sb3_cesd.envs.mazes.layouts import LAYOUTS

LAYOUT = Rule("the name of a maze", f"choose one of {', '.join(LAYOUTS)}", lambda value: isinstance(value, str))
CAMERA = Rule(
    "a camera",
    "pass the name or the index of a camera, or None",
    lambda value: value is None or isinstance(value, str) or is_integer(value),
)
RENDER_MODE = optional(TEXT)
ENVIRONMENT = instance(gym.Env, "an environment", "pass an environment of Gymnasium, e.g. gym.make(id)")
AXES = Rule("1, 2 or 3", "pass 1 for x, 2 for x and y, or 3", lambda value: is_integer(value) and 1 <= value <= 3)

#: Rules for arguments, by the class or function that takes them
ALLOWED: dict[str, dict[str, Rule]] = {
    "MazeEnv": {"layout": LAYOUT, "reward": TEXT, "render_mode": RENDER_MODE},
    "MazeVecEnv": {
        "layout": LAYOUT,
        "n_envs": COUNT,
        "max_episode_steps": COUNT,
        "reward": TEXT,
        "render_mode": RENDER_MODE,
    },
    "RobotEnv": {
        "domain": TEXT,
        "task": TEXT,
        "render_mode": RENDER_MODE,
        "width": INTEGER,
        "height": INTEGER,
        "camera": CAMERA,
    },
    "LocomotionEnv": {
        "robot": TEXT,
        "render_mode": RENDER_MODE,
        "width": INTEGER,
        "height": INTEGER,
        "camera": CAMERA,
        "normalize": BOOLEAN,
    },
    "RobotVecEnv": {
        "env": ENVIRONMENT,
        "n_envs": COUNT,
        "n_threads": optional(COUNT),
    },
    "GoalTask": {
        "env": ENVIRONMENT,
        "goal_range": POSITIVE,
        "radius": POSITIVE,
        "goal_duration": optional(COUNT),
        "n_axes": AXES,
    },
    "make_goal_task": {"name": TEXT},
}


def check_env_arguments(owner: str, values: Mapping[str, Any]) -> None:
    """
    Check arguments of an environment by the table.

    :param owner: the class, a key of :data:`ALLOWED`
    :param values: arguments by name; names that are not in the table are ignored, as :func:`locals` holds some
    :raises ValueError: if an argument is invalid
    """
    check_by(ALLOWED[owner], values)
