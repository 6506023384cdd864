"""``VecNormalize`` inside of the skill and around it."""

import numpy as np
import pytest
import torch as th
from every_method import each_kind
from learned import differences, parameters_of
from small import make_small
from stable_baselines3.common.callbacks import CheckpointCallback, EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.vec_env import VecNormalize, sync_envs_normalization, unwrap_vec_normalize
from tuning import Push

from sb3_cesd import CeSD, VecSkillObservation


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


def _means(statistics):
    return [each.mean for each in (statistics.values() if isinstance(statistics, dict) else [statistics])]


@pytest.mark.parametrize("wrap", [inside, outside])
def test_loads_evaluates_and_learns_on(wrap, tmp_path):
    skill_space = make_small(CeSD).skill_space
    model = make_small(CeSD, wrap(make_vec_env("Pendulum-v1", 2), skill_space))
    evaluation = wrap(make_vec_env("Pendulum-v1"), skill_space, training=False, norm_reward=False)
    checkpoint = CheckpointCallback(100, str(tmp_path), save_vecnormalize=True, save_replay_buffer=True)
    callback = EvalCallback(evaluation, eval_freq=100, n_eval_episodes=1, verbose=0)
    model.learn(200, callback=[checkpoint, callback])
    statistics = model.get_vec_normalize_env().obs_rms
    assert len(_means(statistics)) == 1, "none of the skill"
    env = wrap(make_vec_env("Pendulum-v1", 2), skill_space)
    loaded = CeSD.load(tmp_path / "rl_model_200_steps", env, device="cpu")
    loaded.load_replay_buffer(tmp_path / "rl_model_replay_buffer_200_steps")
    for each in (loaded.env, evaluation):
        sync_envs_normalization(model.env, each)
        (mean,), (expected,) = _means(unwrap_vec_normalize(each).obs_rms), _means(statistics)
        assert (mean == expected).all() and np.abs(mean).max() > 0
    assert np.isfinite(evaluate_policy(loaded, evaluation, 1)[0])
    assert loaded.learn(60, reset_num_timesteps=False)._n_updates > model._n_updates
