"""Metrics do not depend on how a policy sees its observations."""

import numpy as np
import pytest
from sb3_cesd.metrics.normalization import normalize, unnormalize
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.skills import make_skill_space
from sb3_cesd.envs.robots.ids import LOCOMOTION
from sb3_cesd.envs.robots.observation_scale import SCALES
from sb3_cesd.metrics import zero_shot_goals
from sb3_cesd.metrics.motion import measure_motion
from sb3_cesd.metrics.rollouts import collect_rollouts, env_positions


class Shaking:
    """Actions that depend on the time alone, which a rollout tells by its order."""

    n_skills = 2

    def __init__(self, n_actions):
        self.n_actions = n_actions
        self.n_steps = 0

    def predict(self, observation, *, deterministic, skill):
        self.n_steps += 1
        return np.cos(skill[:, None] + self.n_steps / (1 + np.arange(self.n_actions))), None


def motion_of(env):
    model = Shaking(env.action_space.shape[0])
    rollouts = collect_rollouts(model, env, n_rollouts=1, n_steps=60, seed=0, position_fn=env_positions)
    return measure_motion(env, rollouts._replace(positions=rollouts.states))


@pytest.mark.parametrize("env_id", LOCOMOTION)
def test_motion_is_that_of_the_simulation(env_id):
    expected = motion_of(make_vec_env(env_id, 2, seed=0, env_kwargs={"normalize": False}))
    motion = motion_of(make_vec_env(env_id, 2, seed=0))
    for part, speeds in expected.speeds.items():
        assert motion.speeds[part] == pytest.approx(speeds, rel=1e-4) and (speeds > 0).all()
        assert motion.random_speeds[part] == pytest.approx(expected.random_speeds[part], rel=1e-4)


@pytest.mark.parametrize("around", [False, True])
def test_back_and_forth(around):
    env = make_vec_env("SkillAnt-v0", 2, seed=0)
    scale = SCALES["ant"]
    observations = env.reset()
    raw = scale.unnormalize(observations)
    assert raw[:, 2] == pytest.approx(0.75, abs=0.11), "height at the start [m]"
    if around:
        env = VecNormalize(env, training=False)
        env.obs_rms.mean[:], env.obs_rms.var[:] = 0.5, 4.0
        observations = env.normalize_obs(observations)
    assert unnormalize(env, observations) == pytest.approx(raw, abs=1e-5)
    assert normalize(env, raw) == pytest.approx(observations, abs=1e-5)


def test_goals_are_shown_as_the_policy_sees_them():
    seen = []

    class Asked:
        n_skills = 2
        skill_space = make_skill_space("sphere", 2, 2)

        def predict(self, observation, *, deterministic, skill):
            return np.zeros((len(skill), 8)), None

        def goal_skill(self, observations, goals):
            seen.append(goals.copy())
            return (goals - observations)[:, :2]

    env = make_vec_env("SkillAnt-v0", 2, seed=0)
    goals = np.array([[10.0, -20.0], [5.0, 0.0]])
    zero_shot_goals(Asked(), env, goals, n_steps=2)
    assert SCALES["ant"].unnormalize(seen[-1])[:, :2] == pytest.approx(goals, abs=1e-4)
    assert np.abs(seen[-1][:, 2:]).max() < 3, "the rest is the observation at the start"
