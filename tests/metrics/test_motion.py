"""Which skills move."""

from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import PendulumEnv
from sb3_cesd.metrics.normalization import raw_observations
from sb3_cesd.metrics.random_actions import RandomActions
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack, VecNormalize

from sb3_cesd import DIAYN, make_batched
from sb3_cesd.envs.robots.env import RobotEnv
from sb3_cesd.metrics import collect_rollouts, env_positions, mean_speeds, measure_motion, play_and_measure, skill_motion
from sb3_cesd.metrics.motion import gripper_shares, robot_name
from sb3_cesd.metrics.rollouts import SkillRollouts
from sb3_cesd.metrics.summary import env_layout


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

    def predict_clusters(self, observations):
        return None


@pytest.mark.parametrize("robot", ["Walker-v0", "Quadruped-v0"])
def test_poses_and_trembling_are_told_from_motion(robot):
    env = make_batched(robot, 8, n_threads=1)
    metrics, rollouts = play_and_measure(ByHand(env), env, n_rollouts=2, n_steps=150)
    motion = measure_motion(env, rollouts)
    assert motion.moves.tolist() == [False, False, True, True] and metrics["moving_share"] == 0.5
    assert set(motion.speeds) == {"torso", "joints"} and metrics["torso_speed"] == np.median(motion.speeds["torso"])
    for name, speeds in motion.speeds.items():
        assert speeds[3] == pytest.approx(motion.random_speeds[name], rel=0.5)
    # Any other environment is judged by its observations
    general = measure_motion(VecNormalize(make_vec_env("Pendulum-v1", 2)), rollouts_of_pendulum())
    assert set(general.speeds) == {"observation"}


def rollouts_of_pendulum():
    env = make_vec_env("Pendulum-v1", 2)
    return collect_rollouts(ByHand(env), env, n_rollouts=2, n_steps=150, seed=0)


def test_other_environments_by_hand():
    """Each coordinate counts in standard deviations of random actions, and one that never changes does not."""
    steps = np.arange(41.0)
    states = np.zeros((3, 1, 41, 3))
    states[0, 0, :, 0], states[1, 0, :, 1], states[2, 0, :, 2] = 4 * steps, steps, 7 * steps
    random = np.zeros((1, 1, 41, 3))
    random[0, 0, :, 0], random[0, 0, :, 1] = 2 * (-1) ** steps, np.where(steps < 20, -1, 1)
    rollouts, at_random = (
        SkillRollouts(s, np.arange(len(s))[:, None], np.zeros((len(s), 1)), np.full((len(s), 1), 40), s)
        for s in (states, random)
    )
    motion = skill_motion(rollouts, at_random)
    std = random[0, 0].std(axis=0)
    assert motion.speeds["observation"] == pytest.approx([4 / std[0], 1 / std[1], 0])
    # From step 20 on: half of the steps of a rollout that is shorter than 100
    assert motion.random_speeds["observation"] == 0 and motion.moves.tolist() == [True, True, False]
    assert motion.moving_share == pytest.approx(2 / 3)


def test_observations_that_never_change():
    """A wrapper may leave nothing of them."""

    def blinded(env):
        return gym.wrappers.TransformObservation(env, np.zeros_like, env.observation_space)

    env = make_vec_env("Pendulum-v1", 2, wrapper_class=blinded)
    metrics, _ = play_and_measure(make_small(DIAYN, env), env, n_rollouts=2, n_steps=12)
    assert metrics["moving_share"] == 0 and metrics["knn_accuracy"] == 0.25 and metrics["particle_entropy"] == 0


def test_speeds_by_hand():
    paths = np.zeros((3, 2, 201, 2))
    paths[0, :, :, 0] = 0.3 * np.arange(201)
    paths[1, :, :, 1] = np.arange(201) % 2  # trembles
    paths[2, 0, :60, 0] = np.arange(60)  # before the end of a shorter episode, and what follows does not count
    paths[2, 0, 60:, 0] = 59
    lengths = np.array([[200, 200], [200, 200], [59, 0]])
    assert mean_speeds(paths, lengths, dt=0.1) == pytest.approx([3.0, 0.0, 10.0])
    paths[0, :, :50] = 99  # does not count
    assert mean_speeds(paths, lengths, dt=0.1)[0] == pytest.approx(3.0)
    assert mean_speeds(paths[:, :, :1], np.zeros((3, 2), dtype=int)).tolist() == [0, 0, 0]


@pytest.mark.parametrize("n_steps", [1, 2, 5, 18, 19, 40])
def test_random_actions_move_in_episodes_of_any_length(n_steps):
    env = make_vec_env("Pendulum-v1", 4, wrapper_class=gym.wrappers.TimeLimit, wrapper_kwargs={"max_episode_steps": n_steps})
    model = RandomActions(env.action_space, 1)
    for length in (n_steps, 100):
        assert play_and_measure(model, env, n_rollouts=4, n_steps=length)[0]["moving_share"] == 1


def test_speeds_of_short_rollouts_by_hand():
    """After the first half, over windows that fit into the rest, whatever others need."""
    paths = np.zeros((2, 2, 31, 1))
    paths[0, 0, :13, 0], paths[0, 0, 13:, 0] = np.arange(13) ** 2, 1e6
    paths[0, 1, :, 0] = 5 * np.arange(31)
    paths[1, 0, :2, 0], paths[1, 0, 2:, 0] = [0, 7], 1e6
    speeds = mean_speeds(paths, np.array([[12, 30], [1, 0]]), dt=0.5)
    # One window from step 6 to 12, six windows of 10 steps from step 15 on; one step
    assert speeds == pytest.approx([((144 - 36) / 6 + 6 * 5) / 7 / 0.5, 14])


def test_normalised_observations_and_wrapped_robots_move_alike():
    env = make_batched("Walker-v0", 4, n_threads=1)
    normalized = VecNormalize(env, training=False)
    normalized.obs_rms.mean[:], normalized.obs_rms.var[:] = 0.3, 100.0
    motions = []
    for each in (env, normalized):
        rollouts = collect_rollouts(ByHand(env), each, n_rollouts=1, n_steps=80, seed=0, position_fn=env_positions)
        motions.append(measure_motion(each, rollouts._replace(positions=rollouts.states)))
    for name in ("torso", "joints"):
        assert motions[0].speeds[name] == pytest.approx(motions[1].speeds[name], rel=1e-3)
        assert motions[0].random_speeds[name] == pytest.approx(motions[1].random_speeds[name], rel=1e-3)
    assert robot_name(normalized) == "walker" and robot_name(make_vec_env("Pendulum-v1")) is None
    stacked = VecFrameStack(env, 2)
    rollouts = collect_rollouts(ByHand(env), stacked, n_rollouts=1, n_steps=80, seed=0)
    motion = measure_motion(stacked, rollouts)
    assert list(motion.speeds) == ["observation"] and motion.moves[[0, 2]].tolist() == [False, True]


class Cluttered(gym.Wrapper):
    """Attributes that happen to be called like those of mazes and robots."""

    layout, robot, domain = "desk", ["arm"], np.zeros(3)


class Namesake(gym.Wrapper):
    """Has the names of our robots."""

    robot, domain = "ant", "walker"


def test_statistics_of_observations_that_are_matrices():
    """They have the shape of an observation, which rollouts flatten."""
    matrices = {"wrapper_class": gym.wrappers.FrameStackObservation, "wrapper_kwargs": {"stack_size": 3}}
    env = VecNormalize(make_vec_env("Pendulum-v1", 2, **matrices))
    model = make_small(DIAYN, env=env).learn(60)
    env.training = False
    metrics, _ = play_and_measure(model, env, n_rollouts=2, n_steps=10, seed=0)
    assert np.isfinite(list(metrics.values())).all() and "moving_share" in metrics
    rollouts = collect_rollouts(RandomActions(env.action_space, 0), env, 1, 10, seed=0)
    raw = raw_observations(env, rollouts).observations
    assert raw.shape == rollouts.observations.shape == (*raw.shape[:3], 9)
    speeds = raw.reshape(*raw.shape[:3], 3, 3)[..., 2]
    assert np.allclose(speeds[:, :, 2:, 0], speeds[:, :, :-2, 2], atol=1e-4), "a stack holds what was seen before"
    assert np.abs(raw).max() <= 8.1 and np.allclose(np.hypot(raw[..., 0], raw[..., 1]), 1, atol=1e-4)


@pytest.mark.parametrize("wrapper", [Cluttered, Namesake])
def test_attributes_of_other_environments_are_their_own(wrapper):
    model, plain = make_small(DIAYN), make_vec_env("Pendulum-v1")
    wrapped = make_vec_env(lambda: wrapper(gym.make("Pendulum-v1")))
    assert env_layout(wrapped) is None and robot_name(wrapped) is None
    metrics = [play_and_measure(model, env, n_rollouts=2, n_steps=10)[0] for env in (plain, wrapped)]
    assert metrics[0] == metrics[1]


class NamedPendulum(PendulumEnv):
    """What it is called is its own business."""

    domain = "walker"


def test_environments_called_like_a_robot_are_measured_as_what_they_are():
    env = make_vec_env(NamedPendulum)
    metrics, _ = play_and_measure(make_small(DIAYN, env=NamedPendulum()), env, n_rollouts=2, n_steps=10)
    assert "moving_share" in metrics and "torso_speed" not in metrics


@pytest.mark.parametrize(
    ("make", "name"), [(partial(RobotEnv, "walker", "run"), "walker"), (partial(gym.make, "sb3_cesd:SkillAnt-v0"), "ant")]
)
def test_robots_of_other_processes_are_known(make, name):
    env = SubprocVecEnv([make])
    try:
        assert robot_name(env) == name
    finally:
        env.close()


def test_an_arm_is_measured_by_its_hand_and_its_gripper():
    class Gripper(ByHand):
        """Closes, then opens; the arm stands still."""

        n_skills = 2

        def predict(self, observation, *, deterministic, skill):
            self.step += 1
            actions = np.zeros((len(skill), 9), dtype=np.float32)
            actions[:, 6:] = 1 if self.step <= 20 else -1
            return actions, None

    env = make_batched("Jaco-v0", 4, n_threads=1)
    metrics, rollouts = play_and_measure(Gripper(env), env, n_rollouts=2, n_steps=60)
    assert rollouts.states.shape == (2, 2, 61, 3)
    assert 0.05 < metrics["gripper_closing"] < 0.4 < metrics["gripper_closing"] + metrics["gripper_opening"] < 1
    bins = np.unique(np.floor(rollouts.states.reshape(-1, 3) / 0.1), axis=0)
    assert metrics["policy_coverage"] == len(bins) and metrics["moving_share"] == 0 < metrics["hand_speed"] < 0.1
    observations = np.zeros((1, 1, 5, 55))
    observations[0, 0, :, 27:30] = np.array([0.0, 0.2, -0.2, -0.3, 0.05])[:, None]
    by_hand = SkillRollouts(observations, np.zeros((1, 1), dtype=int), np.zeros((1, 1)), np.full((1, 1), 4), observations)
    assert gripper_shares(by_hand) == {"gripper_closing": 0.2, "gripper_opening": 0.4}
    with pytest.raises(ValueError, match=r"lack observations: record them by"):
        gripper_shares(by_hand._replace(observations=None))
    with pytest.raises(ValueError, match=r"lack positions, .*: record them by play_places\."):
        skill_motion(by_hand, by_hand, "jaco", 0.1)
