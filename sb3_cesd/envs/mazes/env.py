from typing import Any, Literal

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from sb3_cesd.common.arguments import checked
from sb3_cesd.envs.actions import finite_actions
from sb3_cesd.envs.mazes.coverage import CoverageReward
from sb3_cesd.envs.mazes.drawing import draw_trail
from sb3_cesd.envs.mazes.dynamics import MAX_ACTION, move, place, sample_starts
from sb3_cesd.envs.mazes.layouts import MazeLayout, get_layout


def maze_spaces(layout: MazeLayout) -> tuple[spaces.Box, spaces.Box]:
    """Return the observation space, (x, y) in the bounding box, and the action space, (dx, dy)."""
    low, high = layout.low.astype(np.float32), layout.high.astype(np.float32)
    return spaces.Box(low, high, dtype=np.float32), spaces.Box(-MAX_ACTION, MAX_ACTION, (2,), np.float32)


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

    metadata: dict[str, Any] = {"render_modes": ["rgb_array"], "render_fps": 10}  # noqa: RUF012

    @checked
    def __init__(
        self, layout: str, reward: Literal["none", "coverage"] = "none", render_mode: Literal["rgb_array"] | None = None
    ) -> None:
        self.layout = get_layout(layout)
        self.reward = reward
        self.render_mode = render_mode
        self.observation_space, self.action_space = maze_spaces(self.layout)
        self._coverage = CoverageReward(self.layout, n_envs=1) if reward == "coverage" else None
        # Positions in this episode, (1, 2) each
        self._trail = [np.array(self.layout.start_cell, dtype=np.float64)[None]]

    @property
    def position(self) -> np.ndarray:
        """Return the position (x, y, 0), shape ``(3,)`` as for robots."""
        return np.append(self._trail[-1], 0.0)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        wanted = (options or {}).get("position")
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
        :raises ValueError: if the action has the wrong shape, or is not finite
        """
        positions = move(self.layout, self._trail[-1], finite_actions(action, (1, 2)), self.np_random)
        self._trail.append(positions)
        reward = 0.0 if self._coverage is None else float(self._coverage(positions)[0])
        return positions[0].astype(np.float32), reward, False, False, {}

    def render(self) -> np.ndarray | None:  # type: ignore[override]
        """
        Draw the maze and the trail of the episode.

        :return: the image for ``render_mode="rgb_array"``, shape ``(height, width, 3)``, uint8; otherwise ``None``
        """
        return None if self.render_mode is None else draw_trail(self.layout, np.concatenate(self._trail))
