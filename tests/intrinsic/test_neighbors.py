import pytest
import torch as th

from sb3_cesd.intrinsic.particle_entropy import nearest_distances


def by_differences(features, groups, k):
    """Sorted distances within each group, in double precision."""
    x = features.double()
    distances = (x[:, None] - x).norm(dim=2)
    distances[groups[:, None] != groups] = th.inf
    return distances.sort(dim=1).values[:, :k].float()


@pytest.mark.parametrize(("offset", "spread"), [(0.0, 1.0), (100.0, 1.0), (1.0, 1e-4), (100.0, 0.01)])
@pytest.mark.parametrize("features_dim", [1, 16, 300])
def test_distances_are_those_of_differences(features_dim, offset, spread):
    """Also where |u|^2 + |v|^2 - 2 u.v has lost all digits."""
    th.manual_seed(0)
    features = offset + spread * th.randn(200, features_dim)
    groups = th.randint(0, 4, (200,))
    nearest = nearest_distances(features, groups[:, None] == groups, 8)
    th.testing.assert_close(nearest, by_differences(features, groups, 8), rtol=1e-5, atol=0)
    assert (nearest[:, 0] == 0).all()


def test_dense_clusters_that_lie_far_apart():
    """Rounding of the squares, some 1e4 of them, is larger than all distances within a cluster."""
    th.manual_seed(0)
    features = th.randn(10, 16).mul(100).repeat_interleave(20, dim=0) + 1e-3 * th.randn(200, 16)
    groups = th.zeros(200, dtype=th.long)
    nearest, expected = nearest_distances(features, groups[:, None] == groups, 8), by_differences(features, groups, 8)
    assert (nearest >= expected * (1 - 1e-3)).all() and (nearest.mean() < 1.1 * expected.mean())


def test_small_groups_have_too_few_neighbors():
    groups = th.tensor([0, 0, 0, 1, 1])
    nearest = nearest_distances(th.arange(5.0)[:, None], groups[:, None] == groups, 3)
    assert nearest.tolist() == [[0, 1, 2], [0, 1, 1], [0, 1, 2], [0, 1, th.inf], [0, 1, th.inf]]


def test_as_many_neighbors_as_states():
    nearest = nearest_distances(th.tensor([[0.0], [1.0], [3.0]]), th.ones(3, 3, dtype=th.bool), 3)
    assert nearest.tolist() == [[0, 1, 3], [0, 1, 2], [0, 2, 3]]


def test_what_is_not_finite_stays_so():
    features = th.randn(20, 4)
    features[3] = th.nan
    nearest = nearest_distances(features, th.ones(20, 20, dtype=th.bool), 4)
    assert nearest[3].isnan().any()
