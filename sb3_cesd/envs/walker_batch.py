from typing import Any

import numpy as np
from dm_control.suite import walker
from dm_control.utils import rewards
from mujoco.batch import Batch

from sb3_cesd.envs.gaussian import gaussian
from sb3_cesd.envs.walker import FLIP_MOMENTUM, OBS_DIM, SPEEDS


class Reader:
    """
    Observations and rewards of many walkers at once, to the last bit those of :mod:`sb3_cesd.envs.walker`.

    :param robot: a ``RobotEnv``, whose model and task they have
    :param batch: their simulations
    """

    def __init__(self, robot: Any, batch: Batch) -> None:
        model = robot.physics.model.ptr
        self._task = robot.task
        self._torso = model.body("torso").id
        self._velocity_adr = model.sensor("torso_subtreelinvel").adr[0]
        self._qvel = batch.bind("qvel")  # (n_envs, 9)
        self._xpos = batch.bind("xpos")  # (n_envs, n_bodies, 3)
        self._xmat = batch.bind("xmat")  # (n_envs, n_bodies, 9)
        self._sensordata = batch.bind("sensordata")
        self._angular_momenta = batch.bind("subtree_angmom")  # (n_envs, n_bodies, 3)

    def positions(self) -> np.ndarray:
        """
        :return: positions of the torsos [m], shape ``(n_envs, 3)``
        """
        return self._xpos[:, self._torso].copy()

    def observations(self) -> np.ndarray:
        """
        :return: shape ``(n_envs, 24)``, float32
        """
        n_envs = len(self._qvel)
        observations = np.empty((n_envs, OBS_DIM), dtype=np.float32)
        # xx and xz of each body but the world
        observations[:, :14] = self._xmat[:, 1:, [0, 2]].reshape(n_envs, 14)
        observations[:, 14] = self._xpos[:, self._torso, 2]
        observations[:, 15:] = self._qvel
        return observations

    def rewards(self) -> np.ndarray:
        """
        :return: shape ``(n_envs,)``
        """
        if self._task == "stand":
            return self._stand_rewards()
        if self._task == "flip":
            momenta = self._angular_momenta[:, self._torso, 1]
            moving = rewards.tolerance(
                momenta, bounds=(FLIP_MOMENTUM, float("inf")), margin=FLIP_MOMENTUM, value_at_margin=0, sigmoid="linear"
            )
        else:
            speed = SPEEDS[self._task]
            velocities = self._sensordata[:, self._velocity_adr]
            moving = rewards.tolerance(
                velocities, bounds=(speed, float("inf")), margin=speed / 2, value_at_margin=0.5, sigmoid="linear"
            )
        return self._stand_rewards() * (5 * moving + 1) / 6

    def _stand_rewards(self) -> np.ndarray:
        heights = self._xpos[:, self._torso, 2]
        standing = gaussian(np.maximum(walker._STAND_HEIGHT - heights, 0.0) / (walker._STAND_HEIGHT / 2))
        upright = (1 + self._xmat[:, self._torso, 8]) / 2
        return (3 * standing + upright) / 4
