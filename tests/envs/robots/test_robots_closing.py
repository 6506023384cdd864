"""What is closed can be reset, as Gymnasium's own robots can, and goes on as if it had not been closed."""

import warnings

import gymnasium as gym
import numpy as np
import pytest
from formulas import REWARDS
from gymnasium.error import ClosedEnvironmentError
from opengl import NEEDS_GL
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import make_batched

IDS = ["WalkerFlip-v0", "QuadrupedJump-v0", "Jaco-v0"]
GYMNASIUM_IDS = ["SkillAnt-v0", "SkillHalfCheetah-v0"]


@pytest.mark.parametrize(
    ("env_id", "render_mode"),
    [*((env_id, None) for env_id in IDS), *(pytest.param(env_id, "rgb_array", marks=NEEDS_GL) for env_id in REWARDS)],
)
def test_checker_of_sb3_that_closes_and_goes_on(env_id, render_mode):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        env = gym.make(env_id, render_mode=render_mode)
        check_env(env, skip_render_check=False)
        check_env(env.unwrapped, skip_render_check=False)
        env.close()


def assert_same_steps(env, expected, n_steps=5):
    rng = np.random.default_rng(0)
    for _ in range(n_steps):
        action = rng.uniform(-1, 1, env.action_space.shape)
        for value, expected_value in zip(env.step(action), expected.step(action), strict=True):
            np.testing.assert_array_equal(value, expected_value)


@pytest.mark.parametrize("seed", [None, 4])
@pytest.mark.parametrize("env_id", IDS)
def test_robot_goes_on_as_if_not_closed(env_id, seed):
    closed, expected = gym.make(env_id), gym.make(env_id)
    for env in (closed, expected):
        env.reset(seed=3)
        env.step(np.ones(env.action_space.shape))
    for _ in range(2):
        closed.close()
        closed.close()
        with pytest.raises(ClosedEnvironmentError, match=r"closed: call reset\(\) to open it again\.$"):
            closed.unwrapped.step(np.zeros(closed.action_space.shape))
        np.testing.assert_array_equal(closed.reset(seed=seed)[0], expected.reset(seed=seed)[0])
        assert_same_steps(closed, expected)
        np.testing.assert_array_equal(closed.unwrapped.position, expected.unwrapped.position)
    np.testing.assert_array_equal(closed.reset()[0], expected.reset()[0])
    closed.close()
    expected.close()


def test_robot_can_be_closed_before_its_first_reset():
    closed, expected = gym.make("Jaco-v0"), gym.make("Jaco-v0")
    closed.close()
    np.testing.assert_array_equal(closed.reset(seed=1)[0], expected.reset(seed=1)[0])
    assert_same_steps(closed, expected)
    closed.close()
    expected.close()


@NEEDS_GL
@pytest.mark.parametrize("env_id", IDS)
def test_images_of_a_robot_that_was_closed(env_id):
    env = gym.make(env_id, render_mode="rgb_array", width=1280, height=720)  # larger than the buffer of the model
    images = []
    for _ in range(2):
        env.reset(seed=0)
        images.append(env.render())
        env.close()
        with pytest.raises(ClosedEnvironmentError):
            env.unwrapped.render()
    assert images[0].shape == (720, 1280, 3) and images[0].std() > 10
    np.testing.assert_array_equal(*images)


@pytest.mark.parametrize("env_id", [*IDS, *GYMNASIUM_IDS])
def test_batch_goes_on_as_if_not_closed(env_id):
    closed, expected = make_batched(env_id, 3, seed=3), make_vec_env(env_id, 3, seed=3)
    for env in (closed, expected):
        env.reset()
        env.step(np.ones((3, *env.action_space.shape)))
    for _ in range(2):
        closed.close()
        closed.close()
        with pytest.raises(ClosedEnvironmentError):
            closed.step(np.zeros((3, *closed.action_space.shape)))
        np.testing.assert_array_equal(closed.reset(), expected.reset())
        np.testing.assert_array_equal(closed.get_attr("position"), expected.get_attr("position"))
        for _ in range(5):
            actions = np.full((3, *closed.action_space.shape), 0.4)
            for value, expected_value in zip(closed.step(actions), expected.step(actions), strict=True):
                np.testing.assert_array_equal(value, expected_value)
    # Robots of Gymnasium have no physics; the places above come from their data
    if env_id in IDS:
        for physics, other in zip(closed.get_attr("physics"), expected.get_attr("physics"), strict=True):
            np.testing.assert_array_equal(physics.data.qpos, other.data.qpos)
    closed.close()
    expected.close()


@NEEDS_GL
def test_images_of_a_batch_that_was_closed():
    env = make_batched("Jaco-v0", 2, env_kwargs={"width": 96, "height": 64})
    images = []
    for _ in range(2):
        env.seed(0)
        env.reset()
        images.append(env.get_images())
        env.close()
    np.testing.assert_array_equal(*images)


def test_batch_does_not_go_on_with_monitor_files_that_are_closed(tmp_path):
    env = make_batched("Walker-v0", 2, monitor_dir=str(tmp_path))
    env.reset()
    env.close()
    with pytest.raises(ClosedEnvironmentError, match=r"The monitor files .* are closed: make new environments\.$"):
        env.reset()
