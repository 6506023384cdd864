import pickle
import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ResetNeeded
from gymnasium.utils.env_checker import check_env as gymnasium_check_env
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.monitor import Monitor

from sb3_cesd.envs.mazes.env import MazeEnv
from sb3_cesd.envs.mazes.ids import MAZES
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.metrics import maze_coverage


@pytest.mark.parametrize("env_id", MAZES)
def test_checkers_have_nothing_to_say(env_id):
    env = gym.make(env_id, render_mode="rgb_array")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The actions are those of the original; SB3 rescales them itself
        warnings.filterwarnings("ignore", message=".*symmetric and normalized Box action space")
        gymnasium_check_env(env.unwrapped)
        check_env(env.unwrapped, skip_render_check=False)
        check_env(env, skip_render_check=False)
    assert env.action_space == gym.spaces.Box(-0.95, 0.95, (2,), np.float32)


@pytest.mark.parametrize("env_id", MAZES)
def test_episodes_are_truncated_after_50_steps(env_id):
    env = gym.make(env_id)
    env.action_space.seed(0)
    observation, _ = env.reset(seed=0)
    for step in range(1, 51):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert observation in env.observation_space and reward == 0.0
        assert (terminated, truncated) == (False, step == 50)
    assert np.array_equal(env.unwrapped.position, [*observation, 0.0])


def play(env, seed=None, n_steps=50, drift=(0.0, 0.0)):
    rng = np.random.default_rng(5)
    observations, rewards = [env.reset(seed=seed)[0]], []
    for _ in range(n_steps):
        observation, reward, _, _, _ = env.step(rng.uniform(-0.95, 0.95, 2) + drift)
        observations.append(observation)
        rewards.append(reward)
    return np.array(observations), rewards


@pytest.mark.parametrize("shape", [(1,), (), (3,), (1, 2)])
def test_actions_of_another_shape(shape):
    env = MazeEnv("square_a")
    env.reset()
    with pytest.raises(ValueError, match=r"^The action has shape \(.*\): pass one of shape \(2,\)\.$"):
        env.step(np.zeros(shape))


def test_before_the_first_reset():
    env = MazeEnv("square_a", render_mode="rgb_array")
    for act in (lambda: env.step(np.zeros(2)), env.render):
        with pytest.raises(ResetNeeded, match=r"call reset\(\) first\.$"):
            act()


def test_seed_determines_the_episode():
    env = MazeEnv("square_a")
    first, second, other = (play(env, seed)[0] for seed in (3, 3, 4))
    assert np.array_equal(first, second) and not np.array_equal(first, other)
    assert np.array_equal(play(MazeEnv("square_a"), 3)[0], first)


def test_start_can_be_chosen():
    env = gym.make("MazeBottleneck-v0")
    observation, _ = env.reset(options={"position": (9.0, 2.0)})
    assert observation == pytest.approx([9.0, 2.0], abs=1e-5)
    with pytest.raises(ValueError, match=r"no reset option 'place': use 'position' alone\.$"):
        env.reset(options={"place": (0.0, 0.0)})


@pytest.mark.parametrize(
    "kwargs, message",
    [
        ({"layout": "cube"}, r"Unknown maze 'cube': choose one of square_a"),
        ({"layout": "tree", "reward": "exit"}, r"Unknown reward 'exit' of a maze: choose 'none' or 'coverage'\.$"),
        ({"layout": "tree", "render_mode": "human"}, r"Unknown render mode 'human' of a maze: choose 'rgb_array' or None\.$"),
    ],
)
def test_bad_arguments(kwargs, message):
    for make in (MazeEnv, lambda **kwargs: MazeVecEnv(n_envs=2, **kwargs)):
        with pytest.raises(ValueError, match=message):
            make(**kwargs)


def test_coverage_rewards_sum_up_to_the_coverage_of_all_episodes():
    env = MazeEnv("square_c", reward="coverage")
    visited, total = [], 0.0
    for episode in range(3):
        observations, rewards = play(env, seed=0 if episode == 0 else None, drift=(0.0, -0.2))
        visited.append(observations[1:])
        total += sum(rewards)
    assert total == pytest.approx(maze_coverage(np.concatenate(visited), env.layout), rel=1e-5)
    # A seed begins anew, another episode does not
    assert sum(play(env, seed=0, drift=(0.0, -0.2))[1]) > sum(play(env, drift=(0.0, -0.2))[1])


class Down:
    """A policy that goes down the first corridor of square_a, always in the same way."""

    def predict(self, observations, **kwargs):
        return np.tile(np.float32([0.0, -0.02]), (len(observations), 1)), None


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("vectorized", [False, True])
def test_every_evaluation_counts_coverage_from_zero(n_envs, vectorized):
    if vectorized:
        env = MazeVecEnv("square_a", n_envs, reward="coverage")
    else:
        env = make_vec_env("MazeSquareA-v0", n_envs, env_kwargs={"reward": "coverage"})
    sums = [np.sum(evaluate_policy(Down(), env, n_eval_episodes=6, return_episode_rewards=True)[0]) for _ in range(4)]
    # Each episode begins anywhere in its cell: alike, not equal. It goes down one unit: 20 bins
    assert min(sums) > 15 / (17 * 400)
    assert max(sums) < 2.5 * min(sums)


def test_coverage_in_bins_of_the_bottleneck_is_coarser():
    for name, n_bins in (("square_a", 17 * 400), ("bottleneck", 100 * 100)):
        rewards = set(play(MazeEnv(name, reward="coverage"), seed=0, n_steps=400)[1])
        assert len(rewards) == 2 and min(rewards) == 0.0 and round(1 / max(rewards)) == n_bins


def test_image_shows_walls_trail_and_agent():
    env = MazeEnv("corridor", render_mode="rgb_array")
    env.reset(options={"position": (-5.0, 0.0)})
    still = env.render()
    for _ in range(5):
        env.step(np.array([0.9, 0.0]))
    moved = env.render()
    assert still.shape == moved.shape == (62, 542, 3) and still.dtype == np.uint8  # (1 + .3) x (11 + .3) cells of 48 pixels

    def columns(image, red, blue):
        """Column of each pixel with much or little of the two colours."""
        return np.flatnonzero(((image[..., 0] > 150) == red) & ((image[..., 2] > 150) == blue)) % image.shape[1]

    agent, trail, walls = (True, False), (False, True), (False, False)
    assert columns(moved, *agent).mean() - columns(still, *agent).mean() == pytest.approx(4.5 * 48, abs=1)
    assert len(columns(still, *trail)) == 0 and len(set(columns(moved, *trail))) > 150
    assert len(set(columns(moved, *walls))) > 500
    assert MazeEnv("corridor").render() is None


def test_copies_continue_alike():
    env = Monitor(MazeEnv("square_d"))
    env.reset(seed=1)
    copy = pickle.loads(pickle.dumps(env))
    for _ in range(10):
        assert np.array_equal(env.step(np.array([0.9, -0.9]))[0], copy.step(np.array([0.9, -0.9]))[0])


def test_position_before_the_first_reset():
    assert MazeEnv("corridor").position.tolist() == [-5, 0, 0]
