"""Moments of a training, as a fraction of its budget or as a number of steps."""

import math


def has_come(start: float, progress_remaining: float, num_timesteps: int) -> bool:
    """
    Return whether a moment of the training has come.

    :param start: the moment: up to 1 a fraction of the training budget, above 1 a number of environment steps
    :param progress_remaining: from 1 (start of training) to 0 (end)
    :param num_timesteps: environment steps of the training so far
    :return: whether it has come
    """
    return (1.0 - progress_remaining if start <= 1 else num_timesteps) >= start


def step_of(start: float, n_timesteps: int) -> int:
    """
    Compute the step at which a moment of the training comes.

    :param start: see :func:`has_come`
    :param n_timesteps: environment steps of the whole training
    :return: its environment step
    """
    return math.ceil(start * n_timesteps) if start <= 1 else int(start)
