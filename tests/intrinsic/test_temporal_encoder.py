"""The encoder whose distances count time: against its formula, and constants of TLDR's code (heatz123/tldr, iod/tldr.py)."""

import math
from types import SimpleNamespace

import pytest
import torch as th
from batches import make_samples
from corridor import correlations, follow

from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.intrinsic.encoders import TemporalEncoder


def make(obs_dim=2, **kwargs):
    th.manual_seed(0)
    return TemporalEncoder(obs_dim, 2, DiscreteSkills(2), **{"net_arch": [8], **kwargs})


def make_batch(n=6):
    th.manual_seed(1)
    obs, next_obs = 5 * th.randn(2, n, 2, dtype=th.float64)
    return make_samples(obs, next_obs, th.zeros(n))


def by_hand(encoder, batch, lambda_, slack, horizon):
    """What f minimises, and the mean penalty, one transition after another; the goal of each is the end of the one before."""
    spread, penalties = 0.0, []
    n = len(batch.observations)
    for j in range(n):
        start, end, goal = (encoder(each[None])[0] for each in
                            (batch.observations[j], batch.next_observations[j], batch.next_observations[j - 1]))  # fmt: skip
        penalties.append(min(1 - sum((a - b) ** 2 for a, b in zip(end.tolist(), start.tolist(), strict=True)), slack))
        beta = 5 / horizon
        distance = math.sqrt(sum((a - b) ** 2 for a, b in zip(goal.tolist(), start.tolist(), strict=True)))
        spread += math.log(1 + math.exp(beta * (horizon - distance))) / beta
    penalty = sum(penalties) / n
    return spread / n - lambda_ * penalty, penalty


@pytest.mark.parametrize(("lambda_", "slack", "horizon"), [(30.0, 1e-3, 500.0), (0.3, 0.5, 4.0)])
def test_loss_is_its_formula(lambda_, slack, horizon):
    encoder, batch = make(lambda_init=lambda_, slack=slack, horizon=horizon).double(), make_batch()
    loss, penalty = by_hand(encoder, batch, lambda_, slack, horizon)
    # The dual variable's own loss is added
    assert encoder.loss(batch).item() == pytest.approx(loss + math.log(lambda_) * penalty, rel=1e-6)


def test_features_and_dual_variable_learn_from_their_own_terms():
    encoder, batch = make().double(), make_batch()
    _, penalty = by_hand(encoder, batch, 30.0, 1e-3, 500.0)
    assert penalty < -0.1, "transitions are too long"
    weight = encoder.state_net[0].weight
    gradient, of_lambda = th.autograd.grad(encoder.loss(batch), [weight, encoder.log_lambda])
    assert of_lambda.item() == pytest.approx(penalty, rel=1e-6), "descent makes lambda grow"
    changed = 1e-6
    with th.no_grad():
        weight[0, 0] += changed
        above, _ = by_hand(encoder, batch, 30.0, 1e-3, 500.0)
        weight[0, 0] -= 2 * changed
        below, _ = by_hand(encoder, batch, 30.0, 1e-3, 500.0)
    assert gradient[0, 0].item() == pytest.approx((above - below) / (2 * changed), rel=1e-4)


def learn_corridor(encoder_class=TemporalEncoder, n_updates=600):
    th.manual_seed(0)
    encoder = encoder_class(2, 2, DiscreteSkills(2), net_arch=[64, 64])
    optimizer = th.optim.Adam(encoder.parameters(), lr=1e-3)
    for _ in range(n_updates):
        optimizer.zero_grad()
        encoder.loss(follow(th.randint(2, (256,)))).backward()
        optimizer.step()
    return encoder


def as_reward(encoder):
    return SimpleNamespace(displacements=lambda start, end: encoder(end) - encoder(start))


def test_distances_count_transitions_in_a_corridor():
    """Its ends are a transition apart as the crow flies."""
    encoder = learn_corridor()
    with_features, with_positions = correlations(as_reward(encoder))
    assert with_features > 0.9 and with_positions < 0.6
    batch = follow(th.randint(2, (1000,)))
    with th.no_grad():
        lengths = (encoder(batch.next_observations) - encoder(batch.observations)).norm(dim=1)
    assert 0.6 < lengths.mean() < 1.05 and lengths.max() < 1.5


class ClosenessTheOtherWay(TemporalEncoder):
    def closeness(self, features, other_features):
        return -super().closeness(features, other_features)


class PenaltyTheOtherWay(TemporalEncoder):
    def penalty(self, features, next_features):
        return -super().penalty(features, next_features)


def test_a_wrong_sign_would_be_noticed():
    mean_lengths = []
    for encoder_class in (ClosenessTheOtherWay, PenaltyTheOtherWay):
        encoder, batch = learn_corridor(encoder_class, 100), follow(th.randint(2, (1000,)))
        with th.no_grad():
            mean_lengths.append((encoder(batch.next_observations) - encoder(batch.observations)).norm(dim=1).mean().item())
    assert mean_lengths[0] < 0.2 and mean_lengths[1] > 3


def test_states_that_are_the_same_have_a_gradient():
    encoder = make()
    state = th.ones(4, 2)
    encoder.loss(make_samples(state, state, th.zeros(4))).backward()
    assert all(parameter.grad.isfinite().all() for parameter in encoder.parameters())


def test_constants():
    encoder = TemporalEncoder(3, 2, DiscreteSkills(2))
    assert [layer.out_features for layer in encoder.state_net[::2]] == [1024, 1024, 4]
    assert (encoder.horizon, encoder.slack) == (500, 1e-3)
