import math

import pytest
import torch as th
from batches import make_samples
from torch.nn import functional as F

from sb3_cesd.common.skills import CubeSkills, DiscreteSkills, SphereSkills
from sb3_cesd.intrinsic.encoders import ContrastiveEncoder, FourierEncoder, ICMEncoder, IdentityEncoder, make_encoder

SKILLS = DiscreteSkills(4)


def contrastive_loss(encoder, obs, next_obs, vectors, objective):
    """InfoNCE, or CIC's loss as it is released, with the vectors of the skills of the batch: one query per transition."""
    query = F.normalize(encoder.skill_net(vectors), dim=1)
    key = F.normalize(encoder.pred_net(th.cat([encoder(obs), encoder(next_obs)], dim=1)), dim=1)
    similarity = query @ key.T / encoder.temperature
    loss = 0.0
    for j in range(len(obs)):
        total = similarity[j].exp().sum()
        if objective == "released":
            total = max(total - math.exp(1 / encoder.temperature), 1e-6) + 1e-6
        loss += -th.log(similarity[j, j].exp() / total) / len(obs)
    return loss


def assert_same_gradients(loss, expected, encoder):
    th.testing.assert_close(loss, expected)
    gradients = th.autograd.grad(loss, list(encoder.parameters()))
    expected_gradients = th.autograd.grad(expected, list(encoder.parameters()))
    for gradient, expected_gradient in zip(gradients, expected_gradients, strict=True):
        th.testing.assert_close(gradient, expected_gradient)
    assert all(gradient.abs().max() > 0 for gradient in gradients)


@pytest.mark.parametrize("objective", ["infonce", "released"])
@pytest.mark.parametrize("skill_space", [DiscreteSkills(5), SphereSkills(3, 5), CubeSkills(64, 5, low=0.0)], ids=repr)
def test_contrastive_loss_equals_its_formula(skill_space, objective):
    th.manual_seed(0)
    arguments = {"features_dim": 4, "net_arch": [8, 8], "temperature": 0.5, "objective": objective}
    encoder = ContrastiveEncoder(6, 2, skill_space, **arguments).double()
    obs, next_obs = th.randn(2, 12, 6, dtype=th.float64)
    skills = th.randint(5, (12,)) if skill_space.discrete else skill_space.draw_tensor(12, th.device("cpu")).double()
    expected = contrastive_loss(encoder, obs, next_obs, skill_space.embed(skills, th.float64), objective)
    assert_same_gradients(encoder.loss(make_samples(obs, next_obs, skills)), expected, encoder)


def test_contrastive_loss_of_vectors_equals_that_of_indices_where_they_are_one_hot():
    """Discrete skills have n_skills queries, continuous ones as many as there are transitions."""
    th.manual_seed(0)
    discrete = ContrastiveEncoder(6, 2, DiscreteSkills(5), features_dim=4, net_arch=[8]).double()
    continuous = ContrastiveEncoder(6, 2, CubeSkills(5, 5, low=0.0), features_dim=4, net_arch=[8]).double()
    continuous.load_state_dict(discrete.state_dict())
    obs, next_obs = th.randn(2, 12, 6, dtype=th.float64)
    skills = th.randint(5, (12,))
    expected = discrete.loss(make_samples(obs, next_obs, skills))
    loss = continuous.loss(make_samples(obs, next_obs, F.one_hot(skills, 5).double()))
    th.testing.assert_close(loss, expected)
    gradients = (
        th.autograd.grad(each, list(encoder.parameters())) for each, encoder in ((loss, continuous), (expected, discrete))
    )
    for gradient, expected_gradient in zip(*gradients, strict=True):
        th.testing.assert_close(gradient, expected_gradient)


def train_contrastive_encoder(objective, noise):
    """
    Train on 150 batches in which each skill moves in a direction of its own, and noise blurs it.

    :return: losses, and the cosines of the queries of all skills with the keys of the last batch
    """
    th.manual_seed(0)
    encoder = ContrastiveEncoder(2, 2, DiscreteSkills(3), features_dim=4, net_arch=[32], objective=objective)
    optimizer = th.optim.Adam(encoder.parameters(), lr=1e-2)
    directions = th.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, -1.0]])
    losses = []
    for _ in range(150):
        # In much smaller batches the released loss has its minimum where all keys oppose all queries
        obs, skills = th.randn(256, 2), th.randint(3, (256,))
        next_obs = obs + directions[skills] + noise * th.randn(256, 2)
        loss = encoder.loss(make_samples(obs, next_obs, skills))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        losses.append(loss.item())
    with th.no_grad():
        queries = F.normalize(encoder.skill_net(th.eye(3)), dim=1)
        keys = F.normalize(encoder.pred_net(th.cat([encoder(obs), encoder(next_obs)], dim=1)), dim=1)
    return losses, queries @ keys.T


@pytest.mark.parametrize(
    ("objective", "expected"),
    # Keys in the directions of their queries, which form a triangle
    [
        ("infonce", math.log(85 * math.e**2 + 171 / math.e) - 2),
        ("released", math.log(85 * math.e**2 + 171 / math.e - math.e**2) - 2),
    ],
)
def test_contrastive_encoder_learns_to_tell_skills_apart(objective, expected):
    losses, _ = train_contrastive_encoder(objective, noise=0.0)
    assert sum(losses[-20:]) / 20 == pytest.approx(expected, abs=0.1)
    assert losses[0] > 5.2


def test_released_loss_makes_all_features_one_while_skills_differ_little():
    """All similarities at -1 give less than what can be learned; InfoNCE takes the little there is."""
    losses, cosines = train_contrastive_encoder("released", noise=3.0)
    assert losses[-1] == pytest.approx(math.log(256 - math.e**4), abs=0.02)
    assert cosines.std() < 0.05 and cosines.max() < -0.9
    losses, cosines = train_contrastive_encoder("infonce", noise=3.0)
    assert sum(losses[-20:]) / 20 < math.log(256) - 0.04
    assert cosines.std() > 0.15


def test_fourier_features_approximate_the_gaussian_kernel():
    th.manual_seed(0)
    encoder = FourierEncoder(3, 2, SKILLS, features_dim=20_000, length_scale=2.0)
    x = th.randn(10, 3) * 2
    kernel = th.exp(-th.cdist(x, x).square() / (2 * 2.0**2))
    features = encoder(x)
    th.testing.assert_close(features @ features.T, kernel, atol=0.03, rtol=0)
    assert list(encoder.parameters()) == [] and encoder.loss(make_samples(x, x, th.zeros(10))) is None


def test_icm_loss_equals_its_formula():
    th.manual_seed(0)
    encoder = ICMEncoder(6, 2, SKILLS, features_dim=4, net_arch=[8]).double()
    obs, next_obs = th.randn(2, 12, 6, dtype=th.float64)
    actions = th.rand(12, 2, dtype=th.float64)
    loss = encoder.loss(make_samples(obs, next_obs, th.zeros(12), actions))

    expected = 0.0
    for j in range(12):
        f, next_f = encoder(obs[j : j + 1])[0], encoder(next_obs[j : j + 1])[0]
        expected += (encoder.dynamics.forward_net(th.cat([f, actions[j]])) - next_f).square().sum().sqrt() / 12
        expected += (encoder.dynamics.backward_net(th.cat([f, next_f])).tanh() - actions[j]).square().sum().sqrt() / 12
    th.testing.assert_close(loss, expected)
    assert encoder(obs).shape == (12, 4)


def test_icm_features_keep_what_actions_change():
    """The first coordinate follows the action, the second is noise that no action explains."""
    th.manual_seed(0)
    encoder = ICMEncoder(2, 1, SKILLS, features_dim=2, net_arch=[32])
    optimizer = th.optim.Adam(encoder.parameters(), lr=3e-3)
    for _ in range(400):
        actions, noise = th.rand(256, 1) * 2 - 1, th.randn(2, 256, 1)
        place = th.randn(256, 1)
        obs, next_obs = th.cat([place, noise[0]], dim=1), th.cat([place + actions, noise[1]], dim=1)
        loss = encoder.loss(make_samples(obs, next_obs, th.zeros(256), actions))
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
    with th.no_grad():
        moved_by_action = (encoder(th.tensor([[0.5, 0.0]])) - encoder(th.tensor([[-0.5, 0.0]]))).norm()
        moved_by_noise = (encoder(th.tensor([[0.0, 0.5]])) - encoder(th.tensor([[0.0, -0.5]]))).norm()
    assert moved_by_action > 3 * moved_by_noise


def test_identity():
    x = th.randn(4, 3)
    assert IdentityEncoder(3, 2, SKILLS)(x) is x


@pytest.mark.parametrize(
    ("name", "kwargs", "message"),
    [
        ("pca", {}, "'contrastive', 'fourier', 'icm', 'identity', 'temporal'"),
        ("contrastive", {"temperature": 0}, "set temperature above 0"),
        ("contrastive", {"features_dim": -1}, "set features_dim above 0"),
        ("fourier", {"length_scale": -1.0}, "set length_scale above 0"),
        ("fourier", {"net_arch": [4]}, "encoder_kwargs has no 'net_arch': use some of .*length_scale"),
    ],
)
def test_bad_arguments(name, kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_encoder(name, 3, 2, SKILLS, kwargs)
