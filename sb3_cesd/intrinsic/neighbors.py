"""Distances to the nearest states of a batch."""

import torch as th


def nearest_distances(features: th.Tensor, same_group: th.Tensor, k: int) -> th.Tensor:
    """
    Compute the distances to the k nearest members of the same group, including each state itself.

    Matrix products find neighbours many times faster than differences do, but are inexact near distance zero. They therefore
    only select 2k candidates, whose distances are then computed from differences. If more states than that lie within some
    1e-4 of the spread of all features, one of them may be taken for the k-th nearest.

    :param features: shape ``(batch_size, features_dim)``
    :param same_group: which states are in the same group, bool, shape ``(batch_size, batch_size)``
    :param k: number of neighbours, at most ``batch_size``
    :return: distances in ascending order, infinite where a group has fewer members, shape ``(batch_size, k)``
    """
    # Rounding grows with the distance from the origin
    centered = features - features.mean(dim=0)
    rough = th.cdist(centered, centered, compute_mode="use_mm_for_euclid_dist").masked_fill(~same_group, th.inf)
    candidates = rough.topk(min(2 * k, len(features)), largest=False).indices
    differences = features.index_select(0, candidates.flatten()).view(*candidates.shape, -1).sub_(features[:, None])
    distances = th.linalg.vector_norm(differences, dim=2)  # (batch_size, n_candidates)
    distances = distances.masked_fill(~same_group.gather(1, candidates), th.inf)
    return distances.topk(k, largest=False).values
