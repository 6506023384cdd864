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


def as_paper(**kwargs):
    return make(features_dim=3, error="square", **kwargs)


def normalised(values, norm):
    """LayerNorm, with sums written out."""
    mean = sum(values) / len(values)
    variance = sum((value - mean) ** 2 for value in values) / len(values)
    scaled = [(value - mean) / math.sqrt(variance + norm.eps) for value in values]
    return [
        weight * value + bias for weight, value, bias in zip(norm.weight.tolist(), scaled, norm.bias.tolist(), strict=True)
    ]


def half_squares_of(reward, batch):
    """||f(s') - g(f(s), a)||^2 / 2 and ||a - tanh h(f(s), f(s'))||^2 / 2, with features f = tanh LayerNorm(W s + b)."""

    def features(obs):
        return [math.tanh(value) for value in normalised(layer(obs, reward.state_net[0]), reward.state_net[1])]

    forward, backward = [], []
    rows = zip(batch.observations.tolist(), batch.actions.tolist(), batch.next_observations.tolist(), strict=True)
    for obs, action, next_obs in rows:
        before, after = features(obs), features(next_obs)
        forward.append(math.dist(after, network(before + action, reward.dynamics.forward_net)) ** 2 / 2)
        predicted = [math.tanh(value) for value in network(before + after, reward.dynamics.backward_net)]
        backward.append(math.dist(action, predicted) ** 2 / 2)
    return forward, backward


def test_reward_and_loss_of_the_paper_are_half_squares_of_features():
    reward, batch = as_paper(scale=3.0), make_batch()
    with th.no_grad():
        reward.state_net[1].weight.copy_(th.tensor([0.5, 2.0, -1.0]))
    forward, backward = half_squares_of(reward, batch)
    assert reward.reward(batch).tolist() == pytest.approx([3.0 * error for error in forward], rel=1e-10)
    loss = reward.loss(batch)
    assert loss.item() == pytest.approx(sum(forward) / 12 + sum(backward) / 12, rel=1e-10)
    loss.backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in reward.parameters())


def test_features_learn_what_actions_change_alone():
    """The last two numbers are noise that no action changes: features of the paper lose sight of it, the state does not."""
    th.manual_seed(0)
    obs, actions = th.randn(2, 512, 4, dtype=th.float64), th.rand(512, 2, dtype=th.float64) * 2 - 1
    next_obs = th.cat([obs[0, :, :2] + actions, 3 * obs[1, :, 2:]], dim=1)
    batch, same = make_samples(obs[0], next_obs, th.zeros(512), actions), next_obs.clone()
    same[:, 2:] = 0
    shares = []
    for reward in (make(net_arch=[64], error="square"), as_paper(net_arch=[64])):
        learn(reward, batch, 300)
        with th.no_grad():
            shares.append((reward.reward(batch).mean() / reward.features(next_obs).square().sum(dim=1).mean()).item())
            without = reward.features(same) - reward.features(next_obs)
            shares.append((without.square().mean() / reward.features(next_obs).var(dim=0).mean()).item())
    assert shares[3] < 0.5 * shares[1] and shares[2] < 0.5 * shares[0]


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
    [
        ({"scale": 0.0}, "set scale above 0"),
        ({"net_arch": [0]}, "pass a list of positive integers"),
        ({"features_dim": 0}, "features_dim above 0"),
        ({"error": "log"}, "error 'log': choose 'norm' or 'square'"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_small(ICM, intrinsic_kwargs=kwargs)


def test_features_of_both_states_learn():
    """The gradient is that of the loss as a whole, by finite differences."""
    reward, batch = as_paper(), make_batch()
    reward.loss(batch).backward()
    weight, eps = reward.state_net[0].weight, 1e-6
    entries, expected = weight.data.view(-1), []
    with th.no_grad():
        for index in range(len(entries)):
            losses = []
            for change in (eps, -2 * eps):
                entries[index] += change
                losses.append(reward.loss(batch).item())
            entries[index] += eps
            expected.append((losses[0] - losses[1]) / (2 * eps))
    assert weight.grad.view(-1).tolist() == pytest.approx(expected, rel=1e-4, abs=1e-6)
