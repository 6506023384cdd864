"""Observations of any kind: dictionaries of vectors, images, stacks of frames, doubles and integers."""

import numpy as np
import pytest
from gymnasium import spaces
from learned import assert_predict_alike, differences
from small import make_small
from spaces_to_learn_in import RandomEnv
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.preprocessing import get_flattened_obs_dim
from stable_baselines3.common.vec_env import VecFrameStack, VecTransposeImage
from tuning import saved

from sb3_cesd import CeSD, VecSkillObservation
from sb3_cesd.metrics import collect_rollouts, play_and_measure, play_and_score
from sb3_cesd.registry import METHODS

FIRST = spaces.Box(0, 255, (3, 36, 36), np.uint8)
LAST = spaces.Box(0, 255, (36, 36, 3), np.uint8)
SPACES = {
    "vectors": spaces.Dict({"position": spaces.Box(-5, 5, (2,)), "velocity": spaces.Box(-1, 1, (3,))}),
    "one entry": spaces.Dict({"position": spaces.Box(-5, 5, (4,))}),
    "channels first": FIRST,
    "channels last": LAST,
    "image and vector": spaces.Dict({"camera": LAST, "speed": spaces.Box(-1, 1, (2,))}),
    "matrix": spaces.Box(-1, 1, (2, 3)),
    "double": spaces.Box(-1, 1, (3,), np.float64),
    "integer": spaces.Box(-9, 9, (3,), np.int64),
    "byte": spaces.Box(0, 9, (3,), np.uint8),
}
#: All spaces for one method, and two for others
METHODS_AND_SPACES = [
    *((CeSD, name) for name in SPACES),
    *((METHODS[method], name) for method in ("aps", "metra") for name in ("vectors", "image and vector")),
]
TINY = {"buffer_size": 200, "batch_size": 16, "policy_kwargs": {"net_arch": [8]}}


def make_env(name, n_envs=1):
    return make_vec_env(lambda: RandomEnv(SPACES[name]), n_envs)


def samples_of(name, n):
    """Several observations as an environment returns them."""
    space = SPACES[name]
    space.seed(1)
    samples = [space.sample() for _ in range(n)]
    if isinstance(space, spaces.Dict):
        return {key: np.stack([sample[key] for sample in samples]) for key in space.spaces}
    return np.stack(samples)


@pytest.mark.parametrize(("method", "name"), METHODS_AND_SPACES)
def test_learns_predicts_and_loads(method, name):
    model = make_small(method, make_env(name, 2), **TINY).learn(60)
    assert model._n_updates > 0 and model.obs_dim == get_flattened_obs_dim(SPACES[name])
    loaded = method.load(saved(model), make_env(name), device="cpu", buffer_size=100)
    assert not differences(model, loaded)
    assert_predict_alike(model, loaded, samples_of(name, 3))
    assert loaded.learn(46).num_timesteps == 46


@pytest.mark.filterwarnings("ignore:Training and eval env are not of the same type")
@pytest.mark.parametrize(("method", "name"), METHODS_AND_SPACES)
def test_fine_tunes_and_evaluates(method, name):
    """Also where only the environments of training have their images transposed."""
    pretrained = make_small(method, make_env(name), **TINY).learn(50)
    model = method.from_pretrained(saved(pretrained), make_env(name), skill="best", learning_starts=40, device="cpu")
    callback = EvalCallback(make_env(name), eval_freq=30, n_eval_episodes=2, verbose=0)
    model.learn(60, callback=callback)
    assert model._n_updates > 0 and callback.n_calls == 60
    for env in (make_env(name), VecSkillObservation(make_env(name), model.skill_space)):
        assert np.isfinite([callback.last_mean_reward, evaluate_policy(model, env, 2)[0]]).all()


images_with_channels_last = pytest.mark.parametrize("name", ["channels last", "image and vector"])


@images_with_channels_last
def test_metrics_are_of_images_as_the_model_observes_them(name):
    """SB3 transposes only the environments of training."""
    model = make_small(CeSD, make_env(name), **TINY).learn(60)
    for measure, kwargs in ((play_and_measure, {"n_rollouts": 2}), (play_and_score, {"n_episodes": 8})):
        results = [measure(model, env, n_steps=5, **kwargs) for env in (make_env(name), VecTransposeImage(make_env(name)))]
        (metrics, rollouts), (expected, expected_rollouts) = results
        assert metrics == expected and (rollouts.observations == expected_rollouts.observations).all()
    env = make_env(name)
    rows = collect_rollouts(model, env, n_rollouts=1, n_steps=1, seed=0).observations[0, 0, :1]
    env.seed(0)
    (image,) = rows[:, :3888].reshape(-1, 3, 36, 36)
    observed = env.reset()
    pixels = observed if name == "channels last" else observed["camera"] / np.float32(255)
    assert (image.transpose(1, 2, 0) == pixels[0]).all()
    assert (model.predict_clusters(rows) == model.predict_clusters(observed)).all()


@pytest.mark.parametrize("name", ["channels last", "vectors", "image and vector"])
def test_frames_of_images_and_dictionaries_are_stacked(name):
    env = VecFrameStack(make_env(name, 2), 2)
    model = make_small(CeSD, env, **TINY).learn(60)
    assert model.obs_dim == 2 * get_flattened_obs_dim(SPACES[name]) and model._n_updates > 0
