from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch

from sb3_cesd.envs.quadruped import OBS_DIM

SENSORS = mujoco.mjtSensor


class Reader:
    """
    Observations and rewards of many quadrupeds at once, to the last bit those of :mod:`sb3_cesd.envs.quadruped`.

    It stands in for dm_control's Physics in the reward of the task, with arrays where that has numbers.

    :param robot: a ``RobotEnv``, whose model and task they have
    :param batch: their simulations
    """

    def __init__(self, robot: Any, batch: Batch) -> None:
        model = robot.physics.model.ptr
        self._get_reward = robot.reward_function
        self._torso = model.body("torso").id
        [hinges] = np.nonzero(model.jnt_type == mujoco.mjtJoint.mjJNT_HINGE)
        self._hinge_qpos = model.jnt_qposadr[hinges]
        self._hinge_qvel = model.jnt_dofadr[hinges]
        self._velocity = sensor_entries(model, SENSORS.mjSENS_VELOCIMETER)
        self._imu = sensor_entries(model, SENSORS.mjSENS_GYRO, SENSORS.mjSENS_ACCELEROMETER)
        self._force_torque = sensor_entries(model, SENSORS.mjSENS_FORCE, SENSORS.mjSENS_TORQUE)
        self._qpos = batch.bind("qpos")
        self._qvel = batch.bind("qvel")
        self._act = batch.bind("act")
        self._xpos = batch.bind("xpos")  # (n_envs, n_bodies, 3)
        self._xmat = batch.bind("xmat")  # (n_envs, n_bodies, 9)
        self._sensordata = batch.bind("sensordata")
        self._centers_of_mass = batch.bind("subtree_com")  # (n_envs, n_bodies, 3)

    def positions(self) -> np.ndarray:
        """
        :return: positions of the torsos [m], shape ``(n_envs, 3)``
        """
        return self._xpos[:, self._torso].copy()

    def torso_upright(self) -> np.ndarray:
        """
        :return: cosine of the angle between the torsos' z axes and the world's, shape ``(n_envs,)``
        """
        return self._xmat[:, self._torso, 8]

    def torso_velocity(self) -> np.ndarray:
        """
        :return: velocities of the torsos in their own frames [m/s], shape ``(3, n_envs)``
        """
        return self._sensordata[:, self._velocity].T

    def center_of_mass_height(self) -> np.ndarray:
        """
        :return: heights of the whole bodies' centers of mass [m], shape ``(n_envs,)``
        """
        return self._centers_of_mass[:, self._torso, 2]

    def observations(self) -> np.ndarray:
        """
        :return: shape ``(n_envs, 78)``, float32
        """
        observations = np.empty((len(self._qpos), OBS_DIM), dtype=np.float32)
        observations[:, :16] = self._qpos[:, self._hinge_qpos]
        observations[:, 16:32] = self._qvel[:, self._hinge_qvel]
        observations[:, 32:44] = self._act
        observations[:, 44:47] = self.torso_velocity().T
        observations[:, 47] = self.torso_upright()
        observations[:, 48:54] = self._sensordata[:, self._imu]
        observations[:, 54:] = np.arcsinh(self._sensordata[:, self._force_torque])
        return observations

    def rewards(self) -> np.ndarray:
        """
        :return: shape ``(n_envs,)``
        """
        return self._get_reward(self)


def sensor_entries(model: mujoco.MjModel, *types: mujoco.mjtSensor) -> np.ndarray:
    """
    :param model: MuJoCo's model
    :param types: types of sensors
    :return: indices of all their readings in ``sensordata``, in the order of the model
    """
    [sensors] = np.nonzero(np.isin(model.sensor_type, types))
    return np.concatenate([model.sensor_adr[idx] + np.arange(model.sensor_dim[idx]) for idx in sensors])
