"""Base class of all robots: single environments that can be batched."""

from abc import abstractmethod
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.utils import EzPickle

from sb3_cesd.envs.actions import NO_EPISODE, to_numbers
from sb3_cesd.envs.robots.gl import REMEDY


class SimulationDiverged(Exception):
    """
    MuJoCo warned of a state that it can't integrate.

    :param warnings: number of warnings by name
    """

    def __init__(self, warnings: dict[str, int]) -> None:
        super().__init__(str(warnings))
        self.warnings = warnings


class RobotName(str):
    """Name of a robot of this package; its type distinguishes it from attributes of other environments."""


class Robot(gym.Env[np.ndarray, np.ndarray], EzPickle):
    """
    A simulated robot with float32 observations, and actions that are clipped to [-1, 1].

    If the simulation diverges (MuJoCo warns of a bad acceleration, for example), the episode terminates with the previous
    observation and zero reward, since there is no valid next state to bootstrap a value from. ``info["physics_warnings"]``
    then holds the number of each warning, and ``n_diverged`` counts such episodes. A pickled copy starts a new, unseeded
    episode. After :meth:`close`, :meth:`reset` opens the environment again.
    """

    observation_space: spaces.Box
    action_space: spaces.Box
    #: Number of episodes that ended because the simulation diverged
    n_diverged: int = 0
    _closed: bool
    _last_observation: np.ndarray
    _last_info: dict[str, Any]

    @property
    @abstractmethod
    def position(self) -> np.ndarray:
        """Return the position of the torso (jaco: of the hand) in the world [m], shape ``(3,)``."""

    @property
    @abstractmethod
    def random_state(self) -> Any:
        """Return the random number generator of the initial states."""

    @property
    @abstractmethod
    def max_steps(self) -> int:
        """Return the number of steps after which an episode ends without a ``TimeLimit``."""

    def state_info(self) -> dict[str, Any]:
        """
        Return the entries of ``info`` that describe the state, for :meth:`step` and :meth:`reset`.

        :return: the entries
        """
        return {}

    @abstractmethod
    def make_random_state(self, seed: int | None = None) -> Any:
        """
        Make a random number generator of initial states.

        :param seed: its seed, as that of :meth:`reset`; ``None`` for a random one
        :return: random number generator for :meth:`reset_as`
        """

    @abstractmethod
    def make_batch(self, n_envs: int, n_threads: int) -> Any:
        """
        Make the simulations of many such robots.

        :param n_envs: number of simulations
        :param n_threads: number of threads, including the calling one
        :return: a :class:`~sb3_cesd.envs.robots.simulations.SimulationBatch`
        """

    @abstractmethod
    def scale_action(self, action: np.ndarray) -> np.ndarray:
        """
        Clip actions to [-1, 1], and scale them to the bounds of the actuators.

        :param action: float64 actions, of the shape of the action space or with more axes before it
        :return: scaled actions, same shape
        """

    @abstractmethod
    def _open(self) -> None:
        """Make the simulation."""

    @abstractmethod
    def _use_random_state(self, random_state: Any) -> None:
        """
        Draw initial states from another random number generator.

        :param random_state: what :meth:`make_random_state` returns
        """

    @abstractmethod
    def _start_episode(self, seed: int | None) -> np.ndarray:
        """
        Put the simulation into an initial state.

        :param seed: seed of a new stream of initial states; ``None`` continues the current one
        :return: the observation, float32
        """

    @abstractmethod
    def _advance(self, action: np.ndarray) -> tuple[np.ndarray, float, bool]:
        """
        Step the simulation.

        :param action: an action in the units of the actuators
        :return: the observation, the reward, and whether the time limit is reached
        :raises SimulationDiverged: if the simulation can't continue
        """

    @abstractmethod
    def _draw_image(self) -> np.ndarray | None:
        """
        Draw the robot.

        :return: the image, shape ``(height, width, 3)``, uint8; ``None`` if it is drawn in a window
        """

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        """
        Start an episode. Opens the environment again after :meth:`close`.

        :param seed: seed of a new stream of initial states; ``None`` continues the current one
        :param options: not used
        :return: the observation, and :meth:`state_info`
        """
        if self._closed:
            random_state = self.random_state
            self._open()
            self._use_random_state(random_state)
        super().reset(seed=seed)
        self._last_observation = self._start_episode(seed)
        self._last_info = self.state_info()
        return self._last_observation.copy(), self._last_info.copy()

    def reset_as(self, random_state: Any) -> np.ndarray:
        """
        Start an episode on behalf of another environment of the same task.

        :param random_state: random number generator of the initial states of that environment
        :return: the observation
        """
        self._use_random_state(random_state)
        return self.reset()[0]

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """
        Step the environment.

        :param action: action of the shape of the action space
        :return: observation, reward, terminated (the simulation diverged), truncated (the time limit is reached) and
            :meth:`state_info`, with MuJoCo's warnings if it diverged
        :raises ValueError: if the action is not an array of numbers, has the wrong shape, or is not finite
        :raises RuntimeError: if there is no display for ``render_mode="human"``
        :raises gymnasium.error.ResetNeeded: before the first :meth:`reset`
        :raises gymnasium.error.ClosedEnvironmentError: after :meth:`close`
        """
        self._check_open()
        if not hasattr(self, "_last_observation"):
            raise ResetNeeded(NO_EPISODE)
        action = to_numbers(action, self.action_space.shape)
        check_finite(action)
        try:
            observation, reward, truncated = self._advance(self.scale_action(action))
        except SimulationDiverged as error:
            self.n_diverged += 1
            info = {**self._last_info, "physics_warnings": error.warnings}
            return self._last_observation.copy(), 0.0, True, False, info
        self._last_observation, self._last_info = observation, self.state_info()
        return observation.copy(), reward, False, truncated, self._last_info.copy()

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """
        Render the robot.

        :return: the image for ``render_mode="rgb_array"``, shape ``(height, width, 3)``, uint8; otherwise ``None``
        :raises RuntimeError: if the machine can't render
        :raises gymnasium.error.ClosedEnvironmentError: after :meth:`close`
        """
        self._check_open()
        if self.render_mode is None:
            return None
        try:
            return self._draw_image()
        except Exception as error:  # each rendering backend raises its own errors
            raise RuntimeError(f"MuJoCo can't render here ({type(error).__name__}: {error}). {REMEDY}") from error

    def _check_images(self, render_mode: str | None, width: int, height: int) -> None:
        """
        Check the rendering arguments.

        :param render_mode: one of ``metadata``, or ``None``
        :param width: width of an image [pixel]
        :param height: height of an image [pixel]
        :raises ValueError: if the mode is unknown, or an image has no pixels
        """
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"Unknown render mode {render_mode!r}: choose 'rgb_array', 'human' or None.")
        if width < 1 or height < 1:
            raise ValueError(f"An image has at least one pixel, not {width} x {height}: pass a positive width and height.")

    def _find_camera(self, camera: str | int, names: list[str]) -> int:
        """
        Look up a camera.

        :param camera: name or index
        :param names: the cameras of the model
        :return: index
        :raises ValueError: if there is no such camera
        """
        if camera not in names and camera not in range(-1, len(names)):
            raise ValueError(
                f"There is no camera {camera!r}: choose one of {', '.join(names)}, or an index from -1 to {len(names) - 1}."
            )
        return names.index(camera) if isinstance(camera, str) else camera

    def _check_open(self) -> None:
        if self._closed:
            raise ClosedEnvironmentError("This environment is closed: call reset() to open it again.")


def check_finite(action: np.ndarray, of: str = "") -> None:
    """
    Check that an action is finite.

    :param action: action of an environment, shape ``(action_dim,)``
    :param of: " of environment <i>", for the message; empty for a single one
    :raises ValueError: if an entry is not finite
    """
    if not np.isfinite(action).all():
        entries = np.flatnonzero(~np.isfinite(action)).tolist()
        raise ValueError(
            f"Entries {entries} of the action{of} are not finite: pass numbers between -1 and 1; "
            "if a policy computed it, its training has diverged (lower its learning rate)."
        )
