import torch as th
from torch import nn


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
    def update(self, values: th.Tensor, groups: th.Tensor, n_groups: int, valid: th.Tensor) -> th.Tensor:
        """
        Merge the groups one after another, in the order of their index, without a loop.

        :param values: shape ``(batch_size, k)``; rows that are not valid may hold anything
        :param groups: group of each row, shape ``(batch_size,)``
        :param n_groups: number of groups
        :param valid: which rows count, shape ``(batch_size,)``
        :return: the variance after each group was merged, shape ``(n_groups,)``, dtype of the values;
            an empty group repeats the variance before it
        """
        x = th.where(valid[:, None], values, 0.0).double()
        member = (groups[:, None] == th.arange(n_groups, device=groups.device)) & valid[:, None]
        member = member.double()  # (batch_size, n_groups)
        n = member.sum(dim=0) * values.shape[1]  # (n_groups,)
        group_mean = (member.T @ x).sum(dim=1) / n.clamp(min=1.0)
        deviation = (x - (member @ group_mean)[:, None]) * valid[:, None]
        group_var = (member.T @ deviation.square()).sum(dim=1) / (n - 1.0).clamp(min=1.0)

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
