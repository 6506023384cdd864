"""Environments to play in, made like those of training."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import PendulumEnv
from gymnasium.wrappers import AddRenderObservation, FrameStackObservation, NormalizeObservation
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecFrameStack, VecMonitor, VecNormalize

from sb3_cesd import make_batched
from sb3_cesd.common.vec_env import VecSkillObservation
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.envs.robots.vec_env import RobotVecEnv
from sb3_cesd.metrics import make_env_like_training, make_play_env


class Scaled(gym.ObservationWrapper):
    """Scales observations; Gymnasium does not record its arguments."""

    def __init__(self, env, scale=0.5):
        super().__init__(env)
        self.scale = scale

    def observation(self, observation):
        return observation * self.scale


def like(env, n_skills=3, n_rollouts=2):
    made = make_env_like_training(VecSkillObservation(env, n_skills), n_skills, n_rollouts)
    made.seed(0)
    return made


def test_a_wrapper_is_there_as_it_is_now_and_training_goes_on(tmp_path):
    env = make_vec_env("Pendulum-v1", 2, seed=0, wrapper_class=Scaled, monitor_dir=str(tmp_path))
    env.reset()
    before = env.envs[0].unwrapped.state.copy()
    made = like(env)
    first = made.reset()
    assert made.num_envs == 2 and np.hypot(first[:, 0], first[:, 1]) == pytest.approx(0.5)
    for _ in range(250):
        made.step(np.zeros((2, 1)))
    assert (env.envs[0].unwrapped.state == before).all()
    assert len((tmp_path / "0.monitor.csv").read_text().splitlines()) == 2, "the header alone"
    env.set_attr("scale", 0.0)
    assert (like(env).reset() == 0).all()


def test_wrappers_that_change_the_space_or_have_statistics():
    made = like(make_vec_env("Pendulum-v1", 2, wrapper_class=lambda env: FrameStackObservation(env, 4)))
    assert made.reset().shape == (2, 4, 3) and made.observation_space.shape == (4, 3)
    env = make_vec_env("Pendulum-v1", wrapper_class=NormalizeObservation)
    env.reset()
    for _ in range(20):
        env.step(np.ones((1, 1)))
    made = like(env)
    made.reset()
    theirs, ours = (each.envs[0].get_wrapper_attr("obs_rms") for each in (env, made))
    assert ours is not theirs and (ours.mean == theirs.mean).all() and ours.count == theirs.count > 20
    normalize = VecNormalize(VecMonitor(env))
    made = like(normalize)
    assert isinstance(made, VecNormalize) and made.obs_rms is normalize.obs_rms and not made.training


def test_plain_mazes_and_robots_are_as_many_as_are_fast():
    made = like(MazeVecEnv("tree", 5, max_episode_steps=7))
    assert isinstance(made, MazeVecEnv) and made.num_envs == 6 and made.max_episode_steps == 7
    made = like(make_vec_env("MazeTree-v0", env_kwargs={"max_episode_steps": 9}))
    assert isinstance(made, MazeVecEnv) and made.max_episode_steps == 9
    for env in (make_batched("Walker-v0", 2, n_threads=1), make_vec_env("Walker-v0", 2)):
        assert isinstance(like(env), RobotVecEnv) and like(env).num_envs == 3
    made = like(make_vec_env("Walker-v0", 1, wrapper_class=Scaled, env_kwargs={"width": 64}))
    assert isinstance(made, DummyVecEnv) and made.get_attr("width") == [64]
    assert make_play_env("MazeSquareA-v0", 1, 1, {"max_episode_steps": -1}).max_episode_steps > 10**9, "no limit"


def test_images_of_a_wrapper_are_those_of_the_new_environment():
    pixels = make_vec_env("MazeTree-v0", env_kwargs={"render_mode": "rgb_array"}, wrapper_class=AddRenderObservation)
    made = like(VecFrameStack(pixels, 2))
    first, _ = made.reset(), pixels.reset()
    for _ in range(3):
        moved = made.step(np.ones((1, 2)))[0]
    assert moved.shape == (1, *pixels.observation_space.shape) and (moved != first).any()


def test_what_can_not_be_made_again(tmp_path):
    class Unregistered(PendulumEnv):
        spec = None

    for wrapped in (Unregistered, lambda: Scaled(Unregistered())):
        with pytest.raises(ValueError, match="no id"):
            like(DummyVecEnv([wrapped]))
    env = make_vec_env("Pendulum-v1", wrapper_class=Scaled)
    with pytest.raises(ValueError, match="VecFrameStack"):
        like(VecFrameStack(env, 2))
    with (tmp_path / "file").open("w") as file:
        env.set_attr("scale", file)
        with pytest.raises(ValueError, match="Scaled"):
            like(env)


@pytest.mark.slow
def test_environments_of_other_processes():
    for wrapper in (None, Scaled):
        env = make_vec_env("Pendulum-v1", 2, wrapper_class=wrapper, vec_env_cls=SubprocVecEnv)
        if wrapper is None:
            assert like(VecNormalize(env)).num_envs == 3
        else:
            with pytest.raises(ValueError, match="pass eval_env"):
                like(env)
        env.close()
