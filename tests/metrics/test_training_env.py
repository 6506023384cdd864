"""Environments to play in, made like those of training."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import PendulumEnv
from gymnasium.utils import RecordConstructorArgs
from gymnasium.wrappers import FlattenObservation, FrameStackObservation, NormalizeObservation
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack, VecMonitor, VecNormalize

from sb3_cesd import make_batched
from sb3_cesd.common.vec_env import VecSkillObservation
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.envs.robots.vec_env import RobotVecEnv
from sb3_cesd.metrics import make_env_like_training, make_play_env


class Zero(gym.ObservationWrapper):
    """Scales observations, to nothing by default; Gymnasium does not record its arguments."""

    def __init__(self, env, scale=0.0):
        super().__init__(env)
        self.scale = scale

    def observation(self, observation):
        return observation * self.scale


class RecordedZero(Zero, RecordConstructorArgs):
    def __init__(self, env, scale=0.0):
        RecordConstructorArgs.__init__(self, scale=scale)
        super().__init__(env, scale)


def like(env, n_skills=3, n_rollouts=2):
    made = make_env_like_training(VecSkillObservation(env, n_skills), n_skills, n_rollouts)
    made.seed(0)
    return made


def test_a_wrapper_that_hides_everything_is_there_and_training_goes_on(tmp_path):
    env = make_vec_env("Pendulum-v1", 2, seed=0, wrapper_class=Zero, wrapper_kwargs={"scale": 0.5}, monitor_dir=str(tmp_path))
    env.reset()
    before = env.envs[0].unwrapped.state.copy()
    made = like(env)
    assert made.num_envs == 2 and made.envs[0] is not env.envs[0]
    first = made.reset()
    assert first.shape == (2, 3) and np.hypot(first[:, 0], first[:, 1]) == pytest.approx(0.5)
    for _ in range(250):
        _, _, dones, infos = made.step(np.zeros((2, 1)))
        assert not dones.any() or infos[0]["TimeLimit.truncated"]
    assert (env.envs[0].unwrapped.state == before).all()
    assert len((tmp_path / "0.monitor.csv").read_text().splitlines()) == 2, "the header alone"
    env.set_attr("scale", 0.0)
    assert (like(env).reset() == 0).all(), "as the wrapper is now"


@pytest.mark.parametrize(
    ("wrapper", "kwargs", "shape"),
    [(FlattenObservation, {}, (2, 3)), (FrameStackObservation, {"stack_size": 4}, (2, 4, 3))],
)
def test_wrappers_that_change_the_space(wrapper, kwargs, shape):
    made = like(make_vec_env("Pendulum-v1", 2, wrapper_class=wrapper, wrapper_kwargs=kwargs))
    assert made.reset().shape == shape and made.observation_space.shape == shape[1:]


def test_statistics_of_a_wrapper_are_those_of_training_and_do_not_change():
    env = make_vec_env("Pendulum-v1", wrapper_class=NormalizeObservation)
    env.reset()
    for _ in range(20):
        env.step(np.ones((1, 1)))
    made = like(env)
    made.reset()
    made.step(np.ones((1, 1)))
    theirs, ours = (each.envs[0].get_wrapper_attr("obs_rms") for each in (env, made))
    assert ours is not theirs and (ours.mean == theirs.mean).all() and ours.count == theirs.count > 20


def test_wrappers_of_all_environments_keep_their_order():
    """RL Zoo stacks what VecNormalize returns."""
    normalize = VecNormalize(DummyVecEnv([lambda: gym.make("Pendulum-v1")] * 2))
    env = VecFrameStack(VecMonitor(normalize), 3)
    env.reset()
    env.step(np.ones((2, 1)))
    made = like(env)
    assert isinstance(made, VecFrameStack) and isinstance(made.venv, VecNormalize)
    assert made.venv.obs_rms is normalize.obs_rms and not made.venv.training
    observations = made.reset()
    assert observations.shape == (2, 9) and (observations[:, :6] == 0).all()
    assert (made.step(np.ones((2, 1)))[0][:, 3:6] == observations[:, 6:]).all()


def test_plain_mazes_and_robots_are_as_many_as_are_fast():
    made = like(MazeVecEnv("tree", 5, max_episode_steps=7))
    assert isinstance(made, MazeVecEnv) and made.num_envs == 6 and made.max_episode_steps == 7
    made = like(make_vec_env("MazeTree-v0", env_kwargs={"max_episode_steps": 9}))
    assert isinstance(made, MazeVecEnv) and made.max_episode_steps == 9
    for env in (make_batched("Walker-v0", 2, n_threads=1), make_vec_env("Walker-v0", 2)):
        made = like(env)
        assert isinstance(made, RobotVecEnv) and made.num_envs == 3
    made = like(VecFrameStack(make_batched("Walker-v0", 2, n_threads=1), 2))
    assert made.num_envs == 2 and made.reset().shape == (2, 48)
    made = like(make_vec_env("Walker-v0", 1, wrapper_class=Zero))
    assert isinstance(made, DummyVecEnv) and (made.reset() == 0).all() and made.get_attr("position")[0].shape == (3,)


def test_mazes_keep_their_reward():
    """A task whose reward is the coverage has returns, in whatever it is played."""
    kwargs = {"reward": "coverage"}
    plain, vectorized = make_vec_env("MazeSquareA-v0", 2, env_kwargs=kwargs), MazeVecEnv("square_a", 2, reward="coverage")
    for made in (
        make_play_env("MazeSquareA-v0", 2, 2, kwargs),
        like(plain),
        like(vectorized),
        like(VecFrameStack(vectorized, 2)),
    ):
        made.reset()
        _, rewards, _, _ = made.step(np.zeros((made.num_envs, 2)))
        assert (rewards > 0).all()
    assert make_play_env("MazeSquareA-v0", 1, 1).max_episode_steps == 50
    assert make_play_env("MazeSquareA-v0", 1, 1, {"max_episode_steps": -1}).max_episode_steps > 10**9, "no limit"
    rewardless = make_play_env("MazeSquareA-v0", 2, 2)
    rewardless.reset()
    assert (rewardless.step(np.zeros((4, 2)))[1] == 0).all()


def test_environments_of_other_processes():
    env = make_vec_env("Pendulum-v1", 1, wrapper_class=RecordedZero, vec_env_cls=SubprocVecEnv)
    made = like(env)
    env.close()
    assert isinstance(made, DummyVecEnv) and (made.reset() == 0).all()
    env = make_vec_env("Pendulum-v1", 1, wrapper_class=Zero, vec_env_cls=SubprocVecEnv)
    with pytest.raises(ValueError, match=r"wrapper Zero is in another process.*: pass an eval_env .*RecordConstructorArgs"):
        like(env)
    env.close()


def test_what_can_not_be_made_again(tmp_path):
    class Unregistered(PendulumEnv):
        spec = None

    for wrapped in (Unregistered, lambda: Zero(Unregistered())):
        with pytest.raises(ValueError, match="has no id to make another one from: pass eval_env"):
            like(DummyVecEnv([wrapped]))
    env = make_vec_env("Pendulum-v1", wrapper_class=Zero)
    with (tmp_path / "file").open("w") as file:
        env.set_attr("scale", file)
        with pytest.raises(ValueError, match=r"wrapper Zero .* can't be copied \(TypeError: .*\): pass an eval_env"):
            like(env)


def test_statistics_of_a_wrapper_in_other_processes_do_not_change_either():
    env = make_vec_env("Pendulum-v1", 1, wrapper_class=NormalizeObservation, vec_env_cls=SubprocVecEnv)
    env.reset()
    for _ in range(20):
        env.step(np.ones((1, 1)))
    made, (theirs,) = like(env), env.get_attr("obs_rms")
    env.close()
    made.reset()
    made.step(np.ones((1, 1)))
    ours = made.envs[0].get_wrapper_attr("obs_rms")
    assert (ours.mean == theirs.mean).all() and ours.count == theirs.count > 20
