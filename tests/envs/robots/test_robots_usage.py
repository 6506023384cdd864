"""How environments are made and used: registration, warnings, actions of another shape, whole episodes of the arm."""

import subprocess
import sys
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest

import sb3_cesd
from sb3_cesd.envs.registration import ENVS, register_envs
from sb3_cesd.envs.robots.env import RobotEnv

ROBOTS = [env_id for env_id, entry in ENVS.items() if "robot" in entry.entry_point]


def test_envs_import_nothing_else_of_the_package_but_rules_of_arguments():
    """Nor PyTorch: as the package itself does, it is put aside here."""
    code = (
        "import sys, types\n"
        "package = types.ModuleType('sb3_cesd'); package.__path__ = [sys.argv[1]]; sys.modules['sb3_cesd'] = package\n"
        "import sb3_cesd.envs; sb3_cesd.envs.register_envs()\n"
        "assert not {'torch', 'stable_baselines3', 'mujoco', 'dm_control', 'shimmy', 'glfw'} & set(sys.modules)\n"
        "import gymnasium as gym; env = gym.make('Walker-v0'); env.reset(); env.step(env.action_space.sample())\n"
        "foreign = {m for m in sys.modules if m.startswith('sb3_cesd.') and not m.startswith('sb3_cesd.envs')}\n"
        "foreign -= {'sb3_cesd.common', 'sb3_cesd.common.rules'}\n"
        "assert not foreign and 'torch' not in sys.modules, foreign\n"
    )
    subprocess.run([sys.executable, "-c", code, str(Path(sb3_cesd.__file__).parent)], check=True, timeout=120)


@pytest.mark.filterwarnings("error")
def test_registering_again_is_silent_and_changes_nothing():
    before = {env_id: gym.spec(env_id) for env_id in ENVS}
    register_envs()
    assert all(gym.spec(env_id) is spec for env_id, spec in before.items())


def test_an_id_of_another_package_is_left_to_it(monkeypatch):
    theirs = gym.envs.registration.EnvSpec("Walker-v0", entry_point="their_package:Walker")
    monkeypatch.setitem(gym.registry, "Walker-v0", theirs)
    with pytest.warns(UserWarning, match="Walker-v0 is not that of sb3_cesd, since .* their_package:Walker before: import"):
        register_envs()
    assert gym.spec("Walker-v0") is theirs


def test_making_an_environment_gives_no_warning():
    """In a new process, as dm_control's imports warn but once."""
    code = (
        "import warnings, sb3_cesd, gymnasium as gym\n"
        "with warnings.catch_warnings(record=True) as record:\n"
        "    warnings.simplefilter('always')\n"
        "    for env_id in ('Walker-v0', 'Quadruped-v0', 'Jaco-v0'):\n"
        "        env = gym.make(env_id); env.reset(); env.step(env.action_space.sample()); env.close()\n"
        "assert not record, [str(warning.message) for warning in record]\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


@pytest.mark.parametrize("shape", [(), (1,), (5,), (7,), (1, 6)])
def test_action_of_another_shape(shape):
    """None is broadcast in silence."""
    env = RobotEnv("walker", "stand")
    env.reset(seed=0)
    with pytest.raises(ValueError, match=r"The action has shape \(.*\): pass one of shape \(6,\)"):
        env.step(np.zeros(shape))
    env.close()


@pytest.mark.parametrize("env_id", ["SkillAnt-v0", "Walker-v0"])
@pytest.mark.parametrize("action", ["a", "1", ["a"] * 8, ["0.5"] * 8, None, [[1], [2, 3]], 1j, {"x": 1}])
def test_action_that_is_no_number(env_id, action):
    single, batched = gym.make(env_id), sb3_cesd.make_batched(env_id, 2, n_threads=1)
    single.reset()
    batched.reset()
    with pytest.raises(
        ValueError, match=r"The action has entries that are not numbers \(.*\): pass one of shape \([68],\)\.$"
    ):
        single.step(action)
    with pytest.raises(
        ValueError, match=r"The actions have entries that are not numbers \(.*\): pass some of shape \(2, [68]\)\.$"
    ):
        batched.step(action)
    single.close()
    batched.close()


@pytest.mark.parametrize("low", [True, False])
def test_each_action_moves_its_own_actuator(low):
    """One by one to its bound, the others stay in the middle of theirs."""
    env = RobotEnv("quadruped", "walk")
    bounds = env.physics.model.actuator_ctrlrange
    env.reset(seed=0)
    for idx in range(12):
        action = np.zeros(12, np.float32)
        action[idx] = -1 if low else 1
        env.step(action)
        expected = bounds.mean(axis=1)
        expected[idx] = bounds[idx, 0 if low else 1]
        np.testing.assert_allclose(env.physics.data.ctrl, expected, atol=1e-12)
    env.close()


@pytest.mark.slow
@pytest.mark.parametrize("env_id", [env_id for env_id in ROBOTS if env_id.startswith("Jaco")])
def test_whole_episodes_of_the_arm_are_those_of_dm_control(env_id):
    """To the last bit, with seeds given and not, and an episode left before its end; dm_control compiles for each."""
    from dm_control import composer
    from shimmy.dm_control_compatibility import DmControlCompatibilityV0

    from sb3_cesd.envs.robots import jaco

    env = gym.make(env_id).unwrapped
    reference = DmControlCompatibilityV0(
        jaco.make(env.task, lambda task, time_limit: composer.Environment(task, time_limit=time_limit))
    )
    rng = np.random.default_rng(0)
    high = env._dm_env.action_spec().maximum
    for seed, n_steps in ((3, 30), (None, 250), (4, 20), (None, 20)):
        observation, expected = env.reset(seed=seed)[0], reference.reset(seed=seed)[0]
        np.testing.assert_array_equal(observation, jaco.flatten(expected).astype(np.float32))
        for _ in range(n_steps):
            action = rng.uniform(-1, 1, 9)
            observation, reward, terminated, truncated, _ = env.step(action)
            expected, *others = reference.step(high * action)
            np.testing.assert_array_equal(observation, jaco.flatten(expected).astype(np.float32))
            assert [reward, terminated, truncated] == others[:3]
        assert truncated == (n_steps == 250)
    env.close()
    reference.close()


@pytest.mark.parametrize(("env_id", "name"), [("WalkerWalk-v0", "walk"), ("WalkerRun-v0", "run"), ("WalkerStand-v0", "stand")])
def test_walker_is_that_of_the_suite(env_id, name):
    """dm_control's own task, made by its own constructor."""
    from dm_control.suite import walker

    env = gym.make(env_id).unwrapped
    expected = getattr(walker, name)(random=np.random.RandomState(5), environment_kwargs={"flat_observation": True})
    assert_same_episode(env, expected)


@pytest.mark.parametrize(("env_id", "name"), [("QuadrupedWalk-v0", "walk"), ("QuadrupedRun-v0", "run")])
def test_quadruped_is_that_of_the_suite(env_id, name):
    """dm_control's own task, made by its own constructor."""
    from dm_control.suite import quadruped

    env = gym.make(env_id).unwrapped
    expected = getattr(quadruped, name)(random=np.random.RandomState(5), environment_kwargs={"flat_observation": True})
    assert_same_episode(env, expected)


def assert_same_episode(env, expected):
    bounds = expected.action_spec()
    observation, _ = env.reset(seed=5)
    step = expected.reset()
    rng = np.random.default_rng(0)
    for _ in range(40):
        np.testing.assert_array_equal(observation, step.observation["observations"].astype(np.float32))
        action = rng.uniform(-1, 1, bounds.shape)
        observation, reward, *_ = env.step(action)
        center, scale = (bounds.maximum + bounds.minimum) / 2, (bounds.maximum - bounds.minimum) / 2
        step = expected.step(center + scale * action)
        assert reward == step.reward
    env.close()
    expected.close()
