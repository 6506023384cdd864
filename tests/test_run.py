"""CeSD in the place of SB3's algorithms: it runs, and every run with the same seed is the same."""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from learned import differences, state_of
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.vec_env import SubprocVecEnv

from sb3_cesd import DIAYN, CeSD


class Float64Env(gym.Env):
    """Observes in float64 and has actions that are not symmetric."""

    observation_space = spaces.Box(-5, 5, (3,), np.float64)
    action_space = spaces.Box(np.array([0.0, -3.0], np.float32), np.array([1.0, 5.0], np.float32))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.np_random.uniform(-1, 1, 3), {}

    def step(self, action):
        assert self.action_space.contains(action)
        self.time += 1
        return self.np_random.uniform(-1, 1, 3), 1.0, self.time == 20, False, {}


def test_defaults():
    """Those that docs/departures.md names, and the sizes of the networks."""
    model = CeSD("MlpPolicy", "Pendulum-v1", device="cpu")
    intrinsic = model.intrinsic
    assert (intrinsic.entropy.k, intrinsic.entropy.scale, intrinsic.entropy.log1p) == (8, "std", False)
    assert (intrinsic.prototypes.temperature, intrinsic.prototypes.sinkhorn_temperature) == (0.1, 0.03)
    assert (intrinsic.constraint.count, intrinsic.constraint.start) == ("paper", 0.5)
    assert (intrinsic.relabelling.critic, intrinsic.relabelling.actor) == ("hindsight", "random")
    sizes = [tuple(layer.weight.shape) for layer in model.actor.mu if isinstance(layer, th.nn.Linear)]
    assert sizes == [(256, 11), (256, 256), (1, 256)]
    assert model.critic.trunk[0].weight.shape == (128, 4 + 8) and isinstance(model.critic.trunk[1], th.nn.LayerNorm)
    heads = [tuple(layer.weight.shape) for layer in model.critic.q_networks[0].layers]
    assert heads == [(8, 128, 256), (8, 256, 1)] and len(model.critic.q_networks) == 2


@pytest.mark.parametrize("encoder", ["contrastive", "fourier", "icm", "identity", "temporal"])
@pytest.mark.parametrize("critic", ["cluster", "union", "hindsight"])
def test_every_choice_trains(make_model, encoder, critic):
    encoder_kwargs = {"net_arch": [16], "features_dim": 4} if encoder in ("contrastive", "icm", "temporal") else {}
    model = make_model(
        encoder=encoder,
        encoder_kwargs=encoder_kwargs,
        relabel_kwargs={"critic": critic, "kappa": 1.0, "actor": "random"},
        prototype_kwargs={"swap": "self" if critic == "union" else "next", "learning_rate": 3e-4},
        constraint_kwargs={"count": "paper"},
    )
    before = {
        path: value for path, value in state_of(model).items() if isinstance(value, th.Tensor) and value.is_floating_point()
    }
    model.learn(100)
    after = state_of(model)
    unchanged = before.keys() - differences(before, after)
    # Random features are drawn once; everything else learns
    fixed = ("encoder.weight", "encoder.phase")
    assert all(name.endswith(fixed) for name in unchanged), unchanged
    assert all(th.isfinite(value).all() for value in after.values() if isinstance(value, th.Tensor))


@pytest.mark.parametrize("n_envs", [1, 3])
def test_same_seed_same_run(make_model, n_envs):
    runs = []
    for seed in (3, 3, 4):
        model = make_model(make_vec_env("Pendulum-v1", n_envs), seed=seed).learn(120)
        runs.append((state_of(model), model.replay_buffer.actions[:40].copy(), model.replay_buffer.skills[:40].copy()))
    assert not differences(runs[0][0], runs[1][0]) and differences(runs[0][0], runs[2][0])
    assert (runs[0][1] == runs[1][1]).all() and (runs[0][2] == runs[1][2]).all()
    assert (runs[0][1] != runs[2][1]).any() and (runs[0][2] != runs[2][2]).any()


@pytest.mark.parametrize("n_envs", [1, 4])
def test_one_update_for_every_four_transitions_whatever_the_number_of_environments(make_model, n_envs):
    model = make_model(make_vec_env("Pendulum-v1", n_envs), train_freq=4).learn(200)
    assert model._n_updates == pytest.approx((200 - 40) / 4, abs=2 * n_envs)


def test_the_user_can_set_another_ratio(make_model):
    model = make_model(make_vec_env("Pendulum-v1", 4), train_freq=1, gradient_steps=1).learn(200)
    assert model._n_updates == (200 - 40) // 4
    model = make_model(Float64Env(), train_freq=(1, "episode")).learn(60)
    assert model._n_updates == 20


@pytest.mark.slow
def test_subproc_vec_env_of_robots(make_model):
    # The module in the id lets a child process that starts afresh find it
    env = make_vec_env("sb3_cesd:Walker-v0", 2, vec_env_cls=SubprocVecEnv, vec_env_kwargs={"start_method": "spawn"})
    model = make_model(env).learn(80)
    env.close()
    assert model._n_updates > 0 and np.ptp(model.replay_buffer.observations["observation"][:30], axis=0).max() > 0


def test_float64_observations_and_bounds_that_are_not_symmetric(make_model):
    model = make_model(Float64Env()).learn(100)
    action, _ = model.predict(np.zeros(3))
    assert Float64Env.action_space.contains(action)
    assert model.replay_buffer.dones.sum() == 5


def test_warmup_is_uniform_and_then_noise_is_added(make_model):
    model = make_model(learning_starts=300, train_freq=1000).learn(300)
    actions = model.replay_buffer.actions[:400, 0, 0]
    assert np.histogram(actions[:300], bins=4, range=(-1, 1))[0] == pytest.approx(75, abs=30)
    noisy = make_model(learning_starts=40, exploration_noise=0.5, train_freq=1000).learn(400)
    obs, skills = noisy.replay_buffer.observations["observation"][50:400, 0], noisy.replay_buffer.skills[50:400, 0]
    greedy = noisy.policy.scale_action(noisy.predict(obs, skill=skills)[0])
    noise = noisy.replay_buffer.actions[50:400, 0] - greedy
    assert noise.std() == pytest.approx(0.5, abs=0.1)


def test_action_noise_of_the_user_replaces_ours(make_model):
    model = make_model(exploration_noise=0.5, learning_rate=1e-12, action_noise=NormalActionNoise(np.zeros(1), np.zeros(1)))
    model.learn(120)
    buffer = model.replay_buffer
    greedy, _ = model.predict(buffer.observations["observation"][60:120, 0], skill=buffer.skills[60:120, 0])
    assert buffer.actions[60:120, 0] == pytest.approx(model.policy.scale_action(greedy), abs=1e-4)


def test_target_follows_by_polyak(make_model):
    model = make_model(tau=0.25)
    model.learn(42)
    before = [p.clone() for p in model.critic_target.parameters()]
    model.train(1, 32)
    for old, new, online in zip(before, model.critic_target.parameters(), model.critic.parameters(), strict=True):
        th.testing.assert_close(new, old + 0.25 * (online - old))


@pytest.mark.parametrize("algorithm", [CeSD, DIAYN])
@pytest.mark.parametrize("layer_norm", [True, False])
def test_all_networks_have_the_activation_of_policy_kwargs(algorithm, layer_norm):
    kwargs = {"net_arch": [8, 8], "activation_fn": th.nn.ELU, "layer_norm": layer_norm}
    policy = algorithm("MlpPolicy", "Pendulum-v1", n_skills=4, buffer_size=100, policy_kwargs=kwargs).policy
    for network in (policy.actor, policy.critic, policy.critic_target):
        kinds = {type(module) for module in network.modules()}
        assert th.nn.ELU in kinds and th.nn.ReLU not in kinds
