"""Replay a whole update as one CUDA graph."""

from collections.abc import Callable, Hashable, Iterable
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
        #: Where it runs before the capture, and is captured; a library keeps its memory for each stream
        self.stream: th.cuda.Stream | None = None
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
    """
    Check that a graph can capture the steps of optimizers.

    :param optimizers: those that the function uses
    :raises ValueError: if one of them reads its learning rate or its number of steps on the host
    """
    for optimizer in optimizers:
        if not all("capturable" in group or group.get("fused") for group in optimizer.param_groups):
            raise ValueError(
                f"cuda_graph=True does not work with {type(optimizer).__name__}, whose steps need the host: pass another "
                "optimizer_class, such as th.optim.Adam, or leave cuda_graph out."
            )


def set_capturable(optimizer: th.optim.Optimizer, capturable: bool) -> None:
    """
    Make the learning rate a tensor, which a graph reads anew in each replay, or a number again.

    :param optimizer: changed in place
    :param capturable: whether a graph captures its steps
    """
    for group in optimizer.param_groups:
        if "capturable" in group:
            group["capturable"] = capturable
        device, rate = group["params"][0].device, group["lr"]
        is_tensor = isinstance(rate, th.Tensor)
        if capturable and not (is_tensor and rate.device == device):
            group["lr"] = th.tensor(float(rate), device=device)
        elif not capturable and is_tensor:
            group["lr"] = float(rate)
        for parameter in group["params"] if device.type != "cpu" else ():
            state = optimizer.state.get(parameter, {})
            if isinstance(state.get("step"), th.Tensor):
                # Counted on the host unless a graph, or a fused optimizer, does so on the device
                state["step"] = state["step"].to(device if capturable or group.get("fused") else "cpu")


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
