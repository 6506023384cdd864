"""Small operations on tensors."""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager

import torch as th


@contextmanager
def frozen(parameters: Iterable[th.Tensor]) -> Iterator[None]:
    """
    Compute no gradient of these parameters within the context, which saves its cost.

    :param parameters: any parameters; those that are not trainable stay so
    """
    parameters = [parameter for parameter in parameters if parameter.requires_grad]
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


def minimum(tensors: list[th.Tensor]) -> th.Tensor:
    """
    Take the elementwise minimum.

    :param tensors: of equal shape
    :return: their minimum, of the same shape
    """
    return th.stack(tensors).min(dim=0).values


@th.no_grad()
def polyak_update(params: Iterable[th.Tensor], target_params: Iterable[th.Tensor], tau: float) -> None:
    """
    Do the same as SB3's function of this name, in one fused operation: ``target += tau (params - target)``, in place.

    :param params: parameters of the online network
    :param target_params: parameters of the target network, in the same order
    :param tau: soft update coefficient, between 0 and 1
    """
    target_params = list(target_params)
    if target_params:
        th._foreach_lerp_(target_params, list(params), tau)


def one_hot(indices: th.Tensor, n_classes: int, dtype: th.dtype) -> th.Tensor:
    """
    Make one-hot vectors.

    :param indices: shape ``(n,)``
    :param n_classes: number of classes
    :param dtype: dtype of the result
    :return: shape ``(n, n_classes)``
    """
    # PyTorch's own one_hot reads the indices back to check them
    return (indices[:, None] == th.arange(n_classes, device=indices.device)).to(dtype)


def sample_categorical(probabilities: th.Tensor) -> th.Tensor:
    """
    Draw an index for each row, without the check on the host that PyTorch's own sampling makes.

    :param probabilities: rows that sum to 1, shape ``(n, n_classes)``
    :return: shape ``(n,)``
    """
    # p / Exp(1) is largest at i with probability p_i
    return (probabilities / th.empty_like(probabilities).exponential_()).argmax(dim=1)
