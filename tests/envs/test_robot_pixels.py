"""Robots that observe pictures of themselves."""

import cloudpickle
import gymnasium as gym
import numpy as np
import pytest
from opengl import NEEDS_GL
from stable_baselines3.common.env_checker import check_env
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import make_batched
from sb3_cesd.envs.registration import HORIZONS, PIXEL_ENVS, ROBOTS, pixels_id
from sb3_cesd.envs.robots.locomotion import mujoco

pytestmark = [NEEDS_GL, pytest.mark.filterwarnings("ignore:The minimal resolution for an image is 36x36")]
ONE_OF_EACH = {"WalkerStandPixels-v0": 0, "QuadrupedPixels-v0": 2, "JacoPixels-v0": 0}


def test_ids():
    assert {pixels_id(env_id) for env_id in ROBOTS} < set(PIXEL_ENVS) and "WalkerFlipPixels-v0" in PIXEL_ENVS
    for env_id, (domain, _) in ROBOTS.items():
        assert gym.spec(pixels_id(env_id)).max_episode_steps == HORIZONS[domain] // 2


@pytest.mark.parametrize("env_id", [*ONE_OF_EACH, "SkillAntPixels-v0"])
def test_pictures_are_of_each_state_without_what_costs_time(env_id):
    env = gym.make(env_id, image_size=16).unwrapped
    check_env(env, skip_render_check=True)
    assert env.observation_space == gym.spaces.Box(0, 255, (16, 16, 3), np.uint8)
    first, _ = env.reset(seed=0)
    kept = first.copy()
    seen = env.step(np.ones(env.action_space.shape))[0]
    assert (first == kept).all() and (seen != first).any() and seen.std() > 5
    if env_id in ONE_OF_EACH:  # as with Gymnasium's robots, the ant's renderer is gone for good
        env.close()
    for each in (env, cloudpickle.loads(cloudpickle.dumps(env))):
        assert (each.reset(seed=0)[0] == first).all()
        each.close()
    model = env.model if env_id.startswith("Skill") else env.physics.model
    assert not model.light_castshadow.any() and not model.mat_reflectance.any() and model.vis.quality.offsamples == 0


@pytest.mark.parametrize("env_id", ONE_OF_EACH)
def test_states_and_cameras_are_those_of_the_robot(env_id):
    """Of two steps with an action, whose rewards are added."""
    env, plain = gym.make(env_id, image_size=24), gym.make(env_id.replace("Pixels", ""))
    seen = env.reset(seed=3)[0]
    plain.reset(seed=3)
    assert env.unwrapped.dt == 2 * plain.unwrapped.dt
    for _ in range(5):
        action = env.action_space.sample()
        seen, reward, *ends, _ = env.step(action)
        steps = [plain.step(action) for _ in range(2)]
        assert reward == steps[0][1] + steps[1][1] and ends == [False, False]
        assert (env.unwrapped.position == plain.unwrapped.position).all()
    # What dm_control draws of the other simulation, with shadows and all
    expected = plain.unwrapped.physics.render(24, 24, camera_id=ONE_OF_EACH[env_id])
    assert np.abs(seen.astype(float) - expected).mean() < 25 < np.abs(seen[:, ::-1].astype(float) - expected).max()
    env.close()
    plain.close()


def test_larger_images_can_be_rendered():
    env = gym.make("WalkerPixels-v0", render_mode="rgb_array", width=700, height=500)
    env.reset(seed=0)
    assert env.render().shape == (500, 700, 3)
    env.close()


def test_no_picture_is_drawn_of_a_diverged_simulation():
    env = gym.make("WalkerPixels-v0", image_size=16)
    seen, _ = env.reset(seed=0)
    env.unwrapped.physics.data.qvel[0] = 1e12
    last, reward, terminated, *_ = env.step(np.zeros(6))
    assert terminated and reward == 0.0 and (last == seen).all()
    assert not env.unwrapped.reset()[1] and not env.step(np.zeros(6))[2]
    env.close()


def test_the_floor_tells_where_the_ant_is():
    env = gym.make("SkillAntPixels-v0").unwrapped
    env.reset(seed=0)
    colors = []
    for x, y in ((0, 0), (10, 0), (0, 10)):
        env.data.qpos[:2] = x, y
        mujoco.mj_forward(env.model, env.data)
        colors.append(env.take_picture()[:8].reshape(-1, 3).mean(axis=0))
    by_x, by_y = np.abs(np.array(colors[1:]) - colors[0])
    assert max(by_x[:2]) > 10 and max(by_y[:2]) > 10 and by_x[:2].argmax() != by_y[:2].argmax()
    assert env.reset(seed=1)[0].shape == (64, 64, 3)
    env.close()


def test_pixels_are_not_batched():
    with pytest.raises(ValueError, match="DummyVecEnv"):
        make_batched("WalkerPixels-v0", 2)
    env = make_vec_env("WalkerPixels-v0", 2, env_kwargs={"image_size": 16})
    assert env.reset().shape == (2, 16, 16, 3)
    env.close()
