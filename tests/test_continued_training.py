"""A loaded model learns on as the one that was saved would have, to the last bit."""

import numpy as np
import pytest
import torch as th
from learned import differences, state_of
from pictures import make_pictures, pixel_model
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import CeSD


class Extractor(BaseFeaturesExtractor):
    """Must be importable, as policies are pickled by name."""

    def __init__(self, observation_space, features_dim=5):
        super().__init__(observation_space, features_dim)
        self.net = th.nn.Sequential(th.nn.Linear(observation_space.shape[0], features_dim), th.nn.Tanh())

    def forward(self, observations):
        return self.net(observations)


def learn_on(model, n_envs, steps=40):
    model.set_env(make_vec_env("Pendulum-v1", n_envs))
    model.set_random_seed(7)
    return model.learn(steps, reset_num_timesteps=False)


@pytest.mark.parametrize(
    ("n_envs", "kwargs"),
    [
        (1, {}),
        (2, {"relabel_kwargs": {"critic": "hindsight", "actor": "random"}, "constraint_kwargs": {"start": 0.9}}),
        (1, {"encoder": "fourier", "encoder_kwargs": {}, "prototype_kwargs": {"learning_rate": 1e-2, "swap": "self"}}),
        (2, {"policy_kwargs": {"net_arch": [8, 8], "features_extractor_class": Extractor}}),
        (2, {"ensemble_size": 2, "learning_rate": lambda progress: 1e-3 * progress}),
    ],
)
def test_learning_on_equals_not_having_stopped(make_model, tmp_path, n_envs, kwargs):
    model = make_model(make_vec_env("Pendulum-v1", n_envs), **kwargs).learn(80)
    model.save(tmp_path / "model.zip")
    model.save_replay_buffer(tmp_path / "buffer.pkl")
    loaded = CeSD.load(tmp_path / "model.zip", env=make_vec_env("Pendulum-v1", n_envs), device="cpu")
    loaded.load_replay_buffer(tmp_path / "buffer.pkl")
    n_updates = model._n_updates
    before = state_of(model)
    first, second = (learn_on(each, n_envs) for each in (model, loaded))
    assert first.num_timesteps == second.num_timesteps >= 120
    assert first._n_updates == second._n_updates >= n_updates + 18
    for name, array in first.replay_buffer._arrays().items():
        assert (array == second.replay_buffer._arrays()[name]).all(), name
    after = state_of(first)
    assert not differences(after, second) and before.keys() == after.keys()
    moved = {path.split(".")[1] for path in differences(before, after) if isinstance(after[path], th.Tensor)}
    assert {"policy", "intrinsic", "actor", "critic"} <= moved, "networks, intrinsic reward and optimizers"


@pytest.mark.parametrize(("buffer_size", "n_collected"), [(1000, 42), (40, 40)])
def test_without_its_transitions_a_model_first_collects_others(make_model, tmp_path, buffer_size, n_collected):
    model = make_model(make_vec_env("Pendulum-v1", 2), learning_starts=40, buffer_size=buffer_size, train_freq=1).learn(80)
    model.save(tmp_path / "model")
    loaded = CeSD.load(tmp_path / "model", make_vec_env("Pendulum-v1", 2), device="cpu")
    n_updates = loaded._n_updates
    with pytest.warns(UserWarning, match="load the replay buffer"):
        loaded.learn(n_collected - 2, reset_num_timesteps=False)
    assert loaded._n_updates == n_updates
    loaded.learn(2, reset_num_timesteps=False)
    assert loaded._n_updates > n_updates


@pytest.mark.parametrize("total_timesteps", [50, 200])
def test_after_a_stop_within_a_step_episodes_begin_anew(total_timesteps):
    """Environments have made the step, but it was not stored."""
    model = pixel_model(CeSD, make_pictures(2, n_stack=2))
    model.learn(total_timesteps, lambda *_: model.num_timesteps < 50).learn(60, reset_num_timesteps=False)
    assert model.num_timesteps == 110 and model.replay_buffer.timeouts[23].all()


def test_after_an_evaluation_in_the_environments_of_training_episodes_begin_anew():
    model = pixel_model(CeSD, make_pictures(2, n_stack=2)).learn(60)
    evaluate_policy(model, model.get_env(), n_eval_episodes=2, warn=False)
    model.learn(10, reset_num_timesteps=False)
    assert model.num_timesteps == 72 and model.replay_buffer.timeouts[29].all()


def test_returns_are_normalised_before_they_are_summed(make_model):
    """Three normalised rewards, each clipped, and not the clip of their sum."""
    env = VecNormalize(make_vec_env("Pendulum-v1"), clip_reward=0.05)
    buffer = make_model(env).learn(120).replay_buffer
    np.random.seed(0)
    samples = buffer.sample(64, env=env)
    raw = env.unnormalize_obs(samples.observations.numpy())
    for obs, ret, discount in zip(raw, samples.rewards, samples.discounts, strict=True):
        time = int(np.abs(buffer.observations["observation"][:120, 0] - obs).sum(axis=1).argmin())
        n_window = round(np.log(discount.item()) / np.log(buffer.gamma))
        rewards = env.normalize_reward(buffer.rewards[time : time + n_window, 0])
        expected = sum(buffer.gamma**step * reward for step, reward in enumerate(rewards))
        assert ret.item() == pytest.approx(expected, rel=1e-4)
    assert samples.rewards.min() < -0.1, "a sum of several clipped rewards"


def test_a_constraint_that_has_started_stays_when_training_goes_on(make_model, tmp_path):
    """A share of more steps has not been reached yet."""
    model = make_model(constraint_kwargs={"start": 0.7}).learn(100)
    model.save(tmp_path / "model.zip")
    loaded = CeSD.load(tmp_path / "model.zip", "Pendulum-v1", device="cpu")
    loaded.replay_buffer = model.replay_buffer
    for continued in (model, loaded):
        seen = []
        continued.learn(100, lambda *_, m=continued, s=seen: s.append(m.critic.use_heads) or True, reset_num_timesteps=False)
        assert continued.num_timesteps == 200 and all(seen[2:]) and continued.intrinsic.is_constrained


def test_a_new_training_explores_before_the_constraint(make_model):
    model = make_model(constraint_kwargs={"start": 0.7}).learn(100)
    seen = []
    model.learn(100, lambda *_: seen.append((model.num_timesteps, model.intrinsic.is_constrained)) or True)
    assert not dict(seen)[60] and dict(seen)[100]
