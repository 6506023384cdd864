"""What a model is made of before it learns."""

import pytest
import torch as th
from dense_reference import q_values_dense
from torch import nn

from sb3_cesd import CeSD


def test_target_starts_as_the_critic(make_model):
    model = make_model()
    parameters = zip(model.critic.parameters(), model.critic_target.parameters(), strict=True)
    assert all((online == target).all() and online is not target for online, target in parameters)
    assert not any(parameter.requires_grad for parameter in model.critic_target.parameters())


@pytest.mark.parametrize("seed", [0, 1])
def test_linear_layers_are_orthogonal_without_bias(make_model, seed):
    model = make_model(seed=seed, encoder_kwargs={"net_arch": [16, 8], "features_dim": 4})
    modules = [*model.actor.modules(), *model.critic.trunk.modules(), *model.intrinsic.encoder.modules()]
    layers = [module for module in modules if isinstance(module, nn.Linear)]
    assert len(layers) == 3 + 1 + 3 * 3
    for layer in layers:
        assert (layer.bias == 0).all()
        weight = layer.weight if layer.weight.shape[0] <= layer.weight.shape[1] else layer.weight.T
        th.testing.assert_close(weight @ weight.T, th.eye(len(weight)), atol=1e-5, rtol=0)


def test_initial_values_are_small():
    """The released code initialises heads with the fan of the wrong axis, which starts |Q| at about 3.6."""
    model = CeSD("MlpPolicy", "Pendulum-v1", device="cpu", seed=0, buffer_size=10, policy_kwargs={"shared_value": False})
    q_values = th.stack(q_values_dense(model.critic, th.randn(64, 3), th.rand(64, 1) * 2 - 1))
    assert 0 < q_values.abs().mean() < 0.3


def test_all_skills_begin_with_the_value_they_share(make_model):
    critic = make_model(policy_kwargs={"net_arch": [16, 16], "shared_value": True}).critic
    obs, actions, skills = th.randn(4, 3), th.randn(4, 1), th.arange(4)
    first, second = values = critic.q_values(obs, actions, skills)
    assert (first != second).all(), "the two critics do not begin alike"
    hidden = critic.trunk(th.cat([obs, actions, th.eye(4)], dim=1))
    for value, network in zip(values, critic.shared_networks, strict=True):
        th.testing.assert_close(value, network(hidden))
