"""Entries of states in units that do not matter."""

import numpy as np

#: Standard deviations below which an entry does not change
SMALLEST = 1e-6


def scales(states: np.ndarray) -> np.ndarray:
    """
    Measure how much each entry of some states changes.

    :param states: shape ``(n, d)``
    :return: its standard deviation, shape ``(d,)``; infinite for an entry that does not change, so that what is divided by
        it counts for nothing
    """
    std = states.std(axis=0)
    return np.where(std > SMALLEST, std, np.inf)
