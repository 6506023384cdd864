from typing import Any

import dm_env
import numpy as np
from dm_control.rl import control
from dm_control.suite import walker
from dm_control.utils import rewards

#: Target speed of each task [m/s]
SPEEDS = {"stand": 0.0, "walk": 1.0, "run": 8.0, "flip": 0.0}
#: Target angular momentum of the flip task about the axis that the walker flips around [kg m^2 / s]
FLIP_MOMENTUM = 5.0
OBS_DIM = 24
TIME_LIMIT = 25.0  # [s]
CONTROL_TIMESTEP = 0.025  # [s]


class Flip(walker.PlanarWalker):
    """URLB's flip. Its reward is ``S (5 L(w; 5, 5, 0) + 1) / 6`` for the stand reward S and the signed angular momentum w."""

    def get_reward(self, physics: walker.Physics) -> float:
        stand_reward = super().get_reward(physics)
        flip_reward = rewards.tolerance(
            physics.named.data.subtree_angmom["torso"][1],  # of the whole body, about the y axis
            bounds=(FLIP_MOMENTUM, float("inf")),
            margin=FLIP_MOMENTUM,
            value_at_margin=0,
            sigmoid="linear",
        )
        return stand_reward * (5 * flip_reward + 1) / 6


def make(task: str) -> dm_env.Environment:
    """Make dm_control's walker with a flat observation: orientations 14, height 1, velocity 9."""
    task_class = Flip if task == "flip" else walker.PlanarWalker
    physics = walker.Physics.from_xml_string(*walker.get_model_and_assets())
    return control.Environment(
        physics,
        task_class(move_speed=SPEEDS[task]),
        time_limit=TIME_LIMIT,
        control_timestep=CONTROL_TIMESTEP,
        flat_observation=True,
    )


def flatten(observation: dict[str, np.ndarray]) -> np.ndarray:
    return observation["observations"]


def position(physics: Any) -> np.ndarray:
    """Return the position of the torso [m], shape ``(3,)``."""
    return physics.named.data.xpos["torso"].copy()
