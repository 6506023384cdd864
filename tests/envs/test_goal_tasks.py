"""Goals as tasks: by hand on a point that goes where it is told to, and those of the literature."""

import gymnasium as gym
import numpy as np
import pytest
from small import make_small
from stable_baselines3.common.env_checker import check_env

from sb3_cesd import DIAYN, SkillOptions
from sb3_cesd.envs.goals import GOAL_TASKS, GoalTask, make_goal_task


class Point(gym.Env):
    """A point that moves by its action; its observation tells more than its place."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = np.array([0.5, -0.5, 9.0])
        return self.observation(), {"start": True}

    def step(self, action):
        self.position[:2] += action
        return self.observation(), 100.0, False, False, {"moved": True}

    def observation(self):
        return np.array([self.position[0], self.position[1], 7], np.float32)


def test_reward_and_observation_by_hand():
    env = GoalTask(Point(), goal_range=3.0, radius=1.0)
    observation, info = env.reset(seed=3)
    goal = np.random.default_rng([3, 1]).uniform(-3, 3, 2)
    assert info == {"start": True} and env.goal == pytest.approx(goal)
    assert observation["observation"].tolist() == [0.5, -0.5, 7]
    assert observation["goal"] == pytest.approx(goal - [0.5, -0.5])
    env.goal = np.array([2.5, -0.5])
    results = [env.step(np.array([0.5, 0.0])) for _ in range(7)]
    # Places 1.0 to 4.0 on the x axis, of which 1.5 to 3.5 are within the radius, border included
    assert [reward for _, reward, *_ in results] == [0, 1, 1, 1, 1, 1, 0]
    assert [observation["goal"][0] for observation, *_ in results] == pytest.approx([1.5, 1, 0.5, 0, -0.5, -1, -1.5])
    assert results[0][-1] == {"moved": True, "goal_distance": 1.5, "is_success": False}
    assert results[1][-1]["is_success"] and not results[1][2] and not results[1][3], "an episode goes on at the goal"


def test_goals_follow_one_another():
    env = GoalTask(Point(), goal_range=2.0, radius=1.0, goal_duration=3)
    env.reset(seed=0)
    expected = np.random.default_rng([0, 1]).uniform(-2, 2, (3, 2)).cumsum(axis=0)
    goals = [env.goal]
    for _ in range(8):
        observation, *_ = env.step(np.zeros(2))
        goals.append(env.goal)
        assert observation["goal"] == pytest.approx(env.goal - [0.5, -0.5], abs=1e-6), "the observation tells the new goal"
    assert np.array(goals) == pytest.approx(np.repeat(expected, 3, axis=0)), "each later one around the one before"
    env.reset()
    assert (np.abs(env.goal) <= 2).all(), "the first one of an episode is around the origin again"


def test_the_reward_is_that_of_the_goal_before():
    """In the step in which the goal changes."""
    env = GoalTask(Point(), goal_range=1000.0, radius=1.0, goal_duration=1)
    env.reset(seed=0)
    env.goal = np.array([0.5, -0.5])
    _, reward, *_, info = env.step(np.zeros(2))
    assert reward == 1 and info["goal_distance"] == 0 and np.linalg.norm(env.goal) > 10


def test_goals_and_initial_states_do_not_depend_on_each_other():
    plain, task = gym.make("SkillHalfCheetah-v0"), make_goal_task("HalfCheetahGoal")
    shares = []
    for seed in (5, None, 6):
        expected, _ = plain.reset(seed=seed)
        observation, _ = task.reset(seed=seed)
        assert (observation["observation"] == expected).all()
        shares.append(task.goal[0] / task.unwrapped.position[0])
    assert np.std(shares) > 1, "both are drawn with one seed"


@pytest.mark.parametrize("name", GOAL_TASKS)
def test_tasks_of_the_literature(name):
    env = make_goal_task(name)
    check_env(env, skip_render_check=True)
    _, settings = GOAL_TASKS[name]
    goals = np.array([env._draw(np.zeros_like(env.goal)) for _ in range(200)])
    assert settings["goal_range"] * 0.9 < np.abs(goals).max() <= settings["goal_range"]
    env.reset(seed=0)
    env.action_space.seed(0)
    n_goals, n_steps, truncated = 1, 0, False
    while not truncated:
        before = env.goal
        _, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert not terminated and reward == (info["goal_distance"] <= settings["radius"])
        n_goals += bool((env.goal != before).any())
        n_steps += 1
    assert n_steps == 200 and n_goals == (5 if name == "AntMultiGoal" else 1), "the last step draws one that nobody sees"
    again = gym.make(env.spec)
    assert isinstance(again, GoalTask) and again.reset(seed=0)[0]["goal"].tolist() == env.reset(seed=0)[0]["goal"].tolist()


def test_skills_do_not_see_the_goal():
    model = make_small(DIAYN, Point())
    env = SkillOptions(GoalTask(Point(), goal_range=3.0, radius=1.0), model, duration=2)
    observation, _ = env.reset(seed=0)
    seen = []
    predict = model.predict

    def spy(observation, **kwargs):
        seen.append(observation)
        return predict(observation, **kwargs)

    model.predict = spy
    after, reward, *_ = env.step(1)
    assert [np.shape(each) for each in seen] == [(3,), (3,)] and (seen[0] == observation["observation"]).all()
    assert set(after) == {"observation", "goal"} and reward in (0, 1, 2)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: GoalTask(GoalTask(Point(), 1.0, 1.0), 1.0, 1.0), "goal"),
        (lambda: GoalTask(Point(), 1.0, 0), "radius"),
        (lambda: GoalTask(Point(), 1.0, 1.0, n_axes=4), "n_axes"),
        (lambda: make_goal_task("HumanoidGoal"), "HumanoidGoal"),
    ],
)
def test_misuse(make, message):
    with pytest.raises(ValueError, match=message):
        make()
