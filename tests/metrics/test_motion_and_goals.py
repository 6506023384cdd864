"""Which skills move, where they lead, and what tasks they solve as they are."""

import numpy as np
import pytest
from players import Compass, Placed, Plane, Vectors, make_rollouts
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize

from sb3_cesd import DIAYN, make_batched
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.envs.registration import pixels_id
from sb3_cesd.envs.robots.locomotion import SCALES
from sb3_cesd.metrics import (
    collect_rollouts,
    draw_goals,
    measure_motion,
    play_and_measure,
    policy_coverage,
    score_best_skills,
    task_returns,
    zero_shot_goals,
)
from sb3_cesd.metrics.goals import EXPERT_RETURNS, GoalResults, held_out_best, tasks_of, trajectory_skills
from sb3_cesd.metrics.rollouts import RandomActions
from sb3_cesd.metrics.summary import mean_speeds, skill_motion


class ByHand:
    """Skills that do nothing, tremble, swing all joints, and act at random."""

    n_skills = 4

    def __init__(self, env):
        self._random = RandomActions(env.action_space, seed=7)
        self._phases = np.random.default_rng(0).uniform(0, 2 * np.pi, env.action_space.shape)
        self.step = 0

    def predict(self, observation, *, deterministic, skill):
        actions, _ = self._random.predict(observation, deterministic=deterministic, skill=skill)
        self.step += 1
        actions[skill == 0] = 0.0
        actions[skill == 1] = (-1) ** self.step
        actions[skill == 2] = np.sin(2 * np.pi * self.step / 30 + self._phases)
        return actions, None


@pytest.mark.parametrize("robot", ["Walker-v0", pytest.param("Quadruped-v0", marks=pytest.mark.slow)])
def test_poses_and_trembling_are_told_from_motion(robot):
    env = make_batched(robot, 8, n_threads=1)
    metrics, rollouts = play_and_measure(ByHand(env), env, n_rollouts=2, n_steps=150)
    motion = measure_motion(env, rollouts)
    assert motion.moves.tolist() == [False, False, True, True] and metrics["moving_share"] == 0.5
    assert set(motion.speeds) == {"torso", "joints"} and metrics["torso_speed"] == np.median(motion.speeds["torso"])
    for name, speeds in motion.speeds.items():
        assert speeds[3] == pytest.approx(motion.random_speeds[name], rel=0.5)


def test_other_environments_by_hand():
    """Each coordinate counts in standard deviations of random actions, and one that never changes does not."""
    steps = np.arange(41.0)
    states, random = np.zeros((3, 1, 41, 3)), np.zeros((1, 1, 41, 3))
    states[0, 0, :, 0], states[1, 0, :, 1], states[2, 0, :, 2] = 4 * steps, steps, 7 * steps
    random[0, 0, :, 0], random[0, 0, :, 1] = 2 * (-1) ** steps, np.where(steps < 20, -1, 1)
    motion = skill_motion(make_rollouts(states), make_rollouts(random))
    std = random[0, 0].std(axis=0)
    assert motion.speeds["observation"] == pytest.approx([4 / std[0], 1 / std[1], 0])
    # From step 20 on: half of the steps of a rollout that is shorter than 100
    assert motion.random_speeds["observation"] == 0 and motion.moves.tolist() == [True, True, False]


def test_speeds_by_hand():
    paths = np.zeros((3, 2, 201, 2))
    paths[0, :, 50:, 0] = 0.3 * np.arange(151)
    paths[0, :, :50] = 99  # does not count
    paths[1, :, :, 1] = np.arange(201) % 2  # trembles
    paths[2, 0, :60, 0] = np.arange(60)  # what follows the end of a shorter episode does not count
    lengths = np.array([[200, 200], [200, 200], [59, 0]])
    assert mean_speeds(paths, lengths, dt=0.1) == pytest.approx([3.0, 0.0, 10.0])
    # After the first half, over windows that fit into the rest: one from step 6 to 12, six of 10 steps from step 15 on
    paths = np.zeros((1, 2, 31, 1))
    paths[0, 0, :13, 0], paths[0, 0, 13:, 0], paths[0, 1, :, 0] = np.arange(13) ** 2, 1e6, 5 * np.arange(31)
    assert mean_speeds(paths, np.array([[12, 30]]), dt=0.5) == pytest.approx(((144 - 36) / 6 + 6 * 5) / 7 / 0.5)


def motion_of(env):
    return measure_motion(env, collect_rollouts(ByHand(env), env, n_rollouts=1, n_steps=60, seed=0))


@pytest.mark.parametrize("env_id", ["Walker-v0", "SkillAnt-v0"])
def test_motion_is_that_of_the_simulation_however_observations_are_normalised(env_id):
    plain = make_vec_env(env_id, 2, seed=0, env_kwargs={"normalize": False} if env_id == "SkillAnt-v0" else {})
    around = VecNormalize(make_vec_env(env_id, 2, seed=0), training=False)
    around.obs_rms.mean[:], around.obs_rms.var[:] = 0.3, 100.0
    around.reset()
    expected, motion = motion_of(plain), motion_of(around)
    for part, speeds in expected.speeds.items():
        assert motion.speeds[part] == pytest.approx(speeds, rel=1e-3) and speeds[2] > 0
        assert motion.random_speeds[part] == pytest.approx(expected.random_speeds[part], rel=1e-3)
    assert set(motion_of(VecFrameStack(plain, 2)).speeds) == {"observation"}


def test_an_arm_is_measured_by_its_hand():
    env = make_batched("Jaco-v0", 4, n_threads=1)
    metrics, rollouts = play_and_measure(ByHand(env), env, n_rollouts=2, n_steps=30)
    assert rollouts.states.shape == (4, 2, 31, 3)
    bins = np.unique(np.floor(rollouts.states.reshape(-1, 3) / 0.1), axis=0)
    assert metrics["policy_coverage"] == len(bins) and 0 < metrics["hand_speed"] < 1 and "torso_speed" not in metrics


class Leaping(Compass):
    step = 0.5


def test_policy_coverage_by_hand():
    env = DummyVecEnv([Placed] * 5)
    for n_trajectories, covered in ((4, 3 + 3 + 3 + 3 + 1), (3, 3 + 3 + 3 + 1), (48, 13)):
        assert policy_coverage(Leaping(), env, n_trajectories, n_steps=6) == covered
    assert policy_coverage(Leaping(), env, n_steps=6, bin_size=0.5) == 1 + 4 * 6
    assert trajectory_skills(Compass(), 6).tolist() == [0, 0, 1, 1, 2, 3]
    vectors = trajectory_skills(Vectors(), 48)
    assert vectors.shape == (48, 2) and len(np.unique(vectors, axis=0)) == 48
    assert np.linalg.norm(vectors, axis=1) == pytest.approx(1) and (trajectory_skills(Vectors(), 48, seed=1) != vectors).all()
    assert policy_coverage(Vectors(), DummyVecEnv([lambda: Placed(100)] * 7), n_trajectories=9, n_steps=100) > 30


def test_the_skill_that_ends_nearest_is_followed_to_a_goal():
    goals = np.array([[5.0, 0.0], [0.5, 3.0], [-4.0, 0.0], [0.0, -1.0]])
    results = zero_shot_goals(Leaping(), DummyVecEnv([Placed] * 3), goals, n_steps=6)
    assert results.skills.tolist() == [0, 1, 2, 3]
    assert results.distances[0] == pytest.approx(5 - np.arange(7) / 2)
    assert results.distances[1] == pytest.approx(np.hypot(0.5, 3 - np.arange(7) / 2))


def test_goals_that_are_left_again():
    results = GoalResults(np.array([[0.0, 5.0, 2.0, 4.0], [9.0, 9.0, 9.0, 0.5]]), None)
    assert results.metrics() == {
        "goal_hit_3": 1.0, "goal_end_3": 0.5, "goal_stay_3": 2 / 6, "goal_hit_1": 0.5, "goal_end_1": 0.5, "goal_stay_1": 1 / 6,
        "goal_distance": 2.25,
    }  # fmt: skip


@pytest.mark.parametrize("normalized", [False, True])
def test_a_method_that_knows_the_way_is_asked_at_each_step(normalized):
    env = MazeVecEnv("square_a", 3)
    if normalized:
        env = VecNormalize(env, training=False)
        env.obs_rms.mean[:], env.obs_rms.var[:] = 1.0, 4.0
    goals = np.array([env.unwrapped.layout.start_cell] * 2) + np.array([[0.2, -0.1], [-0.2, 0.2]])
    results = zero_shot_goals(Vectors(), env, goals, n_steps=40)
    assert results.skills is None and (results.distances[:, 0] > 0.05).any()
    assert results.distances[:, -1] == pytest.approx(0, abs=0.02)
    # Mazes start at random places
    again, other = (zero_shot_goals(Vectors(), env, goals, n_steps=40, seed=seed).distances for seed in (0, 5))
    assert (results.distances == again).all() and (again != other).any()


def test_goals_of_robots():
    ant, cheetah = (make_vec_env(robot) for robot in ("SkillAnt-v0", "SkillHalfCheetah-v0"))
    goals = draw_goals(ant)
    assert goals.shape == (50, 2) and 45 < np.abs(goals).max() < 50 and goals.min() < -40
    assert draw_goals(cheetah).shape == (50, 1) and 90 < np.abs(draw_goals(cheetah)).max() < 100
    assert np.abs(draw_goals(DummyVecEnv([Plane]), goal_range=2.0)).max() < 2
    with pytest.raises(ValueError, match="goal_range"):
        draw_goals(DummyVecEnv([Plane]))
    seen = []

    class Asked(Vectors):
        def predict(self, observation, *, deterministic, skill):
            return np.zeros((len(skill), 8)), None

        def goal_skill(self, observations, goals):
            seen.append(goals.copy())
            return (goals - observations)[:, :2]

    zero_shot_goals(Asked(), ant, goals, n_steps=1)
    raw = SCALES["ant"].unnormalize(seen[0])
    assert raw[:, :2] == pytest.approx(goals, abs=1e-4) and (raw[:, 2:] == raw[0, 2:]).all(), "the rest is as at the start"


def test_tasks_and_their_experts():
    from scores import expert_returns

    assert expert_returns() == {**EXPERT_RETURNS, **{pixels_id(task): best for task, best in EXPERT_RETURNS.items()}}
    assert tasks_of("sb3_cesd:Walker-v0") == {name: f"Walker{name.title()}-v0" for name in ("stand", "walk", "run", "flip")}
    with pytest.raises(ValueError, match="pass one of Walker-v0, Quadruped-v0, Jaco-v0"):
        task_returns(Compass(), "SkillAnt-v0")
    returns = np.array([[1.0, 9.0, 1.0, 2.0], [6.0, 6.0, 3.0, 5.0], [0.0, 0.0, 99.0, 99.0]])
    assert held_out_best(returns) == 4.0, "the best skill is chosen by the first half of its episodes"
    normalized = make_small(DIAYN, VecNormalize(make_vec_env("Walker-v0"))).learn(50)
    with pytest.raises(ValueError, match="vec_normalize"):
        task_returns(normalized, "Walker-v0", n_threads=1)


@pytest.mark.slow
def test_best_skills_of_an_arm():
    class Still:
        n_skills = 2

        def predict(self, observation, *, deterministic, skill):
            return np.repeat(skill[:, None] * 1.0, 9, axis=1).astype(np.float32), None

    returns = task_returns(Still(), "Jaco-v0", n_threads=1)
    scores = score_best_skills(returns, "Jaco-v0")
    for task, name in tasks_of("Jaco-v0").items():
        assert returns[task].shape == (2, 2)
        assert scores[f"best_skill_{task}"] == pytest.approx(held_out_best(returns[task]) / EXPERT_RETURNS[name])
