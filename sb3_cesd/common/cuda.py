"""Code that only a GPU needs: captured graphs, tensors of arrays that change, shapes that do not depend on data."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.vec_env import VecNormalize


def shapes_may_vary(device: th.device) -> bool:
    """Return whether shapes may depend on data, which is faster on a CPU, but makes a GPU wait for the host."""
    return device.type == "cpu"


class DeviceArrays:
    """
    Tensors of numpy arrays. On the CPU they share the memory of the arrays; elsewhere they are copies, and :meth:`update`
    copies the rows that changed, without waiting for the device.

    Addresses of tensors stay the same until ``generation`` changes, so that a captured CUDA graph may read them.
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
        """Get a tensor, as of the last :meth:`update`."""
        return self._tensors[name]

    def set(self, **arrays: np.ndarray) -> None:
        for name, array in arrays.items():
            if self._arrays.get(name) is array:
                continue
            self._arrays[name] = array
            tensor = th.from_numpy(array)
            self._tensors[name] = tensor if self.shared else tensor.to(self.device, copy=True)
            self._changed_rows[name] = set()
            self.generation += 1

    def mark(self, names: Iterable[str], rows: Iterable[int]) -> None:
        """Mark rows of the first axis of arrays as changed."""
        if not self.shared:
            for name in names:
                if name in self._changed_rows:
                    self._changed_rows[name].update(rows)

    def update(self) -> None:
        """Copy all changes to the device."""
        for name, rows in self._changed_rows.items():
            if rows:
                changed = np.fromiter(rows, dtype=np.int64, count=len(rows))
                self._tensors[name].index_copy_(0, self.upload(changed), self.upload(self._arrays[name][changed]))
                rows.clear()

    def upload(self, array: np.ndarray) -> th.Tensor:
        """Copy an array, which must not be changed afterwards, to the device."""
        tensor = th.from_numpy(array)
        if self.device.type == "cuda":
            # From pinned memory, the host need not wait
            tensor = tensor.pin_memory()
        return tensor.to(self.device, non_blocking=True)


def can_capture(device: th.device) -> bool:
    return device.type == "cuda"


class GraphedFunction:
    """
    A function that a GPU replays as one CUDA graph, so that the host does not launch each operation.

    The first calls run it without a graph, as optimizers and libraries set themselves up in them; the next one captures it. A
    call with another key starts anew. Each call runs the function exactly once. It works on tensors whose addresses and
    shapes do not change; Python numbers in it are those of the capture.
    """

    #: Calls before the capture
    N_WARM_UP = 3

    def __init__(self, function: Callable[[th.Tensor], None]) -> None:
        self.function = function
        self.key: Hashable = None
        self.graph: th.cuda.CUDAGraph | None = None
        self.inputs = th.empty(0)
        #: Where it runs before the capture, and is captured; a library keeps its memory for each stream
        self.stream: th.cuda.Stream | None = None
        self.n_calls = 0

    def __call__(self, inputs: th.Tensor, key: Hashable) -> None:
        """Run the function once; the key changes whenever it would do something else, or with other tensors."""
        key = (key, inputs.shape, inputs.device)
        if key != self.key:
            self.key, self.graph, self.n_calls = key, None, 0
            self.inputs = th.empty_like(inputs)
        self.inputs.copy_(inputs)
        if self.n_calls < self.N_WARM_UP:
            self._run_aside()
        else:
            if self.graph is None:
                self.graph = self._capture()
            self.graph.replay()
        self.n_calls += 1

    def __getstate__(self) -> dict[str, Any]:
        # A graph belongs to the process that captured it
        return {**self.__dict__, "key": None, "graph": None, "stream": None, "n_calls": 0}

    def _run_aside(self) -> None:
        """Run the function on a side stream, as PyTorch requires before a capture."""
        device = self.inputs.device
        if self.stream is None or self.stream.device != device:
            # Of this device, which need not be the current one
            self.stream = th.cuda.Stream(device)
        self.stream.wait_stream(th.cuda.current_stream(device))
        with th.cuda.stream(self.stream):
            self.function(self.inputs)
        th.cuda.current_stream(device).wait_stream(self.stream)

    def _capture(self) -> th.cuda.CUDAGraph:
        graph = th.cuda.CUDAGraph()
        # Another thread may act meanwhile
        with th.cuda.graph(graph, stream=self.stream, capture_error_mode="thread_local"):
            self.function(self.inputs)
        return graph


def check_capturable(optimizers: Iterable[th.optim.Optimizer]) -> None:
    """Check that a graph can capture the steps of optimizers: those of fused ones, which run on the device alone."""
    for optimizer in optimizers:
        if not all(group.get("fused") for group in optimizer.param_groups):
            raise ValueError("cuda_graph=True needs optimizer_kwargs=dict(fused=True) in policy_kwargs: pass that.")


def set_learning_rate(optimizer: th.optim.Optimizer, learning_rate: float) -> None:
    """Set the learning rate of an optimizer, in place where it is a tensor."""
    for group in optimizer.param_groups:
        if isinstance(group["lr"], th.Tensor):
            group["lr"].fill_(learning_rate)
        else:
            group["lr"] = learning_rate


class UpdateRunner:
    """Run updates on lists of batches one by one, or replay them as one CUDA graph, which must not need the host."""

    def __init__(self, update: Callable[[list[Any]], None], device: th.device, cuda_graph: bool) -> None:
        self.update = update
        self.device = device
        self.in_graph = cuda_graph and can_capture(device)
        self._buffer: Any = None
        #: Learning rates that the graph reads
        self._learning_rates: list[Any] = []
        self._graphed_update = GraphedFunction(self._gather_and_update)

    def prepare(self, optimizers: Iterable[th.optim.Optimizer]) -> None:
        """Make learning rates tensors, which a graph reads anew in each replay, or (after loading) numbers again."""
        groups = [group for optimizer in optimizers for group in optimizer.param_groups]
        for group in groups:
            if "capturable" in group:
                group["capturable"] = self.in_graph
            device, rate = group["params"][0].device, group["lr"]
            if not self.in_graph:
                group["lr"] = float(rate)
            elif not isinstance(rate, th.Tensor) or rate.device != device:
                group["lr"] = th.tensor(float(rate), device=device)
        rates = [group["lr"] for group in groups]
        if [id(rate) for rate in rates] != [id(rate) for rate in self._learning_rates]:
            # Replaced by a callback, or by a state that was loaded
            self.forget()
        self._learning_rates = rates

    def forget(self) -> None:
        """Have the update captured anew, because tensors that it reads were replaced."""
        self._graphed_update.key = None

    def run(self, buffer: Any, batch_size: int, n_batches: int, env: VecNormalize | None) -> None:
        """Sample ``n_batches`` and learn from them, in one update; ``env`` normalises observations and rewards."""
        if not (self.in_graph and buffer.is_graphable):
            self.update([buffer.sample(batch_size, env) for _ in range(n_batches)])
            return
        buffer.prepare(env)
        self._buffer = buffer
        drawn = th.stack([buffer.draw(batch_size) for _ in range(n_batches)])  # (n_batches, 2, batch_size)
        self._graphed_update(drawn, (id(buffer), buffer.generation))

    def _gather_and_update(self, drawn: th.Tensor) -> None:
        self.update([self._buffer.gather(batch) for batch in drawn])
