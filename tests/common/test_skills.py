"""Spaces of skills: one-hot vectors, the unit sphere, cubes."""

import pickle

import numpy as np
import pytest
import torch as th

from sb3_cesd.common.skills import SKILL_TYPES, CubeSkills, DiscreteSkills, SphereSkills, make_skill_space

SPACES = [DiscreteSkills(5), SphereSkills(2, 5), SphereSkills(7, 5), CubeSkills(3, 5), CubeSkills(3, 5, low=0.0)]
each_space = pytest.mark.parametrize("space", SPACES, ids=repr)


@each_space
def test_draws_lie_in_the_space_and_follow_their_generator(space):
    draws = [space.draw(200, np.random.default_rng(seed)) for seed in (0, 0, 1)]
    tensors = []
    for seed in (0, 0, 1):
        th.manual_seed(seed)
        tensors.append(space.draw_tensor(200, th.device("cpu")).numpy())
    for first, same, other in (draws, tensors):
        assert first.shape == (200, space.dim) and first.dtype == np.float32
        assert all(space.box.contains(vector) for vector in first.clip(space.low, 1))
        assert (space.encode(space.decode(first), (200,)) == first).all()
        assert (first == same).all() and (first != other).any()


@pytest.mark.parametrize("by_torch", [False, True])
@pytest.mark.parametrize(
    ("space", "mean", "variance"),
    [(DiscreteSkills(3), 1 / 3, 2 / 9), (SphereSkills(3, 4), 0, 1 / 3), (CubeSkills(3, 4), 0, 1 / 3)],
)
def test_draws_are_uniform(space, mean, variance, by_torch):
    th.manual_seed(0)
    draws = space.draw_tensor(6000, th.device("cpu")).numpy() if by_torch else space.draw(6000, np.random.default_rng(0))
    np.testing.assert_allclose(draws.mean(axis=0), mean, atol=0.03)
    np.testing.assert_allclose(draws.var(axis=0), variance, atol=0.02)


@each_space
def test_representatives_are_the_same_in_every_process(space):
    again = pickle.loads(pickle.dumps(space))
    assert again == space and (again.vectors == space.vectors).all()
    assert len(np.unique(space.vectors, axis=0)) == 5 and all(space.box.contains(vector) for vector in space.vectors)
    assert (space.encode(np.arange(5), (5,)) == space.vectors).all()
    for index in (1, 1.0, np.int64(1)):
        assert (space.encode(index) == space.vectors[1]).all()
    assert (space.encode(space.name_of(2)) == space.vectors[2]).all(), "also after it was read from JSON"


@pytest.mark.parametrize("skill_type", SKILL_TYPES)
def test_made_by_name(skill_type):
    space = make_skill_space(skill_type, 6, 3)
    low = {"discrete": 0, "sphere": -1, "cube": -1, "unit_cube": 0}[skill_type]
    assert (space.n_skills, space.dim) == (6, 6 if skill_type == "discrete" else 3)
    assert space.discrete == (skill_type == "discrete") == (space.stored_shape == ())
    assert space.box.low.tolist() == [low] * space.dim and space.box.high.tolist() == [1] * space.dim


def test_discrete_skills_are_one_hot_vectors_by_index():
    space = DiscreteSkills(4)
    assert space.encode([3, 0], (2,)).tolist() == [[0, 0, 0, 1], [1, 0, 0, 0]]
    assert space.embed(th.tensor([1, 3])).tolist() == [[0, 1, 0, 0], [0, 0, 0, 1]]
    expected = th.tensor([[-1, -1, 3, -1], [3, -1, -1, -1]]) / 3.0
    th.testing.assert_close(space.directions(th.tensor([2, 0])), expected)
    assert DiscreteSkills(256).stored_dtype == np.uint8 and DiscreteSkills(257).stored_dtype == np.int32


@pytest.mark.parametrize(
    ("space", "skill", "batch_shape"),
    [
        (SPACES[0], 5, ()),
        (SPACES[0], -1, ()),
        (SPACES[0], 1.5, ()),
        (SPACES[0], "a", ()),
        (SPACES[0], [0, 1, 9], (3,)),
        (SPACES[0], [0, 1], (3,)),
        (SPACES[1], [1.0, 0.0, 0.0], ()),
        (SPACES[1], [3.0, 4.0], ()),
        (SPACES[1], [np.nan, 0.0], ()),
        (SPACES[3], [0.0, 0.0, 1.5], ()),
        (SPACES[4], [0.0, 0.0, -0.5], ()),
    ],
)
def test_unknown_skills_are_refused(space, skill, batch_shape):
    with pytest.raises(ValueError, match=r"skill"):
        space.encode(skill, batch_shape)
    with pytest.raises(ValueError, match="pass one integer, or one each"):
        SPACES[0].encode([0.0, 1.0])  # discrete skills have no vectors
