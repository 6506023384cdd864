"""Standardisation of the entries of states."""

import numpy as np

#: Standard deviation below which an entry counts as constant
SMALLEST = 1e-6


def scales(states: np.ndarray) -> np.ndarray:
    """
    Compute the scale of each entry of states.

    :param states: shape ``(n, d)``
    :return: standard deviations, shape ``(d,)``; infinite for a constant entry, so that division by it removes the entry
    """
    std = states.std(axis=0)
    return np.where(std > SMALLEST, std, np.inf)
