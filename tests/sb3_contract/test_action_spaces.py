"""Bounds of actions that are not those of floating point numbers between -1 and 1."""

import gymnasium as gym
import numpy as np
import pytest
from small import make_small

from sb3_cesd import DIAYN


class Noted(gym.Env):
    """Notes the actions that it gets."""

    observation_space = gym.spaces.Box(-1, 1, (2,))

    def __init__(self, action_space):
        self.action_space = action_space
        self.actions = []

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(2, np.float32), {}

    def step(self, action):
        self.actions.append(action)
        return np.zeros(2, np.float32), 0.0, False, False, {}


@pytest.mark.parametrize("dtype", [np.int64, np.uint8, np.float64])
def test_random_actions_are_stored_as_they_are(dtype):
    space = gym.spaces.Box(0, 10, (2,), dtype)
    env = Noted(space)
    model = make_small(DIAYN, env).learn(40)
    acted = np.array(env.actions)
    assert len(np.unique(acted.round())) > 8, "80 draws of 11 numbers"
    stored = (model.replay_buffer.actions[:40, 0] + 1) / 2 * 10
    np.testing.assert_allclose(stored, acted, atol=1e-5)


@pytest.mark.parametrize("high", [[1.0, np.inf], [1.0, -1.0]])
def test_actions_without_finite_ranges_are_refused(high):
    with pytest.raises(ValueError, match="bounds"):
        make_small(DIAYN, Noted(gym.spaces.Box(np.float32([-1, -1]), np.float32(high))))
