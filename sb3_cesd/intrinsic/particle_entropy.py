"""Estimates of the entropy of states from the distances to their nearest neighbours."""

from typing import Literal

import torch as th
from torch import nn

from sb3_cesd.common.arguments import NonNegative, PositiveInt, checked
from sb3_cesd.common.torch_layers import one_hot


def nearest_distances(features: th.Tensor, same_group: th.Tensor | None, k: int) -> th.Tensor:
    """
    Compute the distances of states, ``(batch_size, features_dim)``, to the k nearest of the same group, including themselves.

    Matrix products find neighbours many times faster than differences do, but are inexact near distance zero. They therefore
    only select 2k candidates, whose distances are then computed from differences. If more states than that lie within some
    1e-4 of the spread of all features, one of them may be taken for the k-th nearest.

    :param same_group: bool, shape ``(batch_size, batch_size)``; ``None`` if all are
    :return: in ascending order, infinite where a group has fewer members, shape ``(batch_size, k)``
    """
    # Rounding grows with the distance from the origin
    centered = features - features.mean(dim=0)
    rough = th.cdist(centered, centered, compute_mode="use_mm_for_euclid_dist")
    if same_group is not None:
        rough.masked_fill_(~same_group, th.inf)
    candidates = rough.topk(min(2 * k, len(features)), largest=False, sorted=False).indices
    differences = features.index_select(0, candidates.flatten()).view(*candidates.shape, -1).sub_(features[:, None])
    distances = th.linalg.vector_norm(differences, dim=2)  # (batch_size, n_candidates)
    if same_group is not None:
        distances.masked_fill_(~same_group.gather(1, candidates), th.inf)
    return distances.topk(k, largest=False).values


class RunningVariance(nn.Module):
    """
    Running mean and variance of a scalar, merged group by group (Chan et al.'s parallel formula).

    Follows the released code of CeSD and URLB: the batch variance is the unbiased one and the statistics
    start as mean 0, variance 1 with a weight of 1e-4 samples. They are buffers, hence saved with the model,
    in float64 because the count reaches 1e10.
    """

    mean: th.Tensor
    var: th.Tensor
    count: th.Tensor

    def __init__(self) -> None:
        super().__init__()
        self.register_buffer("mean", th.zeros((), dtype=th.float64))
        self.register_buffer("var", th.ones((), dtype=th.float64))
        self.register_buffer("count", th.full((), 1e-4, dtype=th.float64))

    @th.no_grad()
    def update(
        self, values: th.Tensor, groups: th.Tensor | None = None, n_groups: int = 1, valid: th.Tensor | None = None
    ) -> th.Tensor:
        """
        Merge groups of rows of ``values``, ``(batch_size, k)``, one after another, in the order of their index, without a
        loop.

        Rows that are not ``valid`` do not count, and are 0. Returns the variance after each group was merged, ``(n_groups,)``,
        dtype of the values; an empty group repeats the variance before it.
        """
        x = values.double()
        # (batch_size, n_groups)
        member = th.ones_like(x[:, :1]) if groups is None else one_hot(groups, n_groups, x.dtype)
        if valid is not None:
            member = member * valid[:, None]
        n = member.sum(dim=0) * values.shape[1]  # (n_groups,)
        group_mean = x.sum(dim=1) @ member / n.clamp(min=1.0)
        deviation = x - (member @ group_mean)[:, None]
        group_var = deviation.square().sum(dim=1) @ member / (n - 1.0).clamp(min=1.0)

        count_after = self.count + n.cumsum(0)
        count_before = count_after - n
        mean_after = (self.mean * self.count + (n * group_mean).cumsum(0)) / count_after
        mean_before = th.cat([self.mean[None], mean_after[:-1]])
        delta = group_mean - mean_before
        # The released formula weights the unbiased variance by n, not by n - 1
        added = group_var * n + delta.square() * count_before * n / count_after
        var_after = (self.var * self.count + added.cumsum(0)) / count_after

        self.mean.copy_(mean_after[-1])
        self.var.copy_(var_after[-1])
        self.count.copy_(count_after[-1])
        return var_after.to(values.dtype)


class ParticleEntropy(nn.Module):
    """
    Particle-based estimate of the state entropy within groups of a batch (APT; eq. 5 and 6 of the CeSD paper, within each
    cluster).

    For each state, the distances d to its k nearest members of the same group (including itself, as in the released code) are
    divided by the scale, reduced to max(d - clip, 0), and averaged over k (or the k-th alone is taken). States of groups with
    k members or fewer get 0.

    The entropy estimate takes the logarithm of that (eq. 5, ``log1p=True``), and so do the rewards of APT, CIC and the
    released code of CeSD; the reward of the CeSD paper does not (eq. 6). With the logarithm, the reward rises ever more slowly
    with distance; without it, distant states are worth more, and skills covered more of the mazes.

    :param k: number of nearest neighbours
    :param scale: ``"std"`` divides by the running standard deviation of all distances seen, ``"variance"`` by its square (the
        released code, where it is named std), ``"mean"`` by their running mean (APS in URLB), ``"none"`` not at all (the
        paper's formula)
    :param clip: subtracted from distances after scaling; smaller distances count as zero
    :param aggregate: ``"mean"`` over the k nearest (the released code) or ``"kth"`` (the paper's formula)
    :param log1p: whether to take log(1 + .) in the end
    """

    @checked
    def __init__(
        self,
        k: PositiveInt = 8,
        scale: Literal["variance", "std", "mean", "none"] = "std",
        clip: NonNegative = 0.0005,
        aggregate: Literal["mean", "kth"] = "mean",
        log1p: bool = False,
    ) -> None:
        super().__init__()
        self.k = k
        self.scale = scale
        self.clip = clip
        self.aggregate = aggregate
        self.log1p = log1p
        self.statistics = RunningVariance()

    @th.no_grad()
    def forward(self, features: th.Tensor, groups: th.Tensor | None = None, n_groups: int = 1) -> tuple[th.Tensor, th.Tensor]:
        """
        Estimate the entropy of each group; in training mode the running statistics are updated, group by group, before they
        are used.

        :param features: shape ``(batch_size, features_dim)``
        :param groups: group of each state, shape ``(batch_size,)``; ``None`` for a single one
        :param n_groups: number of groups
        :return: reward of each state, shape ``(batch_size,)``, and which states are in a group of more than k members,
            shape ``(batch_size,)``
        :raises ValueError: if the batch is too small for any reward
        """
        if len(features) <= self.k:
            raise ValueError(f"batch_size={len(features)} is not larger than k={self.k}: raise it, or lower k.")
        same_group, large = None, th.ones(len(features), dtype=th.bool, device=features.device)
        if groups is not None:
            same_group = groups[:, None] == groups  # (batch_size, batch_size)
            large = same_group.sum(dim=1) > self.k
        nearest = nearest_distances(features, same_group, self.k)  # ||u - NN_k(u)||, (batch_size, k)
        if self.aggregate == "kth":
            nearest = nearest[:, -1:]
        if groups is not None:
            nearest = nearest.masked_fill(~large[:, None], 0.0)
        nearest = nearest / self._scale_of(nearest, groups, n_groups, large)
        rewards = (nearest - self.clip).clamp(min=0.0).mean(dim=1)
        return (rewards.log1p() if self.log1p else rewards), large

    def _scale_of(self, nearest: th.Tensor, groups: th.Tensor | None, n_groups: int, valid: th.Tensor) -> th.Tensor:
        if self.scale == "none":
            return nearest.new_ones(())
        if self.training:
            variance = self.statistics.update(nearest, groups, n_groups, valid)
            variance = variance if groups is None else variance.index_select(0, groups)[:, None]  # (batch_size, 1)
        else:
            variance = self.statistics.var.to(nearest.dtype)
        if self.scale == "mean":
            # Of all groups; 0 before anything was seen, and if all states were the same
            mean = self.statistics.mean.to(nearest.dtype)
            return th.where(mean == 0, 1.0, mean)
        return variance if self.scale == "variance" else variance.sqrt()
