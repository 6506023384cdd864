"""Whether shapes of tensors may depend on data, which is faster on a CPU, but makes a GPU wait for the host."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch as th

_FIXED: ContextVar[bool] = ContextVar("_FIXED", default=False)


@contextmanager
def fixed_shapes() -> Iterator[None]:
    """Use the shapes of tensors on a GPU on the CPU as well."""
    token = _FIXED.set(True)
    try:
        yield
    finally:
        _FIXED.reset(token)


def shapes_may_vary(device: th.device) -> bool:
    """
    Return whether shapes may depend on data.

    :param device: where the tensors are
    :return: whether shapes may depend on data there
    """
    return device.type == "cpu" and not _FIXED.get()
