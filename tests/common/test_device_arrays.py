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
from sb3_cesd.common.skills import DiscreteSkills, SphereSkills

CPU = th.device("cpu")


def equal(samples, others):
    names = [name for name in samples._fields if getattr(samples, name) is not None]
    assert len(names) >= 7
    return all((getattr(samples, name) == getattr(others, name)).all() for name in names)


def same_batch(buffer, env=None, batch_size=300):
    np.random.seed(0)
    return buffer.sample(batch_size, env)


def test_copies_see_changes_once_they_are_updated():
    array = np.zeros((4, 2))
    arrays = DeviceArrays(CPU, shared=False)
    arrays.set(array=array)
    tensor = arrays["array"]
    array[2] = 1
    assert (tensor == 0).all()
    arrays.update()
    assert (tensor == 0).all(), "nothing was marked"
    arrays.mark(["array"], [2])
    arrays.update()
    assert tensor[:, 0].tolist() == [0, 0, 1, 0]
    assert arrays["array"] is tensor and arrays.generation == 1


def test_another_array_is_another_generation():
    array = np.zeros(3)
    arrays = DeviceArrays(CPU, shared=False)
    arrays.set(array=array)
    arrays.set(array=array)
    assert arrays.generation == 1
    arrays.set(array=np.ones(3))
    assert arrays.generation == 2 and (arrays["array"] == 1).all()


def test_shared_tensors_follow_by_themselves():
    array = np.zeros(3)
    arrays = DeviceArrays(CPU)
    arrays.set(array=array)
    array[0] = 5
    assert arrays["array"][0] == 5


@pytest.mark.parametrize("sample_every", [1, 7, 60])
def test_samples_of_copies_equal_those_of_shared_memory(monkeypatch, sample_every):
    """Many times round the ring, with ends of all kinds and room for them that grows."""
    n_envs, skills = 3, DiscreteSkills(4)
    space = skill_observation_space(spaces.Box(-np.inf, np.inf, (2,), np.float32), skills)
    actions = spaces.Box(-1, 1, (1,), np.float32)
    shared, apart = (SkillReplayBuffer(40 * n_envs, space, actions, "cpu", n_envs, skill_space=skills) for _ in range(2))
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
            with monkeypatch.context() as context:
                context.setattr(buffers, "DeviceArrays", lambda device: DeviceArrays(device, shared=False))
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


def test_only_what_is_on_the_device_is_drawn(copied, make_model):
    """Another thread may add transitions between prepare() and draw()."""
    model = make_model(learning_starts=1000).learn(10)
    buffer = model.replay_buffer
    buffer.prepare()
    model.learn(200, reset_num_timesteps=False)
    assert buffer.draw(1000)[0].max() < 10 < buffer.size()
    buffer.prepare()
    assert buffer.draw(1000)[0].max() >= 10


def test_a_batch_that_is_not_normalised_changes_nothing_of_a_graph(copied, make_model):
    env = VecNormalize(make_vec_env("Pendulum-v1", 2))
    buffer = make_model(env, learning_starts=1000).learn(60).replay_buffer
    buffer.prepare(env)
    generation = buffer.generation
    buffer.sample(4)
    buffer.prepare(env)
    assert buffer.generation == generation


def test_training_on_copies_equals_training_in_shared_memory(monkeypatch, make_model):
    expected = make_model(buffer_size=100).learn(200)
    with monkeypatch.context() as context:
        context.setattr(buffers, "DeviceArrays", lambda device: DeviceArrays(device, shared=False))
        model = make_model(buffer_size=100).learn(200)
    assert not model.replay_buffer._tensors.shared
    for name, value in expected.policy.state_dict().items():
        assert (value == model.policy.state_dict()[name]).all(), name


def test_copies_of_all_entries_and_of_continuous_skills(monkeypatch):
    """Vectors, an image and skills that are vectors, with ends of episodes."""
    skills = SphereSkills(3, 4)
    entries = {"place": spaces.Box(-1, 1, (2,)), "camera": spaces.Box(0, 255, (36, 36, 1), np.uint8)}
    space, actions = skill_observation_space(spaces.Dict(entries), skills), spaces.Box(-1, 1, (1,), np.float32)
    shared, apart = (SkillReplayBuffer(20, space, actions, "cpu", 2, skill_space=skills) for _ in range(2))
    with monkeypatch.context() as context:
        context.setattr(buffers, "DeviceArrays", lambda device: DeviceArrays(device, shared=False))
        apart.prepare()
    rng = np.random.default_rng(0)
    for time in range(50):
        obs, next_obs = (
            add_skill(
                {
                    "place": rng.normal(size=(2, 2)).astype(np.float32),
                    "camera": rng.integers(0, 256, (2, 36, 36, 1), np.uint8),
                },
                skills.draw(2, rng),
            )
            for _ in range(2)
        )
        step = (obs, next_obs, rng.uniform(-1, 1, (2, 1)), rng.normal(size=2), rng.random(2) < 0.3, [{}, {}])
        for buffer in (shared, apart):
            buffer.add(*step)
        if time % 7 == 0:
            expected, actual = same_batch(shared, batch_size=60), same_batch(apart, batch_size=60)
            for name in ("observations", "next_observations"):
                for entry, values in getattr(expected, name).items():
                    assert (getattr(actual, name)[entry] == values).all(), (time, name, entry)
            assert (expected.skills == actual.skills).all()
    assert not apart._tensors.shared and shared._tensors.shared
