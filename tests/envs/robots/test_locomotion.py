"""SkillAnt and SkillHalfCheetah: Gymnasium's robots to the last bit, one by one and batched."""

import pickle
import subprocess
import sys

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.error import ClosedEnvironmentError
from opengl import NEEDS_GL
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import DIAYN, make_batched
from sb3_cesd.checkpoints import ResumableCheckpoint, resume
from sb3_cesd.checkpoints.folders import checkpoints_in
from sb3_cesd.checkpoints.resume import remaining_timesteps
from sb3_cesd.envs.robots.ids import LOCOMOTION
from sb3_cesd.envs.robots.locomotion import LocomotionEnv
from sb3_cesd.envs.robots.locomotion_models import MODELS

#: The arguments of METRA's ant; the cost of contacts is left out
ANT = {
    "id": "Ant-v5",
    "include_cfrc_ext_in_observation": False,
    "terminate_when_unhealthy": False,
    "contact_cost_weight": 0.0,
}
OF_GYMNASIUM = {"SkillAnt-v0": ANT, "SkillHalfCheetah-v0": {"id": "HalfCheetah-v5"}}


def places_of(info):
    """What our ``info`` has of Gymnasium's."""
    return {name: info[name] for name in ("x_position", "y_position") if name in info}


@pytest.mark.parametrize("env_id", LOCOMOTION)
def test_numbers_are_those_of_gymnasium(env_id):
    env = gym.make(env_id, normalize=False)
    other = gym.make(**OF_GYMNASIUM[env_id], exclude_current_positions_from_observation=False, max_episode_steps=200)
    assert other.observation_space.shape == env.observation_space.shape
    rng = np.random.default_rng(0)
    lengths, rewards = [], set()
    for seed in (3, None):
        (observation, info), (expected, expected_info) = env.reset(seed=seed), other.reset(seed=seed)
        np.testing.assert_array_equal(observation, expected.astype(np.float32))
        assert info == places_of(expected_info)
        truncated, length = False, 0
        while not truncated:
            action = rng.uniform(-1, 1, env.action_space.shape)
            observation, reward, terminated, truncated, info = env.step(action)
            expected = other.step(action)
            np.testing.assert_array_equal(observation, expected[0].astype(np.float32))
            assert (reward, terminated, truncated) == expected[1:4] and not terminated
            info.pop("TimeLimit.truncated", None)  # Gymnasium's as RL Zoo changes it, once imported
            assert info == places_of(expected[4]) and info["x_position"] != 0
            np.testing.assert_array_equal(env.unwrapped.position[:2], [info["x_position"], info.get("y_position", 0.0)])
            rewards.add(reward)
            length += 1
        lengths.append(length)
    assert lengths == [200, 200] and len(rewards) == 400
    env.close()
    other.close()


@pytest.mark.parametrize("env_id", LOCOMOTION)
def test_the_position_is_that_of_the_torso_in_the_world(env_id):
    env, batched = gym.make(env_id), make_batched(env_id, 2, n_threads=1)
    env.reset(seed=0)
    batched.seed(0)
    batched.reset()
    # Kinematics of the state after the reset
    torso = env.unwrapped.data.body("torso").xpos
    assert env.unwrapped.position == pytest.approx(torso, abs=1e-9) and torso[2] > 0.5
    assert batched.get_attr("position")[0] == pytest.approx(torso, abs=1e-9)
    env.close()
    batched.close()


@pytest.mark.parametrize("env_id", LOCOMOTION)
def test_observations_are_normalised_by_fixed_statistics(env_id):
    env, raw = gym.make(env_id), gym.make(env_id, normalize=False)
    mean, std = MODELS[LOCOMOTION[env_id]].scale
    assert mean.shape == std.shape == env.observation_space.shape
    observations, states = [env.reset(seed=3)[0]], [raw.reset(seed=3)[0]]
    rng = np.random.default_rng(0)
    for _ in range(8):
        for _ in range(50):
            action = rng.uniform(-1, 1, env.action_space.shape)
            observations.append(env.step(action)[0])
            states.append(raw.step(action)[0])
        observations.append(env.reset()[0])
        states.append(raw.reset()[0])
    np.testing.assert_allclose(observations, (np.array(states) - mean) / std, rtol=1e-4, atol=1e-5)
    deviations = np.std(observations, axis=0)
    assert (deviations > 0.3).all() and (deviations < 2).all(), "the statistics of Gymnasium's older robots fit these"
    env.close()
    raw.close()


@pytest.mark.parametrize("normalize", [True, False])
@pytest.mark.parametrize("env_id", LOCOMOTION)
def test_batched_numbers_are_those_of_single_ones(env_id, normalize):
    kwargs = {"normalize": normalize}
    expected = make_vec_env(env_id, 3, seed=3, env_kwargs=kwargs)
    env = make_batched(env_id, 3, seed=3, n_threads=2, env_kwargs=kwargs)
    assert env.observation_space == expected.observation_space and env.action_space == expected.action_space
    np.testing.assert_array_equal(env.reset(), expected.reset())
    assert env.reset_infos == expected.reset_infos and all(places_of(info) for info in env.reset_infos)
    rng = np.random.default_rng(0)
    for step in range(1, 221):
        if step in (60, 90):  # High up, where the ant is not upright; with a state that was read and set
            env.set_state(env.get_state())
            for single in expected.envs:
                single.unwrapped.set_state(single.unwrapped.get_state())
            for idx, single in enumerate(expected.envs):
                single.unwrapped.data.qpos[MODELS[single.unwrapped.robot].place[2]] += step / 30 - 2
                env._batch._batch.bind("qpos")[idx, MODELS[single.unwrapped.robot].place[2]] += step / 30 - 2
        actions = rng.uniform(-1.2, 1.2, (3, *env.action_space.shape)).astype(np.float32)
        observations, rewards, dones, infos = env.step(actions)
        expected_step = expected.step(actions)
        for value, expected_value in zip((observations, rewards, dones), expected_step[:3], strict=True):
            np.testing.assert_array_equal(value, expected_value)
            assert value.dtype == expected_value.dtype
        assert dones.all() == dones.any() == (step == 200)
        np.testing.assert_array_equal(env.position, expected.get_attr("position"))
        for info, expected_info in zip(infos, expected_step[3], strict=True):
            assert info.keys() == expected_info.keys() and places_of(info) == places_of(expected_info)
            if dones.any():
                np.testing.assert_array_equal(info["terminal_observation"], expected_info["terminal_observation"])
                assert info["episode"]["r"] == expected_info["episode"]["r"] and info["episode"]["l"] == 200
        assert env.reset_infos == expected.reset_infos
    env.close()
    expected.close()


@pytest.mark.parametrize("env_id", LOCOMOTION)
def test_diverged_simulations_end_the_episode_alike(env_id):
    batched, single = make_batched(env_id, 2, seed=0), make_vec_env(env_id, 2, seed=0)
    last = batched.reset()
    single.reset()
    actions, last_places = np.zeros((2, *batched.action_space.shape)), batched.reset_infos
    for step in range(5):
        if step == 2:
            state = batched.get_state()
            batched = make_batched(env_id, 2)
            batched.set_state(state)
            for env in single.envs:
                env.unwrapped.set_state(env.unwrapped.get_state())
        if step == 2:
            single.envs[1].unwrapped.data.qvel[0] = 1e12
            batched._batch._batch.bind("qvel")[1, 0] = 1e12
        observations, rewards, dones, infos = batched.step(actions)
        expected = single.step(actions)
        np.testing.assert_array_equal(observations, expected[0])
        np.testing.assert_array_equal(rewards, expected[1])
        assert dones.tolist() == expected[2].tolist() == [False, step == 2]
        if step == 2:
            for info in (infos[1], expected[3][1]):
                [name] = info["physics_warnings"]
                assert name.startswith("mjWARN_BAD") and info["TimeLimit.truncated"] is False
                np.testing.assert_array_equal(info["terminal_observation"], last[1])
                assert places_of(info) == places_of(last_places[1]), "where it was last"
        for info, expected_info in zip(infos, expected[3], strict=True):
            assert places_of(info) == places_of(expected_info)
        last, last_places = observations, infos
    assert batched.get_attr("n_diverged") == single.get_attr("n_diverged") == [0, 1]


@pytest.mark.parametrize("env_id", LOCOMOTION)
def test_environments_of_gymnasium(env_id):
    env = gym.make(env_id)
    check_env(env.unwrapped)
    first = env.reset(seed=0)[0]
    env.close()
    with pytest.raises(ClosedEnvironmentError, match="call reset"):
        env.unwrapped.step(np.zeros(env.action_space.shape))
    np.testing.assert_array_equal(env.reset(seed=0)[0], first)
    copied = pickle.loads(pickle.dumps(env.unwrapped))
    np.testing.assert_array_equal(copied.reset(seed=0)[0], first)
    env.close()
    copied.close()


@NEEDS_GL
@pytest.mark.parametrize("env_id", LOCOMOTION)
def test_images_are_the_same_after_closing_and_copying(env_id):
    env = gym.make(env_id, render_mode="rgb_array", width=64, height=48)
    env.reset(seed=0)
    image = env.render()
    assert image.shape == (48, 64, 3) and np.ptp(image) > 50
    env.close()
    for again in (env, pickle.loads(pickle.dumps(env.unwrapped))):
        again.reset(seed=0)
        np.testing.assert_array_equal(again.render(), image)
        again.close()


@NEEDS_GL
@pytest.mark.parametrize("env_id", LOCOMOTION)
def test_camera_follows_the_robot(env_id):
    def share_of_robot(image):
        """Of pixels that are neither grey nor green, as the floor, the sky and the robot's shadow are."""
        red, _, blue = image.astype(int).transpose(2, 0, 1)
        return (red > blue + 30).mean()

    env = gym.make(env_id, render_mode="rgb_array", width=160, height=120)
    env.reset(seed=0)
    shares = [share_of_robot(env.render())]
    env.unwrapped.data.qpos[0] += 30
    env.step(np.zeros(env.action_space.shape))
    shares.append(share_of_robot(env.render()))
    env.close()
    assert shares[0] > 0.01 and shares[1] == pytest.approx(shares[0], rel=0.5)


@pytest.mark.parametrize("batched", [False, True])
def test_training_resumes_where_it_stopped(batched, tmp_path):
    def make_env():
        return make_batched("SkillAnt-v0", 2, seed=0) if batched else make_vec_env("SkillAnt-v0", 2, seed=0)

    def make_callback(folder):
        return ResumableCheckpoint(tmp_path / folder, save_freq=100)

    arguments = {"n_skills": 2, "learning_starts": 40, "batch_size": 8, "buffer_size": 1000, "seed": 0, "device": "cpu"}
    model = DIAYN("MlpPolicy", make_env(), policy_kwargs={"net_arch": [8]}, **arguments)
    model.learn(220, callback=make_callback("whole"))
    first = checkpoints_in(tmp_path / "whole")[0]
    resumed = resume(first, make_env(), device="cpu")
    assert 0 < resumed.num_timesteps < 220
    resumed.learn(remaining_timesteps(resumed), callback=make_callback("resumed"), reset_num_timesteps=False)
    for value, expected in zip(resumed.policy.parameters(), model.policy.parameters(), strict=True):
        assert (value == expected).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"robot": "horse"}, "Unknown robot 'horse': choose one of ant, half_cheetah"),
        ({"robot": "ant", "render_mode": "x"}, "choose 'rgb_array', 'human' or None"),
        ({"robot": "ant", "width": 0}, "pass a positive width and height"),
        ({"robot": "ant", "camera": "back"}, "There is no camera 'back': choose one of track"),
        ({"robot": "ant", "camera": 7}, "or an index from -1 to 0"),
    ],
)
def test_bad_arguments(arguments, message):
    with pytest.raises(ValueError, match=message):
        LocomotionEnv(**arguments)


def test_warnings_of_mujoco_leave_no_file(tmp_path):
    make = "import gymnasium, sb3_cesd; gymnasium.make('SkillHalfCheetah-v0').reset()"
    subprocess.run([sys.executable, "-c", make], cwd=tmp_path, check=True)
    assert list(tmp_path.iterdir()) == []


def test_each_id_has_a_model():
    assert set(LOCOMOTION.values()) == set(MODELS)
