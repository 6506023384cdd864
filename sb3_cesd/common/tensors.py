"""Small operations on tensors."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Any

import torch as th


@contextmanager
def frozen(parameters: Iterable[th.Tensor]) -> Iterator[None]:
    """Compute no gradient of these parameters within the context, which saves its cost."""
    parameters = [parameter for parameter in parameters if parameter.requires_grad]
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


def select(observations: Any, rows: th.Tensor | None) -> Any:
    """
    Select rows of observations.

    :param observations: shape ``(n, *shape)``, or a dictionary of such tensors
    :param rows: shape ``(n_rows,)``; ``None`` for all rows, without a copy
    :return: shape ``(n_rows, *shape)``, or a dictionary of such tensors
    """
    if rows is None:
        return observations
    if isinstance(observations, dict):
        return {name: value.index_select(0, rows) for name, value in observations.items()}
    return observations.index_select(0, rows)


def minimum(tensors: list[th.Tensor]) -> th.Tensor:
    """Take the elementwise minimum of tensors of equal shape."""
    return th.stack(tensors).min(dim=0).values


@th.no_grad()
def polyak_update(params: Iterable[th.Tensor], target_params: Iterable[th.Tensor], tau: float) -> None:
    """Do the same as SB3's function of this name, in one fused operation: ``target += tau (params - target)``, in place."""
    target_params = list(target_params)
    if target_params:
        th._foreach_lerp_(target_params, list(params), tau)


def one_hot(indices: th.Tensor, n_classes: int, dtype: th.dtype) -> th.Tensor:
    """Make one-hot vectors, shape ``(n, n_classes)``, without PyTorch's check, which reads the indices back."""
    return (indices[:, None] == th.arange(n_classes, device=indices.device)).to(dtype)


def sample_categorical(probabilities: th.Tensor) -> th.Tensor:
    """Draw an index for each row of probabilities, shape ``(n,)``, without the check on the host that PyTorch makes."""
    # p / Exp(1) is largest at i with probability p_i
    return (probabilities / th.empty_like(probabilities).exponential_()).argmax(dim=1)
