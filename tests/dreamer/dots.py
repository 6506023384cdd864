"""A dot in a picture."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class DotEnv(gym.Env):
    """A dot that moves by the action, at most 2 pixels; the reward is its place from left (0) to right (1)."""

    def __init__(self, size=16, horizon=20, terminates=False):
        self.size, self.horizon, self.terminates = size, horizon, terminates
        self.observation_space = spaces.Box(0, 255, (size, size, 1), np.uint8)
        self.action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def _picture(self):
        picture = np.zeros((self.size, self.size, 1), np.uint8)
        row, column = np.rint(self.place).astype(int)
        picture[row : row + 2, column : column + 2] = 255
        return picture

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.n_steps = self.np_random.uniform(0, self.size - 2, 2), 0
        return self._picture(), {}

    def step(self, action):
        self.place = np.clip(self.place + 2 * np.asarray(action), 0, self.size - 2)
        self.n_steps += 1
        over = self.n_steps >= self.horizon
        return self._picture(), self.place[1] / self.size, over and self.terminates, over and not self.terminates, {}


def make_small(method, env=None, **kwargs):
    """Make a model that learns in seconds."""
    arguments = {
        "n_skills": 4,
        "learning_starts": 60,
        "buffer_size": 1000,
        "batch_size": 4,
        "replay_buffer_kwargs": {"sequence_length": 6},
        "policy_kwargs": {
            "net_arch": [16, 16],
            "horizon": 3,
            "world_model_kwargs": {"deter_dim": 16, "n_categoricals": 4, "n_classes": 4, "hidden_dim": 16, "depth": 2},
        },
        "seed": 0,
        "device": "cpu",
    }
    return method("DreamerPolicy", env or DotEnv(), **{**arguments, **kwargs})
