"""dm_control's Physics for many simulations, from which its tasks compute rewards and observations as from a single one."""

from collections.abc import Callable
from types import SimpleNamespace
from typing import Any

import numpy as np

#: Kind of an element of a composer model -> field of its position
POSITION_FIELDS = {"body": "xpos", "site": "site_xpos"}


class BatchedArray(np.ndarray):
    """
    A value of many simulations that dm_control's formulas can treat as the value of a single one.

    The last axis runs over the simulations. A formula treats the other axes as those of a single simulation, and its results
    are bit-identical: powers are computed one by one, since NumPy rounds powers of arrays differently from powers of numbers.
    """

    def __pow__(self, exponent: Any, modulo: None = None) -> np.ndarray:
        values = np.asarray(self)
        powers = np.array([number**exponent for number in values.ravel().tolist()])
        return powers.reshape(values.shape).view(BatchedArray)

    def ravel(self, order: Any = "C") -> np.ndarray:
        return self.reshape(-1, self.shape[-1])

    def __array_function__(self, func: Callable, types: Any, args: Any, kwargs: Any) -> Any:
        if func not in BATCHED_FUNCTIONS:
            raise TypeError(f"{func.__name__} might mix simulations: add to BATCHED_FUNCTIONS what it does to each of them.")
        return BATCHED_FUNCTIONS[func](*args, **kwargs).view(BatchedArray)


def _where(condition: np.ndarray, chosen: Any, other: Any) -> np.ndarray:
    return np.where(np.asarray(condition), np.asarray(chosen), np.asarray(other))


def _hstack(values: Any) -> np.ndarray:
    return np.concatenate([np.asarray(value) for value in values])


def _norm(vectors: np.ndarray) -> np.ndarray:
    # One by one: a sum over an axis may be rounded differently
    return np.sqrt([vector.dot(vector) for vector in np.ascontiguousarray(np.asarray(vectors).T)])


#: NumPy function -> what it does to each simulation
BATCHED_FUNCTIONS: dict[Callable, Callable] = {np.where: _where, np.hstack: _hstack, np.linalg.norm: _norm}


class BatchedData:
    """
    MuJoCo's data of many simulations. Each field is a :class:`BatchedArray` that follows the simulations.

    MuJoCo fills a field from the first step after its first use.
    """

    def __init__(self, batch: Any, model: Any) -> None:
        self.model = model
        self._batch = batch

    def __getattr__(self, name: str) -> BatchedArray:
        field = np.moveaxis(self._batch.bind(name), 0, -1).view(BatchedArray)
        setattr(self, name, field)
        return field


class NamedField:
    """A field indexed by names, as in dm_control; ``axes`` convert names to indices, for each axis of a single simulation."""

    def __init__(self, field: BatchedArray, axes: Any) -> None:
        self._field = field
        self._axes = axes
        self._lists: dict[tuple, np.ndarray] = {}  # names -> indices, since converting many names takes a while

    def __getitem__(self, key: Any) -> BatchedArray:
        if isinstance(key, list):
            names = tuple(key)
            if names not in self._lists:
                self._lists[names] = np.asarray(self._axes[0].convert_key_item(key))
            return self._field[self._lists[names]]
        items = key if isinstance(key, tuple) else (key,)
        indices = [axis.convert_key_item(item) for axis, item in zip(self._axes, items, strict=False)]
        return self._field[tuple(indices)]


class NamedData:
    """All fields of :class:`BatchedData`, indexed by names as those of a single simulation."""

    def __init__(self, data: BatchedData, named_data: Any) -> None:
        self._data = data
        self._named_data = named_data

    def __getattr__(self, name: str) -> NamedField:
        field = NamedField(getattr(self._data, name), getattr(self._named_data, name).axes)
        setattr(self, name, field)
        return field


def batch_physics(physics: Any, batch: Any) -> Any:
    """Copy dm_control's Physics of a single simulation, so that its methods return a :class:`BatchedArray` of many."""
    batched = physics.copy(share_model=True)
    batched._data = BatchedData(batch, physics.model)
    named_data = NamedData(batched._data, physics.named.data)
    batched._named = batched._named._replace(data=named_data)

    def bind(element: Any) -> SimpleNamespace:
        # dm_control's method returns arrays of its own class
        return SimpleNamespace(xpos=getattr(named_data, POSITION_FIELDS[element.tag])[element.full_identifier])

    batched.bind = bind
    return batched


def flat_observations(task: Any, physics: Any) -> np.ndarray:
    """Compute the observations of a task of dm_control, shape ``(n_envs, obs_dim)``."""
    parts = [np.asarray(part) for part in task.get_observation(physics).values()]
    flat = [part.reshape(-1, part.shape[-1]) for part in parts]
    observations = np.empty((flat[0].shape[1], sum(len(part) for part in flat)), dtype=np.float32)
    np.concatenate(flat, out=observations.T)
    return observations
