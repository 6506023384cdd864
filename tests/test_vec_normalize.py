import warnings

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from spaces_to_learn_in import RandomEnv
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecNormalize

from sb3_cesd import CeSD, SkillOptions
from sb3_cesd.export import export_policy


def normalized(n_envs=1, **kwargs):
    return VecNormalize(make_vec_env("Pendulum-v1", n_envs), **kwargs)


@pytest.mark.parametrize("n_envs", [1, 3])
def test_observations_are_stored_raw_and_sampled_normalised(make_model, n_envs):
    env = normalized(n_envs)
    model = make_model(env, learning_starts=1000).learn(450)
    n_rows = 450 // n_envs
    stored = model.replay_buffer.observations["observation"][:n_rows].reshape(-1, 3)
    # cos and sin of an angle, and a velocity up to 8
    assert np.hypot(stored[:, 0], stored[:, 1]) == pytest.approx(1.0, abs=1e-5) and np.abs(stored[:, 2]).max() > 2
    stored_next = model.replay_buffer.next_observations["observation"][:n_rows].reshape(-1, 3)
    assert np.hypot(stored_next[:, 0], stored_next[:, 1]) == pytest.approx(1.0, abs=1e-4)
    assert (model.replay_buffer.rewards[:n_rows] < -1.5).any(), "rewards are stored as they are"
    samples = model.replay_buffer.sample(400, env=env)
    assert samples.observations.mean(dim=0).abs().max() < 0.5
    assert samples.observations.std(dim=0).numpy() == pytest.approx(1.0, abs=0.5)
    assert env.obs_rms.mean.shape == (3,), "the skill is not normalised"


def test_pictures_beside_normalised_vectors_are_stored_as_the_policy_sees_them(make_model):
    """Their channels come last inside of VecNormalize."""
    space = spaces.Dict({"camera": spaces.Box(0, 255, (36, 40, 3), np.uint8), "speed": spaces.Box(-1, 1, (2,))})
    env = VecNormalize(DummyVecEnv([lambda: RandomEnv(space)] * 2), norm_obs_keys=["speed"])
    model = make_model(env, policy_kwargs={"net_arch": [8]}, learning_starts=20).learn(30)
    assert model._n_updates > 0
    newest = model.replay_buffer.next_observations["camera"][model.replay_buffer.pos - 1]
    assert (newest == model._last_obs["camera"]).all() and newest.shape == (2, 3, 36, 40)


def test_a_wrapper_that_stacks_around_it_is_refused(make_model):
    make_model(VecNormalize(VecFrameStack(make_vec_env("Pendulum-v1"), 3))).learn(50)
    with pytest.raises(ValueError, match="put it inside"):
        make_model(VecFrameStack(normalized(), 3)).learn(50)


def test_evaluation_synchronises_the_statistics(make_model):
    env, eval_env = normalized(), normalized(training=False, norm_reward=False)
    make_model(env).learn(100, callback=EvalCallback(eval_env, eval_freq=100, n_eval_episodes=1, verbose=0))
    assert eval_env.obs_rms.mean == pytest.approx(env.obs_rms.mean)


def test_it_is_changed_through_the_environment_of_the_model(make_model):
    """As it is of SB3's algorithms, around whose environments nothing is wrapped."""
    env = normalized()
    model = make_model(env)
    model.get_env().training = model.get_env().norm_reward = False
    assert not (env.training or env.norm_reward)
    model.get_env().reset()
    assert env.obs_rms.count < 1


@pytest.fixture
def trained(make_model, tmp_path):
    """A normalised model in a file, and its statistics."""
    model = make_model(normalized()).learn(100)
    model.save(tmp_path / "model.zip")
    return tmp_path / "model.zip", model.get_vec_normalize_env()


@pytest.mark.parametrize("env", [None, "Pendulum-v1"])
@pytest.mark.parametrize(
    "use",
    [
        lambda model, **kwargs: export_policy(model, "unwritten", **kwargs),
        lambda model, **kwargs: SkillOptions(gym.make("Pendulum-v1"), model, duration=2, **kwargs),
    ],
    ids=["export", "options"],
)
def test_statistics_that_are_missing_are_asked_for(trained, use, env):
    path, statistics = trained
    model = CeSD.load(path, env=env, device="cpu")
    for kwargs in ({}, {"vec_normalize": normalized(norm_obs=False)}, {"vec_normalize": normalized()}):
        with pytest.raises(ValueError, match="vec_normalize"):
            use(model, **kwargs)
    others = VecNormalize(make_vec_env("MountainCarContinuous-v0"))
    others.obs_rms.count = 10
    with pytest.raises(ValueError, match="pass those of training"):
        use(CeSD.load(path, env=statistics, device="cpu"), vec_normalize=others)


def test_learning_on_with_other_normalisation_warns(trained, make_model):
    path, statistics = trained
    for env in ("Pendulum-v1", normalized()):
        with pytest.warns(UserWarning, match="VecNormalize"):
            CeSD.load(path, env, device="cpu").learn(20, reset_num_timesteps=False)
    plain = make_model().learn(60)
    plain.set_env(normalized())
    with pytest.warns(UserWarning, match="VecNormalize"):
        plain.learn(20, reset_num_timesteps=False)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        CeSD.load(path, statistics, device="cpu").learn(60, reset_num_timesteps=False)
        make_model(normalized()).learn(60).learn(60)
