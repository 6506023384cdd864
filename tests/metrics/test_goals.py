"""Places and goals that skills reach, and tasks they solve as they are."""

import sys

import gymnasium as gym
import numpy as np
import pytest
from sb3_cesd.metrics.policy_coverage import trajectory_skills
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_cesd import DIAYN
from sb3_cesd.common.skills import make_skill_space
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.export import export_policy, import_policy
from sb3_cesd.metrics import TrainingCoverage, best_skill_scores, draw_goals, policy_coverage, task_returns, zero_shot_goals
from sb3_cesd.metrics.goals import GoalResults
from sb3_cesd.metrics.tasks import EXPERT_RETURNS, held_out_best, tasks_of

DIRECTIONS = np.array([[1, 0], [0, 1], [-1, 0], [0, -1]], dtype=np.float32)


class Plane(gym.Env):
    """A point that goes where it is told to."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (2,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    position = np.zeros(3)

    def reset(self, seed=None, options=None):
        self.position = np.array([0.5, 0.5, 0.0])
        return self.position[:2].astype(np.float32), {}

    def step(self, action):
        self.position[:2] += action
        return self.position[:2].astype(np.float32), 0.0, False, False, {}


class Compass:
    """A skill for each direction."""

    n_skills = 4

    def predict(self, observation, *, deterministic, skill):
        assert deterministic
        return DIRECTIONS[skill], None


class Vectors:
    """Skills are directions."""

    n_skills = 4
    skill_space = make_skill_space("sphere", 4, 2)

    def predict(self, observation, *, deterministic, skill):
        return 0.1 * skill, None

    def goal_skill(self, observations, goals):
        ways = goals - observations
        return ways / np.maximum(np.linalg.norm(ways, axis=1, keepdims=True), 0.1)


def test_policy_coverage_by_hand():
    env = DummyVecEnv([Plane] * 5)
    assert policy_coverage(Compass(), env, n_trajectories=4, n_steps=6) == 1 + 4 * 6
    assert policy_coverage(Compass(), env, n_trajectories=3, n_steps=6) == 1 + 3 * 6
    assert policy_coverage(Compass(), env, n_steps=6, bin_size=2.0) == 1 + 4 * 3, "48 trajectories, 12 of each skill"


def test_skills_of_trajectories():
    assert trajectory_skills(Compass(), 6).tolist() == [0, 0, 1, 1, 2, 3]
    vectors = trajectory_skills(Vectors(), 48)
    assert vectors.shape == (48, 2) and len(np.unique(vectors, axis=0)) == 48
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1)
    assert (trajectory_skills(Vectors(), 48, seed=1) != vectors).all()
    env = DummyVecEnv([Plane] * 7)
    assert policy_coverage(Vectors(), env, n_trajectories=9, n_steps=100) > 30


def test_coverage_of_training_and_of_its_last_steps():
    coverage = TrainingCoverage(bin_size=2.0, queue_size=4)
    for x in (0.0, 0.5, 2.5):
        coverage.add(np.array([[x, 0.0], [-0.1, x]]))
    # Of six positions, the last four: (.5, 0), (-.1, .5), (2.5, 0), (-.1, 2.5)
    assert coverage.queue == 4 and coverage.total == 4
    coverage.add(np.array([[2.6, 0.1], [3.9, 1.9]]))
    assert coverage.queue == 2 and coverage.total == 4


def test_the_skill_that_ends_nearest_is_followed_to_a_goal():
    env = DummyVecEnv([Plane] * 3)
    results = zero_shot_goals(Compass(), env, np.array([[10.5, 0.5], [1.5, 4.5], [-7.0, 0.5], [0.5, -3.5]]), n_steps=6)
    assert results.skills.tolist() == [0, 1, 2, 3]
    assert results.distances[0] == pytest.approx(10 - np.arange(7.0))
    assert results.distances[1] == pytest.approx(np.hypot(1, 4 - np.arange(7)))
    metrics = results.metrics()
    assert metrics["goal_distance"] == pytest.approx((4 + np.hypot(1, 2) + 1.5 + 2) / 4)
    # Within 3 m: never; steps 2 to 6; steps 5 and 6; all but none of the first
    assert metrics["goal_hit_3"] == 0.75 and metrics["goal_end_3"] == 0.75
    assert metrics["goal_stay_3"] == pytest.approx((0 + 5 + 2 + 6) / 24)
    assert metrics["goal_hit_1"] == 0.5 and metrics["goal_end_1"] == 0
    assert metrics["goal_stay_1"] == pytest.approx((0 + 1 + 0 + 3) / 24)


class Reached(Plane):
    """Ends at x = 3.5, and says where."""

    def step(self, action):
        observation, reward, _, _, info = super().step(action)
        return observation, reward, bool(self.position[0] >= 3.5), False, {**info, "position": self.position}


class Elsewhere(Reached):
    """Its info holds something else by this name."""

    says = "at the door"

    def step(self, action):
        *step, info = super().step(action)
        return *step, {**info, "position": self.says}


def test_a_goal_where_the_episode_ends_is_reached_if_info_tells_the_position():
    goal = np.array([[3.5, 0.5]])
    results = zero_shot_goals(Compass(), DummyVecEnv([Reached] * 2), goal, n_steps=6)
    assert results.skills.tolist() == [0] and results.distances[0].tolist() == [3, 2, 1, 0, 0, 0, 0]
    for Elsewhere.says in ("at the door", ("x", "y", "z"), [[1], [2, 3]], [3.5, 0.5], None):
        others = zero_shot_goals(Compass(), DummyVecEnv([Elsewhere]), goal, n_steps=6)
        assert others.distances[0].tolist() == [3, 2, 1, 1, 1, 1, 1]


def test_goals_that_are_left_again():
    results = GoalResults(np.array([[0.0, 5.0, 2.0, 4.0], [9.0, 9.0, 9.0, 0.5]]), None)
    metrics = results.metrics(radii=(3.0,))
    assert metrics == {"goal_hit_3": 1.0, "goal_end_3": 0.5, "goal_stay_3": 2 / 6, "goal_distance": 2.25}


@pytest.mark.parametrize("normalized", [False, True])
def test_a_method_that_knows_the_way_is_asked_at_each_step(normalized):
    env = MazeVecEnv("square_a", 3)
    if normalized:
        env = VecNormalize(env, training=False)
        env.obs_rms.mean[:], env.obs_rms.var[:] = 1.0, 4.0
    start = env.unwrapped.layout.start_cell
    goals = np.array([start, start]) + np.array([[0.2, -0.1], [-0.2, 0.2]])
    results = zero_shot_goals(Vectors(), env, goals, n_steps=40)
    assert results.skills is None and (results.distances[:, 0] > 0.05).any()
    assert results.distances[:, -1] == pytest.approx(0, abs=0.02)

    class NoWay(Vectors):
        def goal_skill(self, observations, goals):
            return None

        def predict(self, observation, *, deterministic, skill):
            return Compass().predict(observation, deterministic=deterministic, skill=skill)

    assert zero_shot_goals(NoWay(), env, goals, n_steps=4).skills.shape == (2,)


def test_goals_of_the_literature():
    ant, cheetah = (make_vec_env(robot) for robot in ("SkillAnt-v0", "SkillHalfCheetah-v0"))
    goals = draw_goals(ant)
    assert goals.shape == (50, 2) and 45 < np.abs(goals).max() < 50 and goals.min() < -40
    assert draw_goals(cheetah).shape == (50, 1) and 90 < np.abs(draw_goals(cheetah)).max() < 100
    assert np.abs(draw_goals(DummyVecEnv([Plane]), goal_range=2.0)).max() < 2
    with pytest.raises(ValueError, match="a default range of goals only for ant, half_cheetah, quadruped: pass goal_range"):
        draw_goals(DummyVecEnv([Plane]))
    with pytest.raises(ValueError, match="The environments have no position to measure goals by"):
        zero_shot_goals(Compass(), DummyVecEnv([lambda: gym.make("Pendulum-v1")]), goals)
    odd = gym.make("Pendulum-v1").unwrapped
    odd.position = np.zeros((1, 3))
    with (
        pytest.warns(UserWarning, match="is ignored"),
        pytest.raises(ValueError, match=r"shape \(1, 3\), .* no place for goals"),
    ):
        zero_shot_goals(Compass(), DummyVecEnv([lambda: odd]), goals)


def test_experts_are_those_of_the_published_table():
    from urlb_scores import expert_returns

    assert expert_returns() == EXPERT_RETURNS and "urlb_scores" in sys.modules
    assert (
        tasks_of("Walker-v0")
        == tasks_of("sb3_cesd:Walker-v0")
        == {name: f"Walker{name.title()}-v0" for name in ("stand", "walk", "run", "flip")}
    )
    assert list(tasks_of("JacoReachTopLeft-v0"))[1:3] == ["reach_top_right", "reach_bottom_left"]
    with pytest.raises(
        ValueError, match=r"SkillAnt-v0' is not a robot with tasks: pass one of Walker-v0, Quadruped-v0, Jaco-v0"
    ):
        task_returns(Compass(), "SkillAnt-v0")


def test_the_best_skill_is_chosen_by_other_episodes():
    returns = np.array([[1.0, 9.0, 1.0, 2.0], [6.0, 6.0, 3.0, 5.0], [0.0, 0.0, 99.0, 99.0]])
    assert held_out_best(returns) == 4.0


def test_skills_are_not_played_in_tasks_without_their_statistics():
    class Normalized:
        n_skills, trained_normalized = 2, True

        def predict(self, observation, *, deterministic, skill):
            raise AssertionError("it was played")

    with pytest.raises(ValueError, match="pass its statistics as vec_normalize"):
        task_returns(Normalized(), "Walker-v0", n_threads=1)


@pytest.mark.slow
def test_best_skills_of_an_arm():
    class Still:
        n_skills = 2

        def predict(self, observation, *, deterministic, skill):
            return np.repeat(skill[:, None] * 1.0, 9, axis=1).astype(np.float32), None

    returns = task_returns(Still(), "Jaco-v0", n_threads=1)
    scores = best_skill_scores(Still(), "Jaco-v0", n_threads=1)
    for task, name in tasks_of("Jaco-v0").items():
        assert returns[task].shape == (2, 2)
        assert scores[f"best_skill_{task}"] == pytest.approx(held_out_best(returns[task]) / EXPERT_RETURNS[name])


def test_a_seed_repeats_the_episodes_that_goals_are_reached_in():
    """Mazes start at random places."""
    env = MazeVecEnv("square_a", 3)
    goals = np.array([env.layout.start_cell] * 3) + 0.2
    first, again, other = (zero_shot_goals(Vectors(), env, goals, n_steps=3, seed=seed).distances for seed in (4, 4, 5))
    assert (first == again).all() and (first != other).any()


def test_an_exported_policy_starts_where_its_model_does(tmp_path):
    model = make_small(DIAYN, "MazeSquareA-v0").learn(60)
    policy = import_policy(export_policy(model, tmp_path))
    env = MazeVecEnv("square_a", 3)
    goals = np.array([env.layout.start_cell] * 3) + 0.2
    for_model, for_policy = (zero_shot_goals(each, env, goals, n_steps=3, seed=4).distances for each in (model, policy))
    assert for_policy == pytest.approx(for_model)
