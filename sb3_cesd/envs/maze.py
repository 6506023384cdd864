from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from sb3_cesd.envs.maze_coverage import CoverageReward
from sb3_cesd.envs.maze_drawing import draw_trail
from sb3_cesd.envs.maze_dynamics import MAX_ACTION, move, place, sample_starts
from sb3_cesd.envs.maze_layouts import MazeLayout, get_layout

RENDER_MODES = ("rgb_array",)


def maze_spaces(layout: MazeLayout) -> tuple[spaces.Box, spaces.Box]:
    """
    :param layout: the maze
    :return: observation space, (x, y) in the bounding box, and action space, (dx, dy)
    """
    low, high = layout.low.astype(np.float32), layout.high.astype(np.float32)
    return spaces.Box(low, high, dtype=np.float32), spaces.Box(-MAX_ACTION, MAX_ACTION, (2,), np.float32)


def make_coverage(reward: str, layout: MazeLayout, n_envs: int) -> CoverageReward | None:
    """
    :param reward: ``"none"`` or ``"coverage"``
    :param layout: the maze
    :param n_envs: number of environments
    :return: what computes the reward, ``None`` if there is none
    :raises ValueError: if there is no such reward
    """
    if reward not in ("none", "coverage"):
        raise ValueError(f"Unknown reward {reward!r} of a maze: choose 'none' or 'coverage'.")
    return CoverageReward(layout, n_envs) if reward == "coverage" else None


def check_render_mode(render_mode: str | None) -> str | None:
    """
    :param render_mode: ``"rgb_array"`` or ``None``
    :return: the same
    :raises ValueError: if there is no such mode
    """
    if render_mode not in (None, *RENDER_MODES):
        raise ValueError(f"Unknown render mode {render_mode!r} of a maze: choose 'rgb_array' or None.")
    return render_mode


def start_option(options: dict[str, Any] | None) -> Any:
    """
    :param options: of ``reset``
    :return: the wanted start, ``None`` for a random one
    :raises ValueError: if there is an unknown option
    """
    unknown = sorted(set(options or {}) - {"position"})
    if unknown:
        raise ValueError(f"A maze has no reset option {', '.join(map(repr, unknown))}: use 'position' alone.")
    return (options or {}).get("position")


class MazeEnv(gym.Env[np.ndarray, np.ndarray]):
    """
    A point in a maze (Campos et al., 2020). It sees where it is, (x, y), and chooses where to go, (dx, dy), each in ±0.95.

    An episode never ends by itself: the registered ids truncate it after 50 steps. It starts at a random place of the start
    cell, or where ``reset(options={"position": (x, y)})`` puts it.

    The reward ``"coverage"`` is an objective for tuning hyperparameters: the share of the free bins (0.05 wide, 0.1 in the
    bottleneck) that a step is the first to reach. Bins are remembered over episodes, so that the rewards of an evaluation sum
    up to its state coverage. They are forgotten by a reset with a seed, and by a second reset in a row: SB3's
    ``evaluate_policy`` resets what the end of its last call has reset already, hence every evaluation counts from zero.

    :param layout: square_a, square_b, square_c, square_d, tree, bottleneck or corridor
    :param reward: ``"none"`` for 0, or ``"coverage"``
    :param render_mode: ``"rgb_array"`` for images of the maze and the trail of the episode, or ``None``
    :raises ValueError: if there is no such layout, reward or render mode
    """

    metadata: dict[str, Any] = {"render_modes": list(RENDER_MODES), "render_fps": 10}  # noqa: RUF012

    def __init__(self, layout: str, reward: str = "none", render_mode: str | None = None) -> None:
        self.layout = get_layout(layout)
        self.render_mode = check_render_mode(render_mode)
        self.observation_space, self.action_space = maze_spaces(self.layout)
        self._coverage = make_coverage(reward, self.layout, n_envs=1)
        self._trail: list[np.ndarray] = []  # positions in this episode, (1, 2) each

    @property
    def position(self) -> np.ndarray:
        """(x, y, 0), shape ``(3,)``: as robots have it; before the first reset the middle of the first cell."""
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
        positions = move(self.layout, self._trail[-1], np.asarray(action)[None], self.np_random)
        self._trail.append(positions)
        reward = 0.0 if self._coverage is None else float(self._coverage(positions)[0])
        return positions[0].astype(np.float32), reward, False, False, {}

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """
        :return: the image of ``render_mode="rgb_array"``, shape ``(height, width, 3)``, uint8; otherwise ``None``
        """
        return None if self.render_mode is None else draw_trail(self.layout, np.concatenate(self._trail))
