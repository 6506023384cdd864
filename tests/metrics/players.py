"""Skills and environments by hand."""

import gymnasium as gym
import numpy as np

from sb3_cesd.common.skills import make_skill_space
from sb3_cesd.metrics.rollouts import SkillRollouts

DIRECTIONS = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=np.float32)


class Plane(gym.Env):
    """A point that goes where its actions lead, from the origin or where it is told to start."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Box(-0.95, 0.95, (2,), np.float32)

    def __init__(self, horizon=50):
        self.horizon = horizon

    def reset(self, *, seed=None, options=None):
        self.n_steps, self.state = 0, np.array((options or {}).get("position", (0.0, 0.0)), dtype=np.float32)
        return self.state, {}

    def step(self, action):
        self.state, self.n_steps = self.state + action, self.n_steps + 1
        return self.state, 0.5, False, self.n_steps == self.horizon, {}


class Placed(Plane):
    """Has a position, once it has been reset."""

    def __getattr__(self, name):
        if name == "position" and "state" in vars(self):
            return np.append(self.state, 0.0)
        raise AttributeError(name)


class Compass:
    """A skill for each direction."""

    n_skills, step = 4, 0.05

    def predict(self, observation, *, deterministic, skill):
        return self.step * DIRECTIONS[skill], None


class Vectors(Compass):
    """Skills are directions."""

    skill_space = make_skill_space("sphere", 4, 2)

    def predict(self, observation, *, deterministic, skill):
        return 0.1 * skill, None

    def goal_skill(self, observations, goals):
        ways = goals - observations
        return ways / np.maximum(np.linalg.norm(ways, axis=1, keepdims=True), 0.1)


def make_rollouts(states, lengths=None, positions=False):
    """Rollouts by their states, shape ``(n_skills, n_rollouts, n_states, d)``."""
    shape = states.shape[:2]
    skills = np.broadcast_to(np.arange(shape[0])[:, None], shape)
    lengths = np.full(shape, states.shape[2] - 1) if lengths is None else lengths
    return SkillRollouts(states, skills, np.zeros(shape), lengths, states, states if positions else None)
