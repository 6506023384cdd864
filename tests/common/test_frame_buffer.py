"""Stacks of frames, of which the replay buffer stores one each."""

import pickle

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from pictures import make_pictures, pixel_model
from stable_baselines3.common.vec_env import VecNormalize, VecTransposeImage

from sb3_cesd import CeSD, VecSkillObservation
from sb3_cesd.common.buffers import FrameReplayBuffer, SkillReplayBuffer
from sb3_cesd.common.observations import add_skill
from sb3_cesd.common.vec_env import last_observations

N_ENVS, N_STACK = 2, 3
OPTIONS = {"n_envs": N_ENVS, "device": "cpu", "one_step": True, "average_window": 4}


def make_env():
    return VecSkillObservation(VecTransposeImage(make_pictures(N_ENVS, N_STACK)), 4)


def make_buffers(env, size=23):
    arguments = (size * N_ENVS, env.observation_space, env.action_space)
    options = {**OPTIONS, "skill_space": env.skill_space}
    return SkillReplayBuffer(*arguments, **options), FrameReplayBuffer(*arguments, n_stack=N_STACK, **options)


def fill(env, buffers, n_steps, reset_after=()):
    """Add the same transitions to buffers; the environments are also reset in the midst of episodes."""
    observations = env.reset()
    for step in range(n_steps):
        if step in reset_after:
            observations = env.reset()
        actions = np.random.uniform(-1, 1, (N_ENVS, 1)).astype(np.float32)
        following, rewards, dones, infos = env.step(actions)
        last = last_observations({"observation": following["observation"]}, dones, infos)
        for buffer in buffers:
            buffer.add(observations, add_skill(last, observations["skill"]), actions, rewards, dones, infos)
        observations = {name: value.copy() for name, value in following.items()}


def assert_same(whole, frames, n=400):
    """All that is sampled, of every row, bit for bit."""
    samples = []
    for buffer in (whole, frames):
        np.random.seed(0)
        samples.append(buffer.sample(n)._asdict())
    for name, expected in samples[0].items():
        assert expected is None or (th.equal(samples[1][name], expected) and samples[1][name].dtype == expected.dtype), name
    rows, envs = th.from_numpy(np.indices((whole.size(), N_ENVS)).reshape(2, -1))
    for look_up in ("_observations", "_next_observations"):
        stacks, expected = (getattr(buffer, look_up)(rows, envs)["observation"] for buffer in (frames, whole))
        assert th.equal(stacks, expected) and stacks.dtype == th.uint8


@pytest.mark.parametrize("kept_as", ["array", "copied"])
@pytest.mark.parametrize("n_steps", [2, 15, 23, 24, 25, 60])
def test_batches_are_those_of_whole_stacks(n_steps, kept_as, request):
    """With ends of episodes, resets in their midst, and in a ring that wraps, whose oldest stacks begin before it."""
    if kept_as == "copied":
        request.getfixturevalue("copied")
    np.random.seed(1)
    env = make_env()
    whole, frames = make_buffers(env)
    fill(env, (whole, frames), n_steps, reset_after=(4, 5, 40))
    assert_same(whole, frames)
    assert frames.full == (n_steps >= 23) and (n_steps < 23 or frames.dones.any())
    whole, frames = (pickle.loads(pickle.dumps(buffer)) for buffer in (whole, frames))
    assert_same(whole, frames)
    fill(env, (whole, frames), 9)
    assert_same(whole, frames)


def test_100k_stacks_of_drq_v2_take_two_gigabytes():
    space = spaces.Box(0, 255, (9, 84, 84), np.uint8)
    skills = make_env().skill_space
    observation_space = spaces.Dict({"observation": space, "skill": skills.box})
    action_space = spaces.Box(-1, 1, (12,))
    sizes = [
        FrameReplayBuffer(n, observation_space, action_space, "cpu", skill_space=skills, n_stack=3).nbytes for n in (1, 101)
    ]
    assert (sizes[1] - sizes[0]) * 1000 + sizes[0] < 2.2e9


def test_models_of_stacks_store_frames():
    model = pixel_model(CeSD, make_pictures(N_ENVS, N_STACK)).learn(100)
    assert isinstance(model.replay_buffer, FrameReplayBuffer) and model._n_updates > 0
    assert model.replay_buffer.observations["observation"].shape == (100, 2, 3, 16, 16)
    env = VecNormalize(make_pictures(N_ENVS, N_STACK), norm_obs=False, norm_reward=False)
    other = pixel_model(CeSD, env, replay_buffer_class=SkillReplayBuffer).learn(100)
    assert all(th.equal(a, b) for a, b in zip(model.policy.parameters(), other.policy.parameters(), strict=True))


def test_other_stacks_are_refused():
    space = spaces.Box(0, 255, (16, 16, 6), np.uint8)
    kwargs = {"replay_buffer_class": FrameReplayBuffer, "replay_buffer_kwargs": {"n_stack": 2}}
    with pytest.raises(ValueError, match="replay_buffer_class=SkillReplayBuffer"):
        pixel_model(CeSD, make_pictures(space=space), **kwargs).learn(10)
