"""Batched environments against DummyVecEnv, which steps single ones: every number is the same to the last bit."""

import mujoco
import numpy as np
import pytest
from formulas import REWARDS
from sb3_cesd.envs.robots.batched_array import BatchedArray
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import make_batched
from sb3_cesd.envs.robots.gl import import_physics
from sb3_cesd.envs.robots.vec_env import RobotVecEnv

#: Each robot with one of its tasks, as others have the same episodes
ROBOTS = ["Walker-v0", "WalkerRun-v0", "Quadruped-v0", "QuadrupedRun-v0", "Jaco-v0", "JacoReachTopLeft-v0"]
STATE = mujoco.mjtState.mjSTATE_INTEGRATION


def assert_same_step(step, expected):
    for value, expected_value in zip(step[:3], expected[:3], strict=True):
        np.testing.assert_array_equal(value, expected_value)
        assert value.dtype == expected_value.dtype
    assert len(step[3]) == len(expected[3])
    for info, expected_info in zip(step[3], expected[3], strict=True):
        assert info.keys() == expected_info.keys()
        assert info["TimeLimit.truncated"] is expected_info["TimeLimit.truncated"]
        if "episode" in info:
            np.testing.assert_array_equal(info["terminal_observation"], expected_info["terminal_observation"])
            assert info["terminal_observation"].dtype == np.float32
            assert info["episode"].pop("t") > 0 and expected_info["episode"].pop("t") > 0
            assert info["episode"] == expected_info["episode"]


@pytest.mark.parametrize("env_id", ROBOTS)
def test_whole_episode_and_the_start_of_the_next(env_id):
    length = 250 if env_id.startswith("Jaco") else 1000
    expected, env = make_vec_env(env_id, 2, seed=3), make_batched(env_id, 2, seed=3, n_threads=2)
    assert env.observation_space == expected.observation_space and env.action_space == expected.action_space
    np.testing.assert_array_equal(env.reset(), expected.reset())
    rng = np.random.default_rng(0)
    for step in range(1, length + 21):
        # Beyond the bounds too, where they are clipped
        actions = rng.uniform(-1.2, 1.2, (2, *env.action_space.shape)).astype(np.float32)
        result = env.step(actions)
        assert_same_step(result, expected.step(actions))
        assert result[2].all() == result[2].any() == (step == length)
        if step in (1, length // 2, length, length + 1):
            np.testing.assert_array_equal(env.get_attr("position"), expected.get_attr("position"))
    env.close()
    expected.close()


def make_wild(domain, env, rng, scale):
    """Thrown into the air, spinning, upside down; the brick of the arm near the hand, to far away as the scale grows."""
    qpos, qvel = env._batch._batch.bind("qpos"), env._batch._batch.bind("qvel")
    if domain == "walker":
        qpos[:] = rng.uniform(-1, 1, qpos.shape) * [0.3, 3, 3, 1, 1, 1, 1, 1, 1]
        qvel[:] = rng.normal(size=qvel.shape) * [3, 8, 10, 3, 3, 3, 3, 3, 3]
    elif domain == "quadruped":
        qpos[:, 2] = rng.uniform(0.3, 2, len(qpos))
        quaternions = rng.normal(size=(len(qpos), 4))
        qpos[:, 3:7] = quaternions / np.linalg.norm(quaternions, axis=1, keepdims=True)
        qvel[:, :6] = rng.normal(size=(len(qpos), 6)) * 4
    else:
        qpos[:, 9:12] = env.position + rng.normal(size=(len(qpos), 3)) * 0.02 * scale


@pytest.mark.parametrize("env_id", REWARDS)
def test_wild_states(env_id):
    """In which the tasks differ; rewards as numbers of 64 bits."""
    single, env = make_vec_env(env_id, 1).envs[0].unwrapped, make_batched(env_id, 4, seed=0)
    env.reset()
    single.reset()
    rng = np.random.default_rng(0)
    model, data = single.physics.model.ptr, single.physics.data.ptr
    seen = []
    for scale in range(12):
        make_wild(single.domain, env, rng, scale)
        before = env._batch._batch.state.copy()
        actions = rng.uniform(-1, 1, (4, *single.action_space.shape))
        observations, rewards, _ = env._batch.step(single.scale_action(actions))
        for idx in range(4):
            mujoco.mj_setState(model, data, before[idx], STATE)
            mujoco.mj_forward(model, data)
            # Back to the start of the solver, which mj_forward has moved
            mujoco.mj_setState(model, data, before[idx], STATE)
            observation, reward, *_ = single.step(actions[idx])
            np.testing.assert_array_equal(observations[idx], observation)
            assert rewards[idx] == reward
            seen.append(reward)
    assert np.ptp(seen) > 0.5 and len(set(seen)) > 15, "the states do not tell rewards apart"
    env.close()
    single.close()


def test_gaussian_of_many_numbers_is_rounded_as_that_of_one():
    """Where a square of an array is rounded otherwise than that of a number: one in a thousand."""
    [rewards] = import_physics("dm_control.utils.rewards")
    distances = np.random.default_rng(0).uniform(0, 3, 200_000)
    scaled = distances * np.sqrt(-2 * np.log(0.1))  # as dm_control does: 0.1 at the distance of the margin
    distances = distances[np.array([number**2 for number in scaled.tolist()]) != scaled**2]
    batched = rewards.tolerance(distances.view(BatchedArray), margin=1)
    assert batched.tolist() == [rewards.tolerance(distance, margin=1) for distance in distances]
    assert (np.asarray(batched) != rewards.tolerance(distances, margin=1)).any() and len(distances) > 50
    assert rewards.tolerance(np.zeros(3).view(BatchedArray), margin=1).tolist() == [1.0, 1.0, 1.0]


def test_functions_of_batched_arrays_treat_each_simulation_alone():
    """The last axis is that of the simulations: no function mixes them."""
    rng = np.random.default_rng(0)
    vectors, matrices = rng.normal(size=(3, 50)), rng.normal(size=(2, 3, 50))
    norms = np.linalg.norm(vectors.view(BatchedArray))
    assert norms.tolist() == [np.linalg.norm(vector) for vector in vectors.T]
    joined = np.hstack([vectors.view(BatchedArray), matrices.view(BatchedArray).ravel()])
    for idx in range(50):
        np.testing.assert_array_equal(np.asarray(joined)[:, idx], np.hstack([vectors[:, idx], matrices[..., idx].ravel()]))
    powers = matrices.view(BatchedArray) ** 3
    assert powers.tolist() == [[[number**3 for number in row] for row in matrix] for matrix in matrices.tolist()]
    chosen = np.where(vectors.view(BatchedArray) > 0, vectors, 0.0)
    assert chosen.tolist() == np.where(vectors > 0, vectors, 0.0).tolist()
    assert all(isinstance(result, BatchedArray) for result in (norms, joined, powers, chosen))
    # One that might mix them is refused
    with pytest.raises(
        TypeError, match=r"vstack might mix simulations: add to BATCHED_FUNCTIONS what it does to each of them\.$"
    ):
        np.vstack([vectors.view(BatchedArray), vectors])


@pytest.mark.parametrize("domain", ["Walker-v0", "Quadruped-v0", "Jaco-v0"])
def test_neither_threads_nor_neighbours_matter(domain):
    def rollout(n_envs, n_threads):
        env = make_batched(domain, n_envs, seed=5, n_threads=n_threads)
        actions = np.random.default_rng(0).uniform(-1, 1, (40, 7, *env.action_space.shape))
        return np.array([env.reset()[:3], *(env.step(action[:n_envs])[0][:3] for action in actions)])

    expected = rollout(3, 1)
    np.testing.assert_array_equal(rollout(7, 2), expected)
    np.testing.assert_array_equal(rollout(7, 5), expected)


@pytest.mark.parametrize("env_id", ["Walker-v0", "Quadruped-v0", "Jaco-v0"])
def test_seeds_are_used_once_and_streams_go_on(env_id):
    expected, env = make_vec_env(env_id, 3), make_batched(env_id, 3)
    shape = (3, *env.action_space.shape)
    starts = []
    for seed in (7, None, None, 2**32 + 2**31 + 50, 7):
        if seed is not None:
            assert env.seed(seed) == expected.seed(seed) == [seed, seed + 1, seed + 2]
        starts.append(env.reset())
        np.testing.assert_array_equal(starts[-1], expected.reset())
        for _ in range(3):  # an episode may be left before its end
            env.step(np.ones(shape))
            expected.step(np.ones(shape))
    assert len(np.unique(np.concatenate(starts[:4]), axis=0)) == 12
    np.testing.assert_array_equal(starts[4], starts[0])


def test_without_a_seed_every_environment_has_its_own():
    observations = np.concatenate([RobotVecEnv(make_vec_env("Walker-v0").envs[0].env, 3).reset() for _ in range(2)])
    assert len(np.unique(observations, axis=0)) == 6


def test_returned_arrays_and_infos_stay_as_they_are():
    env = make_batched("Walker-v0", 2, seed=0, env_kwargs={"max_episode_steps": 2})
    kept = [env.reset(), env.get_attr("position")[0]]
    for _ in range(2):
        observations, rewards, dones, infos = env.step(np.ones((2, 6)))
        kept += [observations, rewards, dones]
    kept += [infos[0]["terminal_observation"], env.position]
    copies = [array.copy() for array in kept]
    for _ in range(5):
        env.step(np.full((2, 6), -0.5))
    for array, copy in zip(kept, copies, strict=True):
        np.testing.assert_array_equal(array, copy)


def test_shorter_episodes():
    """Gymnasium's TimeLimit counts; beyond the length of the task, the task does."""
    env = make_batched("Walker-v0", 2, env_kwargs={"max_episode_steps": 3})
    env.reset()
    dones = [env.step(np.zeros((2, 6)))[2].all() for _ in range(7)]
    assert dones == [False, False, True, False, False, True, False]
    assert make_batched("Walker-v0", 1, env_kwargs={"max_episode_steps": 5000}).max_episode_steps == 1000
    assert make_batched("Quadruped-v0", 1, env_kwargs={"max_episode_steps": None}).max_episode_steps == 1000


def test_looking_does_not_disturb():
    """Physics and pictures are made from copies: the simulation goes on as if nothing had happened."""
    first, second = (make_batched("Quadruped-v0", 2, seed=1) for _ in range(2))
    first.reset()
    second.reset()
    rng = np.random.default_rng(0)
    for _ in range(60):
        actions = rng.uniform(-1, 1, (2, 12))
        first.get_attr("physics")[0].data.qpos[:] = 0
        first.env_method("scale_action", actions[0])
        np.testing.assert_array_equal(first.step(actions)[0], second.step(actions)[0])
