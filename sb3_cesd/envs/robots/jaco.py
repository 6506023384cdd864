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
HAND = "jaco_arm/jaco_hand/pinchsite"
JOINTS = [f"jaco_arm/joint_{idx}" for idx in range(1, 7)]
FINGERS = [f"jaco_arm/jaco_hand/finger_{idx}" for idx in range(1, 4)]
BRICK_SENSORS = [f"duplo2x4/{name}" for name in ("angular_velocity", "linear_velocity", "orientation", "position")]


class FastResetEnvironment(composer.Environment):
    """
    A composer environment that keeps its compiled model, since episodes don't change the model.

    dm_control draws one more random number when it compiles. It is drawn here too, so that all episodes stay the same.
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
    return np.concatenate([np.ravel(observation[name]) for name in OBSERVABLES])


def position(physics: Any) -> np.ndarray:
    """Return the position of the hand's pinch site [m], shape ``(3,)``."""
    return physics.named.data.site_xpos[HAND].copy()


class BatchedObservations:
    """
    Observations of many arms at once, shape ``(n_envs, 55)``, bit-identical to those of :func:`flatten`.

    dm_control's own formulas transpose and contract the arrays of a single simulation, so they are reimplemented here.
    """

    def __init__(self, model: Any, batch: Any) -> None:
        self._hand = model.site(HAND).id
        joints, fingers = ([model.joint(name).id for name in names] for names in (JOINTS, FINGERS))
        self._joint_axes = model.jnt_axis[joints]
        self._joint_qpos, self._finger_qpos = model.jnt_qposadr[joints], model.jnt_qposadr[fingers]
        self._joint_qvel, self._finger_qvel = model.jnt_dofadr[joints], model.jnt_dofadr[fingers]
        self._torques = _sensor_indices(model, [f"{name}_torque" for name in JOINTS])
        self._brick_state = _sensor_indices(model, BRICK_SENSORS)
        self._qpos = batch.bind("qpos")
        self._qvel = batch.bind("qvel")
        self._site_xpos = batch.bind("site_xpos")  # (n_envs, n_sites, 3)
        self._site_xmat = batch.bind("site_xmat")  # (n_envs, n_sites, 9)
        self._sensordata = batch.bind("sensordata")

    def __call__(self) -> np.ndarray:
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


def _sensor_indices(model: Any, names: list[str]) -> np.ndarray:
    """Where the readings of sensors are in ``sensordata``."""
    sensors = [model.sensor(name) for name in names]
    return np.concatenate([sensor.adr[0] + np.arange(sensor.dim[0]) for sensor in sensors])
