from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle

from sb3_cesd.common.arguments import PositiveInt, check_value, checked, finite_actions
from sb3_cesd.envs.registration import TASKS
from sb3_cesd.envs.robots.gl import check_display, explain_rendering, import_physics

#: Camera that shows the robot, and follows it if it can walk away
CAMERAS = {"walker": "side", "quadruped": "x", "jaco": "front_close"}


class RobotEnv(gym.Env[np.ndarray, np.ndarray], EzPickle):
    """
    A task of the Unsupervised Reinforcement Learning Benchmark (Laskin et al., 2021) on dm_control, through Shimmy.

    Observations are float32 vectors in the order of the benchmark. Actions are clipped to [-1, 1], then scaled linearly to the
    bounds of the actuators. Rewards are in [0, 1]. Episodes end by truncation. Only if the simulation diverges (MuJoCo warns
    of a bad acceleration, for example), they terminate, with the previous observation and zero reward, since there is no valid
    next state to bootstrap a value from; ``info["physics_warnings"]`` then holds the number of each warning. A pickled copy
    starts a new, unseeded episode.

    :param domain: ``"walker"`` (24 observations, 6 actions), ``"quadruped"`` (78, 12) or ``"jaco"`` (55, 9)
    :param task: walker: stand, walk, run, flip; quadruped: stand, walk, run, jump; jaco: reach_top_left, reach_top_right,
        reach_bottom_left, reach_bottom_right
    :param render_mode: ``"rgb_array"``, ``"human"`` (needs a display) or ``None``
    :param width: width of the image of ``"rgb_array"`` [pixel]
    :param height: height of the image of ``"rgb_array"`` [pixel]
    :param camera: name or index of a camera of the model, -1 for a free one; ``None`` for one that follows the robot (jaco:
        that faces it)
    :raises ValueError: if the domain, task or render mode is unknown, or the image has no pixels
    :raises RuntimeError: if the environment variable ``MUJOCO_GL`` asks for a backend that is not available
    """

    observation_space: spaces.Box
    action_space: spaces.Box
    metadata: dict[str, Any] = {"render_modes": ["rgb_array", "human"]}  # noqa: RUF012
    _last_observation: np.ndarray

    @checked
    def __init__(
        self,
        domain: Literal["walker", "quadruped", "jaco"],
        task: str,
        render_mode: Literal["rgb_array", "human"] | None = None,
        width: PositiveInt = 320,
        height: PositiveInt = 240,
        camera: str | int | None = None,
    ) -> None:
        EzPickle.__init__(self, domain, task, render_mode, width, height, camera)
        check_value("task", task, TASKS[domain])
        modules = ("shimmy.dm_control_compatibility", f"sb3_cesd.envs.robots.{domain}", "dm_control.rl.control")
        shimmy, self._module, control = import_physics(*modules)
        self._physics_error = control.PhysicsError
        self.robot_name = domain
        self.task = task
        self.render_mode = render_mode
        self.width = width
        self.height = height
        self._dm_env = self._module.make(task)
        camera = CAMERAS[domain] if camera is None else camera
        self._camera_id = self.physics.model.name2id(camera, "camera") if isinstance(camera, str) else camera
        image = {"width": width, "height": height, "camera_id": self._camera_id}
        # Shimmy opens another window at each reset, whose camera doesn't show the robot, so "human" is handled here
        offscreen = None if render_mode == "human" else render_mode
        self._shimmy_env = shimmy.DmControlCompatibilityV0(self._dm_env, offscreen, render_kwargs=image)
        self._window: Any = None
        # On the instance, since all domains share the class attribute
        self.metadata = {**self.metadata, "render_fps": round(1 / self.dt)}

        bounds = self._dm_env.action_spec()
        self._action_center = (bounds.maximum + bounds.minimum) / 2
        self._action_scale = (bounds.maximum - bounds.minimum) / 2
        self.action_space = spaces.Box(-1.0, 1.0, bounds.shape, np.float32)
        self.observation_space = spaces.Box(-np.inf, np.inf, (self._module.OBS_DIM,), np.float32)

    @property
    def physics(self) -> Any:
        """dm_control's Physics."""
        return self._dm_env.physics

    @property
    def position(self) -> np.ndarray:
        """Position of the torso (jaco: of the hand) in the world [m], shape ``(3,)``."""
        return self._module.position(self.physics)

    @property
    def dt(self) -> float:
        """Duration of a step [s]."""
        return self._dm_env.control_timestep()

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        if seed is not None:
            self._shimmy_env.np_random = make_random_state(seed)
        observation, _ = self._shimmy_env.reset()
        if self._window is not None:
            self._show()
        self._last_observation = self._module.flatten(observation).astype(np.float32)
        return self._last_observation.copy(), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        action = self.scale_action(finite_actions(action, self.action_space.shape))
        try:
            observation, reward, _, truncated, _ = self._shimmy_env.step(action)
        except self._physics_error:
            info = {"physics_warnings": named_warnings(self.physics.data.warning.number)}
            return self._last_observation.copy(), 0.0, True, False, info
        if self.render_mode == "human":
            self._show()
        self._last_observation = self._module.flatten(observation).astype(np.float32)
        return self._last_observation.copy(), float(reward), False, truncated, {}

    def scale_action(self, action: np.ndarray) -> np.ndarray:
        """Clip actions to [-1, 1], and scale them to the bounds of the actuators."""
        return self._action_center + self._action_scale * np.clip(action, -1.0, 1.0)

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        self.fit_buffer()
        with explain_rendering():
            return self._shimmy_env.render()

    def fit_buffer(self, size: int = 0) -> None:
        """Let images fit: MuJoCo draws into a buffer of 640 x 480, unless a larger one is asked for before the first image."""
        buffer = self.physics.model.vis.global_
        buffer.offwidth = max(buffer.offwidth, self.width, size)
        buffer.offheight = max(buffer.offheight, self.height, size)

    def close(self) -> None:
        """Release the window and the renderer. As with Gymnasium's robots, the simulation can go on."""
        if self._window is not None:
            self._window.close()
            self._window = None
        if self.physics._contexts:
            self.physics._free_rendering_contexts()

    def _show(self) -> None:
        """Show the state in the window, which the first step opens: the first reset compiles jaco's model again."""
        if self._window is None:
            check_display()
            mujoco, rendering = import_physics("mujoco", "gymnasium.envs.mujoco.mujoco_rendering")
            camera = {"type": mujoco.mjtCamera.mjCAMERA_FIXED, "fixedcamid": self._camera_id} if self._camera_id >= 0 else None
            model, data = self.physics.model.ptr, self.physics.data.ptr
            self._window = rendering.MujocoRenderer(model, data, default_cam_config=camera)
        self._window.render("human")


def make_random_state(seed: int | None = None) -> np.random.RandomState:
    """Make a generator of initial states. dm_control draws from numpy's RandomState, which takes a seed of 32 bits."""
    return np.random.RandomState(None if seed is None else seed % 2**32)


def named_warnings(counts: np.ndarray) -> dict[str, int]:
    """Name the warnings of MuJoCo that were raised, by how often each was, shape ``(n_warnings,)``."""
    [mujoco] = import_physics("mujoco")
    return {name: int(count) for name, count in zip(mujoco.mjtWarning.__members__, counts, strict=False) if count > 0}
