from importlib import import_module
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle

from sb3_cesd.envs.gl import choose_gl_backend

#: Tasks of each domain; a domain is a module of this package
TASKS = {
    "walker": ("stand", "walk", "run", "flip"),
    "quadruped": ("stand", "walk", "run", "jump"),
    "jaco": ("reach_top_left", "reach_top_right", "reach_bottom_left", "reach_bottom_right"),
}
#: The camera that shows the robot, and follows it where it can walk away
CAMERAS = {"walker": "side", "quadruped": "x", "jaco": "front_close"}


class RobotEnv(gym.Env[np.ndarray, np.ndarray], EzPickle):
    """
    A task of the Unsupervised Reinforcement Learning Benchmark (Laskin et al., 2021) on dm_control, through Shimmy.

    Observations are float32 vectors in the order of the benchmark. Actions are in [-1, 1], values outside are clipped, and
    scaled
    linearly to the bounds of the actuators. Episodes end by truncation only. A pickled copy starts a new, unseeded episode.

    :param domain: ``"walker"`` (24 observations, 6 actions), ``"quadruped"`` (78, 12) or ``"jaco"`` (55, 9)
    :param task: walker: stand, walk, run, flip; quadruped: stand, walk, run, jump; jaco: reach_top_left, reach_top_right,
        reach_bottom_left, reach_bottom_right
    :param render_mode: ``"rgb_array"``, ``"human"`` (needs a display) or ``None``
    :param width: width of a rendered image [pixel]
    :param height: height of a rendered image [pixel]
    :param camera: name or index of a camera of the model; ``None`` for one that follows the robot
    :raises ValueError: if there is no such domain, task or render mode
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "human"]}  # noqa: RUF012

    def __init__(
        self,
        domain: str,
        task: str,
        render_mode: str | None = None,
        width: int = 320,
        height: int = 240,
        camera: str | int | None = None,
    ) -> None:
        EzPickle.__init__(self, domain, task, render_mode, width, height, camera)
        if domain not in TASKS:
            raise ValueError(f"Unknown domain {domain!r}: choose one of {', '.join(TASKS)}.")
        if task not in TASKS[domain]:
            raise ValueError(f"The {domain} has no task {task!r}: choose one of {', '.join(TASKS[domain])}.")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"Unknown render mode {render_mode!r}: choose 'rgb_array', 'human' or None.")

        choose_gl_backend()
        # Not before: importing the physics engine takes a second, and the backend is chosen then
        shimmy = import_module("shimmy.dm_control_compatibility")
        robot = import_module(f"sb3_cesd.envs.{domain}")

        self._flatten = robot.flatten
        self._position = robot.position
        self._dm_env = robot.make(task)
        image = {"width": width, "height": height, "camera_id": CAMERAS[domain] if camera is None else camera}
        self._shimmy_env = shimmy.DmControlCompatibilityV0(self._dm_env, render_mode, render_kwargs=image)
        self.domain = domain
        self.task = task
        self._closed = False
        self.render_mode = render_mode
        # Of this instance: the class attribute is shared by all domains
        self.metadata = {**self.metadata, "render_fps": round(1 / self.dt)}

        bounds = self._dm_env.action_spec()
        self._action_center = (bounds.maximum + bounds.minimum) / 2
        self._action_scale = (bounds.maximum - bounds.minimum) / 2
        self.action_space = spaces.Box(-1.0, 1.0, bounds.shape, np.float32)
        self.observation_space = spaces.Box(-np.inf, np.inf, (robot.OBS_DIM,), np.float32)

    @property
    def physics(self) -> Any:
        """dm_control's Physics."""
        return self._dm_env.physics

    @property
    def position(self) -> np.ndarray:
        """Position of the torso (jaco: of the hand) in the world [m], shape ``(3,)``."""
        return self._position(self.physics)

    @property
    def dt(self) -> float:
        """Duration of a step [s]."""
        return self._dm_env.control_timestep()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        # dm_control draws from numpy's RandomState, which takes 32 bits
        observation, _ = self._shimmy_env.reset(seed=None if seed is None else seed % 2**32)
        return self._flatten(observation).astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        action = np.asarray(action, dtype=np.float64)
        if not np.isfinite(action).all():
            entries = np.flatnonzero(~np.isfinite(action)).tolist()
            raise ValueError(
                f"Entries {entries} of the action are not finite: pass numbers between -1 and 1; "
                "if a policy computed it, its training has diverged (lower its learning rate)."
            )
        native_action = self._action_center + self._action_scale * np.clip(action, -1.0, 1.0)
        observation, reward, terminated, truncated, _ = self._shimmy_env.step(native_action)
        return self._flatten(observation).astype(np.float32), float(reward), terminated, truncated, {}

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """
        :return: the image of ``render_mode="rgb_array"``, shape ``(height, width, 3)``, uint8; otherwise ``None``
        :raises RuntimeError: if the machine can't render
        """
        try:
            return self._shimmy_env.render()
        except Exception as error:  # each backend of MuJoCo fails in a way of its own
            raise RuntimeError(
                f"MuJoCo can't render here ({type(error).__name__}: {error}). Without a display, "
                "install EGL (libegl1 libegl-mesa0 libgl1-mesa-dri) and set MUJOCO_GL=egl, "
                "or OSMesa (libosmesa6) and set MUJOCO_GL=osmesa."
            ) from error

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            self._shimmy_env.close()
