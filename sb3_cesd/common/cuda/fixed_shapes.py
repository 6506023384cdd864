"""Whether shapes of tensors may depend on data, which makes a CPU faster and a GPU wait for the host."""

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

import torch as th

_FIXED: ContextVar[bool] = ContextVar("_FIXED", default=False)


@contextmanager
def fixed_shapes() -> Iterator[None]:
    """Compute with the shapes that tensors have on a GPU, on the CPU as well."""
    token = _FIXED.set(True)
    try:
        yield
    finally:
        _FIXED.reset(token)


def shapes_may_vary(device: th.device) -> bool:
    """
    Tell whether shapes may depend on data.

    :param device: where the tensors are
    :return: whether shapes may depend on data there
    """
    return device.type == "cpu" and not _FIXED.get()
