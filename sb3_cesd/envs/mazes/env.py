import copy
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.error import ResetNeeded

from sb3_cesd.envs.actions import NO_EPISODE, to_numbers
from sb3_cesd.envs.allowed import check_env_arguments
from sb3_cesd.envs.mazes.coverage import CoverageReward
from sb3_cesd.envs.mazes.drawing import draw_trail
from sb3_cesd.envs.mazes.dynamics import MAX_ACTION, move, place, sample_starts
from sb3_cesd.envs.mazes.layouts import MazeLayout, get_layout

RENDER_MODES = ("rgb_array",)


def maze_spaces(layout: MazeLayout) -> tuple[spaces.Box, spaces.Box]:
    """
    Return the spaces of an environment.

    :param layout: the maze
    :return: observation space, (x, y) in the bounding box, and action space, (dx, dy)
    """
    low, high = layout.low.astype(np.float32), layout.high.astype(np.float32)
    return spaces.Box(low, high, dtype=np.float32), spaces.Box(-MAX_ACTION, MAX_ACTION, (2,), np.float32)


def make_coverage(reward: str, layout: MazeLayout, n_envs: int) -> CoverageReward | None:
    """
    Make the object that computes the reward.

    :param reward: ``"none"`` or ``"coverage"``
    :param layout: the maze
    :param n_envs: number of environments
    :return: the object, or ``None`` if the reward is ``"none"``
    :raises ValueError: if the reward is unknown
    """
    if reward not in ("none", "coverage"):
        raise ValueError(f"Unknown reward {reward!r} of a maze: choose 'none' or 'coverage'.")
    return CoverageReward(layout, n_envs) if reward == "coverage" else None


def check_render_mode(render_mode: str | None) -> str | None:
    """
    Check that mazes support a render mode.

    :param render_mode: ``"rgb_array"`` or ``None``
    :return: the same
    :raises ValueError: if the render mode is unknown
    """
    if render_mode not in (None, *RENDER_MODES):
        raise ValueError(f"Unknown render mode {render_mode!r} of a maze: choose 'rgb_array' or None.")
    return render_mode


def start_option(options: dict[str, Any] | None) -> Any:
    """
    Read the start position from the options of ``reset``.

    :param options: options of ``reset``
    :return: the requested position, or ``None`` for a random one
    :raises ValueError: if an option is unknown
    """
    unknown = sorted(set(options or {}) - {"position"})
    if unknown:
        raise ValueError(f"A maze has no reset option {', '.join(map(repr, unknown))}: use 'position' alone.")
    return (options or {}).get("position")


class MazeEnv(gym.Env[np.ndarray, np.ndarray]):
    """
    A point in a maze (Campos et al., 2020). It observes its position (x, y) and moves by (dx, dy), each in ±0.95.

    Episodes never terminate; the registered ids truncate them after 50 steps. They start at a random position in the start
    cell, or at the one passed as ``reset(options={"position": (x, y)})``.

    With the reward ``"coverage"``, returns measure state coverage: the reward is the fraction of the free bins (0.05 wide, 0.1
    in the bottleneck) that a step visits for the first time. Visited bins are remembered across episodes, so the rewards of an
    evaluation sum to its state coverage, except for bins that are only visited at the start of an episode. They are forgotten
    at a reset with a seed and at a second reset in a row: SB3's ``evaluate_policy`` starts by resetting an environment that
    its last call has just reset, so every evaluation starts from zero.

    :param layout: square_a, square_b, square_c, square_d, tree, bottleneck or corridor
    :param reward: ``"none"`` for 0, or ``"coverage"``
    :param render_mode: ``"rgb_array"`` for images of the maze and the trail of the episode, or ``None``
    :raises ValueError: if the layout, reward or render mode is unknown
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 10}  # noqa: RUF012

    def __init__(self, layout: str, reward: str = "none", render_mode: str | None = None) -> None:
        check_env_arguments("MazeEnv", locals())
        self.layout = get_layout(layout)
        self.reward = reward
        self.render_mode = check_render_mode(render_mode)
        self.observation_space, self.action_space = maze_spaces(self.layout)
        self._coverage = make_coverage(reward, self.layout, n_envs=1)
        self._trail: list[np.ndarray] = []  # positions in this episode, (1, 2) each

    @property
    def position(self) -> np.ndarray:
        """Return the position (x, y, 0), shape ``(3,)`` as for robots; before the first reset the centre of the start cell."""
        return np.append(self._trail[-1] if self._trail else self.layout.start_cell, 0.0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        wanted = start_option(options)
        start = sample_starts(self.layout, 1, self.np_random) if wanted is None else place(self.layout, wanted)[None]
        if self._coverage is not None and (seed is not None or len(self._trail) == 1):
            self._coverage.forget()
        self._trail = [start]
        return start[0].astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        """
        Step the environment.

        :param action: displacement (dx, dy), shape ``(2,)``
        :return: observation, reward, terminated, truncated and info, as usual
        :raises ValueError: if the action is not an array of numbers, has the wrong shape, or is not finite
        :raises gymnasium.error.ResetNeeded: before the first :meth:`reset`
        """
        if not self._trail:
            raise ResetNeeded(NO_EPISODE)
        positions = move(self.layout, self._trail[-1], to_numbers(action, (2,))[None], self.np_random)
        self._trail.append(positions)
        reward = 0.0 if self._coverage is None else float(self._coverage(positions)[0])
        return positions[0].astype(np.float32), reward, False, False, {}

    def get_state(self) -> dict[str, Any]:
        """
        Return the state from which the environment can continue.

        :return: state for :meth:`set_state`
        """
        return {
            "trail": list(self._trail),
            "np_random": copy.deepcopy(self.np_random),
            "coverage": self._coverage and self._coverage.visited.copy(),
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """
        Continue from the state of another environment of the same maze.

        :param state: state that :meth:`get_state` of the other environment returned
        """
        self._trail = list(state["trail"])
        self.np_random = copy.deepcopy(state["np_random"])
        if self._coverage is not None:
            self._coverage.visited[:] = state["coverage"]

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """
        Draw the maze and the trail of the episode.

        :return: the image for ``render_mode="rgb_array"``, shape ``(height, width, 3)``, uint8; otherwise ``None``
        :raises gymnasium.error.ResetNeeded: before the first :meth:`reset`
        """
        if self.render_mode is None:
            return None
        if not self._trail:
            raise ResetNeeded("There is no episode to draw: call reset() first.")
        return draw_trail(self.layout, np.concatenate(self._trail))
