from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.utils import EzPickle

from sb3_cesd.envs.maze_coverage import CoverageReward
from sb3_cesd.envs.maze_dynamics import MazeDynamics
from sb3_cesd.envs.maze_layouts import LAYOUTS, MazeLayout

MAX_DISPLACEMENT = 0.95
HORIZON = 50


def get_layout(name: str) -> MazeLayout:
    """
    :param name: one of ``LAYOUTS``
    :return: the layout
    :raises ValueError: if there is no such maze
    """
    if name not in LAYOUTS:
        raise ValueError(f"Unknown maze {name!r}: choose one of {', '.join(LAYOUTS)}.")
    return LAYOUTS[name]


def make_spaces(layout: MazeLayout) -> tuple[spaces.Box, spaces.Box]:
    """
    :param layout: the maze
    :return: observation space (x, y) and action space (dx, dy)
    """
    observation_space = spaces.Box(layout.low.astype(np.float32), layout.high.astype(np.float32))
    return observation_space, spaces.Box(-MAX_DISPLACEMENT, MAX_DISPLACEMENT, (2,), np.float32)


class MazeEnv(gym.Env[np.ndarray, np.ndarray], EzPickle):
    """
    A point in a 2D maze (Campos et al., 2020). It observes its position and acts by displacement; episodes are truncated
    after 50 steps.

    :param layout: name of the maze, one of ``square_a`` to ``square_d``, ``tree``, ``bottleneck`` and ``corridor``
    :param reward: ``"none"`` for 0; ``"coverage"`` for the share of the free bins that a step is the first to visit, an
        objective for hyperparameter tuning
    :param coverage_episodes: with ``"coverage"``: what was visited is forgotten after this many episodes (and by
        ``reset(seed=...)``), so that the rewards of this many episodes sum up to the coverage of these episodes
    :param render_mode: ``"rgb_array"`` for a picture of the maze and the path of the episode, or ``None``
    """

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    def __init__(self, layout: str, reward: str = "none", coverage_episodes: int = 10, render_mode: str | None = None) -> None:
        EzPickle.__init__(self, layout, reward, coverage_episodes, render_mode)
        if reward not in ("none", "coverage"):
            raise ValueError(f"Unknown reward {reward!r}: choose 'none' or 'coverage'.")
        if render_mode not in (None, *self.metadata["render_modes"]):
            raise ValueError(f"Unknown render mode {render_mode!r}: choose 'rgb_array' or None.")
        self.layout = get_layout(layout)
        self.render_mode = render_mode
        self.observation_space, self.action_space = make_spaces(self.layout)
        self._dynamics = MazeDynamics(self.layout)
        self._coverage = CoverageReward(self.layout, coverage_episodes) if reward == "coverage" else None
        self._path: list[np.ndarray] = []

    @property
    def position(self) -> np.ndarray:
        """(x, y, 0), shape ``(3,)``."""
        return np.append(self._path[-1], 0.0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self._path = [self._dynamics.start_positions(1, self.np_random)[0]]
        if self._coverage is not None:
            self._coverage.start_episode(self._path[0], forget=seed is not None)
        return self._path[0].astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        displacement = np.clip(action, -MAX_DISPLACEMENT, MAX_DISPLACEMENT)
        if not np.isfinite(displacement).all():
            raise ValueError(
                f"Action {action} is not finite: pass numbers between {-MAX_DISPLACEMENT} and {MAX_DISPLACEMENT}."
            )
        self._path.append(self._dynamics.move(self._path[-1][None], displacement[None], self.np_random)[0])
        reward = 0.0 if self._coverage is None else self._coverage(self._path[-1])
        return self._path[-1].astype(np.float32), reward, False, len(self._path) > HORIZON, {}

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """
        :return: the maze with the path of the episode, shape ``(height, width, 3)``, uint8
        """
        if self.render_mode is None:
            return None
        # Not before: matplotlib is slow to import
        from sb3_cesd.envs.maze_drawing import render_path

        return render_path(self.layout, np.array(self._path))
