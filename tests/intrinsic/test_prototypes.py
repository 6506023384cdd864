import pytest
import torch as th

from sb3_cesd.intrinsic.prototypes import Prototypes, sinkhorn_knopp


def plain_sinkhorn(scores, temperature, n_iterations):
    q = th.exp((scores - scores.max()) / temperature).T
    q = q / q.sum()
    for _ in range(n_iterations):
        q = q / q.sum(dim=1, keepdim=True) / q.shape[0]
        q = q / q.sum(dim=0, keepdim=True) / q.shape[1]
    return (q / q.sum(dim=0, keepdim=True)).T


@pytest.mark.parametrize("n_iterations", [1, 4, 6])
def test_sinkhorn_equals_the_plain_form(n_iterations):
    th.manual_seed(0)
    scores = th.rand(30, 5, dtype=th.float64) * 2 - 1
    th.testing.assert_close(sinkhorn_knopp(scores, 0.1, n_iterations), plain_sinkhorn(scores, 0.1, n_iterations))


def test_sinkhorn_balances_the_clusters():
    th.manual_seed(0)
    # Nearly everything looks like cluster 0
    scores = th.rand(200, 4) * 0.3 + th.tensor([0.5, 0.0, 0.0, 0.0])
    shares = sinkhorn_knopp(scores, 0.1, 50).mean(dim=0)
    th.testing.assert_close(shares, th.full((4,), 0.25), atol=1e-3, rtol=0)
    assert (scores.argmax(dim=1) == 0).float().mean() > 0.9


def test_sinkhorn_is_finite_at_low_temperature():
    scores = th.rand(64, 6) * 2 - 1
    assert th.isfinite(sinkhorn_knopp(scores, 1e-3, 5)).all()
    assert not th.isfinite(plain_sinkhorn(scores, 1e-3, 5)).all()


def test_sample_follows_the_softmax():
    th.manual_seed(0)
    prototypes = Prototypes(3, 2, temperature=0.5)
    scores = th.tensor([[0.9, 0.1, -0.5]]).expand(20_000, 3)
    frequencies = th.bincount(prototypes.sample(scores), minlength=3) / 20_000
    th.testing.assert_close(frequencies, (scores[0] / 0.5).softmax(dim=0), atol=0.015, rtol=0)


def test_sample_survives_nan():
    # The policy check reports a diverged run; a draw must not crash before it
    assert Prototypes(3, 2).sample(th.full((4, 3), th.nan)).shape == (4,)


def test_normalize_brings_vectors_to_unit_length():
    prototypes = Prototypes(5, 3)
    with th.no_grad():
        prototypes.vectors.mul_(th.arange(1, 6)[:, None])
    prototypes.normalize()
    th.testing.assert_close(prototypes.vectors.norm(dim=1), th.ones(5))


def test_loss_is_the_cross_entropy_and_only_the_prediction_has_a_gradient():
    th.manual_seed(0)
    prototypes = Prototypes(4, 3, temperature=0.1, sinkhorn_temperature=0.03, sinkhorn_iterations=5)
    predicted = th.randn(10, 4, requires_grad=True)
    target = th.randn(10, 4, requires_grad=True)
    loss = prototypes.loss(predicted, target)
    q = plain_sinkhorn(target.double(), 0.03, 5)
    expected = -(q * (predicted.double() / 0.1).log_softmax(dim=1)).sum(dim=1).mean()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    loss.backward()
    assert predicted.grad is not None and target.grad is None


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"temperature": 0.0}, "set temperature above 0"),
        ({"temperature": -1.0}, "set temperature above 0"),
        ({"sinkhorn_temperature": 0.0}, "set sinkhorn_temperature above 0"),
        ({"sinkhorn_iterations": 0}, "set sinkhorn_iterations above 0"),
        ({"swap": "both"}, "'next' or 'self'"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        Prototypes(4, 3, **kwargs)
