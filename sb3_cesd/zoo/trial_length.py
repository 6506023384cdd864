"""Trials that are long enough to learn."""

import warnings
from typing import Any

from sb3_cesd.zoo.pretrained import has_buffer


def steps_before_learning(model: Any, agent: str) -> int:
    """
    Count the steps of a trial that only collect data.

    :param model: a model that is about to learn
    :param agent: path of the model that it was loaded from; empty for none
    :return: environment steps, counted from the start of the trial
    """
    if has_buffer(agent):
        return max(model.learning_starts - model.num_timesteps, 0)
    return model.learning_starts


def warn_of_trials_that_learn_nothing(n_timesteps: int, n_before: int) -> None:
    """
    Warn if trials end before they learn.

    :param n_timesteps: environment steps of a trial
    :param n_before: see :func:`steps_before_learning`
    """
    if n_timesteps <= n_before:
        warnings.warn(
            f"Trials of {n_timesteps} steps learn nothing, as their first {n_before} steps only collect data "
            "(learning_starts): pass a larger -n, or a lower learning_starts with -params."
        )
