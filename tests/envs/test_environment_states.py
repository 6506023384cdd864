"""What get_state returns stays as it is, whatever the environment does next."""

import numpy as np
import pytest
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_cesd import VecSkillObservation, make_batched
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.envs.mazes.env import MazeEnv
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv


def batched_maze():
    return MazeVecEnv("square_a", 2, max_episode_steps=7, reward="coverage", render_mode="rgb_array")


def batched_walker():
    return make_batched("Walker-v0", 2, env_kwargs={"max_episode_steps": 7}, n_threads=1)


def play(env, seed):
    """Observations, rewards, ends and skills of twelve steps."""
    rng = np.random.default_rng(seed)
    steps = []
    for _ in range(12):
        observations, rewards, dones, infos = env.step(rng.uniform(-1, 1, (env.num_envs, *env.action_space.shape)))
        entries = observations if isinstance(observations, dict) else {"observation": observations}
        episodes = [info["episode"]["r"] for info in infos if "episode" in info]
        steps.append([*entries.values(), rewards, dones, np.array(episodes)])
    return steps


def assert_equal(steps, others):
    for step, other in zip(steps, others, strict=True):
        for value, expected in zip(step, other, strict=True):
            np.testing.assert_array_equal(value, expected)


@pytest.mark.parametrize("make", [batched_maze, batched_walker])
def test_batched_environments(make):
    env = make()
    env.seed(0)
    env.reset()
    play(env, seed=1)
    state = env.get_state()
    expected = play(env, seed=2)
    env.set_state(state)
    assert_equal(play(env, seed=2), expected)
    env.set_state(state)
    assert_equal(play(env, seed=2), expected)


def test_one_maze():
    env = MazeEnv("square_a", reward="coverage", render_mode="rgb_array")
    env.reset(seed=0)
    env.step(np.array([0.5, 0.3]))
    state, image = env.get_state(), env.render()
    actions = np.random.default_rng(0).uniform(-0.95, 0.95, (8, 2))
    expected = [env.step(action)[:2] for action in actions]
    env.set_state(state)
    np.testing.assert_array_equal(env.render(), image)
    assert_equal([env.step(action)[:2] for action in actions], expected)


def test_clock_of_skills():
    env = VecSkillObservation(DummyVecEnv([lambda: MazeEnv("square_a")] * 2), DiscreteSkills(16), skill_duration=3)
    env.seed(0)
    env.reset()
    play(env, seed=1)
    state = env.get_state()
    expected = [step[1] for step in play(env, seed=2)]
    env.set_state(state)
    assert_equal([[step[1]] for step in play(env, seed=2)], [[skills] for skills in expected])
