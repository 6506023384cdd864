"""ICM: against its formulas, and the constants of URLB's code (rll-research/url_benchmark, agent/icm.py and icm.yaml)."""

import math

import pytest
import torch as th
from batches import learn, make_reward, make_samples
from small import make_small
from torch import nn

from sb3_cesd import ICM
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.methods.icm import ICMReward

SKILLS = DiscreteSkills(3)


def make(reward_class=ICMReward, **kwargs):
    return make_reward(reward_class, SKILLS, **{"net_arch": [8], **kwargs}).double()


def make_batch(n=12, seed=0):
    th.manual_seed(seed)
    obs, next_obs = th.randn(2, n, 4, dtype=th.float64)
    return make_samples(obs, next_obs, th.arange(n) % 3, th.rand(n, 2, dtype=th.float64) * 2 - 1)


def layer(inputs, linear):
    """W x + b, with sums written out."""
    rows = zip(linear.weight.tolist(), linear.bias.tolist(), strict=True)
    return [sum(w * x for w, x in zip(row, inputs, strict=True)) + bias for row, bias in rows]


def network(inputs, sequential):
    """A hidden layer of ReLU, and a linear one."""
    return layer([max(value, 0.0) for value in layer(inputs, sequential[0])], sequential[2])


def errors_of(reward, batch):
    """||s' - f(s, a)|| and ||a - tanh g(s, s')|| of each transition."""
    forward, backward = [], []
    rows = zip(batch.observations.tolist(), batch.actions.tolist(), batch.next_observations.tolist(), strict=True)
    for obs, action, next_obs in rows:
        predicted = network(obs + action, reward.dynamics.forward_net)
        forward.append(math.dist(next_obs, predicted))
        predicted = [math.tanh(value) for value in network(obs + next_obs, reward.dynamics.backward_net)]
        backward.append(math.dist(action, predicted))
    return forward, backward


@pytest.mark.parametrize("scale", [1.0, 3.0])
def test_reward_is_the_logarithm_of_the_error_of_the_forward_model(scale):
    reward, batch = make(scale=scale), make_batch()
    forward, _ = errors_of(reward, batch)
    assert reward.reward(batch).tolist() == pytest.approx([math.log(1 + scale * error) for error in forward], rel=1e-12)
    # A model that foresees everything leaves nothing to be curious about
    nn.init.zeros_(reward.dynamics.forward_net[2].weight)
    foreseen = batch._replace(next_observations=reward.dynamics.forward_net[2].bias.detach().expand(12, 4))
    assert (reward.reward(foreseen) == 0).all()


def test_loss_is_the_sum_of_both_mean_errors():
    reward, batch = make(), make_batch()
    loss = reward.loss(batch)
    forward, backward = errors_of(reward, batch)
    assert loss.item() == pytest.approx(sum(forward) / 12 + sum(backward) / 12, rel=1e-12)
    assert loss.item() != pytest.approx(sum(forward) / 12 - sum(backward) / 12, rel=1e-2)
    loss.backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in reward.parameters())


def test_reward_does_not_depend_on_the_skill():
    reward, batch = make(), make_batch()
    assert (reward.reward(batch._replace(skills=batch.skills.flip(0))) == reward.reward(batch)).all()
    assert (reward.reward(batch._replace(actions=-batch.actions)) != reward.reward(batch)).all()


class WrongSign(ICMReward):
    """A negative control: it learns to be surprised."""

    def loss(self, samples):
        return -super().loss(samples)


def surprise(reward_class):
    """Mean reward for actions like those learned from, and in states elsewhere, before and after learning."""
    th.manual_seed(0)
    obs, actions = th.randn(256, 4, dtype=th.float64), th.rand(256, 2, dtype=th.float64) * 2 - 1
    moves = th.cat([actions, actions.flip(1)], dim=1)
    seen = make_samples(obs, obs + moves, th.zeros(256), actions)
    unseen = make_samples(obs + 8, (obs + 8).sin() + moves, th.zeros(256), actions)
    reward = make(reward_class, net_arch=[64])
    before = [reward.reward(batch).mean().item() for batch in (seen, unseen)]
    learn(reward, seen, 150)
    return before, [reward.reward(batch).mean().item() for batch in (seen, unseen)]


def test_surprise_falls_where_it_has_been_and_not_elsewhere():
    (seen_before, _), (seen, unseen) = surprise(ICMReward)
    assert seen < 0.3 * seen_before and unseen > 4 * seen


def test_a_wrong_sign_would_be_noticed():
    (seen_before, _), (seen, _) = surprise(WrongSign)
    assert seen > 2 * seen_before


def test_constants_are_those_of_urlb():
    reward = make_reward(ICMReward, SKILLS)
    forward, backward = reward.dynamics.forward_net, reward.dynamics.backward_net
    for sequential, sizes in ((forward, (6, 1024, 4)), (backward, (8, 1024, 2))):
        assert [type(module) for module in sequential] == [nn.Linear, nn.ReLU, nn.Linear]
        assert (sequential[0].in_features, sequential[0].out_features, sequential[2].out_features) == sizes
        assert all((sequential[idx].bias == 0).all() for idx in (0, 2))
        weight = sequential[2].weight
        th.testing.assert_close(weight @ weight.T, th.eye(len(weight)), atol=1e-4, rtol=0)  # orthogonal
    assert reward.scale == 1.0 and reward.n_batches == 1


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [({"scale": 0.0}, "set scale above 0"), ({"net_arch": [0]}, "pass a list of positive integers")],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_small(ICM, intrinsic_kwargs=kwargs)
