from importlib import import_module
from typing import Any

import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle

from sb3_cesd.envs.allowed import check_env_arguments
from sb3_cesd.envs.robots.gl import import_physics
from sb3_cesd.envs.robots.robot import Robot, RobotName, SimulationDiverged

#: Tasks of each domain; a domain is a module of this folder
TASKS = {
    "walker": ("stand", "walk", "run", "flip"),
    "quadruped": ("stand", "walk", "run", "jump"),
    "jaco": ("reach_top_left", "reach_top_right", "reach_bottom_left", "reach_bottom_right"),
}
#: Camera that shows the robot, and follows it if it can walk away
CAMERAS = {"walker": "side", "quadruped": "x", "jaco": "front_close"}

#: Attributes by which dm_control's environments count the steps of an episode
COUNTERS = ("_step_count", "_reset_next_step")


class RobotEnv(Robot):
    """
    A task of the Unsupervised Reinforcement Learning Benchmark (Laskin et al., 2021) on dm_control, through Shimmy.

    Observations are float32 vectors in the order of the benchmark. Actions are clipped to [-1, 1], then scaled linearly to the
    bounds of the actuators. Rewards are in [0, 1]. Episodes end by truncation, unless the simulation diverges, see
    :class:`~sb3_cesd.envs.robots.robot.Robot`.

    :param domain: ``"walker"`` (24 observations, 6 actions), ``"quadruped"`` (78, 12) or ``"jaco"`` (55, 9)
    :param task: walker: stand, walk, run, flip; quadruped: stand, walk, run, jump; jaco: reach_top_left, reach_top_right,
        reach_bottom_left, reach_bottom_right
    :param render_mode: ``"rgb_array"``, ``"human"`` (needs a display) or ``None``
    :param width: width of the image of ``"rgb_array"`` [pixel]
    :param height: height of the image of ``"rgb_array"`` [pixel]
    :param camera: name or index of a camera of the model, -1 for a free one; ``None`` for one that follows the robot (jaco:
        that faces it)
    :raises ValueError: if the domain, task, render mode or camera is unknown, or the image has no pixels
    :raises RuntimeError: if the environment variable ``MUJOCO_GL`` asks for a backend that is not available
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
        check_env_arguments("RobotEnv", locals())
        EzPickle.__init__(self, domain, task, render_mode, width, height, camera)
        if domain not in TASKS:
            raise ValueError(f"Unknown domain {domain!r}: choose one of {', '.join(TASKS)}.")
        if task not in TASKS[domain]:
            raise ValueError(f"The {domain} has no task {task!r}: choose one of {', '.join(TASKS[domain])}.")
        self._check_images(render_mode, width, height)
        modules = ("shimmy.dm_control_compatibility", f"sb3_cesd.envs.robots.{domain}", "dm_control.rl.control")
        self._shimmy, self._robot, self._control = import_physics(*modules)
        self.domain = RobotName(domain)
        self.task = task
        self.render_mode = render_mode
        self.width = width
        self.height = height
        self._camera = CAMERAS[domain] if camera is None else camera
        self._open()
        # On the instance, since all domains share the class attribute
        self.metadata = {**self.metadata, "render_fps": round(1 / self.dt)}

        bounds = self._dm_env.action_spec()
        self._action_center = (bounds.maximum + bounds.minimum) / 2
        self._action_scale = (bounds.maximum - bounds.minimum) / 2
        self.action_space = spaces.Box(-1.0, 1.0, bounds.shape, np.float32)
        self.observation_space = spaces.Box(-np.inf, np.inf, (self._robot.OBS_DIM,), np.float32)

    @property
    def physics(self) -> Any:
        """Return dm_control's Physics."""
        return self._dm_env.physics

    @property
    def position(self) -> np.ndarray:
        return self._robot.position(self.physics)

    @property
    def dm_task(self) -> Any:
        """Return dm_control's task, which computes rewards and observations of a Physics."""
        return self._dm_env.task

    @property
    def dt(self) -> float:
        """Return the duration of a step [s]."""
        return self._dm_env.control_timestep()

    @property
    def random_state(self) -> np.random.RandomState:
        return self._shimmy_env.np_random

    def make_random_state(self, seed: int | None = None) -> np.random.RandomState:
        # dm_control draws from numpy's RandomState, which takes 32 bits
        return np.random.RandomState(None if seed is None else seed % 2**32)

    @property
    def max_steps(self) -> int:
        return round(self._robot.TIME_LIMIT / self.dt)

    def make_batch(self, n_envs: int, n_threads: int) -> Any:
        [simulations] = import_physics("sb3_cesd.envs.robots.simulations")
        return simulations.RobotBatch(self, n_envs, n_threads)

    def get_state(self) -> dict[str, Any]:
        """
        Return the state from which the environment can continue.

        :return: state for :meth:`set_state`
        """
        self._check_open()
        [simulations] = import_physics("sb3_cesd.envs.robots.simulations")
        return {
            "simulation": simulations.get_state(self.physics),
            "random_state": self.random_state.get_state(),
            "last_observation": self._last_observation,
            "n_diverged": self.n_diverged,
            # dm_control's two kinds of environments have different ones; composer environments end by simulation time
            "counters": {name: vars(self._dm_env)[name] for name in COUNTERS if name in vars(self._dm_env)},
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """
        Continue from the state of another environment of the same task.

        :param state: state that :meth:`get_state` of the other environment returned
        """
        # Opens the simulation and compiles its model if necessary
        self.reset()
        [simulations] = import_physics("sb3_cesd.envs.robots.simulations")
        simulations.set_state(self.physics, state["simulation"])
        self.random_state.set_state(state["random_state"])
        self._last_observation, self.n_diverged = state["last_observation"], state["n_diverged"]
        vars(self._dm_env).update(state["counters"])

    def scale_action(self, action: np.ndarray) -> np.ndarray:
        return self._action_center + self._action_scale * np.clip(action, -1.0, 1.0)

    def close(self) -> None:
        """Release the simulation and its renderer. :meth:`reset` opens the environment again."""
        if not self._closed:
            self._closed = True
            if self._window is not None:
                self._window.close()
            self._shimmy_env.close()

    def _open(self) -> None:
        """
        Make the simulation.

        :raises ValueError: if the camera is unknown
        """
        self._dm_env = self._robot.make(self.task)
        model = self.physics.model
        self._camera_id = self._find_camera(self._camera, [model.id2name(idx, "camera") for idx in range(model.ncam)])
        image = {"width": self.width, "height": self.height, "camera_id": self._camera_id}
        # Shimmy opens another window at each reset, whose camera doesn't show the robot, so "human" is handled here
        offscreen = None if self.render_mode == "human" else self.render_mode
        self._shimmy_env = self._shimmy.DmControlCompatibilityV0(self._dm_env, offscreen, render_kwargs=image)
        self._window: Any = None
        self._closed = False

    def _draw_image(self) -> np.ndarray | None:
        # MuJoCo draws into a buffer of 640 x 480, unless the model asks for a larger one before the first image
        buffer = self.physics.model.vis.global_
        buffer.offwidth, buffer.offheight = max(buffer.offwidth, self.width), max(buffer.offheight, self.height)
        return self._shimmy_env.render()

    def _use_random_state(self, random_state: np.random.RandomState) -> None:
        self._shimmy_env.np_random = random_state

    def _start_episode(self, seed: int | None) -> np.ndarray:
        # dm_control draws from numpy's RandomState, which takes 32 bits
        observation, _ = self._shimmy_env.reset(seed=None if seed is None else seed % 2**32)
        if self._window is not None:
            self._show()
        return self._robot.flatten(observation).astype(np.float32)

    def _advance(self, action: np.ndarray) -> tuple[np.ndarray, float, bool]:
        try:
            observation, reward, _, truncated, _ = self._shimmy_env.step(action)
        except self._control.PhysicsError as error:
            [simulations] = import_physics("sb3_cesd.envs.robots.simulations")
            raise SimulationDiverged(simulations.named_warnings(self.physics.data.warning.number)) from error
        if self.render_mode == "human":
            self._show()
        return self._robot.flatten(observation).astype(np.float32), float(reward), truncated

    def _show(self) -> None:
        """Show the state in the window, which the first step opens: the first reset compiles jaco's model again."""
        if self._window is None:
            self._window = import_module("sb3_cesd.envs.robots.window").open_window(self.physics, self._camera_id)
        self._window.render("human")
