import math

import pytest
import torch as th
from batches import make_batch, make_samples
from torch.nn import functional as F

from sb3_cesd.common.skills import CubeSkills, DiscreteSkills, SphereSkills
from sb3_cesd.intrinsic.encoders import ContrastiveEncoder, FourierEncoder, ICMEncoder, IdentityEncoder, TemporalEncoder

SKILLS = DiscreteSkills(3)


def learn(encoder, batch_of, n_updates, lr=1e-2):
    optimizer = th.optim.Adam(encoder.parameters(), lr=lr)
    losses = []
    for _ in range(n_updates):
        loss = encoder.loss(batch_of())
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    return losses


@pytest.mark.parametrize("objective", ["infonce", "released"])
@pytest.mark.parametrize("space", [SKILLS, SphereSkills(3, 5), CubeSkills(64, 5, low=0.0)], ids=repr)
def test_contrastive_loss_equals_its_formula(space, objective):
    """InfoNCE, or CIC's loss as it is released: one query per transition."""
    encoder = ContrastiveEncoder(4, 2, space, features_dim=4, net_arch=[8, 8], objective=objective).double()
    batch = make_batch(space)
    query = F.normalize(encoder.skill_net(space.embed(batch.skills, th.float64)), dim=1)
    pairs = th.cat([encoder(batch.observations), encoder(batch.next_observations)], dim=1)
    similarity = query @ F.normalize(encoder.pred_net(pairs), dim=1).T / 0.5
    total = similarity.exp().sum(dim=1)
    if objective == "released":
        total = (total - math.exp(1 / 0.5)).clamp(min=1e-6) + 1e-6
    expected = -(similarity.diagonal().exp() / total).log().mean()
    loss = encoder.loss(batch)
    th.testing.assert_close(loss, expected)
    gradients = (th.autograd.grad(each, list(encoder.parameters())) for each in (loss, expected))
    for gradient, expected_gradient in zip(*gradients, strict=True):
        th.testing.assert_close(gradient, expected_gradient)


@pytest.mark.parametrize(("objective", "collapses"), [("infonce", False), ("released", True)])
def test_released_loss_makes_all_features_one_while_skills_differ_little(objective, collapses):
    """All similarities at -1 give less than what can be learned; InfoNCE takes the little there is."""
    th.manual_seed(0)
    encoder = ContrastiveEncoder(2, 2, SKILLS, features_dim=4, net_arch=[32], objective=objective)
    directions = th.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])

    def batch_of():
        obs, skills = th.randn(256, 2), th.randint(3, (256,))
        return make_samples(obs, obs + directions[skills] + 3.0 * th.randn(256, 2), skills)

    losses = learn(encoder, batch_of, 150)
    if collapses:
        assert losses[-1] == pytest.approx(math.log(256 - math.e**4), abs=0.02)
    else:
        assert sum(losses[-20:]) / 20 < math.log(256) - 0.04


def test_fourier_features_approximate_the_gaussian_kernel():
    th.manual_seed(0)
    encoder, x = FourierEncoder(3, 2, SKILLS, features_dim=20_000, length_scale=2.0), th.randn(10, 3) * 2
    features = encoder(x)
    th.testing.assert_close(features @ features.T, th.exp(-th.cdist(x, x).square() / (2 * 2.0**2)), atol=0.03, rtol=0)
    assert list(encoder.parameters()) == [] and encoder.loss(make_samples(x, x, th.zeros(10))) is None
    assert IdentityEncoder(3, 2, SKILLS)(x) is x


def test_icm_loss_equals_its_formula():
    encoder, batch = ICMEncoder(4, 2, SKILLS, features_dim=5, net_arch=[8]).double(), make_batch(SKILLS)
    start, end = encoder(batch.observations), encoder(batch.next_observations)
    ahead = encoder.dynamics.forward_net(th.cat([start, batch.actions], dim=1)) - end
    back = encoder.dynamics.backward_net(th.cat([start, end], dim=1)).tanh() - batch.actions
    expected = sum(each.square().sum(dim=1).sqrt().mean() for each in (ahead, back))
    th.testing.assert_close(encoder.loss(batch), expected)
    assert start.shape == (12, 5)


@pytest.mark.parametrize(("lambda_", "slack", "horizon"), [(30.0, 1e-3, 500.0), (0.3, 0.5, 4.0)])
def test_temporal_loss_is_its_formula(lambda_, slack, horizon):
    """The goal of each transition is the end of the one before; the loss of the dual variable is added."""
    kwargs = {"lambda_init": lambda_, "slack": slack, "horizon": horizon}
    encoder, batch = TemporalEncoder(4, 2, SKILLS, net_arch=[8], **kwargs).double(), make_batch(SKILLS)
    start, end = encoder(5 * batch.observations).detach(), encoder(5 * batch.next_observations).detach()
    penalty = (1 - (end - start).square().sum(dim=1)).clamp(max=slack).mean()
    beta, distances = 5 / horizon, (end.roll(1, 0) - start).norm(dim=1)
    spread = ((1 + (beta * (horizon - distances)).exp()).log() / beta).mean()
    batch = batch._replace(observations=5 * batch.observations, next_observations=5 * batch.next_observations)
    loss = encoder.loss(batch)
    expected = spread - lambda_ * penalty + math.log(lambda_) * penalty
    assert loss.item() == pytest.approx(expected.item(), rel=1e-6)
    (gradient,) = th.autograd.grad(loss, [encoder.log_lambda])
    assert gradient.item() == pytest.approx(penalty.item(), rel=1e-6), "descent makes lambda grow where steps are too long"
