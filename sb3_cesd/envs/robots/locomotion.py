"""The robots of METRA and its successors: Gymnasium's Ant and HalfCheetah, which observe their position."""

import copy
from importlib import import_module
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle
from gymnasium.utils.seeding import np_random

from sb3_cesd.envs.allowed import check_env_arguments
from sb3_cesd.envs.robots.gl import import_physics
from sb3_cesd.envs.robots.locomotion_models import MODELS, ObservationScale
from sb3_cesd.envs.robots.robot import Robot, RobotName, SimulationDiverged

#: Name of the camera of both models that follows the robot
TRACKING = "track"


class LocomotionEnv(Robot):
    """
    Gymnasium's Ant-v5 or HalfCheetah-v5 as METRA (Park et al., 2024) and its successors use it: x and y are among the
    observations, which are normalised by METRA's fixed statistics, and no episode ends early.

    The reward is Gymnasium's without the ant's contact cost, whose forces are not computed: (x velocity [m/s]) - 0.5 ``|a|^2``
    + 1 while the ant is upright, (x velocity) - 0.1 ``|a|^2`` for the half-cheetah. Actions are clipped to [-1, 1]. ``info``
    holds ``x_position`` and, for the ant, ``y_position`` [m]. A simulation that diverges ends the episode, see
    :class:`~sb3_cesd.envs.robots.robot.Robot`.

    :param robot: ``"ant"`` (29 observations: position 3, orientation 4, joints 8, velocities 14; 8 actions) or
        ``"half_cheetah"`` (18 observations: x, z, pitch, joints 6, velocities 9; 6 actions)
    :param render_mode: ``"rgb_array"``, ``"human"`` (needs a display) or ``None``
    :param width: width of the image of ``"rgb_array"`` [pixel]
    :param height: height of the image of ``"rgb_array"`` [pixel]
    :param camera: name or index of a camera of the model, -1 for a free one; ``None`` for ``"track"``, which follows the robot
    :param normalize: normalise each entry of the observations by its mean and standard deviation under random actions;
        ``False`` for Gymnasium's observations
    :raises ValueError: if the robot, render mode or camera is unknown, or the image has no pixels
    :raises RuntimeError: if the environment variable ``MUJOCO_GL`` asks for a backend that is not available, or there is no
        display for ``render_mode="human"``
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "human"], "render_fps": 20}  # noqa: RUF012

    def __init__(
        self,
        robot: str,
        render_mode: str | None = None,
        width: int = 320,
        height: int = 240,
        camera: str | int | None = None,
        normalize: bool = True,
    ) -> None:
        check_env_arguments("LocomotionEnv", locals())
        EzPickle.__init__(self, robot, render_mode, width, height, camera, normalize)
        if robot not in MODELS:
            raise ValueError(f"Unknown robot {robot!r}: choose one of {', '.join(MODELS)}.")
        self._check_images(render_mode, width, height)
        module, name, _, self._place, scale = MODELS[robot]
        gymnasium_module, self._locomotion = import_physics(module, "sb3_cesd.envs.robots.locomotion_batch")
        self._make = getattr(gymnasium_module, name)
        self.robot = RobotName(robot)
        #: Statistics by which observations are normalised, ``None`` if they are not
        self.observation_scale: ObservationScale | None = scale if normalize else None
        self.render_mode = render_mode
        self.width = width
        self.height = height
        self._camera = camera
        self._open()
        # A slide joint counts from the place of the torso in the model, a free joint from the origin
        self._joint_height = float(self.model.body("torso").pos[2] - self.model.qpos0[self._place[2]])
        n_actions, n_observations = self.model.nu, self.model.nq + self.model.nv
        self.action_space = spaces.Box(-1.0, 1.0, (n_actions,), np.float32)
        self.observation_space = spaces.Box(-np.inf, np.inf, (n_observations,), np.float32)

    @property
    def model(self) -> Any:
        """Return MuJoCo's model."""
        return self._env.model

    @property
    def data(self) -> Any:
        """Return MuJoCo's data."""
        return self._env.data

    @property
    def position(self) -> np.ndarray:
        return self.positions_of(self.data.qpos[None])[0]

    @property
    def dt(self) -> float:
        """Return the duration of a step [s]."""
        return self._env.dt

    @property
    def random_state(self) -> np.random.Generator:
        return self._env.np_random

    @property
    def max_steps(self) -> int:
        return 10**9

    def make_random_state(self, seed: int | None = None) -> np.random.Generator:
        return np_random(seed)[0]

    def positions_of(self, qpos: np.ndarray) -> np.ndarray:
        """
        Return the positions of the torso.

        :param qpos: MuJoCo's positions, shape ``(n, n_positions)``
        :return: positions in the world [m], shape ``(n, 3)``
        """
        positions = np.stack([np.zeros(len(qpos)) if idx is None else qpos[:, idx] for idx in self._place], axis=1)
        positions[:, 2] += self._joint_height
        return positions

    def infos_of(self, qpos: np.ndarray) -> list[dict[str, Any]]:
        """
        Return the entries of ``info`` for states, named as by Gymnasium.

        :param qpos: MuJoCo's positions, shape ``(n, n_positions)``
        :return: ``x_position`` and, for the ant, ``y_position`` [m] of each state
        """
        if self.robot == "ant":
            return [{"x_position": x, "y_position": y} for x, y in qpos[:, :2].tolist()]
        return [{"x_position": x} for x in qpos[:, 0].tolist()]

    def observation_of(self, state: np.ndarray) -> np.ndarray:
        """
        Compute the observation of a state.

        :param state: MuJoCo's positions and velocities, shape ``(..., obs_dim)``
        :return: observation, float32, same shape
        """
        scale = self.observation_scale
        return (state if scale is None else scale.normalize(state)).astype(np.float32)

    def state_info(self) -> dict[str, Any]:
        return self.infos_of(self.data.qpos[None])[0]

    def make_batch(self, n_envs: int, n_threads: int) -> Any:
        return self._locomotion.LocomotionBatch(self, n_envs, n_threads)

    def scale_action(self, action: np.ndarray) -> np.ndarray:
        return np.clip(action, -1.0, 1.0)

    def get_state(self) -> dict[str, Any]:
        """
        Return the state from which the environment can continue.

        :return: state for :meth:`set_state`
        """
        self._check_open()
        return {
            "simulation": self._locomotion.get_state(self.model, self.data),
            "random_state": copy.deepcopy(self.random_state),
            "last_observation": self._last_observation,
            "n_diverged": self.n_diverged,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """
        Continue from the state of another environment of the same robot.

        :param state: state that :meth:`get_state` of the other environment returned
        """
        self.reset()
        self._locomotion.set_state(self.model, self.data, state["simulation"])
        self._env.np_random = copy.deepcopy(state["random_state"])
        self._last_observation, self.n_diverged = state["last_observation"], state["n_diverged"]
        self._last_info = self.state_info()

    def close(self) -> None:
        """Release the renderer. :meth:`reset` opens the environment again."""
        if not self._closed:
            self._closed = True
            self._env.close()

    def _open(self) -> None:
        """
        Make Gymnasium's environment.

        :raises ValueError: if the camera is unknown
        :raises RuntimeError: if there is no display for a window
        """
        if self.render_mode == "human":
            import_module("sb3_cesd.envs.robots.window").check_display()
        # Gymnasium's default camera stays where the robot starts
        chosen = TRACKING if self._camera is None else self._camera
        camera = {"camera_name" if isinstance(chosen, str) else "camera_id": chosen}
        image = {"width": self.width, "height": self.height, **camera}
        self._env = self._make(render_mode=self.render_mode, **MODELS[self.robot].kwargs, **image)
        self._closed = False
        if self._camera is not None:
            self._find_camera(self._camera, [self.model.camera(idx).name for idx in range(self.model.ncam)])

    def _draw_image(self) -> np.ndarray | None:
        return self._env.render()

    def _use_random_state(self, random_state: np.random.Generator) -> None:
        self._env.np_random = random_state

    def _start_episode(self, seed: int | None) -> np.ndarray:
        return self.observation_of(self._env.reset(seed=seed)[0])

    def _advance(self, action: np.ndarray) -> tuple[np.ndarray, float, bool]:
        state, reward, *_ = self._env.step(action)
        if self.data.warning.number.any():
            raise SimulationDiverged(self._locomotion.named_warnings(self.data.warning.number))
        return self.observation_of(state), float(reward), False
