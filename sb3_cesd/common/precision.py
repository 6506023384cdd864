"""Matrix products in less than float32, where the user wants that."""

from collections.abc import Iterator
from contextlib import contextmanager

import torch as th

MATMUL_PRECISIONS = ("highest", "high", "medium")


@contextmanager
def precision(device: th.device, matmul_precision: str | None, bf16: bool) -> Iterator[None]:
    """
    :param device: where it is computed
    :param matmul_precision: PyTorch's ``set_float32_matmul_precision`` within, which is a setting of the process; ``None``
        leaves it as it is
    :param bf16: automatic mixed precision with bfloat16
    """
    before = th.get_float32_matmul_precision()
    if matmul_precision is not None:
        th.set_float32_matmul_precision(matmul_precision)
    try:
        # A cache of weights would outlive the steps of their optimizer
        with th.autocast(device.type, dtype=th.bfloat16, enabled=bf16, cache_enabled=False):
            yield
    finally:
        th.set_float32_matmul_precision(before)
