"""Metrics of arrays."""

import numpy as np
import pytest
from players import make_rollouts

from sb3_cesd.envs.mazes.layouts import LAYOUTS
from sb3_cesd.metrics import (
    TrainingCoverage,
    knn_accuracy,
    maze_coverage,
    on_cluster_share,
    particle_entropy,
    plug_in_mutual_information,
    skill_metrics,
    skill_score,
)
from sb3_cesd.metrics.measures import (
    cell_coverage,
    cluster_size_entropy,
    nearest_neighbors,
    observation_coverage,
    torso_coverage,
)


def hovering(distance, n_skills=5):
    """Skills that hover around points at this distance from each other."""
    centers = distance * np.stack([np.arange(n_skills), np.zeros(n_skills)], axis=1)
    return centers[:, None, None] + np.random.default_rng(0).random((n_skills, 20, 30, 2))


def test_neighbors_by_brute_force():
    rng = np.random.default_rng(0)
    queries, points = rng.random((2000, 3)), rng.random((40, 3))
    distances = np.linalg.norm(queries[:, None] - points[None], axis=-1)
    order = np.argsort(distances, axis=1)[:, :5]
    found, indices = nearest_neighbors(queries, points, 5)
    assert found == pytest.approx(np.take_along_axis(distances, order, axis=1), abs=1e-6) and np.array_equal(indices, order)
    assert nearest_neighbors(queries, points, 50)[1].shape == (2000, 40), "all that there are"
    far = np.array([[1000.0, 0.0], [1000.01, 0.0], [1000.03, 0.0]])
    assert nearest_neighbors(far, far, 2)[0][:, 1] == pytest.approx([0.01, 0.01, 0.02], abs=1e-3)


def test_particle_entropy():
    rng = np.random.default_rng(0)
    states = rng.normal(size=(60, 2))
    distances = np.sort(np.linalg.norm(states[:, None] - states[None], axis=-1), axis=1)[:, :16]
    assert particle_entropy(states) == pytest.approx(np.log(1 + distances.mean(axis=1)).mean(), rel=1e-5)
    wide, narrow, line = rng.random((1000, 2)), 0.5 * rng.random((1000, 2)), rng.random((1000, 2)) * (1, 0)
    values = [particle_entropy(each) for each in (wide, narrow, line, np.zeros((1000, 2)))]
    assert values == sorted(values, reverse=True) and len(set(values)) == 4 and values[-1] == 0.0


def test_knn_accuracy():
    assert knn_accuracy(hovering(2.0)) == 1.0
    assert knn_accuracy(hovering(0.0)) == pytest.approx(1 / 5, abs=0.03)
    # Half of what a skill visits is visited by no other skill, half by one other: three of four answers are right
    assert knn_accuracy(hovering(0.5)) == pytest.approx(0.6, abs=0.05)
    # Each rollout stays at one point of its own: knowing the others does not help
    points = np.random.default_rng(0).random((4, 30, 1, 2))
    assert knn_accuracy(np.tile(points, (1, 1, 10, 1))) < 0.5
    with pytest.raises(ValueError, match="n_rollouts"):
        knn_accuracy(hovering(1.0)[:, :1])
    with pytest.raises(ValueError, match="k=0"):
        knn_accuracy(hovering(1.0), k=0)


def test_votes_of_neighbors_by_hand():
    """A tie goes to the nearest vote; what is repeated after the end of an episode does not count."""
    states = np.array([[[0.0, 10.0, 99.0], [0.1, 11.0, 50.0]], [[0.1, -10.0, 50.0], [0.0, -11.0, 99.0]]])[..., None]
    # The starts are told wrong, the ends right
    assert knn_accuracy(states, np.ones((2, 2), dtype=int), k=1) == 0.5 == knn_accuracy(states[:, :, :2], k=1)
    # Votes for the states 1 and 6: 0 and 5 (a tie, of which the nearest counts), or 0, 4 and 5
    known, asked = np.array([[0.0, 0.0], [4.0, 5.0]]), np.array([[1.0, 1.0], [6.0, 6.0]])
    states = np.stack([known, asked], axis=1)[..., None]
    assert knn_accuracy(states, k=3) == 1 == knn_accuracy(states, k=2)


def test_standardized_distances_know_no_units():
    """Skills differ in a small entry; a large one, in other units, is noise, and a third never changes."""
    rng = np.random.default_rng(0)
    noise, constant = rng.normal(0, 1e6, (5, 20, 30, 1)), np.full((5, 20, 30, 1), 7.0)
    states = np.concatenate([hovering(2.0)[..., :1], noise, constant], axis=-1)
    standardized = knn_accuracy(states, standardize=True)
    assert knn_accuracy(states) == pytest.approx(1 / 5, abs=0.04) and standardized > 0.95
    assert knn_accuracy(states * (1, 1e-6, 1e5), standardize=True) == pytest.approx(standardized, abs=0.01)
    repeated = states.copy()
    repeated[:, :, 15:] = 1e9
    cut = knn_accuracy(states[:, :, :15], standardize=True)
    assert knn_accuracy(repeated, np.full((5, 20), 14), standardize=True) == cut


def test_mutual_information_by_hand():
    # Skill 7: both in one bin. Skill 9: one in the same, one in another
    states, skills = np.array([[0.1, 0.1], [0.2, 0.2], [0.1, 0.2], [0.3, 0.1]]), np.array([7, 7, 9, 9])
    expected = 0.5 * np.log(0.5 / (0.75 * 0.5)) + 0.25 * np.log(0.25 / (0.75 * 0.5)) + 0.25 * np.log(0.25 / (0.25 * 0.5))
    assert plug_in_mutual_information(states, skills) == pytest.approx(expected)
    assert plug_in_mutual_information(states, skills, bin_size=0.5) == 0


def test_clusters():
    assert on_cluster_share(np.array([0, 1, 2, 2]), np.array([0, 1, 2, 1])) == 0.75
    assert cluster_size_entropy(np.array([0, 0, 0, 5])) == pytest.approx(-(0.75 * np.log(0.75) + 0.25 * np.log(0.25)))


def test_bins_of_a_maze_are_counted_once():
    # Bins are 0.05 wide, from the corner (-5.5, -0.5)
    states = np.array([[-5.49, -0.49], [-5.46, -0.46], [-5.44, -0.49], [-5.49, -0.44]])
    assert maze_coverage(states, LAYOUTS["corridor"]) == pytest.approx(3 / (11 * 400))
    layout = LAYOUTS["square_a"]
    assert cell_coverage(np.array([[0.1, 0.1], [0.3, 0.4]]), layout) == 1 / (4 * layout.n_free_cells)
    with pytest.raises(ValueError, match="same maze"):
        maze_coverage(np.array([[0.0, 0.0], [1.0, 0.0]]), layout)


def test_coverage_of_robots_and_of_their_training():
    grid = np.stack(np.meshgrid(np.arange(-2, 3), np.arange(4)), axis=-1).reshape(-1, 2) + 0.5
    positions = np.concatenate([grid, grid + 0.4, grid - 0.4])
    assert [torso_coverage(positions), torso_coverage(positions[:, :1]), torso_coverage(positions, 10.0)] == [20, 5, 2]
    coverage = TrainingCoverage(bin_size=2.0, queue_size=4)
    for x in (0.0, 0.5, 2.5):
        coverage.add(np.array([[x, 0.0], [-0.1, x]]))
    # Of six positions, the last four: (.5, 0), (-.1, .5), (2.5, 0), (-.1, 2.5)
    assert coverage.queue == 4 and coverage.total == 4
    coverage.add(np.array([[2.6, 0.1], [3.9, 1.9]]))
    assert coverage.queue == 2 and coverage.total == 4


def test_coverage_of_observations_is_on_the_scale_of_random_actions():
    rng = np.random.default_rng(0)
    random = rng.standard_normal((1000, 24))
    narrow, wide = (observation_coverage(size * rng.standard_normal((2000, 24)), random) for size in (0.3, 1.0))
    assert 2 * narrow < wide
    # Outliers and coordinates that random actions leave alone count as ten deviations away
    random = np.array([[-1.0], [1.0]])
    assert observation_coverage(np.array([[0.0], [20.0], [300.0], [1e9]]), random) == 2
    assert observation_coverage(np.linspace(-100, 100, 5001)[:, None], random) == 41, "bins of half a deviation in +-10"
    assert np.isfinite(observation_coverage(rng.standard_normal((9, 1)), np.zeros((9, 1))))


def test_score_is_zero_by_chance_and_the_coverage_at_best():
    assert skill_score(0.25, 0.7, n_skills=4) == 0 == skill_score(0.1, 0.7, n_skills=4)
    assert skill_score(1.0, 0.7, n_skills=4) == pytest.approx(0.7) and skill_score(0.625, 0.8, 4) == pytest.approx(0.4)


def test_metrics_of_skills_that_stay_apart():
    """Two skills, each in a bin and a cluster of its own."""
    states = np.random.default_rng(0).uniform(0, 0.1, (2, 20, 3, 2)) + np.array([0.1, 3.1])[:, None, None, None]
    metrics = skill_metrics(make_rollouts(states, positions=True), np.repeat([0, 1], 60), layout=None)
    assert metrics["policy_coverage"] == 2 and metrics["on_cluster_share"] == 1
    assert metrics["knn_accuracy"] == metrics["knn_accuracy_places"] == metrics["knn_accuracy_standardized"] == 1
    assert [metrics[name] for name in ("mutual_information", "cluster_size_entropy")] == pytest.approx([np.log(2)] * 2)
    assert set(skill_metrics(make_rollouts(states), None, None)) == {
        "knn_accuracy", "knn_accuracy_standardized", "particle_entropy",
    }  # fmt: skip
