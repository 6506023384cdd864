import gymnasium as gym
import numpy as np
import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_cesd import CeSD
from sb3_cesd.envs.maze_vec_env import MazeVecEnv
from sb3_cesd.metrics import collect_rollouts, env_positions, maze_coverage, play_and_measure


class Compass:
    """Skill i goes in the i-th of four directions."""

    n_skills = 4

    def predict(self, observation, *, deterministic, skill):
        assert len(observation) == len(skill) and observation.shape[1] == 2
        directions = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=np.float32)
        return 0.05 * directions[skill], None


class Plane(gym.Env):
    """A point that starts at the origin, or where it is told, and goes where its actions lead for 50 steps."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Box(-0.95, 0.95, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        self.n_steps, self.state = 0, np.array((options or {}).get("position", (0.0, 0.0)), dtype=np.float32)
        return self.state, {}

    def step(self, action):
        self.state, self.n_steps = self.state + action, self.n_steps + 1
        return self.state, 0.5, False, self.n_steps == 50, {}


@pytest.mark.parametrize("n_envs", [1, 5, 12, 40])
def test_all_skills_are_played_from_the_start(n_envs):
    env = DummyVecEnv([Plane] * n_envs)
    rollouts = collect_rollouts(Compass(), env, n_rollouts=3, n_steps=50, reset_options={"position": (2.0, 1.0)})
    assert rollouts.states.shape == (4, 3, 51, 2) and rollouts.states.dtype == np.float32
    assert rollouts.skills.tolist() == [[skill] * 3 for skill in range(4)]
    assert (rollouts.states[:, :, 0] == (2.0, 1.0)).all()
    # The last state is that before the automatic reset
    ends = [[4.5, 1.0], [2.0, 3.5], [-0.5, 1.0], [2.0, -1.5]]
    assert rollouts.states[:, :, 50].swapaxes(0, 1) == pytest.approx(np.array([ends] * 3), abs=1e-4)
    assert (rollouts.lengths == 50).all() and (rollouts.returns == 25.0).all()


def test_a_maze_is_played_in_one_batch():
    env = MazeVecEnv("square_a", 80)
    rollouts = collect_rollouts(Compass(), env, noise_std=0.3, seed=0)
    assert rollouts.states.shape == (4, 20, 51, 2)
    assert env.observation_space.contains(rollouts.states.max(axis=(0, 1, 2)))
    assert 0.02 < maze_coverage(rollouts.per_state()[0], env.layout) < 0.5
    assert np.array_equal(collect_rollouts(Compass(), env, noise_std=0.3, seed=0).states, rollouts.states)


def test_noise_has_the_asked_scale_and_actions_stay_in_bounds():
    env = DummyVecEnv([Plane] * 10)
    steps = np.diff(collect_rollouts(Compass(), env, 50, n_steps=1, noise_std=0.2, seed=0).states[0], axis=1)
    assert steps[..., 0].mean() == pytest.approx(0.05, abs=0.05) and steps.std() == pytest.approx(0.2 * 0.95, rel=0.2)
    steps = np.diff(collect_rollouts(Compass(), env, 50, n_steps=1, noise_std=5.0, seed=0).states, axis=2)
    assert np.abs(steps).max() == pytest.approx(0.95)


class Countdown(gym.Env):
    """Ends after as many steps as its action tells, with a reward of 1 each."""

    observation_space = gym.spaces.Box(0.0, 100.0, (1,), np.float32)
    action_space = gym.spaces.Box(0.0, 10.0, (1,), np.float32)
    position = property(lambda self: np.array([self.step_count, 0.0, 0.0]))

    def reset(self, *, seed=None, options=None):
        self.step_count = 0
        return np.float32([0.0]), {}

    def step(self, action):
        self.step_count += 1
        return np.float32([self.step_count]), 1.0, bool(self.step_count >= action[0]), False, {}


class Patience:
    n_skills = 3

    def predict(self, observation, *, deterministic, skill):
        return np.float32([[2.0], [4.0], [6.0]])[skill], None


def test_episodes_that_end_early_are_not_continued():
    env = DummyVecEnv([Countdown] * 2)
    rollouts = collect_rollouts(Patience(), env, n_rollouts=1, n_steps=5)
    assert rollouts.lengths.tolist() == [[2], [4], [5]] and rollouts.returns.tolist() == [[2.0], [4.0], [5.0]]
    assert rollouts.states[:, 0, :, 0].tolist() == [[0, 1, 2, 2, 2, 2], [0, 1, 2, 3, 4, 4], [0, 1, 2, 3, 4, 5]]
    states, skills = rollouts.per_state()
    assert (
        states[:, 0].tolist() == [0, 1, 2, 0, 1, 2, 3, 4, 0, 1, 2, 3, 4, 5] and skills.tolist() == [0] * 3 + [1] * 5 + [2] * 6
    )
    # Positions can't be seen any more once the environment has been reset
    rollouts = collect_rollouts(Patience(), env, n_rollouts=1, n_steps=5, position_fn=env_positions)
    assert rollouts.states.shape == (3, 1, 6, 3)
    assert rollouts.states[:, 0, :, 0].tolist() == [[0, 1, 1, 1, 1, 1], [0, 1, 2, 3, 3, 3], [0, 1, 2, 3, 4, 5]]


def test_rows_of_whole_rollouts():
    rollouts = collect_rollouts(Compass(), MazeVecEnv("square_a", 8), n_rollouts=2, n_steps=10, seed=0)
    rows, skills = rollouts.per_rollout()
    assert rows.shape == (8, 22) and skills.tolist() == [0, 0, 1, 1, 2, 2, 3, 3]
    assert np.array_equal(rows[3].reshape(11, 2), rollouts.states[1, 1])


def test_model_of_this_package(tiny):
    model = CeSD("MlpPolicy", "MazeSquareA-v0", seed=0, **tiny)
    for env in (MazeVecEnv("square_a", 16), make_vec_env("MazeSquareA-v0", 3)):
        rollouts = collect_rollouts(model, env, n_rollouts=2, n_steps=5, noise_std=0.1, seed=0)
        assert rollouts.states.shape == (4, 2, 6, 2)


def test_robot_positions():
    env = make_vec_env("Walker-v0", 2)

    class Still:
        n_skills = 2

        def predict(self, observation, *, deterministic, skill):
            return np.zeros((2, 6), dtype=np.float32), None

    rollouts = collect_rollouts(Still(), env, n_rollouts=1, n_steps=3, position_fn=env_positions)
    assert rollouts.states.shape == (2, 1, 4, 3)
    assert rollouts.states[1, 0, -1] == pytest.approx(env.envs[1].unwrapped.physics.named.data.xpos["torso"])


def test_a_maze_is_played_from_a_chosen_start():
    rollouts = collect_rollouts(Compass(), MazeVecEnv("bottleneck", 12), n_rollouts=3, reset_options={"position": (2.0, 2.0)})
    assert rollouts.states[:, :, 0] == pytest.approx(2.0, abs=1e-5)
    ends = np.array([[4.5, 2.0], [2.0, 4.49], [-0.49, 2.0], [2.0, -0.49]])
    assert rollouts.states[:, 1, 50] == pytest.approx(ends, abs=0.02)
    positions = collect_rollouts(Compass(), MazeVecEnv("tree", 4), n_rollouts=1, n_steps=3, position_fn=env_positions)
    assert positions.states.shape == (4, 1, 4, 3)


def test_observations_come_with_the_places_of_the_same_rollouts():
    """The end of an episode is among the observations, though its place can't be seen any more."""
    env = DummyVecEnv([Countdown] * 2)
    rollouts = collect_rollouts(Patience(), env, n_rollouts=1, n_steps=5, position_fn=env_positions)
    assert rollouts.states.shape == (3, 1, 6, 3) and rollouts.observations.shape == (3, 1, 6, 1)
    assert rollouts.observations[:, 0, :, 0].tolist() == [[0, 1, 2, 2, 2, 2], [0, 1, 2, 3, 4, 4], [0, 1, 2, 3, 4, 5]]


def test_a_model_is_played_once_and_measured_to_the_end_of_its_episodes():
    class Clustered(Compass):
        n_calls = 0

        def predict(self, *args, **kwargs):
            self.n_calls += 1
            return super().predict(*args, **kwargs)

        def predict_clusters(self, observations):
            return np.zeros(len(observations), dtype=np.int64)

    env, model = MazeVecEnv("square_a", 8), Clustered()
    metrics, rollouts = play_and_measure(model, env, n_rollouts=2, n_steps=50)
    assert model.n_calls == 50 and metrics["on_cluster_share"] == 0.25
    # Against a wall, too, a step changes something
    assert (rollouts.states[:, :, -1] != rollouts.states[:, :, -2]).any(axis=-1).all()
    assert metrics["coverage"] == maze_coverage(rollouts.per_state()[0], env.layout)
