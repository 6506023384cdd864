"""A cheap environment with the sizes of a robot, for timing updates without a simulation."""

from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

#: Sizes of the observations and actions of the robots
ROBOTS = {"walker": (24, 6), "quadruped": (78, 12)}


class RandomWalk(gym.Env):
    """
    A random walk that stays near the origin, whatever the actions. The next observation is close to the previous one.

    :param robot: one of ``ROBOTS``, which determines the sizes
    """

    def __init__(self, robot: str) -> None:
        obs_dim, action_dim = ROBOTS[robot]
        self.observation_space = spaces.Box(-np.inf, np.inf, (obs_dim,), np.float32)
        self.action_space = spaces.Box(-1, 1, (action_dim,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.position = self.np_random.normal(size=self.observation_space.shape)
        return self.position.astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        self.position = 0.995 * self.position + 0.1 * self.np_random.normal(size=self.position.shape)
        return self.position.astype(np.float32), 0.0, False, False, {}
