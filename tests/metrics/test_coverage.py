import numpy as np
import pytest

from sb3_cesd.envs.mazes.layouts import LAYOUTS
from sb3_cesd.metrics import CumulativeMazeCoverage, TrainingCoverage, maze_coverage, torso_coverage


def uniform_states(layout, n, rng):
    states = rng.uniform(layout.low, layout.high, size=(5 * n, 2))
    return states[layout.is_free(states)][:n]


@pytest.mark.parametrize("name", LAYOUTS)
def test_large_uniform_sample_covers_all(name):
    layout = LAYOUTS[name]
    states = uniform_states(layout, 15 * layout.n_free_bins, np.random.default_rng(0))
    assert maze_coverage(states, layout) > 0.999
    # Of n bins, n draws reach the share 1 - 1/e
    assert maze_coverage(states[: layout.n_free_bins], layout) == pytest.approx(1 - np.exp(-1), abs=0.02)


def test_bins_are_counted_once():
    layout = LAYOUTS["corridor"]
    # Bins are 0.05 wide, from the corner (-5.5, -0.5)
    states = np.array([[-5.49, -0.49], [-5.46, -0.46], [-5.44, -0.49], [-5.49, -0.44]])
    assert maze_coverage(states, layout) == pytest.approx(3 / (11 * 400))


def test_total_coverage_is_that_of_all_states():
    layout, rng = LAYOUTS["bottleneck"], np.random.default_rng(0)
    parts = [uniform_states(layout, 2000, rng) for _ in range(4)]
    coverage = CumulativeMazeCoverage(layout)
    for n in range(4):
        assert coverage.add(parts[n]) == maze_coverage(np.concatenate(parts[: n + 1]), layout)
    assert coverage.add(parts[0]) == coverage.add(parts[1])


def test_free_states():
    states = np.array([[0.0, 0.0], [-0.6, 0.0], [1e9, 0.0], [np.nan, 0.0], [1.0, 0.0], [1.0, -2.0]])
    assert LAYOUTS["square_a"].is_free(states).tolist() == [True, False, False, False, False, True]


def test_states_of_another_maze_are_refused():
    with pytest.raises(ValueError, match=r"1 of 2 states can't be reached.*recorded in the same maze\.$"):
        maze_coverage(np.array([[0.0, 0.0], [1.0, 0.0]]), LAYOUTS["square_a"])


@pytest.mark.parametrize("positions", [np.zeros(2), np.array([[0.0, np.nan]])])
def test_positions_of_training_are_finite_and_one_per_environment(positions):
    coverage = TrainingCoverage()
    with pytest.raises(ValueError, match=r"finite, of shape \(n_envs, d\): pass one per environment"):
        coverage.add(positions)
    assert coverage.total == 0


def test_torso_coverage_counts_unit_squares():
    grid = np.stack(np.meshgrid(np.arange(-2, 3), np.arange(4)), axis=-1).reshape(-1, 2) + 0.5
    positions = np.concatenate([grid, grid + 0.4, grid - 0.4])
    assert torso_coverage(positions) == 20
    assert torso_coverage(positions[:, :1]) == 5
    assert torso_coverage(positions, bin_size=10.0) == 2
