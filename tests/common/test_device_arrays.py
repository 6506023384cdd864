"""The replay buffer on another device, where tensors do not share the memory of the arrays."""

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common import buffers
from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.cuda import DeviceArrays
from sb3_cesd.common.observations import add_skill, skill_observation_space
from sb3_cesd.common.skills import DiscreteSkills

CPU = th.device("cpu")


def equal(samples, others):
    names = [name for name in samples._fields if getattr(samples, name) is not None]
    assert len(names) >= 7
    return all((getattr(samples, name) == getattr(others, name)).all() for name in names)


def same_batch(buffer, env=None, batch_size=300):
    np.random.seed(0)
    return buffer.sample(batch_size, env)


@pytest.mark.parametrize("sample_every", [1, 7, 60])
def test_samples_of_copies_equal_those_of_shared_memory(monkeypatch, sample_every):
    """Many times round the ring, with ends of all kinds and room for them that grows."""
    n_envs, skills = 3, DiscreteSkills(4)
    space = skill_observation_space(spaces.Box(-np.inf, np.inf, (2,), np.float32), skills)
    actions = spaces.Box(-1, 1, (1,), np.float32)
    shared = SkillReplayBuffer(40 * n_envs, space, actions, "cpu", n_envs, skill_space=skills)
    with monkeypatch.context() as context:
        context.setattr(buffers, "DeviceArrays", lambda device: DeviceArrays(device, shared=False))
        apart = SkillReplayBuffer(40 * n_envs, space, actions, "cpu", n_envs, skill_space=skills)
    rng = np.random.default_rng(0)
    generations = set()
    for time in range(300):
        obs, next_obs = (
            add_skill(rng.normal(size=(n_envs, 2)).astype(np.float32), skills.draw(n_envs, rng)) for _ in range(2)
        )
        ends = rng.random(n_envs) < 0.2
        infos = [{"TimeLimit.truncated": bool(rng.random() < 0.5 and end)} for end in ends]
        step = (obs, next_obs, rng.uniform(-1, 1, (n_envs, 1)), rng.normal(size=n_envs), ends, infos)
        for buffer in (shared, apart):
            buffer.add(*step)
            if time == 150:
                buffer.end_trajectories()
        if time % sample_every == 0:
            expected = same_batch(shared)
            assert equal(expected, same_batch(apart)), time
            assert not apart._tensors.shared and shared._tensors.shared
            generations.add(apart.generation)
    assert len(generations) < 10, "tensors keep their addresses"


def test_normalised_samples_equal_those_of_vec_normalize(copied, make_model):
    """The statistics move on between two calls."""
    env = VecNormalize(make_vec_env("Pendulum-v1", 2))
    model = make_model(env, learning_starts=1000)
    generations = set()
    for _ in range(3):
        model.learn(60, reset_num_timesteps=False)
        buffer = model.replay_buffer
        raw, normalised = same_batch(buffer), same_batch(buffer, env)
        generations.add(buffer.generation)
        for name in ("observations", "next_observations"):
            expected = env.normalize_obs(getattr(raw, name).numpy())
            np.testing.assert_allclose(getattr(normalised, name).numpy(), expected, rtol=1e-6, atol=1e-6)
        one_step = raw.discounts[:, 0] == np.float32(0.99)
        assert one_step.any()
        expected = env.normalize_reward(raw.rewards[one_step].numpy())
        np.testing.assert_allclose(normalised.rewards[one_step].numpy(), expected, rtol=1e-6)
    buffer.prepare(env)
    buffer.next_observations  # noqa: B018
    assert buffer.generation in generations, "inspection changes nothing"
