"""The objective of tuning: it prefers skills that were learned, and counts the same for all models."""

import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import CeSD
from sb3_cesd.envs.mazes.layouts import LAYOUTS
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.metrics import cell_coverage, observation_coverage, play_and_score, skill_score


class Directions:
    """Skill i of n moves in its own direction, in a plane."""

    def __init__(self, n_skills, size=1.0):
        self.n_skills = n_skills
        angles = 2 * np.pi * np.arange(n_skills) / n_skills
        self.actions = size * np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def predict(self, observation, *, deterministic, skill):
        return self.actions[skill], None

    def predict_clusters(self, observations):
        return None


class Plane(gym.Env):
    """A point that moves by its action; episodes of 20 steps."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,))
    action_space = gym.spaces.Box(-1, 1, (2,))

    def __init__(self, unit=1.0):
        self.unit = unit

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.n_steps = 0
        self.place = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.unit * self.place, {}

    def step(self, action):
        self.n_steps += 1
        self.place = self.place + action
        return self.unit * self.place, 0.0, False, self.n_steps == 20, {}


def score(model, env=None, **kwargs):
    metrics, rollouts = play_and_score(model, env or make_vec_env(Plane, 8), n_steps=20, **kwargs)
    return metrics["skill_score"], rollouts


def test_it_is_zero_by_chance_and_the_coverage_at_best():
    assert skill_score(0.25, 0.7, n_skills=4) == 0 == skill_score(0.1, 0.7, n_skills=4)
    assert skill_score(1.0, 0.7, n_skills=4) == pytest.approx(0.7)
    assert skill_score(0.625, 0.8, n_skills=4) == pytest.approx(0.4)


@pytest.mark.parametrize("n_skills, n_rollouts", [(4, 16), (16, 4), (32, 2), (10, 7), (50, 2)])
def test_all_numbers_of_skills_play_as_many_episodes(n_skills, n_rollouts):
    _, rollouts = score(Directions(n_skills))
    assert rollouts.lengths.shape == (n_skills, n_rollouts)


def test_skills_that_go_further_and_apart_score_more():
    apart, nearer = score(Directions(8))[0], score(Directions(8, size=0.3))[0]
    assert apart > 1.2 * nearer > 0
    # All in one direction: nothing tells them apart
    alike = Directions(8)
    alike.actions[:] = alike.actions[0]
    assert score(alike)[0] < 0.1 * apart
    # Twice as many skills that can be told apart cover more in the same number of episodes
    assert score(Directions(8))[0] > score(Directions(4))[0] > score(Directions(2))[0]


def test_skills_that_are_the_same_twice_score_no_more():
    doubled = Directions(4)
    doubled.n_skills, doubled.actions = 8, np.repeat(doubled.actions, 2, axis=0)
    assert score(doubled)[0] < 0.7 * score(Directions(4))[0]


def test_units_and_normalisation_do_not_matter():
    expected, _ = score(Directions(8))
    assert score(Directions(8), make_vec_env(lambda: Plane(1000.0), 8))[0] == pytest.approx(expected, rel=0.05)
    statistics = VecNormalize(make_vec_env(Plane, 8), training=False, norm_reward=False)
    statistics.obs_rms.mean, statistics.obs_rms.var = np.array([3.0, -2.0]), np.array([25.0, 25.0])
    assert score(Directions(8), statistics)[0] == pytest.approx(expected, rel=0.05)


def test_coverage_of_a_maze_is_in_half_cells():
    layout = LAYOUTS["square_a"]
    assert cell_coverage(np.array([[0.1, 0.1], [0.3, 0.4]]), layout) == 1 / (4 * layout.n_free_cells)
    assert cell_coverage(np.array([[0.1, 0.1], [-0.1, 0.1]]), layout) == 2 / (4 * layout.n_free_cells)
    ends = np.stack(np.nonzero(layout.free_cells), axis=1) + layout.origin
    corners = np.array([[-0.4, -0.4], [-0.4, 0.4], [0.4, -0.4], [0.4, 0.4]])
    assert cell_coverage((ends[:, None] + corners).reshape(-1, 2), layout) == 1


def test_coverage_of_many_coordinates_grows_with_what_is_visited():
    rng = np.random.default_rng(0)
    random = rng.standard_normal((1000, 24))
    narrow, wide = (observation_coverage(size * rng.standard_normal((2000, 24)), random) for size in (0.3, 1.0))
    assert 2 * narrow < wide
    # A coordinate that random actions leave alone counts, but not without bounds
    constant = np.concatenate([random, np.zeros((1000, 1))], axis=1)
    assert np.isfinite(observation_coverage(constant + rng.standard_normal(25), constant))


def test_an_evaluation_of_a_maze_ends_with_its_episodes():
    model = CeSD("MlpPolicy", "MazeSquareA-v0", n_skills=4, buffer_size=100, policy_kwargs={"net_arch": [8]}, device="cpu")
    metrics, rollouts = play_and_score(model, make_vec_env("MazeSquareA-v0", 16), n_episodes=8)
    assert rollouts.states.shape[2] == 51 and 0 <= metrics["skill_score"] <= metrics["coarse_coverage"] <= 1
    assert metrics["skill_score"] == pytest.approx(skill_score(metrics["knn_accuracy"], metrics["coarse_coverage"], 4))


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(4))
def test_a_trained_model_beats_an_untrained_one(seed):
    """Of mean rewards by coverage, 7 of 8 preferred the untrained one."""
    model = CeSD(
        "MlpPolicy", MazeVecEnv("square_a", 20), n_skills=8, skill_duration=None, learning_rate=1e-3, learning_starts=400,
        batch_size=128, buffer_size=10_000, train_freq=10, exploration_noise=0.3, noise_correlation=0.85, seed=seed,
        policy_kwargs={"net_arch": [32, 32]}, intrinsic_kwargs={"encoder": "fourier", "entropy_kwargs": {"k": 4}},
        device="cpu",
    )  # fmt: skip
    env = MazeVecEnv("square_a", 64)
    untrained, _ = play_and_score(model, env)
    model.learn(6000)
    trained, _ = play_and_score(model, env)
    assert trained["skill_score"] > untrained["skill_score"]


def test_outliers_cover_no_more_than_the_bound():
    """What random actions never reach counts as ten deviations away, however far it is: a simulation may explode."""
    random = np.array([[-1.0], [1.0]])  # mean 0, standard deviation 1
    assert observation_coverage(np.array([[0.0], [20.0], [300.0], [1e9]]), random) == 2
    assert observation_coverage(np.linspace(-100, 100, 5001)[:, None], random) == 41, "bins of half a deviation in +-10"
