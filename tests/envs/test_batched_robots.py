"""Batched environments against DummyVecEnv, which steps single ones: every number is the same to the last bit."""

import gymnasium as gym
import mujoco
import numpy as np
import pytest
from gymnasium.wrappers import RescaleAction, TimeLimit
from opengl import NEEDS_GL
from stable_baselines3 import PPO
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.monitor import Monitor, load_results
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import CeSD, make_batched
from sb3_cesd.envs import batch_envs
from sb3_cesd.envs.registration import ROBOTS
from sb3_cesd.envs.robots.gl import import_physics
from sb3_cesd.envs.robots.vec_env import BatchedArray

IDS = ["Walker-v0", "Quadruped-v0", "Jaco-v0"]
STATE = mujoco.mjtState.mjSTATE_INTEGRATION


def blow_up(env, idx):
    """Give a part of a robot a velocity that MuJoCo can't integrate."""
    velocities = env.envs[idx].unwrapped.physics.data.qvel if hasattr(env, "envs") else env._batch.bind("qvel")[idx]
    velocities[8 if len(velocities) > 20 else 0] = 1e12


def assert_same_step(step, expected):
    for value, expected_value in zip(step[:3], expected[:3], strict=True):
        np.testing.assert_array_equal(value, expected_value)
        assert value.dtype == expected_value.dtype
    for info, expected_info in zip(step[3], expected[3], strict=True):
        for each in (info, expected_info):
            if "episode" in each:
                assert each["episode"].pop("t") > 0
                each["terminal_observation"] = each["terminal_observation"].tolist()
        assert info == expected_info


@pytest.mark.parametrize("env_id", IDS)
def test_episodes_seeds_and_diverged_simulations(env_id):
    """Episodes that end together, and no more together once a simulation has diverged; seeds are used once."""
    kwargs = {"env_kwargs": {"max_episode_steps": 12}}
    env, expected = make_batched(env_id, 3, seed=3, n_threads=2, **kwargs), make_vec_env(env_id, 3, seed=3, **kwargs)
    assert env.observation_space == expected.observation_space and env.action_space == expected.action_space
    rng = np.random.default_rng(0)
    for seed, n_steps in ((None, 27), (None, 2), (2**32 + 2**31 + 50, 40)):
        if seed is not None:
            assert env.seed(seed) == expected.seed(seed)
        last = env.reset()
        np.testing.assert_array_equal(last, expected.reset())
        for step in range(n_steps):
            diverges = step in (30, 31)
            if diverges:
                blow_up(env, 1)
                blow_up(expected, 1)
            # Beyond the bounds too, where they are clipped
            result, expected_result = (
                each.step(actions)
                for actions in [rng.uniform(-1.2, 1.2, (3, *env.action_space.shape))]
                for each in (env, expected)
            )
            assert_same_step(result, expected_result)
            np.testing.assert_array_equal(env.get_attr("position"), expected.get_attr("position"))
            if diverges:
                assert result[2].tolist() == [False, True, False] and result[1][1] == 0
                info = result[3][1]
                assert info["physics_warnings"] and not info["TimeLimit.truncated"]
                assert info["terminal_observation"] == last[1].tolist()
            last = result[0]
    env.close()
    expected.close()


def linear(x, bound, value):
    """1 above the bound, ``value`` at 0, and linear below."""
    return 1.0 if x >= bound else max(0.0, 1 - (1 - value) * (bound - x) / bound)


def gauss(d):
    return 0.1 ** (d * d)


def walker_flip(physics):
    torso = physics.named.data.xpos["torso", "z"], physics.named.data.xmat["torso", "zz"]
    stand = (3 * gauss(max(0.0, 1.2 - torso[0]) / 0.6) + (1 + torso[1]) / 2) / 4
    return stand * (5 * linear(physics.named.data.subtree_angmom["torso"][1], 5, 0.0) + 1) / 6


def quadruped_stand(physics):
    return (1 + physics.named.data.xmat["torso", "zz"]) / 2


def quadruped_jump(physics):
    return quadruped_stand(physics) * linear(physics.named.data.subtree_com["torso"][2], 1, 0.5)


def jaco_reach(physics):
    hand = physics.named.data.site_xpos["jaco_arm/jaco_hand/pinchsite"]
    distance = np.linalg.norm(hand - physics.data.qpos[9:12])
    return 1.0 if distance <= 0.05 else gauss((distance - 0.05) / 0.05)


REWARDS = {"WalkerFlip-v0": walker_flip, "QuadrupedStand-v0": quadruped_stand, "QuadrupedJump-v0": quadruped_jump}
REWARDS |= {env_id: jaco_reach for env_id in ROBOTS if env_id.startswith("Jaco")}


def make_wild(env, rng, scale):
    """Thrown into the air, spinning, upside down; the brick of the arm near the hand, to far away as the scale grows."""
    qpos, qvel = env._batch.bind("qpos"), env._batch.bind("qvel")
    robot = env.get_attr("robot_name")[0]
    if robot == "walker":
        qpos[:] = rng.uniform(-1, 1, qpos.shape) * [0.3, 3, 3, 1, 1, 1, 1, 1, 1]
        qvel[:] = rng.normal(size=qvel.shape) * [3, 8, 10, 3, 3, 3, 3, 3, 3]
    elif robot == "quadruped":
        qpos[:, 2] = rng.uniform(0.3, 2, len(qpos))
        quaternions = rng.normal(size=(len(qpos), 4))
        qpos[:, 3:7] = quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)
        qvel[:, :6] = rng.normal(size=(len(qpos), 6)) * 4
    else:
        qpos[:, 9:12] = env.get_attr("position") + rng.normal(size=(len(qpos), 3)) * 0.02 * scale


@pytest.mark.parametrize("env_id", [env_id for env_id in ROBOTS if env_id not in IDS])
def test_rewards_in_wild_states(env_id):
    single, env = gym.make(env_id).unwrapped, make_batched(env_id, 4, seed=0)
    env.reset()
    single.reset()
    rng = np.random.default_rng(0)
    model, data = single.physics.model.ptr, single.physics.data.ptr
    seen = []
    for scale in range(10):
        make_wild(env, rng, scale)
        before = env._batch.state.copy()
        actions = rng.uniform(-1, 1, (4, *single.action_space.shape))
        observations, rewards, *_ = env.step(actions)
        for idx in range(4):
            mujoco.mj_setState(model, data, before[idx], STATE)
            mujoco.mj_forward(model, data)
            # Back to the start of the solver, which mj_forward has moved
            mujoco.mj_setState(model, data, before[idx], STATE)
            observation, reward, *_ = single.step(actions[idx])
            np.testing.assert_array_equal(observations[idx], observation)
            assert rewards[idx] == np.float32(reward)
            # All others are those of dm_control
            assert env_id not in REWARDS or reward == pytest.approx(REWARDS[env_id](single.physics), rel=1e-12)
            seen.append(reward)
    assert np.ptp(seen) > 0.5 and len(set(seen)) > 15, "the states do not tell rewards apart"


def test_gaussian_of_many_numbers_is_rounded_as_that_of_one():
    """Where a square of an array is rounded otherwise than that of a number: one in a thousand."""
    [rewards] = import_physics("dm_control.utils.rewards")
    distances = np.random.default_rng(0).uniform(0, 3, 100_000)
    scaled = distances * np.sqrt(-2 * np.log(0.1))  # as dm_control does: 0.1 at the distance of the margin
    distances = distances[np.array([number**2 for number in scaled.tolist()]) != scaled**2]
    batched = rewards.tolerance(distances.view(BatchedArray), margin=1)
    assert batched.tolist() == [rewards.tolerance(distance, margin=1) for distance in distances] and len(distances) > 20
    with pytest.raises(TypeError, match="mix simulations"):
        np.vstack([distances.view(BatchedArray), distances])


@pytest.mark.parametrize("env_id", IDS)
def test_neither_threads_nor_neighbours_matter(env_id):
    def rollout(n_envs, n_threads):
        env = make_batched(env_id, n_envs, seed=5, n_threads=n_threads)
        assert env.n_threads == min(n_envs, n_threads)
        actions = np.random.default_rng(0).uniform(-1, 1, (20, 7, *env.action_space.shape))
        return np.array([env.reset()[:3], *(env.step(action[:n_envs])[0][:3] for action in actions)])

    expected = rollout(3, 1)
    np.testing.assert_array_equal(rollout(7, 2), expected)
    np.testing.assert_array_equal(rollout(7, 9), expected)


def test_length_of_episodes():
    """Beyond the length of the task, the task ends them."""
    for limit, expected in ((3, 3), (5000, 1000), (None, 1000)):
        assert make_batched("Walker-v0", 1, env_kwargs={"max_episode_steps": limit}).max_episode_steps == expected


@NEEDS_GL
@pytest.mark.parametrize("env_id", ["Quadruped-v0", "Jaco-v0"])
def test_looking_at_one(env_id):
    """Attributes and pictures are those of single environments, and the simulations go on as if nothing had been."""
    options = {"env_kwargs": {"width": 96, "height": 64}}
    env, expected = make_batched(env_id, 2, seed=1, **options), make_vec_env(env_id, 2, seed=1, **options)
    for each in (env, expected):
        each.reset()
        for _ in range(5):
            each.step(np.full((2, *env.action_space.shape), 0.7))
    images = env.get_images()
    assert images[0].shape == (64, 96, 3) and (images[0] != images[1]).any()
    np.testing.assert_array_equal(images, expected.get_images())
    env.set_attr("tag", 5)
    assert env.get_attr("tag") == [5, 5] and env.get_attr("dt") == expected.get_attr("dt") and not env.has_attr("nothing")
    assert env.env_is_wrapped(Monitor) == [True] * 2 == env.env_is_wrapped(TimeLimit)
    np.testing.assert_array_equal(env.env_method("scale_action", 2.0), expected.env_method("scale_action", 2.0))
    env.close()
    actions = np.zeros((2, *env.action_space.shape))
    np.testing.assert_array_equal(env.step(actions)[0], expected.step(actions)[0])


def test_files_of_monitor(tmp_path):
    env = make_batched("Walker-v0", 3, seed=0, env_kwargs={"max_episode_steps": 4}, monitor_dir=str(tmp_path))
    env.reset()
    steps = [env.step(np.ones((3, 6))) for _ in range(8)]
    env.close()
    episodes = [info["episode"] for step in steps for info in step[3] if "episode" in info]
    returns = np.sum([step[1] for step in steps[:4]], axis=0), np.sum([step[1] for step in steps[4:]], axis=0)
    np.testing.assert_allclose([episode["r"] for episode in episodes], np.concatenate(returns), atol=2e-6)
    frame = load_results(str(tmp_path))
    assert len(list(tmp_path.iterdir())) == 3 and sorted(frame["r"]) == sorted(episode["r"] for episode in episodes)


@pytest.mark.parametrize(
    ("env_id", "kwargs", "message"),
    [
        ("Pendulum-v1", {}, "use DummyVecEnv"),
        ("Walker-v0", {"wrapper_class": lambda env: RescaleAction(env, -2, 2)}, "RescaleAction"),
        ("Walker-v0", {"env_kwargs": {"render_mode": "human"}}, "render_mode"),
        ("Walker-v0", {"vec_env_kwargs": {"n_threads": 0}}, "n_threads"),
    ],
)
def test_what_can_not_be_batched(env_id, kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_vec_env(env_id, 2, vec_env_cls=batch_envs, **kwargs)


def test_training_goes_on_after_a_diverged_simulation(tiny):
    env = make_batched("Walker-v0", 2, seed=0)
    step_wait, n_steps = env.step_wait, []

    def spoilt():
        n_steps.append(None)
        if len(n_steps) == 30:
            blow_up(env, 1)
        return step_wait()

    env.step_wait = spoilt
    model = CeSD("MlpPolicy", env, **tiny).learn(120)
    assert model.replay_buffer.dones[29].tolist() == [0, 1]
    assert np.isfinite(model.replay_buffer.rewards).all() and model._n_updates > 0


@pytest.mark.filterwarnings("error")
def test_other_algorithms_normalisation_and_evaluation():
    def make(n_envs):
        return VecNormalize(make_batched("Walker-v0", n_envs, env_kwargs={"max_episode_steps": 20}))

    callback = EvalCallback(make(2), n_eval_episodes=4, eval_freq=16, verbose=0)
    model = PPO("MlpPolicy", make(4), n_steps=32, batch_size=32, n_epochs=1, device="cpu").learn(256, callback=callback)
    assert model.ep_info_buffer[0]["l"] == 20 and 0 < callback.last_mean_reward < 20
