"""How environments were made."""

import gymnasium as gym
import pytest
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_cesd.common.vec_env import arguments_of, env_name, env_spec


class Unregistered(gym.Env):
    observation_space = gym.spaces.Box(-1, 1, (2,))
    action_space = gym.spaces.Box(-1, 1, (1,))


def test_spec_and_name():
    pendulum = make_vec_env("Pendulum-v1", 2, env_kwargs={"g": 9.0, "render_mode": "rgb_array"})
    spec = env_spec(pendulum)
    assert spec.id == env_name(pendulum) == "Pendulum-v1" and arguments_of(spec) == {"g": 9.0}
    unregistered = DummyVecEnv([Unregistered])
    assert env_spec(unregistered) is None and env_name(unregistered) == "Unregistered"


@pytest.mark.parametrize(("given", "kept"), [(200, {}), (7, {"max_episode_steps": 7}), (-1, {"max_episode_steps": -1})])
def test_another_environment_has_episodes_as_long(given, kept):
    spec = gym.make("Pendulum-v1", max_episode_steps=given, render_mode="rgb_array").spec
    assert arguments_of(spec) == kept
    assert gym.make(spec.id, **arguments_of(spec)).spec.max_episode_steps == spec.max_episode_steps
