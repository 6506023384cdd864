from collections.abc import Callable
from typing import Any

import numpy as np


class BatchedArray(np.ndarray):
    """
    A value of many simulations that dm_control's formulas can treat as the value of a single one.

    The last axis runs over the simulations. A formula treats the other axes as those of a single simulation, and its results
    are bit-identical: powers are computed one by one, since NumPy rounds powers of arrays differently from powers of numbers.
    """

    def __pow__(self, exponent: Any, modulo: None = None) -> np.ndarray:
        """Raise each number to a power."""
        values = np.asarray(self)
        powers = np.array([number**exponent for number in values.ravel().tolist()])
        return powers.reshape(values.shape).view(BatchedArray)

    def ravel(self, order: Any = "C") -> np.ndarray:
        """Flatten the value of each simulation."""
        return self.reshape(-1, self.shape[-1])

    def __array_function__(self, func: Callable, types: Any, args: Any, kwargs: Any) -> Any:
        """
        Call a function of NumPy.

        :raises TypeError: if it is not one of :data:`BATCHED_FUNCTIONS`, since it might mix simulations
        """
        if func not in BATCHED_FUNCTIONS:
            raise TypeError(f"{func.__name__} might mix simulations: add to BATCHED_FUNCTIONS what it does to each of them.")
        return BATCHED_FUNCTIONS[func](*args, **kwargs).view(BatchedArray)


def where(condition: np.ndarray, chosen: Any, other: Any) -> np.ndarray:
    """
    Choose between numbers, as ``np.where`` does for a single simulation.

    :param condition: where to choose the first, any shape
    :param chosen: first numbers, same shape or one number
    :param other: second numbers, same shape or one number
    :return: chosen numbers, same shape
    """
    return np.where(np.asarray(condition), np.asarray(chosen), np.asarray(other))


def hstack(values: Any) -> np.ndarray:
    """
    Join vectors, as ``np.hstack`` does for a single simulation.

    :param values: vectors of all simulations, each of shape ``(n, n_envs)``
    :return: joined vectors, shape ``(sum of all n, n_envs)``
    """
    return np.concatenate([np.asarray(value) for value in values])


def norm(vectors: np.ndarray) -> np.ndarray:
    """
    Compute Euclidean norms, as ``np.linalg.norm`` does for a single simulation.

    :param vectors: a vector of each simulation, shape ``(n, n_envs)``
    :return: norms, shape ``(n_envs,)``
    """
    # One by one: a sum over an axis may be rounded differently
    return np.sqrt([vector.dot(vector) for vector in np.ascontiguousarray(np.asarray(vectors).T)])


#: NumPy function -> what it does to each simulation
BATCHED_FUNCTIONS: dict[Callable, Callable] = {np.where: where, np.hstack: hstack, np.linalg.norm: norm}
