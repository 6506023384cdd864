"""A loaded model goes on with other random numbers than those of its start."""

import io
import random

import numpy as np
import pytest
import torch as th
from small import make_small

from sb3_cesd import CeSD
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv


@pytest.fixture(scope="module")
def trained():
    model = make_small(CeSD, MazeVecEnv("square_a", 2), seed=4, skill_duration=5)
    return model.learn(200), model.replay_buffer.skills[:100].copy()


def loaded(model, **kwargs):
    file = io.BytesIO()
    model.save(file)
    file.seek(0)
    return CeSD.load(file, MazeVecEnv("square_a", 2), device="cpu", **kwargs)


def drawn():
    return random.random(), np.random.rand(), float(th.rand(1))


def test_skills_are_not_those_of_the_start(trained):
    model, first = trained
    again = loaded(model).learn(200, reset_num_timesteps=False)
    later = again.replay_buffer.skills[:100]
    # By chance, one of four
    assert (later == first).mean() < 0.6


def test_every_generator(trained):
    model, _ = trained
    make_small(CeSD, MazeVecEnv("square_a", 2), seed=4)
    start = *drawn(), model.action_space.sample().tolist()
    again = loaded(model)
    for ours, theirs in zip((*drawn(), again.action_space.sample().tolist()), start, strict=True):
        assert ours != theirs


def test_a_file_goes_on_in_the_same_way_whenever_it_is_loaded(trained):
    model, _ = trained
    first, second = (loaded(model).learn(100, reset_num_timesteps=False).replay_buffer for _ in range(2))
    np.testing.assert_array_equal(first.skills, second.skills)
    np.testing.assert_array_equal(first.actions, second.actions)


def test_seed_of_the_user(trained):
    """As in SB3: a model that is loaded with a seed begins with its random numbers."""
    model, _ = trained
    loaded(model, seed=4)
    first = drawn()
    make_small(CeSD, MazeVecEnv("square_a", 2), seed=4)
    # Networks that were made draw from PyTorch's generator
    assert first[:2] == drawn()[:2]


def test_model_that_has_not_learned(trained):
    """Nothing was drawn yet, so that it starts as if it had not been saved."""
    fresh = make_small(CeSD, MazeVecEnv("square_a", 2), seed=4)
    first = loaded(fresh).learn(100).replay_buffer.skills
    np.testing.assert_array_equal(
        first[:50], make_small(CeSD, MazeVecEnv("square_a", 2), seed=4).learn(100).replay_buffer.skills[:50]
    )
