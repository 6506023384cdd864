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


@pytest.mark.parametrize("n_iterations", [1, 6])
def test_sinkhorn_equals_the_plain_form_and_is_finite_at_low_temperature(n_iterations):
    th.manual_seed(0)
    scores = th.rand(30, 5, dtype=th.float64) * 2 - 1
    th.testing.assert_close(sinkhorn_knopp(scores, 0.1, n_iterations), plain_sinkhorn(scores, 0.1, n_iterations))
    assert th.isfinite(sinkhorn_knopp(scores.float(), 1e-3, n_iterations)).all()


def test_sinkhorn_balances_the_clusters():
    th.manual_seed(0)
    # Nearly everything looks like cluster 0
    scores = th.rand(200, 4) * 0.3 + th.tensor([0.5, 0.0, 0.0, 0.0])
    th.testing.assert_close(sinkhorn_knopp(scores, 0.1, 50).mean(dim=0), th.full((4,), 0.25), atol=1e-3, rtol=0)


def test_sample_follows_the_softmax():
    th.manual_seed(0)
    prototypes = Prototypes(3, 2, temperature=0.5)
    scores = th.tensor([[0.9, 0.1, -0.5]]).expand(20_000, 3)
    frequencies = th.bincount(prototypes.sample(scores), minlength=3) / 20_000
    th.testing.assert_close(frequencies, (scores[0] / 0.5).softmax(dim=0), atol=0.015, rtol=0)


def test_similarities_are_cosines_whatever_the_lengths_of_the_vectors():
    prototypes, features = Prototypes(5, 3), th.randn(7, 3)
    expected = th.nn.functional.cosine_similarity(features[:, None], prototypes.vectors[None], dim=2)
    with th.no_grad():
        prototypes.vectors.mul_(th.arange(1, 6)[:, None])
    th.testing.assert_close(prototypes.similarities(features), expected)
    prototypes.normalize()
    th.testing.assert_close(prototypes.scores(features), expected)
    assert (prototypes.predict(features) == expected.argmax(dim=1)).all()


def test_loss_is_the_cross_entropy_and_only_the_prediction_has_a_gradient():
    th.manual_seed(0)
    prototypes = Prototypes(4, 3, temperature=0.1, sinkhorn_temperature=0.03, sinkhorn_iterations=5)
    predicted, target = th.randn(2, 10, 4).unbind()
    predicted.requires_grad_(), target.requires_grad_()
    loss = prototypes.loss(predicted, target)
    q = plain_sinkhorn(target.double(), 0.03, 5)
    expected = -(q * (predicted.double() / 0.1).log_softmax(dim=1)).sum(dim=1).mean()
    assert loss.item() == pytest.approx(expected.item(), rel=1e-4)
    loss.backward()
    assert predicted.grad is not None and target.grad is None
