import torch as th
from torch import nn

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.choices import Aggregate, DistanceScale
from sb3_cesd.common.running_mean_std import RunningVariance
from sb3_cesd.intrinsic.neighbors import nearest_distances


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

    def __init__(
        self,
        k: int = 16,
        scale: DistanceScale = "std",
        clip: float = 0.0005,
        aggregate: Aggregate = "mean",
        log1p: bool = False,
    ) -> None:
        check_arguments("ParticleEntropy", locals())
        super().__init__()
        self.k = k
        self.scale = scale
        self.clip = clip
        self.aggregate = aggregate
        self.log1p = log1p
        self.statistics = RunningVariance()

    def check_batch_size(self, batch_size: int) -> None:
        """
        Check that a group can be larger than k.

        :param batch_size: number of transitions per gradient update
        :raises ValueError: if no group can be larger than k
        """
        if batch_size <= self.k:
            raise ValueError(
                f"batch_size={batch_size} is not larger than k={self.k}, so no state could get a reward: "
                "raise batch_size, or lower k in entropy_kwargs."
            )

    @th.no_grad()
    def forward(self, features: th.Tensor, groups: th.Tensor, n_groups: int) -> tuple[th.Tensor, th.Tensor]:
        """
        Estimate the entropy of each group; in training mode the running statistics are updated, group by group, before they
        are used.

        :param features: shape ``(batch_size, features_dim)``
        :param groups: group of each state, shape ``(batch_size,)``
        :param n_groups: number of groups
        :return: reward of each state, shape ``(batch_size,)``, and which states are in a group of more than k members,
            shape ``(batch_size,)``
        """
        same_group = groups[:, None] == groups  # (batch_size, batch_size)
        large = same_group.sum(dim=1) > self.k  # (batch_size,)
        nearest = nearest_distances(features, same_group, self.k)  # ||u - NN_k(u)||, (batch_size, k)
        if self.aggregate == "kth":
            nearest = nearest[:, -1:]
        nearest = th.where(large[:, None], nearest, 0.0)

        nearest = nearest / self._scale_of(nearest, groups, n_groups, large)
        rewards = (nearest - self.clip).clamp(min=0.0).mean(dim=1)
        return (rewards.log1p() if self.log1p else rewards), large

    def _scale_of(self, nearest: th.Tensor, groups: th.Tensor, n_groups: int, valid: th.Tensor) -> th.Tensor:
        if self.scale == "none":
            return nearest.new_ones(())
        if self.training:
            variance = self.statistics.update(nearest, groups, n_groups, valid)[groups][:, None]  # (batch_size, 1)
        else:
            variance = self.statistics.var.to(nearest.dtype)
        if self.scale == "mean":
            # Of all groups; 0 before anything was seen, and if all states were the same
            mean = self.statistics.mean.to(nearest.dtype)
            return th.where(mean == 0, 1.0, mean)
        return variance if self.scale == "variance" else variance.sqrt()
