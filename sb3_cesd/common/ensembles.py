"""Ensembles of networks, where a single one may evaluate each row of a batch."""

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import torch as th
from torch import nn

from sb3_cesd.common.cuda import shapes_may_vary

#: Rows per tile where shapes may not depend on data
TILE_SIZE = 64


class HeadRouting(NamedTuple):
    """
    Plan of which rows go to which head, made once by :func:`route` and used by every layer and critic.

    Two plans compute the same values. *Ragged*: rows sorted by head, one matrix product per head; needs the counts on the
    host. *Tiled*: rows laid out in tiles of equal size, each of one head, one batched product; every shape is known
    beforehand, so that a GPU never waits for the host.

    :param slots: place of each row in the layout, shape ``(n_rows,)``
    :param n_slots: number of places in the layout
    :param order: rows sorted by head, as networks take them (ragged plan), or ``None`` for rows as they are
    :param counts: rows of each head (ragged plan), or ``None``
    :param heads: head of each row in that order (ragged plan), or of each tile, shape ``(n_tiles,)`` (tiled plan)
    """

    slots: th.Tensor
    n_slots: int
    order: th.Tensor | None
    counts: list[int] | None
    heads: th.Tensor


def route(heads: th.Tensor, n_heads: int, tile_size: int | None = None) -> HeadRouting:
    """
    Plan the evaluation of row j by head ``heads[j]``: ragged where shapes may depend on data, else (or with ``tile_size``) in
    tiles.
    """
    if tile_size is None and not shapes_may_vary(heads.device):
        tile_size = TILE_SIZE
    n_rows = len(heads)
    if tile_size is None:
        order = heads.argsort(stable=True)
        ranks = th.empty_like(order).scatter_(0, order, th.arange(n_rows, device=heads.device))
        return HeadRouting(ranks, n_rows, order, th.bincount(heads, minlength=n_heads).tolist(), heads.index_select(0, order))

    # Counted instead of sorted: a GPU sorts few numbers slowly
    counts = (heads == th.arange(n_heads, device=heads.device)[:, None]).cumsum(dim=1)  # (n_heads, n_rows)
    n_tiles_of_head = (counts[:, -1] + tile_size - 1) // tile_size
    last_tile = n_tiles_of_head.cumsum(0)
    first_slot = (last_tile - n_tiles_of_head) * tile_size
    slots = (first_slot[:, None] + counts).gather(0, heads[None]).squeeze(0) - 1
    # At most one tile per head is not full: a bound that does not depend on the data
    n_tiles = n_rows // tile_size + n_heads
    tiles = th.arange(n_tiles, device=heads.device)
    tile_heads = th.searchsorted(last_tile, tiles, right=True).clamp(max=n_heads - 1)
    return HeadRouting(slots, n_tiles * tile_size, None, None, tile_heads)


class _RaggedLinear(th.autograd.Function):
    """
    One matrix product per head on sorted rows, with gradients written in place.

    Autograd alone would gather the gradients of the heads in a copy, which costs as much as half of the products.
    """

    @staticmethod
    def forward(
        ctx: Any, rows: th.Tensor, weight: th.Tensor, bias: th.Tensor, counts: list[int], heads: th.Tensor
    ) -> th.Tensor:
        ctx.save_for_backward(rows, weight)
        ctx.counts = counts
        outputs = bias.squeeze(1).index_select(0, heads)
        for block, head_weight, output in zip(rows.split(counts), weight, outputs.split(counts), strict=True):
            output.addmm_(block, head_weight)
        return outputs

    @staticmethod
    def backward(ctx: Any, grad_outputs: th.Tensor) -> tuple[th.Tensor | None, ...]:  # type: ignore[override]
        rows, weight = ctx.saved_tensors
        grad_blocks = grad_outputs.split(ctx.counts)
        grad_rows = grad_weight = grad_bias = None
        if ctx.needs_input_grad[0]:
            grad_rows = th.empty_like(rows)
            for grad, head_weight, grad_block in zip(grad_blocks, weight.mT, grad_rows.split(ctx.counts), strict=True):
                th.mm(grad, head_weight, out=grad_block)
        if ctx.needs_input_grad[1]:
            # A head without rows gets zeros: the product over no rows
            grad_weight = th.empty_like(weight)
            for grad, block, grad_head in zip(grad_blocks, rows.T.split(ctx.counts, dim=1), grad_weight, strict=True):
                th.mm(block, grad, out=grad_head)
        if ctx.needs_input_grad[2]:
            grad_bias = th.stack([grad.sum(dim=0, keepdim=True) for grad in grad_blocks])
        return grad_rows, grad_weight, grad_bias, None, None


class EnsembleLinear(nn.Module):
    """
    ``n_heads`` independent linear layers in one tensor.

    The released code initialises them with the fan of the wrong axis; here it is the fan-in of each head.
    """

    def __init__(self, n_heads: int, input_dim: int, output_dim: int) -> None:
        super().__init__()
        bound = 1.0 / math.sqrt(input_dim)
        self.weight = nn.Parameter(th.empty(n_heads, input_dim, output_dim).uniform_(-bound, bound))
        self.bias = nn.Parameter(th.empty(n_heads, 1, output_dim).uniform_(-bound, bound))

    def forward(self, inputs: th.Tensor) -> th.Tensor:
        """Evaluate every head on ``(n_heads, n_rows, input_dim)`` or on the same ``(n_rows, input_dim)``."""
        return inputs @ self.weight + self.bias

    def forward_routed(self, rows: th.Tensor, routing: HeadRouting) -> th.Tensor:
        """
        Evaluate each head on its rows: on those sorted by head, with one matrix product per head, or on tiles, shape
        ``(n_tiles, tile_size, input_dim)``, in one batched product.
        """
        if routing.counts is None:
            return th.baddbmm(self.bias.index_select(0, routing.heads), rows, self.weight.index_select(0, routing.heads))
        if th.is_autocast_enabled(rows.device.type):
            # Autocast does not reach into autograd functions
            rows = rows.to(th.get_autocast_dtype(rows.device.type))
        return _RaggedLinear.apply(rows, self.weight.to(rows.dtype), self.bias.to(rows.dtype), routing.counts, routing.heads)


class RoutedEnsembleMLP(nn.Module):
    """``n_heads`` independent MLPs, where each row of a batch is evaluated by one of them only."""

    def __init__(
        self, n_heads: int, input_dim: int, output_dim: int, net_arch: Sequence[int], activation_fn: type[nn.Module] = nn.ReLU
    ) -> None:
        super().__init__()
        sizes = [input_dim, *net_arch, output_dim]
        self.layers = nn.ModuleList(EnsembleLinear(n_heads, size_in, size_out) for size_in, size_out in pairwise(sizes))
        self.activation = activation_fn()

    def forward(self, inputs: th.Tensor, routing: HeadRouting) -> th.Tensor:
        """Evaluate rows, in the ``order`` of the plan: shape ``(n_rows, output_dim)``, in the order that was routed."""
        hidden = inputs
        if routing.counts is None:
            hidden = inputs.new_zeros(routing.n_slots, inputs.shape[1]).index_copy(0, routing.slots, inputs)
            hidden = hidden.view(len(routing.heads), -1, inputs.shape[1])
        for idx, layer in enumerate(self.layers):
            hidden = layer.forward_routed(hidden if idx == 0 else self.activation(hidden), routing)  # type: ignore[operator]
        return hidden.flatten(0, -2).index_select(0, routing.slots)

    def forward_dense(self, inputs: th.Tensor) -> th.Tensor:
        """Evaluate every head on every row, shape ``(n_heads, n_rows, output_dim)``."""
        hidden = inputs
        for idx, layer in enumerate(self.layers):
            hidden = layer(hidden if idx == 0 else self.activation(hidden))
        return hidden
