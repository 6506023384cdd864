import pytest
import torch as th

from sb3_cesd.intrinsic.particle_entropy import ParticleEntropy

K, N_GROUPS = 3, 4


class ReleasedRMS:
    """The running variance of the released code, as it is described: one batch after another."""

    def __init__(self):
        self.mean, self.var, self.n = 0.0, 1.0, 1e-4

    def __call__(self, x):
        n = len(x)
        delta = x.mean() - self.mean
        total = self.n + n
        self.var = (self.var * self.n + x.var() * n + delta**2 * self.n * n / total) / total
        self.mean = self.mean + delta * n / total
        self.n = total
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
    for batch in range(4):
        features = th.randn(40, 5, dtype=th.float64) * (batch + 1)
        # Group 2 is too small, group 3 empty
        groups = th.cat([th.zeros(20), th.ones(17), th.full((3,), 2)]).long()[th.randperm(40)]
        rewards, large = entropy(features, groups, N_GROUPS)
        th.testing.assert_close(rewards, loop_over_groups(features, groups, scale, aggregate, log1p, rms), rtol=1e-9, atol=0)
        assert (large == (groups < 2)).all()
        assert (rewards[groups == 2] == 0).all() and (rewards[groups < 2] > 0).all()
    if scale != "none":
        assert entropy.statistics.var.item() == pytest.approx(float(rms.var))
        assert entropy.statistics.count.item() == pytest.approx(rms.n)


def test_group_of_k_members_is_too_small_and_one_more_is_enough():
    for n_members, expected in ((K, False), (K + 1, True)):
        rewards, large = ParticleEntropy(K)(th.randn(n_members, 2), th.zeros(n_members, dtype=th.long), 1)
        assert large.all().item() is expected
        assert (rewards > 0).any().item() is expected


def test_statistics_rest_in_evaluation_mode():
    entropy = ParticleEntropy(K)
    groups = th.zeros(10, dtype=th.long)
    entropy(th.randn(10, 2), groups, 1)
    before = entropy.statistics.count.clone()
    entropy.eval()
    entropy(th.randn(10, 2), groups, 1)
    assert entropy.statistics.count == before
    entropy.train()
    entropy(th.randn(10, 2), groups, 1)
    assert entropy.statistics.count > before


@pytest.mark.parametrize("scale", ["mean", "std", "variance"])
def test_distances_are_divided_by_one_before_anything_was_seen(scale):
    features, groups = th.randn(10, 2), th.zeros(10, dtype=th.long)
    rewards, _ = ParticleEntropy(K, scale=scale).eval()(features, groups, 1)
    th.testing.assert_close(rewards, ParticleEntropy(K, scale="none").eval()(features, groups, 1)[0])


def test_states_that_are_all_the_same_earn_nothing():
    entropy, groups = ParticleEntropy(K, scale="mean"), th.zeros(10, dtype=th.long)
    assert (entropy(th.ones(10, 2), groups, 1)[0] == 0).all()
    assert (entropy.eval()(th.rand(10, 2), groups, 1)[0] < 2).all(), "there is nothing to divide by"


def test_sparse_states_earn_more_than_dense_ones():
    features = th.cat([th.randn(50, 2) * 0.1, th.randn(50, 2) * 3 + 20])
    rewards, _ = ParticleEntropy(K)(features, th.zeros(100, dtype=th.long), 1)
    assert rewards[50:].mean() > 2 * rewards[:50].mean()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"k": 0}, "set k above 0"),
        ({"k": -2}, "set k above 0"),
        ({"scale": "mad"}, "'variance', 'std', 'mean' or 'none'"),
        ({"aggregate": "max"}, "'mean' or 'kth'"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        ParticleEntropy(**kwargs)
