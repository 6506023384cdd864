"""How SB3 uses batched environments: attributes, methods, pictures, files, training; and what they refuse."""

import copy
import os
import pickle
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.wrappers import RescaleAction, TimeLimit
from opengl import NEEDS_GL
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor, load_results
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import CeSD, make_batched
from sb3_cesd.envs import batch_envs
from sb3_cesd.envs.robots.vec_env import RobotVecEnv


@pytest.fixture(scope="module")
def env():
    """Three walkers; tests may step them."""
    made = make_batched("Walker-v0", 3, seed=0)
    made.reset()
    yield made
    made.close()


def test_attributes(env):
    assert env.num_envs == 3 and env.render_mode == "rgb_array" and env.metadata["render_fps"] == 40
    assert env.get_attr("task") == ["stand"] * 3 and env.get_attr("dt", 1) == [0.025]
    assert [spec.id for spec in env.get_attr("spec", [0, 2])] == ["Walker-v0"] * 2
    assert env.has_attr("domain") and not env.has_attr("nothing")
    states = env.get_attr("random_state")
    assert len({id(state) for state in states}) == 3
    env.set_attr("tag", 5)
    env.set_attr("tag", 6, indices=[1])
    assert env.get_attr("tag") == [5, 6, 5]


@pytest.mark.parametrize("env_id", ["Walker-v0", "Quadruped-v0", "Jaco-v0"])
def test_physics_is_that_of_each(env_id):
    expected, env = make_vec_env(env_id, 2, seed=0), make_batched(env_id, 2, seed=0)
    expected.reset()
    env.reset()
    for n_steps in (0, 15):
        for _ in range(n_steps):
            actions = np.random.default_rng(0).uniform(-1, 1, (2, *env.action_space.shape))
            env.step(actions)
            expected.step(actions)
        np.testing.assert_array_equal(env.position, expected.get_attr("position"))
        pairs = list(zip(env.get_attr("physics"), expected.get_attr("physics"), strict=True))
        for physics, other in pairs:
            for field in ("qpos", "qvel", "ctrl", "act", "xpos", "xmat", "subtree_com", "time"):
                np.testing.assert_array_equal(getattr(physics.data, field), getattr(other.data, field))
        assert (pairs[0][0].data.qpos != pairs[1][0].data.qpos).any()
    env.close()
    expected.close()


@NEEDS_GL
@pytest.mark.parametrize(("env_id", "n_steps"), [("Quadruped-v0", 0), ("Quadruped-v0", 20), ("Jaco-v0", 5)])
def test_images_are_those_of_single_environments(env_id, n_steps):
    options = {"env_kwargs": {"width": 96, "height": 64}}
    expected, env = make_vec_env(env_id, 2, seed=1, **options), make_batched(env_id, 2, seed=1, **options)
    for each in (expected, env):
        each.reset()
        for _ in range(n_steps):
            each.step(np.full((2, *env.action_space.shape), 0.7))
    images = env.get_images()
    assert images[0].shape == (64, 96, 3) and (images[0] != images[1]).any()
    np.testing.assert_array_equal(images, expected.get_images())
    np.testing.assert_array_equal(env.render(), expected.render())
    env.close()
    expected.close()


def test_methods(env):
    assert env.env_method("render", indices=[]) == []
    scaled = env.env_method("scale_action", np.full(6, 2.0), indices=[0, 1])
    np.testing.assert_array_equal(scaled, np.ones((2, 6)))
    for name in ("reset", "reset_as", "step", "close", "get_state", "set_state"):
        with pytest.raises(AttributeError, match=f"share '{name}': call that of the vectorized environment, or use Dummy"):
            env.env_method(name)
    with pytest.raises(AttributeError):
        env.env_method("get_episode_rewards")


def test_wrappers_that_sb3_asks_for(env):
    assert env.env_is_wrapped(Monitor) == [True] * 3 == env.env_is_wrapped(TimeLimit)
    assert env.env_is_wrapped(RescaleAction, 0) == [False]


def test_files_of_monitor(tmp_path):
    env = make_batched("Walker-v0", 3, seed=0, env_kwargs={"max_episode_steps": 4}, monitor_dir=str(tmp_path))
    env.reset()
    steps = [env.step(np.ones((3, 6))) for _ in range(8)]
    env.close()
    episodes = [info["episode"] for step in steps for info in step[3] if "episode" in info]
    returns = np.sum([step[1] for step in steps[:4]], axis=0), np.sum([step[1] for step in steps[4:]], axis=0)
    np.testing.assert_allclose([episode["r"] for episode in episodes], np.concatenate(returns), atol=2e-6)
    assert {path.name for path in tmp_path.iterdir()} == {f"{idx}.monitor.csv" for idx in range(3)}
    frame = load_results(str(tmp_path))
    assert len(episodes) == len(frame) == 6 and set(frame["l"]) == {4}
    assert sorted(frame["r"]) == sorted(episode["r"] for episode in episodes)
    assert episodes[0]["t"] < episodes[-1]["t"] < 60


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_action_that_is_not_finite(env, value):
    actions = np.zeros((3, 6))
    actions[1, [2, 4]] = value
    with pytest.raises(ValueError, match=r"Entries \[2, 4\] of the action of environment 1 are not finite: .*diverged"):
        env.step(actions)


@pytest.mark.parametrize("shape", [(6,), (3, 5), (2, 6), (3, 1), (3, 6, 1)])
def test_actions_of_another_shape(env, shape):
    with pytest.raises(ValueError, match=r"The actions have shape \(.*\): pass some of shape \(3, 6\)\.$"):
        env.step(np.zeros(shape))


def test_step_before_the_first_reset():
    env = make_batched("Walker-v0", 1)
    with pytest.raises(ResetNeeded, match="call reset"):
        env.step(np.zeros((1, 6)))
    env.reset()
    env.step(np.zeros((1, 6)))


def test_closed():
    env = make_batched("Walker-v0", 1)
    env.reset()
    env.close()
    env.close()
    with pytest.raises(ClosedEnvironmentError, match=r"closed: call reset\(\) to open it again\.$"):
        env.step(np.zeros((1, 6)))


@pytest.mark.parametrize("env_id", ["Pendulum-v1", "MazeTree-v0"])
def test_environments_that_are_no_robots(env_id):
    with pytest.raises(ValueError, match=r"can't be batched.*: use DummyVecEnv or SubprocVecEnv .*leave 'batched' out"):
        make_batched(env_id, 2)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"wrapper_class": lambda env: RescaleAction(env, -2, 2)}, "here in RescaleAction: wrap the vectorized environment"),
        ({"monitor_kwargs": {"info_keywords": ("x",)}}, "take no monitor_kwargs: leave them out"),
        ({"env_kwargs": {"render_mode": "human"}}, "pass render_mode='rgb_array', or use DummyVecEnv"),
        ({"vec_env_kwargs": {"n_threads": 0}}, "n_threads=0: pass at least 1"),
    ],
)
def test_what_a_batch_would_pass_over_is_refused(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_vec_env("Walker-v0", 2, vec_env_cls=batch_envs, **kwargs)


def test_physics_engine_is_imported_by_making_one_only():
    """And a machine without a display is told how to render before."""
    code = (
        "import os, sys, sb3_cesd, sb3_cesd.envs.robots.vec_env\n"
        "assert not {'mujoco', 'dm_control', 'shimmy'} & set(sys.modules) and 'MUJOCO_GL' not in os.environ\n"
        "sb3_cesd.make_batched('Walker-v0', 2)\n"
        "assert os.environ['MUJOCO_GL'] in ('egl', 'off')\n"
    )
    environment = {key: value for key, value in os.environ.items() if key not in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY")}
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120, env=environment)


def test_no_environment():
    with pytest.raises(ValueError, match="n_envs=0: pass at least 1"):
        RobotVecEnv(gym.make("Walker-v0"), 0)


def test_more_threads_than_environments():
    assert make_batched("Walker-v0", 2, n_threads=16).n_threads == 2


def test_cesd_trains_and_its_model_goes_from_batched_to_single_environments_and_back(make_model, tmp_path):
    model = make_model(make_batched("Quadruped-v0", 8)).learn(240)
    assert model.num_timesteps == 240 and model._n_updates > 0
    model.save(tmp_path / "model")
    single = CeSD.load(tmp_path / "model", env=gym.make("Quadruped-v0")).learn(60)
    single.save(tmp_path / "single")
    batched = CeSD.load(tmp_path / "single", env=make_batched("Quadruped-v0", 3)).learn(60)
    observation = make_batched("Quadruped-v0", 2, seed=0).reset()
    assert batched.predict(observation, skill=1)[0].shape == (2, 12)


@pytest.mark.filterwarnings("error")
def test_other_algorithms_normalisation_and_evaluation():
    def make(n_envs):
        return VecNormalize(make_batched("Walker-v0", n_envs, env_kwargs={"max_episode_steps": 20}))

    callback = EvalCallback(make(2), n_eval_episodes=4, eval_freq=16, verbose=0)
    model = PPO("MlpPolicy", make(4), n_steps=32, batch_size=32, n_epochs=1, device="cpu").learn(256, callback=callback)
    assert model.ep_info_buffer[0]["l"] == 20 and 0 < callback.last_mean_reward < 20


def test_simulations_are_neither_copied_nor_pickled():
    env = make_batched("Walker-v0", 2)
    for use in (pickle.dumps, copy.deepcopy):
        with pytest.raises(TypeError, match=r"can't be copied or pickled .*: .* pass a policy of export_policy"):
            use(env)
    env.close()
