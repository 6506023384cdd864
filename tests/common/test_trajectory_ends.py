"""No n-step window reaches over a reset between two calls of ``learn``, which the buffer can not see."""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.observations import add_skill, skill_observation_space
from sb3_cesd.common.skills import DiscreteSkills

SKILLS = DiscreteSkills(2)


def windows_of(buffer, *times):
    buffer.prepare()
    times = th.tensor(times)
    return [buffer._window_lengths(times, th.full_like(times, env)).tolist() for env in range(buffer.n_envs)]


def observe(time):
    return add_skill(np.full((2, 1), time, np.float32), SKILLS.encode(0, (2,)))


def fill(n_added, dones=(False, False), size=10):
    space = skill_observation_space(spaces.Box(-1, 1, (1,)), SKILLS)
    kwargs = {"n_envs": 2, "skill_space": SKILLS, "n_steps": 3, "gamma": 0.9}
    buffer = SkillReplayBuffer(2 * size, space, spaces.Box(-1, 1, (1,)), "cpu", **kwargs)
    for time in range(n_added):
        done = np.array(dones) & (time == n_added - 1)
        next_obs = observe(time + 1 if time + 1 < n_added else -1)
        buffer.add(observe(time), next_obs, np.zeros((2, 1)), np.ones(2), done, [{}, {}])
    return buffer


def add_one(buffer):
    """What follows looks like the same episode, as an environment may that always starts in one state."""
    buffer.add(observe(-1), observe(-1), np.zeros((2, 1)), np.ones(2), np.zeros(2), [{}, {}])


@pytest.mark.parametrize("n_added", [5, 10, 14])
def test_windows_end_where_the_environments_were_reset(n_added):
    uncut, cut = fill(n_added), fill(n_added)
    cut.end_trajectories()
    for buffer in (uncut, cut):
        for _ in range(3):
            add_one(buffer)
    times = [time % 10 for time in range(n_added - 3, n_added)]
    assert windows_of(uncut, *times) == [[3, 3, 3]] * 2
    assert windows_of(cut, *times) == [[3, 2, 1]] * 2


def test_a_cut_is_bootstrapped_and_a_termination_stays_one():
    buffer = fill(5, dones=(True, False))
    buffer.end_trajectories()
    add_one(buffer)
    assert buffer.timeouts[4].tolist() == [0, 1]
    np.random.seed(0)
    samples = buffer.sample(400)
    # Zero after the end of the first environment, gamma ** window of the second
    last = samples.observations[:, 0] == 4
    assert set(samples.dones[last, 0].tolist()) == {0.0, 1.0}
    assert samples.discounts[last].unique().tolist() == pytest.approx([0.9])
    first_of_next_episode = samples.observations[:, 0] == -1
    assert (samples.dones[first_of_next_episode] == 0).all()


class Blind(gym.Env):
    """Nothing is seen of a reset."""

    observation_space = action_space = gym.spaces.Box(-1, 1, (1,))

    def reset(self, *, seed=None, options=None):
        return np.zeros(1, np.float32), {}

    def step(self, action):
        return np.zeros(1, np.float32), 0.0, False, False, {}


def test_a_new_training_ends_trajectories_that_look_as_if_they_went_on(make_model):
    model = make_model(make_vec_env(Blind, 2)).learn(60).learn(30)
    assert windows_of(model.replay_buffer, 27, 28, 29, 30) == [[3, 2, 1, 3]] * 2
