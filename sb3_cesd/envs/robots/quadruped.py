import dm_env
import mujoco
import numpy as np
from dm_control.rl import control
from dm_control.suite import common, quadruped
from dm_control.utils import rewards

from sb3_cesd.envs.robots.walker import flatten as flatten
from sb3_cesd.envs.robots.walker import position as position

#: Target speed of each task [m/s]
SPEEDS = {"stand": 0.0, "walk": 0.5, "run": 5.0, "jump": 0.0}
#: Target height of the centre of mass in the jump task [m]
JUMP_HEIGHT = 1.0
OBS_DIM = 78
TIME_LIMIT = 20.0  # [s]
CONTROL_TIMESTEP = 0.02  # [s]
HEIGHT_STEP = 0.01  # step of the search for the initial height [m]


class Move(quadruped.Move):
    """dm_control's task, with a search for the initial height that computes only contacts and is 20 times as fast."""

    def initialize_episode(self, physics: quadruped.Physics) -> None:
        orientation = self.random.randn(4)
        orientation /= np.linalg.norm(orientation)
        height = lowest_free_height(physics, orientation)
        with physics.reset_context():
            physics.named.data.qpos["root"] = 0.0, 0.0, height, *orientation
        self.after_step(physics)


class Stand(Move):
    """URLB's stand. Its reward is the upright reward U alone."""

    def get_reward(self, physics: quadruped.Physics) -> float:
        return quadruped._upright_reward(physics)


class Jump(Move):
    """URLB's jump. Its reward is ``U L(c; 1, 1, .5)`` for the height c of the whole body's centre of mass."""

    def get_reward(self, physics: quadruped.Physics) -> float:
        jump_reward = rewards.tolerance(
            physics.named.data.subtree_com["torso"][2],  # of the whole body
            bounds=(JUMP_HEIGHT, float("inf")),
            margin=JUMP_HEIGHT,
            value_at_margin=0.5,
            sigmoid="linear",
        )
        return quadruped._upright_reward(physics) * jump_reward


def lowest_free_height(physics: quadruped.Physics, orientation: np.ndarray) -> float:
    """Search for the lowest multiple of 1 cm at which the quadruped, with its legs at rest, touches nothing [m]."""
    model, data = physics.model.ptr, physics.data.ptr
    mujoco.mj_resetData(model, data)
    data.qpos[3:7] = orientation
    height = 0.0
    while True:
        data.qpos[2] = height
        mujoco.mj_kinematics(model, data)
        mujoco.mj_collision(model, data)
        if data.ncon == 0:
            return height
        height += HEIGHT_STEP  # a running sum, as in dm_control


def make(task: str) -> dm_env.Environment:
    """
    Make dm_control's quadruped with a flat observation: egocentric state 44, torso velocity 3, upright 1, imu 6, force and
    torque 24.
    """
    task_class = {"stand": Stand, "jump": Jump}.get(task, Move)
    # The floor reaches as far as the quadruped could run within the time limit
    xml_string = quadruped.make_model(floor_size=TIME_LIMIT * max(SPEEDS[task], SPEEDS["walk"]))
    physics = quadruped.Physics.from_xml_string(xml_string, common.ASSETS)
    return control.Environment(
        physics,
        task_class(desired_speed=SPEEDS[task]),
        time_limit=TIME_LIMIT,
        control_timestep=CONTROL_TIMESTEP,
        flat_observation=True,
    )
