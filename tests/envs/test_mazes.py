import warnings

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
from gymnasium.utils.env_checker import check_env as gym_check_env
from stable_baselines3.common.env_checker import check_env as sb3_check_env
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

import sb3_cesd  # noqa: F401
from sb3_cesd.envs.maze import HORIZON, MazeEnv
from sb3_cesd.envs.maze_coverage import bin_indices
from sb3_cesd.envs.maze_dynamics import CLEARANCE, MAX_BACK_OFF, MazeDynamics
from sb3_cesd.envs.maze_layouts import LAYOUTS, MazeLayout
from sb3_cesd.envs.maze_vec_env import MazeVecEnv
from sb3_cesd.envs.registration import ENVS

MAZE_IDS = [env_id for env_id in ENVS if env_id.startswith("Maze")]
FREE_CELLS = {"square_a": 17, "square_b": 17, "square_c": 17, "square_d": 22, "tree": 31, "bottleneck": 100, "corridor": 11}


@pytest.mark.parametrize(("name", "n_cells"), FREE_CELLS.items())
def test_free_cells_are_those_of_the_literature(name, n_cells):
    assert len(LAYOUTS[name].free_cells) == n_cells
    assert LAYOUTS[name].n_free_bins == n_cells * (100 if name == "bottleneck" else 400)


def displacements_of(kind, positions, rng):
    """Random moves, and moves that look for a leak: into corners and wall ends, along walls, tiny ones."""
    n = len(positions)
    if kind == "uniform":
        return rng.uniform(-0.95, 0.95, (n, 2))
    if kind == "diagonal":
        return np.sign(rng.uniform(-1, 1, (n, 2))) * 0.95
    if kind == "corner":
        corners = np.floor(positions) + 0.5 + rng.integers(-1, 2, (n, 2))
        return np.clip((corners - positions) * rng.choice([1.0, 1.5], (n, 1)), -0.95, 0.95)
    if kind == "axis":
        return np.eye(2)[rng.integers(2, size=n)] * rng.uniform(-0.95, 0.95, (n, 1))
    return rng.normal(size=(n, 2)) * CLEARANCE


def passes_a_wall(layout: MazeLayout, before, after):
    """Whether the straight way between neighbouring cells is barred for anyone."""
    moves = np.unique(np.concatenate([before, after - before], axis=1), axis=0)
    return any(abs(dx) + abs(dy) == 1 and layout._wall_between((x, y), (dx, dy)) for x, y, dx, dy in moves.tolist())


@pytest.mark.parametrize("name", LAYOUTS)
@pytest.mark.parametrize("n_agents", [500, pytest.param(5_000, marks=pytest.mark.slow)])
def test_no_leaks(name, n_agents):
    """150 steps of each agent, 750,000 a maze in the slow test: nobody leaves the free cells or passes a wall."""
    layout, rng = LAYOUTS[name], np.random.default_rng(0)
    dynamics = MazeDynamics(layout)
    positions = dynamics.start_positions(n_agents, rng)
    kinds = ["uniform", "diagonal", "corner", "axis", "tiny", "corner"]
    visited = set()
    for step in range(150):
        after = dynamics.move(positions, displacements_of(kinds[step % len(kinds)], positions, rng), rng)
        cells_before, cells = np.round(positions).astype(int), np.round(after).astype(int)
        visited |= set(map(tuple, np.unique(cells, axis=0).tolist()))
        assert visited <= layout.free_cells
        assert not passes_a_wall(layout, cells_before, cells)
        positions = after
    assert len(visited) > 10


def test_contact_backs_off_and_slides():
    # A corridor: walls at y = +-0.5, ends at x = +-5.5
    dynamics, rng = MazeDynamics(LAYOUTS["corridor"]), np.random.default_rng(0)
    start = np.tile([0.0, 0.0], (1000, 1))
    free = dynamics.move(start, np.tile([0.5, 0.25], (1000, 1)), rng)
    np.testing.assert_allclose(free, [[0.5, 0.25]] * 1000)
    hit = dynamics.move(start, np.tile([0.8, 0.9], (1000, 1)), rng)
    np.testing.assert_allclose(hit[:, 0], 0.8, atol=1e-3)  # the tangential part goes on
    assert (hit[:, 1] < 0.5 - CLEARANCE / 2).all() and (hit[:, 1] >= 0.5 - MAX_BACK_OFF).all()
    assert np.ptp(hit[:, 1]) > 0.8 * MAX_BACK_OFF
    corner = dynamics.move(np.tile([5.0, 0.0], (1000, 1)), np.tile([0.9, 0.9], (1000, 1)), rng)
    assert (np.abs(corner - [5.5, 0.5]) <= MAX_BACK_OFF + 1e-9).all() and (corner < [5.5, 0.5]).all()


@pytest.mark.parametrize("name", LAYOUTS)
def test_start(name):
    layout = LAYOUTS[name]
    positions = MazeDynamics(layout).start_positions(5000, np.random.default_rng(0))
    offsets = positions - layout.start
    assert (np.abs(offsets) <= 0.5).all() and np.abs(offsets).max() > 0.4
    # A step of 0.05 away from the centre meets no wall
    for axis in (0, 1):
        for sign in (-1, 1):
            step = (sign, 0) if axis == 0 else (0, sign)
            limit = 0.45 if layout._wall_between(layout.start, step) else 0.5
            assert (sign * offsets[:, axis]).max() <= limit + 1e-6


@pytest.mark.parametrize("env_id", MAZE_IDS)
def test_checkers(env_id):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        # The displacements of the literature are up to 0.95; SB3 scales actions itself
        warnings.filterwarnings("ignore", message="We recommend you to use a symmetric and normalized Box action space")
        env = gym.make(env_id)
        gym_check_env(env.unwrapped, skip_render_check=True)
        sb3_check_env(env)


def test_episode():
    env = gym.make("MazeTree-v0")
    observation, _ = env.reset(seed=1)
    assert observation.dtype == np.float32 and env.observation_space.contains(observation)
    for step in range(1, HORIZON + 1):
        observation, reward, terminated, truncated, _ = env.step(env.action_space.sample())
        assert reward == 0 and not terminated and truncated == (step == HORIZON)
        assert env.observation_space.contains(observation)


def test_seed_and_pickle():
    env = gym.make("MazeSquareB-v0")
    copy = cloudpickle.loads(cloudpickle.dumps(env))
    actions = np.random.default_rng(0).uniform(-0.95, 0.95, (20, 2)).astype(np.float32)
    paths = []
    for maze in (env, copy, env):
        paths.append([maze.reset(seed=3)[0], *(maze.step(action)[0] for action in actions)])
    assert (np.array(paths[0]) == np.array(paths[1])).all() and (np.array(paths[0]) == np.array(paths[2])).all()


def test_coverage_reward_sums_up_to_the_coverage():
    env = MazeEnv("square_a", reward="coverage", coverage_episodes=3)
    env.action_space.seed(0)
    for block in range(2):
        total, visited, starts = 0.0, set(), set()
        for episode in range(3):
            env.reset(seed=0 if block == episode == 0 else None)
            starts.add(int(bin_indices(env.layout, env._path[0])))
            for _ in range(HORIZON):
                total += env.step(env.action_space.sample())[1]
                visited.add(int(bin_indices(env.layout, env._path[-1])))
        # Where an episode starts earns nothing; the second block counts anew
        assert len(visited - starts) <= round(total * 6800) <= len(visited)
        assert total > 0.005


def test_coverage_is_an_objective_for_rl_zoo():
    env = make_vec_env("MazeSquareA-v0", env_kwargs={"reward": "coverage"})

    class Random:
        def predict(self, observations, state=None, episode_start=None, deterministic=False):
            return np.array([env.action_space.sample()]), None

    class Still:
        def predict(self, observations, state=None, episode_start=None, deterministic=False):
            return np.zeros((1, 2)), None

    env.action_space.seed(0)
    assert evaluate_policy(Random(), env, n_eval_episodes=10)[0] > 5 * evaluate_policy(Still(), env, n_eval_episodes=10)[0]


def test_render():
    env = gym.make("MazeSquareA-v0", render_mode="rgb_array")
    env.reset(seed=0)
    images = [env.render()]
    for _ in range(10):
        env.step(env.action_space.sample())
    images.append(env.render())
    assert images[0].shape == images[1].shape == (208, 208, 3) and images[0].dtype == np.uint8
    assert (images[0] != images[1]).any() and (images[0] == 0).all(axis=2).mean() > 0.01
    assert gym.make("MazeSquareA-v0").render_mode is None


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"layout": "square_z"}, "choose one of square_a, .* corridor"),
        ({"layout": "tree", "reward": "sparse"}, "choose 'none' or 'coverage'"),
        ({"layout": "tree", "render_mode": "human"}, "choose 'rgb_array' or None"),
        ({"layout": "tree", "reward": "coverage", "coverage_episodes": 0}, "pass 1 or more"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        MazeEnv(**kwargs)


def test_action_that_is_not_finite():
    env = MazeEnv("tree")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"not finite: pass numbers between -0\.95 and 0\.95"):
        env.step(np.array([np.nan, 0.0]))


def test_vec_env_moves_as_the_single_environment():
    """The same dynamics: from the same place, by the same random numbers."""
    env, vec_env = MazeEnv("square_c"), MazeVecEnv("square_c", 1)
    env.reset(seed=0)
    vec_env.seed(0)
    vec_env.reset()
    assert (env._path[-1] == vec_env._positions[0]).all()
    for action in np.random.default_rng(0).uniform(-0.95, 0.95, (HORIZON - 1, 2)):
        observation = env.step(action)[0]
        assert (observation == vec_env.step(action[None])[0][0]).all()


def test_vec_env_resets_by_itself():
    vec_env = MazeVecEnv("square_a", 7)
    vec_env.seed(0)
    vec_env.reset()
    for step in range(1, 2 * HORIZON + 1):
        observations, rewards, dones, infos = vec_env.step(np.full((7, 2), 0.3))
        assert observations.shape == (7, 2) and observations.dtype == np.float32 and (rewards == 0).all()
        assert dones.all() == dones.any() == (step % HORIZON == 0)
        for observation, info in zip(observations, infos, strict=True):
            assert info["TimeLimit.truncated"] == (step % HORIZON == 0)
            if step % HORIZON == 0:
                assert info["episode"]["l"] == HORIZON
                assert (np.abs(observation) <= 0.5).all() and (info["terminal_observation"] != observation).any()


def test_cesd_learns_in_the_vec_env(make_model):
    model = make_model(MazeVecEnv("square_a", 16)).learn(800)
    assert model._n_updates == pytest.approx((800 - 40) / 2, abs=32)
    with pytest.raises(ValueError, match="use make_vec_env with a maze id"):
        model.env.env_method("foo")
