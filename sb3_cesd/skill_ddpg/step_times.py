"""Durations of environment steps and updates in a training."""

import time
from statistics import median_low
from typing import Any


class StepTimes:
    """
    Durations of environment steps, those with updates apart from the others. The median of each kind counts, so an evaluation
    during a few of them does not.

    :param model: a model in ``learn``, whose next steps are measured
    """

    def __init__(self, model: Any) -> None:
        #: Numbers of environment steps and updates that were measured
        self.n_steps = self.n_updates = 0
        #: Seconds of each step without updates and, for the others, seconds per update
        self._without: list[float] = []
        self._per_update: list[float] = []
        self._remember(model)

    def _remember(self, model: Any) -> None:
        self._before = (model.num_timesteps, model._n_updates)
        # Last, so that only the training is measured
        self._since = time.perf_counter()

    def add(self, model: Any) -> int:
        """
        Add a step, with the updates before it.

        :param model: the model, after the step
        :return: number of these updates
        """
        seconds = time.perf_counter() - self._since
        n_steps, n_updates = model.num_timesteps - self._before[0], model._n_updates - self._before[1]
        self.n_steps += n_steps
        self.n_updates += n_updates
        if n_updates:
            self._per_update.append(seconds / n_updates)
        else:
            self._without.append(seconds)
        self._remember(model)
        return n_updates

    @property
    def seconds(self) -> float:
        """Time that the steps took, if each took as long as the median of its kind."""
        without = median_low(self._without) * len(self._without) if self._without else 0.0
        return without + median_low(self._per_update) * self.n_updates
