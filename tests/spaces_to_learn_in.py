"""Environments that differ in their spaces alone."""

import gymnasium as gym
import numpy as np
from gymnasium import spaces


class RandomEnv(gym.Env):
    """Observes at random in any space; episodes of 20 steps. An action of another shape or out of bounds is an error."""

    def __init__(self, observation_space=None, action_space=None):
        self.observation_space = spaces.Box(-1, 1, (3,)) if observation_space is None else observation_space
        self.action_space = spaces.Box(-1, 1, (1,)) if action_space is None else action_space
        #: All actions it was given
        self.actions = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        if seed is not None:
            self.observation_space.seed(seed)
        self.time = 0
        return self.observation_space.sample(), {}

    def step(self, action):
        # A vectorised environment makes a number of an array without axes
        assert isinstance(action, np.ndarray | np.floating) and action.shape == self.action_space.shape
        assert action.dtype == self.action_space.dtype and self.action_space.contains(np.asarray(action)), action
        self.actions.append(action.copy())
        self.time += 1
        return self.observation_space.sample(), float(np.mean(action)), False, self.time == 20, {}
