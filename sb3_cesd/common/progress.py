"""When something of a training sets in."""

import math


def has_come(start: float, progress_remaining: float, num_timesteps: int) -> bool:
    """
    Tell whether a moment of the training has come.

    :param start: the moment: up to 1 a share of the training budget, above it a number of environment steps
    :param progress_remaining: from 1 (start of training) to 0 (end)
    :param num_timesteps: environment steps of the training so far
    :return: whether it has come
    """
    return (1.0 - progress_remaining if start <= 1 else num_timesteps) >= start


def step_of(start: float, n_timesteps: int) -> int:
    """
    Tell at which step a moment of the training comes.

    :param start: see :func:`has_come`
    :param n_timesteps: environment steps of the whole training
    :return: its environment step
    """
    return math.ceil(start * n_timesteps) if start <= 1 else int(start)
