"""ICM, Disagreement and RND: against their formulas, and the constants of URLB's code."""

import math

import pytest
import torch as th
from batches import make_batch, make_reward
from torch import nn

from sb3_cesd import preset
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.methods.disagreement import DisagreementReward
from sb3_cesd.methods.icm import ICMReward
from sb3_cesd.methods.rnd import RNDReward

SKILLS = DiscreteSkills(3)
BATCH = make_batch(SKILLS)


def make(reward_class, **kwargs):
    return make_reward(reward_class, SKILLS, **{"net_arch": [8], **kwargs}).double()


def test_reward_and_loss_of_icm():
    reward = make(ICMReward, scale=3.0)
    start, end = BATCH.observations, BATCH.next_observations
    ahead = end - reward.dynamics.forward_net(th.cat([start, BATCH.actions], dim=1))
    back = BATCH.actions - reward.dynamics.backward_net(th.cat([start, end], dim=1)).tanh()
    sizes = [each.square().sum(dim=1).sqrt() for each in (ahead, back)]
    th.testing.assert_close(reward.reward(BATCH), (3.0 * sizes[0]).log1p())
    th.testing.assert_close(reward.loss(BATCH), sizes[0].mean() + sizes[1].mean())


def test_reward_and_loss_of_disagreement():
    reward = make(DisagreementReward, n_models=3, scale=2.0)
    first, last = reward.models.layers
    inputs = th.cat([BATCH.observations, BATCH.actions], dim=1)
    predicted = th.stack(
        [(inputs @ w + b).clamp(min=0) @ v + c for w, b, v, c in zip(*first.parameters(), *last.parameters(), strict=True)]
    )
    variances = ((predicted - predicted.mean(dim=0)).square().sum(dim=0) / 2).mean(dim=1)
    th.testing.assert_close(reward.reward(BATCH), 2.0 * variances)
    squares = (BATCH.next_observations - predicted).square().sum(dim=2)
    th.testing.assert_close(reward.loss(BATCH), squares.sqrt().mean())


def test_reward_and_loss_of_rnd():
    """The error of normalised states over the running deviation of URLB, whose statistics start as 0, 1 and 1e-4."""
    reward = make(RNDReward, features_dim=5, clip=1.5, scale=3.0)
    mean, variance, n = 0.0, 1.0, 1e-4
    for seed in range(3):
        batch = make_batch(SKILLS, seed=seed)
        states = (seed + 1) * batch.observations
        batch = batch._replace(observations=states)
        with th.no_grad():
            inputs = ((states - states.mean(0)) / (states.var(0, unbiased=False) + 1e-5).sqrt()).clip(-1.5, 1.5)
            errors = (reward.predictor(inputs) - reward.target(inputs)).square().mean(dim=1)
        assert reward.loss(batch).item() == pytest.approx(errors.mean().item(), rel=1e-9)
        delta, total = errors.mean().item() - mean, n + 12
        variance = (variance * n + errors.var().item() * 12 + delta**2 * n * 12 / total) / total
        mean, n = mean + delta * 12 / total, total
        th.testing.assert_close(reward.reward(batch).detach(), 3.0 * errors / (variance**0.5 + 1e-8), rtol=1e-9, atol=0)
    assert not any(parameter.requires_grad for parameter in reward.target.parameters())


def test_constants_are_those_of_urlb():
    """Sizes at published scale."""
    icm, disagreement, rnd = (preset("published", method=name)["intrinsic_kwargs"] for name in ("icm", "disagreement", "rnd"))
    dynamics = make_reward(ICMReward, SKILLS, **icm).dynamics
    for network, sizes in ((dynamics.forward_net, [1024, 4]), (dynamics.backward_net, [1024, 2])):
        assert [layer.out_features for layer in network if isinstance(layer, nn.Linear)] == sizes
    first, last = make_reward(DisagreementReward, SKILLS, **disagreement).models.layers
    assert first.weight.shape == (5, 6, 1024) and last.weight.shape == (5, 1024, 4)
    # PyTorch's default initialisation, unlike all other networks: that is what makes the models differ
    assert last.weight.std().item() == pytest.approx(1 / math.sqrt(3 * 1024), rel=0.05)
    reward = make_reward(RNDReward, SKILLS, **rnd)
    for network in (reward.predictor, reward.target):
        linear = [layer for layer in network if isinstance(layer, nn.Linear)]
        assert [layer.out_features for layer in linear] == [1024, 1024, 512]
        gram = linear[1].weight @ linear[1].weight.T
        th.testing.assert_close(gram, th.eye(1024), atol=1e-4, rtol=0)  # orthogonal
    assert (reward.clip, reward.scale) == (5.0, 1.0)
