"""Numpy arrays that change row by row, as tensors on a device."""

from collections.abc import Iterable

import numpy as np
import torch as th


class DeviceArrays:
    """
    Tensors of numpy arrays. On the CPU they share the memory of the arrays; elsewhere they are copies, and :meth:`update`
    copies the rows that changed, without waiting for the device.

    Addresses of tensors stay the same until ``generation`` changes, so that a captured CUDA graph may read them.

    :param device: where the tensors are
    :param shared: whether they share the memory of the arrays; ``None`` to do so where possible
    """

    def __init__(self, device: th.device, shared: bool | None = None) -> None:
        self.device = device
        self.shared = device.type == "cpu" if shared is None else shared
        #: Changes with the address of any tensor
        self.generation = 0
        self._arrays: dict[str, np.ndarray] = {}
        self._tensors: dict[str, th.Tensor] = {}
        self._changed_rows: dict[str, set[int]] = {}

    def __getitem__(self, name: str) -> th.Tensor:
        """
        Get a tensor.

        :param name: name of an array
        :return: the tensor, as of the last :meth:`update`
        """
        return self._tensors[name]

    def set(self, **arrays: np.ndarray) -> None:
        """
        Add arrays, or replace some.

        :param arrays: numpy arrays by name, of any shape
        """
        for name, array in arrays.items():
            if self._arrays.get(name) is array:
                continue
            self._arrays[name] = array
            tensor = th.from_numpy(array)
            self._tensors[name] = tensor if self.shared else tensor.to(self.device, copy=True)
            self._changed_rows[name] = set()
            self.generation += 1

    def mark(self, names: Iterable[str], rows: Iterable[int]) -> None:
        """
        Mark rows as changed.

        :param names: arrays that changed
        :param rows: in these rows of their first axis
        """
        if not self.shared:
            for name in names:
                self._changed_rows[name].update(rows)

    def update(self) -> None:
        """Copy all changes to the device."""
        for name, rows in self._changed_rows.items():
            if rows:
                changed = np.fromiter(rows, dtype=np.int64, count=len(rows))
                self._tensors[name].index_copy_(0, self.upload(changed), self.upload(self._arrays[name][changed]))
                rows.clear()

    def upload(self, array: np.ndarray) -> th.Tensor:
        """
        Copy an array to the device.

        :param array: any array, which must not be changed afterwards
        :return: a tensor of it on the device
        """
        tensor = th.from_numpy(array)
        if self.device.type == "cuda":
            # From pinned memory, the host need not wait
            tensor = tensor.pin_memory()
        return tensor.to(self.device, non_blocking=True)
