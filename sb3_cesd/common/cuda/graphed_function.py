"""Replay a whole update as one CUDA graph."""

from collections.abc import Callable, Hashable
from typing import Any

import torch as th


def can_capture(device: th.device) -> bool:
    """
    Return whether a device supports CUDA graphs.

    :param device: where something is computed
    :return: whether graphs can be captured there
    """
    return device.type == "cuda"


class GraphedFunction:
    """
    A function that a GPU replays as one CUDA graph, so that the host does not launch each operation.

    The first calls run it without a graph, as optimizers and libraries set themselves up in them; the next one captures it. A
    call with another key starts anew. Each call runs the function exactly once.

    :param function: takes a tensor, works on tensors whose addresses and shapes do not change, and returns nothing; Python
        numbers in it are those of the capture
    """

    #: Calls before the capture
    N_WARM_UP = 3

    def __init__(self, function: Callable[[th.Tensor], None]) -> None:
        self.function = function
        self.key: Hashable = None
        self.graph: th.cuda.CUDAGraph | None = None
        self.inputs = th.empty(0)
        self.n_calls = 0

    def __call__(self, inputs: th.Tensor, key: Hashable) -> None:
        """
        Run the function once.

        :param inputs: argument of the function
        :param key: changes whenever the function would do something else, or with other tensors
        """
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
        return {**self.__dict__, "key": None, "graph": None, "n_calls": 0}

    def _run_aside(self) -> None:
        """Run the function on a side stream, as PyTorch requires before a capture."""
        stream = th.cuda.Stream()
        stream.wait_stream(th.cuda.current_stream())
        with th.cuda.stream(stream):
            self.function(self.inputs)
        th.cuda.current_stream().wait_stream(stream)

    def _capture(self) -> th.cuda.CUDAGraph:
        graph = th.cuda.CUDAGraph()
        # Another thread may act meanwhile
        with th.cuda.graph(graph, capture_error_mode="thread_local"):
            self.function(self.inputs)
        return graph


def set_capturable(optimizer: th.optim.Optimizer, capturable: bool, device: th.device) -> None:
    """
    Make the learning rate a tensor, which a graph reads anew in each replay, or a number again.

    :param optimizer: changed in place
    :param capturable: whether a graph captures its steps
    :param device: of its parameters
    """
    if capturable:
        for state in optimizer.state.values():
            if isinstance(state.get("step"), th.Tensor):
                # On the host, if it was counted there before
                state["step"] = state["step"].to(device)
    for group in optimizer.param_groups:
        if "capturable" in group:
            group["capturable"] = capturable
        is_tensor = isinstance(group["lr"], th.Tensor)
        if capturable and not (is_tensor and group["lr"].device.type == device.type):
            group["lr"] = th.tensor(float(group["lr"]), device=device)
        elif not capturable and is_tensor:
            group["lr"] = float(group["lr"])


def set_learning_rate(optimizer: th.optim.Optimizer, learning_rate: float) -> None:
    """
    Set the learning rate of an optimizer, in place where it is a tensor.

    :param optimizer: changed in place
    :param learning_rate: of all its parameters
    """
    for group in optimizer.param_groups:
        if isinstance(group["lr"], th.Tensor):
            group["lr"].fill_(learning_rate)
        else:
            group["lr"] = learning_rate
