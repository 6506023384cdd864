from typing import Any

import numpy as np
from dm_control.manipulation import reach
from mujoco.batch import Batch

from sb3_cesd.envs.gaussian import gaussian
from sb3_cesd.envs.jaco import OBS_DIM

JOINTS = [f"jaco_arm/joint_{idx}" for idx in range(1, 7)]
FINGERS = [f"jaco_arm/jaco_hand/finger_{idx}" for idx in range(1, 4)]
HAND = "jaco_arm/jaco_hand/pinchsite"
BRICK = "duplo2x4/"


class Reader:
    """
    Observations and rewards of many arms at once, to the last bit those of :mod:`sb3_cesd.envs.jaco`.

    :param robot: a ``RobotEnv``, whose model and task they have
    :param batch: their simulations
    """

    def __init__(self, robot: Any, batch: Batch) -> None:
        model = robot.physics.model.ptr
        self._hand, self._brick = model.site(HAND).id, model.body(BRICK).id
        joints, fingers = ([model.joint(name).id for name in names] for names in (JOINTS, FINGERS))
        self._joint_axes = model.jnt_axis[joints]
        self._joint_qpos, self._finger_qpos = model.jnt_qposadr[joints], model.jnt_qposadr[fingers]
        self._joint_qvel, self._finger_qvel = model.jnt_dofadr[joints], model.jnt_dofadr[fingers]
        self._torques = self._readings(model, [f"{name}_torque" for name in JOINTS])
        names = ("angular_velocity", "linear_velocity", "orientation", "position")
        self._brick_state = self._readings(model, [BRICK + name for name in names])
        self._qpos = batch.bind("qpos")
        self._qvel = batch.bind("qvel")
        self._xpos = batch.bind("xpos")  # (n_envs, n_bodies, 3)
        self._site_xpos = batch.bind("site_xpos")  # (n_envs, n_sites, 3)
        self._site_xmat = batch.bind("site_xmat")  # (n_envs, n_sites, 9)
        self._sensordata = batch.bind("sensordata")

    def positions(self) -> np.ndarray:
        """
        :return: positions of the hands' pinch sites [m], shape ``(n_envs, 3)``
        """
        return self._site_xpos[:, self._hand].copy()

    def observations(self) -> np.ndarray:
        """
        :return: shape ``(n_envs, 55)``, float32
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

    def rewards(self) -> np.ndarray:
        """
        :return: shape ``(n_envs,)``
        """
        radius = reach._TARGET_RADIUS
        ways = self._site_xpos[:, self._hand] - self._xpos[:, self._brick]
        # Each by itself: a sum over an axis may be rounded otherwise
        distances = np.sqrt([way.dot(way) for way in ways])
        return gaussian(np.maximum(distances - radius, 0.0) / radius)

    @staticmethod
    def _readings(model: Any, names: list[str]) -> np.ndarray:
        """
        :param model: MuJoCo's model
        :param names: names of sensors
        :return: indices of all their readings
        """
        sensors = [model.sensor(name) for name in names]
        return np.concatenate([sensor.adr[0] + np.arange(sensor.dim[0]) for sensor in sensors])
