"""A dot in a picture."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces

from sb3_cesd.common.arguments import merge

SMALL = {
    "n_skills": 4,
    "learning_starts": 60,
    "buffer_size": 5000,
    "batch_size": 4,
    "seed": 0,
    "device": "cpu",
    "replay_buffer_kwargs": {"sequence_length": 6},
    "policy_kwargs": {
        "net_arch": [16, 16],
        "horizon": 3,
        "world_model_kwargs": {"deter_dim": 16, "n_categoricals": 4, "n_classes": 4, "hidden_dim": 16, "depth": 2},
    },
}


class DotEnv(gym.Env):
    """A dot that moves by the action, at most 2 pixels; the reward is its place from left (0) to right (.875)."""

    observation_space = spaces.Box(0, 255, (16, 16, 1), np.uint8)
    action_space = spaces.Box(-1.0, 1.0, (2,), np.float32)

    def _picture(self):
        picture = np.zeros((16, 16, 1), np.uint8)
        row, column = np.rint(self.place).astype(int)
        picture[row : row + 2, column : column + 2] = 255
        return picture

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.n_steps = self.np_random.uniform(0, 14, 2), 0
        return self._picture(), {}

    def step(self, action):
        self.place = np.clip(self.place + 2 * np.asarray(action), 0, 14)
        self.n_steps += 1
        return self._picture(), self.place[1] / 16, False, self.n_steps >= 20, {}


def make_small(method, env=None, **kwargs):
    """Make a model that learns in seconds."""
    return method("DreamerPolicy", env or DotEnv(), **merge(SMALL, kwargs))
