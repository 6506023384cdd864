"""The critic of all methods that have none of their own, and what of it reaches its target."""

import numpy as np
import pytest
import torch as th
from batches import random_samples
from every_method import every_method, every_method_with
from gymnasium import spaces
from small import make_small
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from sb3_cesd import APT, DADS, DIAYN, CeSD


def observe(model, n=4, seed=0):
    """Observations with skills, in turn."""
    th.manual_seed(seed)
    vectors = model.skill_space.vectors[np.arange(n) % model.n_skills]
    return {"observation": th.randn(n, 3), "skill": th.as_tensor(vectors)}


def test_critic_takes_the_skill_as_an_input():
    critic = make_small(DIAYN).critic
    obs, actions = th.zeros(4, 3), th.zeros(4, 1)
    for q_values in critic.q_values(obs, actions, th.arange(4)):
        assert len(set(q_values.flatten().tolist())) == 4


def test_critic_takes_the_vector_of_a_continuous_skill_as_an_input():
    model = make_small(DADS)
    obs, actions = th.zeros(4, 3), th.zeros(4, 1)
    skills = model.skill_space.draw_tensor(4, th.device("cpu"))
    for q_values in model.critic.q_values(obs, actions, skills):
        assert len(set(q_values.flatten().tolist())) == 4
    alone = model.critic.q_values(obs[:1], actions[:1], skills[2:3])
    for q_values, expected in zip(alone, model.critic.q_values(obs, actions, skills), strict=True):
        th.testing.assert_close(q_values[0], expected[2])


@every_method
def test_calling_the_critic_is_what_it_is_in_td3(method):
    """A tuple of a value per critic, of observations as the environment gives them, and the first of them alone."""
    model = make_small(method).learn(60)
    obs, actions = observe(model), th.rand(4, 1) * 2 - 1
    skills = th.as_tensor(model.skill_space.decode(obs["skill"].numpy()))
    values = model.critic(obs, actions)
    expected = model.critic.q_values(obs["observation"], actions, skills)
    assert isinstance(values, tuple) and len(values) == len(expected) == 2
    for value, expected_value in zip(values, expected, strict=True):
        assert value.shape == (4, 1) and (value == expected_value).all()
    assert (model.critic.q1_forward(obs, actions) == values[0]).all() and (values[0] != values[1]).all()
    others = {**obs, "skill": obs["skill"].roll(1, 0)}
    assert (model.critic(others, actions)[0] != values[0]).all(), "the skill counts"


def test_number_of_critics():
    model = make_small(DIAYN, policy_kwargs={"net_arch": [16], "n_critics": 3}).learn(60)
    assert len(model.critic(observe(model), th.zeros(4, 1))) == 3 and model._n_updates > 0


@every_method
def test_networks_without_layer_norm(method, tmp_path):
    """Plain networks in actor and critic, which are saved and fine-tuned as they are."""
    model = make_small(method, policy_kwargs={"net_arch": [16, 16], "layer_norm": False}).learn(60)
    plain = model.policy
    assert not [layer for layer in plain.modules() if isinstance(layer, th.nn.LayerNorm | th.nn.Tanh)]
    assert [layer for layer in make_small(method).policy.modules() if isinstance(layer, th.nn.LayerNorm)]
    for network in (plain.actor.mu, plain.critic.trunk):
        assert isinstance(network[0], th.nn.Linear) and isinstance(network[1], th.nn.ReLU)
    model.save(tmp_path / "model")
    for loaded in (method.load(tmp_path / "model"), method.from_pretrained(tmp_path / "model", model.get_env())):
        assert loaded.policy.layer_norm is False
        obs = observe(model)
        assert (loaded.policy.actor(obs) == plain.actor(obs)).all()


class Normalized(BaseFeaturesExtractor):
    """With batch normalisation, as in SB3's tests of TD3."""

    def __init__(self, observation_space: spaces.Box, features_dim: int = 4):
        super().__init__(observation_space, features_dim)
        self.layers = th.nn.Sequential(
            th.nn.BatchNorm1d(3), th.nn.Linear(3, features_dim), th.nn.ReLU(), th.nn.BatchNorm1d(features_dim)
        )

    def forward(self, observations):
        return self.layers(observations)


def batch_norm_of(network):
    return {name: value.clone() for name, value in network.state_dict().items() if "running_" in name}


@every_method_with(share=[False, True])
def test_statistics_of_batch_normalisation_reach_the_target(method, share):
    """They are no parameters, so that Polyak averaging leaves them out."""
    kwargs = {"net_arch": [16, 16], "features_extractor_class": Normalized, "share_features_extractor": share}
    # Slow targets: parameters that are copied would be noticed
    model = make_small(method, policy_kwargs=kwargs, tau=1e-3)
    initial = batch_norm_of(model.critic_target)
    assert len(initial) == 4 and not model.critic_target.training
    model.learn(120)
    ours, targets = batch_norm_of(model.critic), batch_norm_of(model.critic_target)
    assert all((value == targets[name]).all() for name, value in ours.items())
    assert all((value != targets[name]).any() for name, value in initial.items())
    weights = model.critic.trunk[0].weight, model.critic_target.trunk[0].weight
    assert (weights[0] != weights[1]).any()
    # Acting and evaluating change nothing
    model.predict(np.zeros((5, 3), np.float32), skill=1)
    model.critic_target(observe(model), th.zeros(4, 1))
    assert all((value == targets[name]).all() for name, value in batch_norm_of(model.critic_target).items())


@every_method
def test_a_target_that_never_moves(method):
    model = make_small(method, tau=0.0)
    before = {name: value.clone() for name, value in model.critic_target.state_dict().items()}
    model.learn(80)
    assert all((value == before[name]).all() for name, value in model.critic_target.state_dict().items())
    assert any((value != before[name]).any() for name, value in model.critic.state_dict().items())


@every_method
def test_without_a_future_values_are_those_of_the_first_reward(method, monkeypatch):
    """The target is the reward of one step, whatever the target critic says."""
    model = make_small(method, gamma=0.0, target_policy_noise=0.0).learn(60)
    samples = model.replay_buffer.sample(200)
    assert (samples.discounts == 0).all()
    rewards = model.replay_buffer.rewards[:60, 0]
    assert np.isin(samples.rewards.numpy().ravel(), rewards).all(), "extrinsic returns are single rewards"
    calls = []
    monkeypatch.setattr(model, "critic_loss", lambda batch, loss=model.critic_loss: calls.append((batch, loss)) or loss(batch))
    model.train(1, 32)
    batch, critic_loss = calls[0]
    expected = critic_loss(batch)
    with th.no_grad():
        for parameter in model.critic_target.parameters():
            parameter.mul_(3.0)
    th.testing.assert_close(critic_loss(batch), expected)


@pytest.mark.parametrize("name", ["gamma", "tau"])
@pytest.mark.parametrize("value", [-0.1, 1.1, float("nan")])
def test_shares_are_from_0_to_1(name, value):
    with pytest.raises(ValueError, match=f"{name}=.* must be a number from 0 to 1: pass such a number"):
        make_small(CeSD, **{name: value})


def test_the_smaller_value_counts_transition_by_transition(monkeypatch):
    """Critics that have just been made differ alike everywhere: here each is the smaller one somewhere."""
    model = make_small(APT)
    batch = random_samples(th.arange(4), 4)
    batch = type(batch)(
        *(each.float() if isinstance(each, th.Tensor) and each.is_floating_point() else each for each in batch)
    )
    values = [th.tensor([[1.0], [5.0], [2.0], [-7.0]]), th.tensor([[3.0], [2.0], [-4.0], [0.0]])]
    smaller = th.tensor([[1.0], [2.0], [-4.0], [-7.0]])
    monkeypatch.setattr(model.critic_target, "q_values", lambda *args: values)
    target = batch.rewards + (1 - batch.dones) * batch.discounts * smaller
    expected = sum(
        (q - target).square().mean() for q in model.critic.q_values(batch.observations, batch.actions, batch.skills)
    )
    assert model.critic_loss(batch).item() == pytest.approx(expected.item(), rel=1e-5)
    monkeypatch.setattr(model.critic, "q_values", lambda *args: values)
    assert model.actor_loss(batch).item() == pytest.approx(-smaller.mean().item())
