"""What SB3's own tests ask of each of its algorithms."""

import numpy as np
import pytest
from every_method import each_kind
from learned import differences
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise
from stable_baselines3.common.vec_env import DummyVecEnv, VecFrameStack, VecMonitor
from tuning import Push

from sb3_cesd import VecSkillObservation

OBS = np.array([[0.1, -0.5, 2.0], [0.9, 0.3, -1.0]], np.float32)


@each_kind
def test_the_same_seed_gives_the_same_returns(method):
    returns = []
    for _ in range(2):
        model = make_small(method, seed=5).learn(80)
        env = make_vec_env("Pendulum-v1", seed=3)
        returns.append(evaluate_policy(model, env, 4, return_episode_rewards=True)[0])
    assert returns[0] == returns[1] and len(set(returns[0])) == 4


@each_kind
def test_parameters_are_set_in_part_or_as_a_whole(method):
    first, second = make_small(method, seed=1).learn(60), make_small(method, seed=2).learn(60)
    parameters = first.get_parameters()
    second.set_parameters({"policy": parameters["policy"]}, exact_match=False)
    assert (
        second.predict(OBS, skill=1, deterministic=True)[0] == first.predict(OBS, skill=1, deterministic=True)[0]
    ).all() and differences(first, second)
    second.set_parameters(parameters)
    assert not differences(first, second)
    with pytest.raises(ValueError, match="Names of parameters do not match"):
        second.set_parameters({"policy": parameters["policy"]})
    with pytest.raises(RuntimeError, match="Missing key"):
        second.set_parameters({**parameters, "policy": dict(list(parameters["policy"].items())[1:])})
    with pytest.raises(ValueError, match="Key unknown is an invalid object name"):
        second.set_parameters({"unknown": {}}, exact_match=False)


@each_kind
def test_what_is_left_out_of_a_file_is_as_by_default(method, tmp_path):
    model = make_small(method, verbose=2)
    model.save(tmp_path / "model", exclude=["verbose"])
    for env in (None, "Pendulum-v1"):
        loaded = method.load(tmp_path / "model", env, device="cpu")
        assert loaded.verbose == 0 and not differences(model, loaded)
    assert loaded.learn(60)._n_updates > 0
    model.save(tmp_path / "model", exclude=["verbose"], include=["verbose"])
    assert method.load(tmp_path / "model", device="cpu").verbose == 2


@each_kind
def test_predictions_on_single_and_vectorised_observations(method):
    model = make_small(method)
    action, state = model.predict(OBS[0])
    assert isinstance(action, np.ndarray) and action.shape == (1,) and model.action_space.contains(action)
    for n_envs in (1, 3):
        env = make_vec_env("Pendulum-v1", n_envs)
        actions, state = model.predict(env.reset(), deterministic=True)
        assert actions.shape == (n_envs, 1)
        again, _ = model.predict(env.reset(), state, np.zeros(n_envs, bool))
        assert again.shape == (n_envs, 1)
    # Predictions leave the mode of a policy in evaluation, and need no gradient
    assert not model.actor.training and action.dtype == np.float32


@each_kind
@pytest.mark.parametrize("noise_class", [None, OrnsteinUhlenbeckActionNoise])
@pytest.mark.parametrize("train_freq", [(4, "step"), (1, "episode")])
def test_noise_and_frequencies_of_training(method, noise_class, train_freq):
    noise = None if noise_class is None else noise_class(np.zeros(1), 0.1 * np.ones(1))
    model = make_small(method, Push(), train_freq=train_freq, gradient_steps=1, action_noise=noise, learning_starts=20).learn(
        80
    )
    assert model._n_updates == {True: 3, False: 15}[train_freq == (1, "episode")]


@each_kind
@pytest.mark.parametrize("wrap", [VecMonitor, lambda env: VecFrameStack(env, 2)])
def test_wrappers_of_vectorised_environments(method, wrap):
    env = wrap(DummyVecEnv([Push] * 2))
    model = make_small(method, env).learn(80)
    assert isinstance(model.env, VecSkillObservation) and model.env.venv is env and model._n_updates > 0
    assert bool(model.ep_info_buffer) == (wrap is VecMonitor)
