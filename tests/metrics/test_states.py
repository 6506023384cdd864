import numpy as np
import pytest
from sb3_cesd.metrics.neighbors import nearest_neighbors

from sb3_cesd.metrics import cluster_size_entropy, distinguishability, knn_accuracy, on_cluster_share, particle_entropy


def brute_force_neighbors(queries, points, k):
    distances = np.linalg.norm(queries[:, None] - points[None], axis=-1)
    order = np.argsort(distances, axis=1)[:, :k]
    return np.take_along_axis(distances, order, axis=1), order


@pytest.mark.parametrize("chunk_size", [7, 1000])
def test_neighbors(chunk_size):
    rng = np.random.default_rng(0)
    queries, points = rng.random((50, 3)), rng.random((40, 3))
    distances, indices = nearest_neighbors(queries, points, 5, chunk_size)
    expected = brute_force_neighbors(queries, points, 5)
    assert distances == pytest.approx(expected[0], abs=1e-6) and np.array_equal(indices, expected[1])
    with pytest.raises(ValueError, match=r"k=41 is more than the number of states, 40: .*pass a smaller k\.$"):
        nearest_neighbors(queries, points, 41)


def test_neighbors_that_are_far_from_the_origin():
    points = np.array([[1000.0, 0.0], [1000.01, 0.0], [1000.03, 0.0]])
    assert nearest_neighbors(points, points, 2)[0][:, 1] == pytest.approx([0.01, 0.01, 0.02], abs=1e-3)


def test_particle_entropy_by_brute_force():
    states = np.random.default_rng(0).normal(size=(60, 2))
    distances, _ = brute_force_neighbors(states, states, 16)
    assert (distances[:, 0] == 0).all()
    assert particle_entropy(states) == pytest.approx(np.log(1 + distances.mean(axis=1)).mean(), rel=1e-5)


def test_particle_entropy_orders_distributions():
    rng = np.random.default_rng(0)
    wide, narrow, line = rng.random((1000, 2)), 0.5 * rng.random((1000, 2)), rng.random((1000, 2)) * (1, 0)
    clumps = rng.integers(3, size=(1000, 2)) / 3 + 0.01 * rng.random((1000, 2))
    values = [particle_entropy(states) for states in (wide, narrow, line, clumps, np.zeros((1000, 2)))]
    assert values == sorted(values, reverse=True) and len(set(values)) == 5 and values[-1] == 0.0


def test_knn_accuracy_by_brute_force():
    rng = np.random.default_rng(0)
    states, skills, asked, truth = (
        rng.random((200, 2)),
        rng.integers(3, size=200),
        rng.random((80, 2)),
        rng.integers(3, size=80),
    )
    _, order = brute_force_neighbors(asked, states, 5)
    answers = []
    for row in order:
        counts = np.bincount(skills[row], minlength=3)
        answers.append(next(skill for skill in skills[row] if counts[skill] == counts.max()))
    assert knn_accuracy(states, skills, asked, truth, k=5) == np.mean(answers == truth)


def make_rollouts(distance, n_skills=5):
    """Skills that hover around points at this distance from each other."""
    centers = distance * np.stack([np.arange(n_skills), np.zeros(n_skills)], axis=1)
    return centers[:, None, None] + np.random.default_rng(0).random((n_skills, 20, 30, 2))


def test_distinguishability():
    assert distinguishability(make_rollouts(2.0)) == 1.0
    assert distinguishability(make_rollouts(0.0)) == pytest.approx(1 / 5, abs=0.03)
    # Half of what a skill visits is visited by no other skill, half by one other: three of four answers are right
    assert distinguishability(make_rollouts(0.5)) == pytest.approx(0.6, abs=0.05)
    with pytest.raises(ValueError, match=r"record at least two\.$"):
        distinguishability(make_rollouts(1.0)[:, :1])


def test_distinguishability_asks_about_rollouts_it_does_not_know():
    # Each rollout stays at one point of its own: knowing the others does not help
    points = np.random.default_rng(0).random((4, 30, 1, 2))
    assert distinguishability(np.tile(points, (1, 1, 10, 1))) < 0.5


def test_standardized_distances_know_no_units():
    """Skills differ in a small entry; a large one, in other units, is noise, and a third never changes."""
    rng = np.random.default_rng(0)
    noise, constant = rng.normal(0, 1e6, (5, 20, 30, 1)), np.full((5, 20, 30, 1), 7.0)
    states = np.concatenate([make_rollouts(2.0)[..., :1], noise, constant], axis=-1)
    as_they_are, standardized = distinguishability(states), distinguishability(states, standardize=True)
    assert as_they_are == pytest.approx(1 / 5, abs=0.04) and standardized > 0.95
    assert distinguishability(states * (1, 1e-6, 1e5), standardize=True) == pytest.approx(standardized, abs=0.01)
    # What is repeated after the end of an episode does not count
    lengths = np.full((5, 20), 14)
    repeated = states.copy()
    repeated[:, :, 15:] = 1e9
    cut = distinguishability(states[:, :, :15], standardize=True)
    assert distinguishability(repeated, lengths=lengths, standardize=True) == cut


def test_on_cluster_share():
    assert on_cluster_share(np.array([0, 1, 2, 2]), np.array([0, 1, 2, 1])) == 0.75
    assert on_cluster_share(np.array([1, 0]), np.array([0, 1])) == 0.0


def test_cluster_size_entropy():
    assert cluster_size_entropy(np.repeat(np.arange(8), 5), 8) == pytest.approx(np.log(8))
    assert cluster_size_entropy(np.zeros(9, dtype=int), 8) == 0.0
    assert cluster_size_entropy(np.array([0, 0, 0, 5]), 8) == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))
    with pytest.raises(ValueError, match="Clusters are from 0 to 2: pass those from 0 to n_clusters - 1"):
        cluster_size_entropy(np.arange(3), 2)


def test_sizes_that_differ_are_named():
    states = make_rollouts(2.0)
    with pytest.raises(ValueError, match=r"lengths has shape \(5, 1\): pass one per rollout, shape \(5, 20\)"):
        distinguishability(states, lengths=np.full((5, 1), 29))
    flat = states[:, :, 0].reshape(-1, 2)
    skills = np.repeat(np.arange(5), 20)
    with pytest.raises(ValueError, match="have 2 and 1 entries: pass states of the same size"):
        knn_accuracy(flat, skills, flat[:, :1], skills)


def test_the_end_of_a_rollout_counts_and_what_is_repeated_after_it_does_not():
    """Skills share the start; where they end tells them apart."""
    states = np.array([[[0.0, 10.0, 99.0], [0.1, 11.0, 50.0]], [[0.1, -10.0, 50.0], [0.0, -11.0, 99.0]]])[..., None]
    # The starts are told wrong, the ends right
    assert distinguishability(states, k=1, lengths=np.ones((2, 2), dtype=int)) == 0.5
    assert distinguishability(states[:, :, :2], k=1) == 0.5
