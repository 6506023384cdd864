"""The critic of all methods that have none of their own, and what of it reaches its target."""

import numpy as np
import pytest
import torch as th
from batches import random_samples
from every_method import each_kind
from gymnasium import spaces
from small import make_small
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor

from sb3_cesd import APT, DIAYN, CeSD


def observe(model, n=4):
    """Observations with skills, in turn."""
    th.manual_seed(0)
    vectors = model.skill_space.vectors[np.arange(n) % model.n_skills]
    return {"observation": th.randn(n, 3), "skill": th.as_tensor(vectors)}


@each_kind
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
    assert (values[0] != values[1]).all()
    # Pairs of rows and skills; the skill counts
    rows = th.tensor([2, 0, 2])
    pairs = model.critic.q_values(obs["observation"], actions, skills[rows], rows)
    th.testing.assert_close(pairs[0], expected[0][rows])
    assert (model.critic({**obs, "skill": obs["skill"].roll(1, 0)}, actions)[0] != values[0]).all()


def test_number_of_critics():
    model = make_small(DIAYN, policy_kwargs={"net_arch": [16], "n_critics": 3}).learn(60)
    assert len(model.critic(observe(model), th.zeros(4, 1))) == 3 and model._n_updates > 0


@pytest.mark.parametrize("method", [CeSD, DIAYN])
def test_networks_without_layer_norm(method, tmp_path):
    """Plain networks in actor and critic, which are saved and fine-tuned as they are."""
    model = make_small(method, policy_kwargs={"net_arch": [16, 16], "layer_norm": False}).learn(60)
    assert not [layer for layer in model.policy.modules() if isinstance(layer, th.nn.LayerNorm | th.nn.Tanh)]
    model.save(tmp_path / "model")
    for loaded in (method.load(tmp_path / "model"), method.from_pretrained(tmp_path / "model", model.get_env())):
        assert (loaded.policy.actor(observe(model)) == model.policy.actor(observe(model))).all()


class Normalized(BaseFeaturesExtractor):
    """With batch normalisation, as in SB3's tests of TD3."""

    def __init__(self, observation_space: spaces.Box, features_dim: int = 4):
        super().__init__(observation_space, features_dim)
        self.layers = th.nn.Sequential(th.nn.BatchNorm1d(3), th.nn.Linear(3, features_dim), th.nn.ReLU())

    def forward(self, observations):
        return self.layers(observations)


def batch_norm_of(network):
    return {name: value.clone() for name, value in network.state_dict().items() if "running_" in name}


@pytest.mark.parametrize("method", [CeSD, DIAYN])
def test_statistics_of_batch_normalisation_reach_the_target(method):
    """They are no parameters, so that Polyak averaging leaves them out."""
    kwargs = {"net_arch": [16, 16], "features_extractor_class": Normalized}
    # Slow targets: parameters that are copied would be noticed
    model = make_small(method, policy_kwargs=kwargs, tau=1e-3)
    initial = batch_norm_of(model.critic_target)
    model.learn(120)
    ours, targets = batch_norm_of(model.critic), batch_norm_of(model.critic_target)
    assert all((value == targets[name]).all() and (value != initial[name]).any() for name, value in ours.items())
    assert (model.critic.trunk[0].weight != model.critic_target.trunk[0].weight).any()
    online, target = (each.features_extractor.layers[1].weight for each in (model.critic, model.critic_target))
    assert (online != target).any()
    # Acting and evaluating change nothing
    model.predict(np.zeros((5, 3), np.float32), skill=1)
    model.critic_target(observe(model), th.zeros(4, 1))
    assert all((value == targets[name]).all() for name, value in batch_norm_of(model.critic_target).items())


def test_the_smaller_value_counts_transition_by_transition(monkeypatch):
    """Critics that have just been made differ alike everywhere: here each is the smaller one somewhere."""
    model = make_small(APT)
    model.policy.double()
    batch = random_samples(th.arange(4), 4)
    values = [th.tensor([[1.0], [5.0], [2.0], [-7.0]]).double(), th.tensor([[3.0], [2.0], [-4.0], [0.0]]).double()]
    smaller = th.tensor([[1.0], [2.0], [-4.0], [-7.0]]).double()
    monkeypatch.setattr(model.critic_target, "q_values", lambda *args: values)
    target = batch.rewards + (1 - batch.dones) * batch.discounts * smaller
    q_values = model.critic.q_values(batch.observations, batch.actions, batch.pairs.skills)
    expected = sum((q - target).square().mean() for q in q_values)
    assert model.critic_loss(batch).item() == pytest.approx(expected.item(), rel=1e-5)
    monkeypatch.setattr(model.critic, "q_values", lambda *args: values)
    assert model.actor_loss(batch).item() == pytest.approx(-smaller.mean().item())
