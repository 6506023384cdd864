"""Running updates on their device."""

from collections.abc import Callable, Hashable, Iterable
from typing import Any

import torch as th
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.cuda.graphed_function import GraphedFunction, can_capture, set_capturable


class UpdateRunner:
    """
    Run updates one by one, or replay them on a GPU as one CUDA graph.

    :param update: learns from a list of batches of the replay buffer; in a graph, no part of it may need the host
    :param device: where it is computed
    :param cuda_graph: replay the update as one CUDA graph where the device supports it
    """

    def __init__(self, update: Callable[[list[Any]], None], device: th.device, cuda_graph: bool) -> None:
        self.update = update
        self.device = device
        self.in_graph = cuda_graph and can_capture(device)
        self._buffer: Any = None
        #: Learning rates that the graph reads
        self._learning_rates: list[Any] = []
        self._graphed_update = GraphedFunction(self._gather_and_update)

    def prepare(self, optimizers: Iterable[th.optim.Optimizer]) -> None:
        """
        Make optimizers ready for a graph, or for updates without one.

        :param optimizers: those that the update uses
        """
        rates = []
        for optimizer in optimizers:
            set_capturable(optimizer, self.in_graph)
            rates += [group["lr"] for group in optimizer.param_groups]
        if [id(rate) for rate in rates] != [id(rate) for rate in self._learning_rates]:
            # Replaced by a callback, or by a state that was loaded
            self.forget()
        self._learning_rates = rates

    def forget(self) -> None:
        """Have the update captured anew, because tensors that it reads were replaced."""
        self._graphed_update.key = None

    def run(self, buffer: Any, batch_size: int, n_batches: int, env: VecNormalize | None, phase: Hashable) -> None:
        """
        Sample batches and learn from them, in one update.

        :param buffer: the replay buffer
        :param batch_size: number of transitions of each batch
        :param n_batches: number of batches
        :param env: ``VecNormalize`` for the stored observations and rewards
        :param phase: changes whenever the update would do something else
        """
        if not self.in_graph:
            self.update([buffer.sample(batch_size, env) for _ in range(n_batches)])
            return
        buffer.prepare(env)
        self._buffer = buffer
        drawn = th.stack([buffer.draw(batch_size) for _ in range(n_batches)])  # (n_batches, 2, batch_size)
        self._graphed_update(drawn, (id(buffer), buffer.generation, phase))

    def _gather_and_update(self, drawn: th.Tensor) -> None:
        self.update([self._buffer.gather(batch) for batch in drawn])
