"""Goals as tasks: by hand on a point that goes where it is told to, and those of the literature."""

import gymnasium as gym
import numpy as np
import pytest
from small import make_small
from stable_baselines3 import DQN
from stable_baselines3.common.env_checker import check_env

from sb3_cesd import DIAYN, SkillOptions
from sb3_cesd.envs.goals import GOAL_TASKS, GoalTask, make_goal_task


class Point(gym.Env):
    """A point that moves by its action; its observation tells more than its place."""

    observation_space = gym.spaces.Box(-np.inf, np.inf, (3,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    position = np.zeros(3)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position = np.array([0.5, -0.5, 9.0])
        return self.observation(), {"start": True}

    def step(self, action):
        self.position[:2] += action
        return self.observation(), 100.0, False, False, {"moved": True}

    def observation(self):
        return np.array([self.position[0], self.position[1], 7], np.float32)


class Flat(Point):
    """A position of two coordinates."""

    def reset(self, *, seed=None, options=None):
        observation, info = super().reset(seed=seed)
        self.position = self.position[:2]
        return observation, info


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
    assert env.step(np.zeros(2))[0]["goal"] == pytest.approx(env.goal - [0.5, -0.5], abs=1e-6)
    assert (np.abs(env.goal) <= 2).all(), "the first one of an episode is around the origin again"


def test_the_reward_is_that_of_the_goal_before():
    """In the step in which the goal changes."""
    env = GoalTask(Point(), goal_range=1000.0, radius=1.0, goal_duration=1)
    env.reset(seed=0)
    env.goal = np.array([0.5, -0.5])
    _, reward, *_, info = env.step(np.zeros(2))
    assert reward == 1 and info["goal_distance"] == 0 and np.linalg.norm(env.goal) > 10


def test_goals_leave_the_environment_alone():
    """Initial states are those without goals."""
    plain, task = gym.make("SkillHalfCheetah-v0"), make_goal_task("HalfCheetahGoal")
    for seed in (5, None, None):
        expected, _ = plain.reset(seed=seed)
        observation, _ = task.reset(seed=seed)
        assert (observation["observation"] == expected).all()


@pytest.mark.parametrize("name", GOAL_TASKS)
def test_tasks_of_the_literature(name):
    env = make_goal_task(name)
    check_env(env, skip_render_check=True)
    _, goal_range, radius, goal_duration, n_axes = GOAL_TASKS[name]
    goals = []
    for seed in range(200):
        # Without the robot, which takes long to start
        env._random_state = np.random.default_rng(seed)
        goals.append(env._draw(np.zeros(n_axes)))
    assert np.abs(goals).max() == pytest.approx(goal_range, rel=0.02) and np.abs(goals).max() <= goal_range
    env.reset(seed=0)
    n_goals, n_steps, truncated = 1, 0, False
    env.unwrapped.action_space.seed(0)
    while not truncated:
        before = env.goal
        _, reward, terminated, truncated, info = env.step(env.action_space.sample())
        assert not terminated and reward == (info["goal_distance"] <= radius)
        n_goals += bool((env.goal != before).any())
        n_steps += 1
    assert n_steps == 200 and n_goals == (1 if goal_duration is None else 5), "the last step draws one that nobody sees"


def test_skills_do_not_see_the_goal():
    model = make_small(DIAYN, Point())
    task = GoalTask(Point(), goal_range=3.0, radius=1.0)
    env = SkillOptions(task, model, duration=2)
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
    controller = DQN("MultiInputPolicy", env, learning_starts=4, policy_kwargs={"net_arch": [8]}, seed=0).learn(12)
    assert controller.observation_space == env.observation_space


def test_misuse():
    with pytest.raises(ValueError, match="give it a property position"):
        GoalTask(gym.make("Pendulum-v1"), goal_range=1.0, radius=1.0)
    with pytest.raises(ValueError, match="has a key 'goal' already: rename it"):
        GoalTask(GoalTask(Point(), 1.0, 1.0), 1.0, 1.0)
    with pytest.raises(ValueError, match="set radius above 0"):
        GoalTask(Point(), 1.0, 0)
    with pytest.raises(ValueError, match="pass 1 for x, 2 for x and y, or 3"):
        GoalTask(Point(), 1.0, 1.0, n_axes=4)
    with pytest.raises(ValueError, match="choose one of AntMultiGoal, HalfCheetahGoal, QuadrupedGoal"):
        make_goal_task("HumanoidGoal")
    model = make_small(DIAYN, GoalTask(Point(), 1.0, 1.0))
    with pytest.raises(ValueError, match="do not fit the model, which takes Dict"):
        SkillOptions(Point(), model, duration=2)


def test_goals_do_not_follow_from_the_initial_state():
    first = []
    for seed in range(3):
        env = GoalTask(gym.make("SkillHalfCheetah-v0"), goal_range=100.0, radius=3.0, n_axes=1)
        env.reset(seed=seed)
        first.append(env.goal[0] / env.unwrapped.position[0])
    assert np.std(first) > 1, "both are drawn with one seed"


def test_a_task_tells_how_it_is_made_again():
    env = make_goal_task("HalfCheetahGoal")
    again = gym.make(env.spec)
    assert isinstance(again, GoalTask) and (again.goal_range, again.goal.shape) == (100.0, (1,))
    assert again.reset(seed=0)[0]["goal"] == env.reset(seed=0)[0]["goal"]


class Late(Point):
    """Has a position only after a reset."""

    @property
    def position(self):
        return self._place

    @position.setter
    def position(self, place):
        self._place = place


def test_a_position_that_a_reset_brings():
    assert not Late().has_wrapper_attr("position")
    env, known = (GoalTask(point(), goal_range=3.0, radius=1.0) for point in (Late, Point))
    assert env.reset(seed=3)[0]["goal"].tolist() == known.reset(seed=3)[0]["goal"].tolist()


def test_a_position_that_is_no_place():
    env = Point()
    task = GoalTask(env, goal_range=2.0, radius=1.0)
    task.reset()
    env.position = np.float64(1.0)
    with pytest.raises(ValueError, match=r"^The position of the environment has shape \(\): let it be \(x, y, z\)\.$"):
        task._way()


def test_a_position_of_too_few_coordinates():
    env = GoalTask(Point(), goal_range=2.0, radius=1.0, n_axes=3)
    env.reset()
    flat = GoalTask(Flat(), goal_range=2.0, radius=1.0, n_axes=3)
    with pytest.raises(ValueError, match=r"3 coordinates .* a position of 2: pass n_axes=2, or return \(x, y, z\)\.$"):
        flat.reset()
