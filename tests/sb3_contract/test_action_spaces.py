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


def test_actions_without_a_range_are_refused():
    space = gym.spaces.Box(np.array([-1, 2, 0], np.float32), np.array([1, 2, 0], np.float32))
    with pytest.raises(ValueError, match=r"^Entries \[1, 2\] of the action have no range.*: leave them out of the action"):
        make_small(DIAYN, Noted(space))


def test_actions_without_entries_are_refused():
    with pytest.raises(ValueError, match=r"^The action space Box\(\(0,\), float32\) has no entries.*: give it some"):
        make_small(DIAYN, Noted(gym.spaces.Box(-1, 1, (0,))))


@pytest.mark.parametrize("high", [np.inf, [1.0, np.inf]])
def test_actions_without_bounds_are_refused(high):
    with pytest.raises(ValueError, match=r"has no finite bounds.*: give it some, .*TransformAction"):
        make_small(DIAYN, Noted(gym.spaces.Box(np.float32([-1, -1]), np.broadcast_to(np.float32(high), 2))))
