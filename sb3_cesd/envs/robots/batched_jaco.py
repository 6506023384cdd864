from typing import Any

import mujoco
import numpy as np
from mujoco.batch import Batch

from sb3_cesd.envs.robots.jaco import OBS_DIM

JOINTS = [f"jaco_arm/joint_{idx}" for idx in range(1, 7)]
FINGERS = [f"jaco_arm/jaco_hand/finger_{idx}" for idx in range(1, 4)]
HAND = "jaco_arm/jaco_hand/pinchsite"
BRICK_SENSORS = [f"duplo2x4/{name}" for name in ("angular_velocity", "linear_velocity", "orientation", "position")]


class JacoObservations:
    """
    Observations of many arms at once, bit-identical to those of :mod:`sb3_cesd.envs.robots.jaco`.

    dm_control's own formulas transpose and contract the arrays of a single simulation, so they are reimplemented here.

    :param model: model of the arm
    :param batch: the simulations
    """

    def __init__(self, model: mujoco.MjModel, batch: Batch) -> None:
        self._hand = model.site(HAND).id
        joints, fingers = ([model.joint(name).id for name in names] for names in (JOINTS, FINGERS))
        self._joint_axes = model.jnt_axis[joints]
        self._joint_qpos, self._finger_qpos = model.jnt_qposadr[joints], model.jnt_qposadr[fingers]
        self._joint_qvel, self._finger_qvel = model.jnt_dofadr[joints], model.jnt_dofadr[fingers]
        self._torques = sensor_readings(model, [f"{name}_torque" for name in JOINTS])
        self._brick_state = sensor_readings(model, BRICK_SENSORS)
        self._qpos = batch.bind("qpos")
        self._qvel = batch.bind("qvel")
        self._site_xpos = batch.bind("site_xpos")  # (n_envs, n_sites, 3)
        self._site_xmat = batch.bind("site_xmat")  # (n_envs, n_sites, 9)
        self._sensordata = batch.bind("sensordata")

    def __call__(self) -> np.ndarray:
        """
        Compute the observations.

        :return: observations, shape ``(n_envs, 55)``, float32
        """
        n_envs = len(self._qpos)
        observations = np.empty((n_envs, OBS_DIM), dtype=np.float32)
        angles = self._qpos[:, self._joint_qpos]
        observations[:, :12] = np.stack([np.sin(angles), np.cos(angles)], axis=2).reshape(n_envs, 12)
        torques = self._sensordata[:, self._torques].reshape(n_envs, 6, 3)
        torques = np.einsum("nij,ij->ni", torques, self._joint_axes)
        observations[:, 12:18] = np.sign(torques) * np.log1p(np.abs(torques))
        observations[:, 18:24] = self._qvel[:, self._joint_qvel]
        observations[:, 24:27] = self._qpos[:, self._finger_qpos]
        observations[:, 27:30] = self._qvel[:, self._finger_qvel]
        observations[:, 30:33] = self._site_xpos[:, self._hand]
        observations[:, 33:42] = self._site_xmat[:, self._hand]
        observations[:, 42:] = self._sensordata[:, self._brick_state]
        return observations


def sensor_readings(model: Any, names: list[str]) -> np.ndarray:
    """
    Look up where the readings of sensors are.

    :param model: MuJoCo's model
    :param names: names of sensors
    :return: indices of all their readings in ``sensordata``
    """
    sensors = [model.sensor(name) for name in names]
    return np.concatenate([sensor.adr[0] + np.arange(sensor.dim[0]) for sensor in sensors])
