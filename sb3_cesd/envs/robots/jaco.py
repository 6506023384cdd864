from typing import Any

import dm_env
import numpy as np
from dm_control import composer
from dm_control.entities import props
from dm_control.manipulation import reach
from dm_control.manipulation.shared import arenas, constants, observations, robots, workspaces

#: Position of the brick, (x, y) in m; top is +y, right is +x
TARGETS = {
    "reach_top_left": (-0.09, 0.09),
    "reach_top_right": (0.09, 0.09),
    "reach_bottom_left": (-0.09, -0.09),
    "reach_bottom_right": (0.09, -0.09),
}
TARGET_HEIGHT = 0.001  # [m]
TIME_LIMIT = 10.0  # [s]
#: Observables in the order of URLB's observation, with their sizes
OBSERVABLES = {
    "jaco_arm/joints_pos": 12,
    "jaco_arm/joints_torque": 6,
    "jaco_arm/joints_vel": 6,
    "jaco_arm/jaco_hand/joints_pos": 3,
    "jaco_arm/jaco_hand/joints_vel": 3,
    "jaco_arm/jaco_hand/pinch_site_pos": 3,
    "jaco_arm/jaco_hand/pinch_site_rmat": 9,
    "duplo2x4/angular_velocity": 3,
    "duplo2x4/linear_velocity": 3,
    "duplo2x4/orientation": 4,
    "duplo2x4/position": 3,
}
OBS_DIM = sum(OBSERVABLES.values())


class FastResetEnvironment(composer.Environment):
    """
    A composer environment that keeps its compiled model, since episodes don't change the model.

    dm_control draws one more random number when it compiles. It is drawn here too, so that all episodes stay the same.

    :param task: what is simulated and rewarded
    :param time_limit: length of an episode [s]
    """

    def __init__(self, task: composer.Task, time_limit: float) -> None:
        super().__init__(task, time_limit=time_limit, recompile_mjcf_every_episode=False)
        self._n_resets = 0

    def reset(self) -> dm_env.TimeStep:
        if self._n_resets > 0:
            self._random_state.uniform()
        self._n_resets += 1
        return super().reset()


def make(task: str, environment_class: Any = FastResetEnvironment) -> dm_env.Environment:
    """
    Make dm_control's reach task with a brick at a fixed position.

    The reward is URLB's: 1 if the pinch site is within 5 cm of the brick, else ``G((d - .05) / .05)``.

    :param task: one of ``TARGETS``
    :param environment_class: class of the composer environment
    :return: the environment
    """
    settings = observations.PERFECT_FEATURES
    target = (*TARGETS[task], TARGET_HEIGHT)
    brick = props.Duplo(observable_options=observations.make_options(settings, observations.FREEPROP_OBSERVABLES))
    reach_task = reach.Reach(
        arena=arenas.Standard(),
        arm=robots.make_arm(obs_settings=settings),
        hand=robots.make_hand(obs_settings=settings),
        prop=brick,
        obs_settings=settings,
        workspace=reach._DUPLO_WORKSPACE._replace(target_bbox=workspaces.BoundingBox(target, target)),
        control_timestep=constants.CONTROL_TIMESTEP,
    )
    return environment_class(reach_task, time_limit=TIME_LIMIT)


def flatten(observation: dict[str, np.ndarray]) -> np.ndarray:
    """
    Concatenate the observables.

    :param observation: dm_control's observation of the reach task
    :return: shape ``(55,)``
    """
    return np.concatenate([np.ravel(observation[name]) for name in OBSERVABLES])


def position(physics: Any) -> np.ndarray:
    """
    Return the position of the hand's pinch site.

    :param physics: dm_control's Physics
    :return: position [m], shape ``(3,)``
    """
    return physics.named.data.site_xpos["jaco_arm/jaco_hand/pinchsite"].copy()
