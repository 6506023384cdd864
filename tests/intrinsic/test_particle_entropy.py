import pytest
import torch as th

from sb3_cesd.intrinsic.particle_entropy import ParticleEntropy, nearest_distances

K, N_GROUPS = 3, 4


@pytest.mark.parametrize(("offset", "spread"), [(0.0, 1.0), (100.0, 1.0), (1.0, 1e-4)])
@pytest.mark.parametrize("features_dim", [1, 300])
def test_distances_are_those_of_differences(features_dim, offset, spread):
    """Also where |u|^2 + |v|^2 - 2 u.v has lost all digits."""
    th.manual_seed(0)
    features, groups = offset + spread * th.randn(200, features_dim), th.randint(0, 4, (200,))
    distances = (features.double()[:, None] - features.double()).norm(dim=2)
    expected = distances.masked_fill(groups[:, None] != groups, th.inf).sort(dim=1).values[:, :8].float()
    th.testing.assert_close(nearest_distances(features, groups[:, None] == groups, 8), expected, rtol=1e-5, atol=0)


def test_small_groups_have_too_few_neighbors():
    groups = th.tensor([0, 0, 0, 1, 1])
    nearest = nearest_distances(th.arange(5.0)[:, None], groups[:, None] == groups, 3)
    assert nearest.tolist() == [[0, 1, 2], [0, 1, 1], [0, 1, 2], [0, 1, th.inf], [0, 1, th.inf]]


class ReleasedRMS:
    """The running variance of the released code, as it is described: one batch after another."""

    def __init__(self):
        self.mean, self.var, self.n = 0.0, 1.0, 1e-4

    def __call__(self, x):
        n = len(x)
        delta, total = x.mean() - self.mean, self.n + n
        self.var = (self.var * self.n + x.var() * n + delta**2 * self.n * n / total) / total
        self.mean, self.n = self.mean + delta * n / total, total
        return self.var


def loop_over_groups(features, groups, scale, aggregate, log1p, rms, clip=0.0005):
    rewards = th.zeros(len(features), dtype=features.dtype)
    for group in range(N_GROUPS):
        members = (groups == group).nonzero().squeeze(1)
        if len(members) <= K:
            continue
        x = features[members]
        distances = (x[:, None] - x[None]).norm(dim=-1).sort(dim=1).values[:, :K]
        if aggregate == "kth":
            distances = distances[:, -1:]
        var = rms(distances.flatten())
        divisor = {"variance": var, "std": var**0.5, "none": 1.0}[scale]
        reward = (distances / divisor - clip).clamp(min=0).mean(dim=1)
        rewards[members] = reward.log1p() if log1p else reward
    return rewards


@pytest.mark.parametrize("scale", ["variance", "std", "none"])
@pytest.mark.parametrize("aggregate", ["mean", "kth"])
@pytest.mark.parametrize("log1p", [True, False])
def test_equals_a_loop_over_groups(scale, aggregate, log1p):
    th.manual_seed(0)
    entropy, rms = ParticleEntropy(K, scale=scale, aggregate=aggregate, log1p=log1p), ReleasedRMS()
    for batch in range(3):
        features = th.randn(40, 5, dtype=th.float64) * (batch + 1)
        # Group 2 is too small, group 3 empty
        groups = th.cat([th.zeros(20), th.ones(17), th.full((3,), 2)]).long()[th.randperm(40)]
        rewards, large = entropy(features, groups, N_GROUPS)
        th.testing.assert_close(rewards, loop_over_groups(features, groups, scale, aggregate, log1p, rms), rtol=1e-9, atol=0)
        assert (large == (groups < 2)).all()
    if scale != "none":
        assert entropy.statistics.var.item() == pytest.approx(float(rms.var))
        before = entropy.statistics.count.clone()
        entropy.eval()(features, groups, N_GROUPS)
        assert entropy.statistics.count == before == pytest.approx(rms.n), "they rest in evaluation mode"


@pytest.mark.parametrize("scale", ["mean", "std", "variance"])
def test_distances_are_divided_by_one_before_anything_was_seen(scale):
    features = th.randn(10, 2)
    rewards, _ = ParticleEntropy(K, scale=scale).eval()(features)
    th.testing.assert_close(rewards, ParticleEntropy(K, scale="none").eval()(features)[0])


def test_states_that_are_all_the_same_earn_nothing():
    assert (ParticleEntropy(K, scale="mean")(th.ones(10, 2))[0] == 0).all()


@pytest.mark.parametrize("kwargs", [{"k": 0}, {"scale": "mad"}, {"aggregate": "max"}, {"clip": -1.0}])
def test_bad_arguments(kwargs):
    with pytest.raises(ValueError, match=next(iter(kwargs))):
        ParticleEntropy(**kwargs)
    with pytest.raises(ValueError, match="batch_size"):
        ParticleEntropy(K)(th.zeros(K, 2))
