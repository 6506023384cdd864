"""What tests of fine-tuning share."""

import io

import gymnasium as gym
import numpy as np


def saved(model):
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return file


class Push(gym.Env):
    """The reward is the action, so that its return tells how far the policy pushes."""

    observation_space = gym.spaces.Box(-1, 1, (3,))
    action_space = gym.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.n_steps = 0
        return self.np_random.uniform(-1, 1, 3).astype(np.float32), {}

    def step(self, action):
        self.n_steps += 1
        observation = self.np_random.uniform(-1, 1, 3).astype(np.float32)
        return observation, float(action[0]), False, self.n_steps == 20, {}
