"""SkillAnt and SkillHalfCheetah: Gymnasium's robots to the last bit."""

import pickle

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.env_checker import check_env

from sb3_cesd import make_batched
from sb3_cesd.envs.registration import LOCOMOTION
from sb3_cesd.envs.robots.locomotion import SCALES

#: The arguments of METRA's ant; the cost of contacts is left out
ANT = {"id": "Ant-v5", "include_cfrc_ext_in_observation": False, "terminate_when_unhealthy": False, "contact_cost_weight": 0.0}
OF_GYMNASIUM = {"SkillAnt-v0": ANT, "SkillHalfCheetah-v0": {"id": "HalfCheetah-v5"}}


@pytest.mark.parametrize("env_id", LOCOMOTION)
def test_numbers_are_those_of_gymnasium(env_id):
    env, normalized = gym.make(env_id, normalize=False), gym.make(env_id)
    other = gym.make(**OF_GYMNASIUM[env_id], exclude_current_positions_from_observation=False, max_episode_steps=200)
    mean, std = SCALES[LOCOMOTION[env_id]]
    assert mean.shape == std.shape == env.observation_space.shape == other.observation_space.shape
    rng = np.random.default_rng(0)
    lengths, observations = [], []
    for seed in (3, None):
        resets = [each.reset(seed=seed) for each in (env, other, normalized)]
        np.testing.assert_array_equal(resets[0][0], resets[1][0].astype(np.float32))
        assert resets[0][1] == resets[1][1]
        truncated, length = False, 0
        while not truncated:
            action = rng.uniform(-1, 1, env.action_space.shape)
            observation, reward, terminated, truncated, info = env.step(action)
            expected = other.step(action)
            np.testing.assert_array_equal(observation, expected[0].astype(np.float32))
            assert (reward, terminated, truncated) == expected[1:4] and not terminated
            assert info["x_position"] == expected[4]["x_position"]
            position = [info["x_position"], info.get("y_position", 0.0)]
            np.testing.assert_array_equal(env.unwrapped.position[:2], position)
            observations.append(normalized.step(action)[0])
            np.testing.assert_allclose(observations[-1], (expected[0] - mean) / std, rtol=1e-4, atol=1e-5)
            length += 1
        lengths.append(length)
    assert lengths == [200, 200]
    deviations = np.std(observations, axis=0)
    assert (deviations[3:] > 0.3).all() and (deviations[3:] < 4).all(), "the statistics of Gymnasium's older robots fit these"


@pytest.mark.parametrize("env_id", LOCOMOTION)
def test_the_position_is_that_of_the_torso_in_the_world(env_id):
    env = gym.make(env_id)
    env.reset(seed=0)
    torso = env.unwrapped.data.body("torso").xpos  # of the state after the reset
    assert env.unwrapped.position == pytest.approx(torso, abs=1e-9) and torso[2] > 0.5


@pytest.mark.parametrize("env_id", LOCOMOTION)
def test_a_diverged_simulation_ends_the_episode(env_id):
    env = gym.make(env_id)
    env.reset(seed=0)
    *_, info = env.step(np.zeros(env.action_space.shape))
    env.unwrapped.data.qvel[0] = 1e12
    before = env.unwrapped._get_obs()
    last, reward, terminated, truncated, last_info = env.step(np.zeros(env.action_space.shape))
    assert (reward, terminated, truncated) == (0, True, False) and (last == before).all()
    [name] = last_info["physics_warnings"]
    assert name.startswith("mjWARN_BAD") and last_info["x_position"] == info["x_position"]
    env.reset()
    assert not env.step(np.zeros(env.action_space.shape))[2]
    with pytest.raises(ValueError, match="not finite"):
        env.step(np.full(env.action_space.shape, np.nan))


@pytest.mark.parametrize("env_id", LOCOMOTION)
def test_environments_of_gymnasium(env_id):
    env = gym.make(env_id, normalize=False)
    check_env(env.unwrapped)
    first = env.reset(seed=0)[0]
    copied = pickle.loads(pickle.dumps(env.unwrapped))
    np.testing.assert_array_equal(copied.reset(seed=0)[0], first)
    with pytest.raises(ValueError, match="DummyVecEnv"):
        make_batched(env_id, 2)
