"""``VecNormalize`` inside of the skill and around it."""

import numpy as np
import pytest
import torch as th
from every_method import each_kind
from learned import differences, parameters_of
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from tuning import Push

from sb3_cesd import VecSkillObservation


def inside(env, skill_space, **kwargs):
    return VecSkillObservation(VecNormalize(env, **kwargs), skill_space, skill_duration=7)


def outside(env, skill_space, **kwargs):
    env = VecSkillObservation(env, skill_space, skill_duration=7)
    return VecNormalize(env, norm_obs_keys=["observation"], **kwargs)


@each_kind
@pytest.mark.parametrize("norm_reward", [True, False])
def test_both_learn_the_same(method, norm_reward):
    """To the last bit; the skill is left alone by either."""
    skill_space = make_small(method).skill_space
    models = []
    for wrap in (inside, outside):
        env = wrap(make_vec_env(Push, 2), skill_space, norm_reward=norm_reward, clip_obs=1.5)
        models.append(make_small(method, env, skill_duration=7).learn(150))
    first, second = models
    assert not differences(first, second)
    for name, array in first.replay_buffer._arrays().items():
        assert (second.replay_buffer._arrays()[name] == array).all(), name
    assert all(th.isfinite(parameter).all() for parameter in parameters_of(first))
    observation = first.replay_buffer.sample(200, first.get_vec_normalize_env()).observations
    assert np.abs(observation.numpy()).max() == 1.5 and observation.std(dim=0).numpy() == pytest.approx(1.0, abs=0.5)
    assert (first.env.reset()["skill"] == second.env.reset()["skill"]).all()
    assert all(skill_space.box.contains(skill) for skill in second.env.reset()["skill"])
