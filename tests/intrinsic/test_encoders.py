import math

import pytest
import torch as th
from torch.nn import functional as F

from sb3_cesd.intrinsic.encoders import ContrastiveEncoder, FourierEncoder, IdentityEncoder, make_encoder


def test_contrastive_loss_equals_its_formula():
    th.manual_seed(0)
    encoder = ContrastiveEncoder(6, 5, features_dim=4, net_arch=[8, 8], temperature=0.5).double()
    obs, next_obs = th.randn(2, 12, 6, dtype=th.float64)
    skills = th.randint(5, (12,))
    loss = encoder.loss(obs, next_obs, skills)

    query = F.normalize(encoder.skill_net(F.one_hot(skills, 5).double()), dim=1)
    key = F.normalize(encoder.pred_net(th.cat([encoder(obs), encoder(next_obs)], dim=1)), dim=1)
    similarity = query @ key.T / 0.5
    expected = 0.0
    for j in range(12):
        negatives = max(similarity[j].exp().sum() - math.exp(1 / 0.5), 1e-6)
        expected += -th.log(similarity[j, j].exp() / (negatives + 1e-6)) / 12
    th.testing.assert_close(loss, expected)

    gradients = th.autograd.grad(loss, list(encoder.parameters()))
    expected_gradients = th.autograd.grad(expected, list(encoder.parameters()))
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        th.testing.assert_close(gradient, expected_gradient)


def test_contrastive_encoder_learns_to_tell_skills_apart():
    th.manual_seed(0)
    encoder = ContrastiveEncoder(2, 3, features_dim=4, net_arch=[32])
    optimizer = th.optim.Adam(encoder.parameters(), lr=1e-2)
    directions = th.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    losses = []
    for _ in range(150):
        # In much smaller batches the loss has its minimum where all keys oppose all queries
        obs, skills = th.randn(256, 2), th.randint(3, (256,))
        loss = encoder.loss(obs, obs + directions[skills], skills)
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    # Keys in the directions of their queries, which form a triangle: log(85 e^2 + 171 e^-1 - e^2) - 2
    assert sum(losses[-20:]) / 20 == pytest.approx(4.53, abs=0.1)
    assert losses[0] > 5.2


def test_fourier_features_approximate_the_gaussian_kernel():
    th.manual_seed(0)
    encoder = FourierEncoder(3, 4, features_dim=20_000, length_scale=2.0)
    x = th.randn(10, 3) * 2
    kernel = th.exp(-th.cdist(x, x).square() / (2 * 2.0**2))
    features = encoder(x)
    th.testing.assert_close(features @ features.T, kernel, atol=0.03, rtol=0)
    assert list(encoder.parameters()) == [] and encoder.loss(x, x, th.zeros(10)) is None


def test_identity():
    x = th.randn(4, 3)
    assert IdentityEncoder(3, 4)(x) is x


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("pca", {}, "'contrastive', 'fourier', 'identity'"),
        ("contrastive", {"temperature": 0}, "set temperature above 0"),
        ("contrastive", {"features_dim": -1}, "set features_dim above 0"),
        ("fourier", {"length_scale": -1.0}, "set length_scale above 0"),
        ("fourier", {"net_arch": [4]}, "encoder_kwargs has no 'net_arch': use some of .*length_scale"),
    ],
)
def test_bad_arguments(name, kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_encoder(name, 3, 4, kwargs)
