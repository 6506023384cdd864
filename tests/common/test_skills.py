"""Spaces of skills: one-hot vectors, the unit sphere, cubes."""

import pickle

import numpy as np
import pytest
import torch as th

from sb3_cesd.common.skills import SKILL_TYPES, CubeSkills, DiscreteSkills, SphereSkills, check_skill, make_skill_space

SPACES = [DiscreteSkills(5), SphereSkills(2, 5), SphereSkills(7, 5), CubeSkills(3, 5), CubeSkills(3, 5, low=0.0)]
CONTINUOUS = SPACES[1:]
each_space = pytest.mark.parametrize("space", SPACES, ids=repr)
each_continuous = pytest.mark.parametrize("space", CONTINUOUS, ids=repr)


@each_space
def test_draws_lie_in_the_space_and_follow_the_generator(space):
    draws = space.draw(200, np.random.default_rng(0))
    assert draws.shape == (200, space.dim) and draws.dtype == np.float32
    assert all(space.box.contains(vector) for vector in draws)
    assert (space.encode(space.decode(draws), (200,)) == draws).all()
    assert (space.draw(200, np.random.default_rng(0)) == draws).all()
    assert (space.draw(200, np.random.default_rng(1)) != draws).any()


@each_space
def test_drawn_tensors_lie_in_the_space_and_follow_torch(space):
    draws = []
    for seed in (0, 0, 1):
        th.manual_seed(seed)
        draws.append(space.draw_tensor(200, th.device("cpu")))
    assert draws[0].shape == (200, space.dim) and draws[0].dtype == th.float32
    assert all(space.box.contains(vector) for vector in draws[0].clamp(-1, 1).numpy())
    space.encode(space.decode(draws[0].numpy()), (200,))
    assert (draws[0] == draws[1]).all() and (draws[0] != draws[2]).any()


def test_discrete_draws_are_uniform():
    counts = DiscreteSkills(4).draw(4000, np.random.default_rng(0)).sum(axis=0)
    assert counts.tolist() == pytest.approx([1000] * 4, abs=120)


@pytest.mark.parametrize("by_torch", [False, True])
def test_draws_on_the_sphere_have_unit_length_and_no_direction(by_torch):
    space = SphereSkills(3, 4)
    th.manual_seed(0)
    draws = space.draw_tensor(6000, th.device("cpu")).numpy() if by_torch else space.draw(6000, np.random.default_rng(0))
    np.testing.assert_allclose(np.linalg.norm(draws, axis=1), 1.0, rtol=1e-5)
    # Covariance of the uniform distribution on the sphere: 1 / dim
    np.testing.assert_allclose(draws.mean(axis=0), 0.0, atol=0.03)
    np.testing.assert_allclose(draws.T @ draws / 6000, np.eye(3) / 3, atol=0.02)


@pytest.mark.parametrize("by_torch", [False, True])
@pytest.mark.parametrize("low", [-1.0, 0.0])
def test_draws_of_a_cube_are_uniform_and_independent(low, by_torch):
    space = CubeSkills(3, 4, low)
    th.manual_seed(0)
    draws = space.draw_tensor(6000, th.device("cpu")).numpy() if by_torch else space.draw(6000, np.random.default_rng(0))
    width = 1 - low
    assert draws.min() == pytest.approx(low, abs=0.01) and draws.max() == pytest.approx(1.0, abs=0.01)
    np.testing.assert_allclose(draws.mean(axis=0), (low + 1) / 2, atol=0.03)
    np.testing.assert_allclose(np.cov(draws.T), np.eye(3) * width**2 / 12, atol=0.02)


@each_space
def test_representatives_are_the_same_in_every_process_and_lie_in_the_space(space):
    again = pickle.loads(pickle.dumps(space))
    made = make_skill_space({DiscreteSkills: "discrete", SphereSkills: "sphere"}.get(type(space), "cube"), 5, space.dim)
    assert space.vectors.shape == (5, space.dim) and space.vectors.dtype == np.float32
    assert (again.vectors == space.vectors).all()
    if getattr(space, "low", -1.0) == -1.0:
        assert (made.vectors == space.vectors).all()
    assert len(np.unique(space.vectors, axis=0)) == 5
    assert all(space.box.contains(vector) for vector in space.vectors)
    assert (space.encode(np.arange(5), (5,)) == space.vectors).all()


def test_representatives_of_the_circle_are_at_equal_angles():
    expected = [[1, 0], [0, 1], [-1, 0], [0, -1]]
    np.testing.assert_allclose(SphereSkills(2, 4).vectors, expected, atol=1e-7)
    vectors = SphereSkills(2, 7).vectors
    np.testing.assert_allclose((vectors * np.roll(vectors, 1, axis=0)).sum(axis=1), np.cos(2 * np.pi / 7), rtol=1e-5)


@pytest.mark.parametrize("skill_type", SKILL_TYPES)
def test_made_by_name(skill_type):
    space = make_skill_space(skill_type, 6, 3)
    low = {"discrete": 0, "sphere": -1, "cube": -1, "unit_cube": 0}[skill_type]
    assert (space.n_skills, space.dim) == (6, 6 if skill_type == "discrete" else 3)
    assert space.discrete == (skill_type == "discrete") == (space.stored_shape == ())
    assert space.box.low.tolist() == [low] * space.dim and space.box.high.tolist() == [1] * space.dim


def test_discrete_skills_are_one_hot_vectors_by_index():
    space = DiscreteSkills(4)
    assert space.encode(2).tolist() == [0, 0, 1, 0]
    assert space.encode(np.int64(2)).tolist() == space.encode(2.0).tolist() == [0, 0, 1, 0]
    assert space.encode(1, (3,)).tolist() == [[0, 1, 0, 0]] * 3
    assert space.encode([3, 0], (2,)).tolist() == [[0, 0, 0, 1], [1, 0, 0, 0]]
    assert space.decode(space.encode([3, 0], (2,))).tolist() == [3, 0] and space.decode(space.encode(3)) == 3
    assert (space.name_of(3), type(space.name_of(np.int64(3)))) == (3, int)
    assert space.embed(th.tensor([1, 3])).tolist() == [[0, 1, 0, 0], [0, 0, 0, 1]]
    assert space.embed(th.tensor([1]), th.float64).dtype == th.float64


@pytest.mark.parametrize(("n_skills", "dtype"), [(256, np.uint8), (257, np.int32)])
def test_indices_are_stored_in_as_few_bytes_as_they_need(n_skills, dtype):
    space = DiscreteSkills(n_skills)
    assert space.stored_dtype == dtype and np.array(n_skills - 1).astype(space.stored_dtype) == n_skills - 1


@each_continuous
def test_continuous_skills_are_vectors_or_the_index_of_one(space):
    vector = space.draw(1, np.random.default_rng(3))[0]
    assert (space.encode(vector) == vector).all() and space.encode(vector).dtype == np.float32
    np.testing.assert_allclose(space.encode(vector.tolist()), vector)
    assert (space.encode(vector, (4,)) == vector).all() and space.encode(vector, (4,)).shape == (4, space.dim)
    several = space.draw(4, np.random.default_rng(4))
    assert (space.encode(several, (4,)) == several).all()
    assert (space.encode(2) == space.vectors[2]).all() and (space.encode([1, 3], (2,)) == space.vectors[[1, 3]]).all()
    assert (space.decode(several) == several).all()
    assert space.name_of(vector) == vector.tolist() and space.name_of(2) == space.vectors[2].tolist()
    assert (space.encode(space.name_of(2)) == space.vectors[2]).all(), "also after it was read from JSON"
    assert (space.embed(th.as_tensor(several)).numpy() == several).all()
    assert space.embed(th.as_tensor(several), th.float64).dtype == th.float64


def test_spaces_are_equal_if_their_skills_are():
    for first in SPACES:
        for second in SPACES:
            assert (first == second) == (first is second)
    assert DiscreteSkills(4) == DiscreteSkills(4) != DiscreteSkills(5) and DiscreteSkills(4) != 4
    assert SphereSkills(2, 4) == make_skill_space("sphere", 4, 2) != SphereSkills(2, 5)
    assert make_skill_space("cube", 4, 2) == CubeSkills(2, 4) != make_skill_space("unit_cube", 4, 2)
    assert hash(DiscreteSkills(4)) == hash(DiscreteSkills(4)) and len({*SPACES, DiscreteSkills(5)}) == len(SPACES)


@pytest.mark.parametrize(
    ("space", "skill", "batch_shape", "message"),
    [
        (SPACES[0], 5, (), "Unknown skill 5: .* from 0 to 4"),
        (SPACES[0], -1, (), "from 0 to 4"),
        (SPACES[0], 1.5, (), "from 0 to 4"),
        (SPACES[0], True, (), "from 0 to 4"),
        (SPACES[0], [0, 1, 9], (3,), "Unknown skill 9: .* from 0 to 4"),
        (SPACES[0], [0, 1], (3,), "shape .* for 3 observation.*: pass one skill, or one per observation"),
        (SPACES[0], [0, 1], (), "shape .* for 1 observation.*: pass one skill"),
        (SPACES[0], [1.0, 0.0, 0.0, 0.0, 0.0], (), "shape .* for 1 observation.*: pass one skill"),
        (SPACES[1], 5, (), "from 0 to 4"),
        (SPACES[1], [1.0, 0.0, 0.0], (), "a vector of 2 numbers, not of 3: .* from 0 to 4"),
        (SPACES[1], [3.0, 4.0], (), "not a vector of length 5: divide it by its length"),
        (SPACES[1], [[1.0, 0.0], [0.0, 1.0]], (3,), "shape .* for 3 observation.*: pass one skill, or one per observation"),
        (SPACES[1], [np.nan, 0.0], (), "not finite: pass a vector of finite numbers"),
        (SPACES[3], [0.0, 0.0, 1.5], (), "from -1 to 1: pass such a vector"),
        (SPACES[4], [0.0, 0.0, -0.5], (), "from 0 to 1: pass such a vector"),
    ],
)
def test_unknown_skills_are_refused(space, skill, batch_shape, message):
    with pytest.raises(ValueError, match=message):
        space.encode(skill, batch_shape)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("discrete", 1), "pass n_skills >= 2"),
        (("discrete", 2.5), "must be a whole number: pass an integer from 2"),
        (("sphere", 1, 2), "pass n_skills >= 2"),
        (("torus", 4, 2), "Unknown skill_type 'torus': choose one of 'discrete', 'sphere', 'cube', 'unit_cube'"),
        (("sphere", 4), "needs the dimension of its vectors, not None: pass skill_dim"),
        (("cube", 4, 2.5), "pass skill_dim"),
        (("cube", 4, True), "pass skill_dim"),
        (("cube", 4, 0), "set skill_dim above 0"),
        (("sphere", 4, 1), "pass skill_dim >= 2"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        make_skill_space(*arguments)


def test_whole_numbers_of_other_types_are_indices():
    for skill in (1, 1.0, np.int32(1), np.float64(1.0)):
        assert check_skill(skill, 2) == 1 and type(check_skill(skill, 2)) is int
