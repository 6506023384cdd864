from typing import Any

import dm_env
import numpy as np
from dm_control.rl import control
from dm_control.suite import common, quadruped
from dm_control.utils import rewards

#: Target speed of each task [m/s]
SPEEDS = {"stand": 0.0, "walk": 0.5, "run": 5.0}
#: Target height of the center of mass in the jump task [m]
JUMP_HEIGHT = 1.0
OBS_DIM = 78
TIME_LIMIT = 20.0  # [s]
CONTROL_TIMESTEP = 0.02  # [s]


class Stand(quadruped.Move):
    """URLB's stand: the upright reward U alone."""

    def __init__(self) -> None:
        super().__init__(desired_speed=0)

    def get_reward(self, physics: quadruped.Physics) -> float:
        return quadruped._upright_reward(physics)


class Jump(quadruped.Move):
    """URLB's jump: ``U L(c; 1, 1, .5)`` for the height c of the whole body's center of mass."""

    def __init__(self) -> None:
        super().__init__(desired_speed=0)

    def get_reward(self, physics: quadruped.Physics) -> float:
        jump_reward = rewards.tolerance(
            physics.named.data.subtree_com["torso"][2],
            bounds=(JUMP_HEIGHT, float("inf")),
            margin=JUMP_HEIGHT,
            value_at_margin=0.5,
            sigmoid="linear",
        )
        return quadruped._upright_reward(physics) * jump_reward


def make(task: str) -> dm_env.Environment:
    """
    :param task: ``"stand"``, ``"walk"``, ``"run"`` or ``"jump"``
    :return: dm_control's quadruped with a flat observation: egocentric state 44, torso velocity 3, upright 1, imu 6, force and
        torque 24
    """
    tasks = {"stand": Stand, "jump": Jump}
    # The floor reaches as far as the quadruped could run within the time limit
    xml_string = quadruped.make_model(floor_size=TIME_LIMIT * max(SPEEDS.get(task, 0.0), SPEEDS["walk"]))
    physics = quadruped.Physics.from_xml_string(xml_string, common.ASSETS)
    return control.Environment(
        physics,
        tasks[task]() if task in tasks else quadruped.Move(desired_speed=SPEEDS[task]),
        time_limit=TIME_LIMIT,
        control_timestep=CONTROL_TIMESTEP,
        flat_observation=True,
    )


def flatten(observation: dict[str, Any]) -> np.ndarray:
    """
    :param observation: as returned by the environment of :func:`make`
    :return: shape ``(78,)``
    """
    return observation["observations"]


def position(physics: Any) -> np.ndarray:
    """
    :param physics: dm_control's Physics
    :return: position of the torso [m], shape ``(3,)``
    """
    return physics.named.data.xpos["torso"].copy()
