"""dm_control's Physics for many simulations, from which its tasks compute rewards and observations as from a single one."""

from types import SimpleNamespace
from typing import Any

import numpy as np
from mujoco.batch import Batch

from sb3_cesd.envs.robots.batched_array import BatchedArray

#: Kind of an element of a composer model -> field of its position
POSITION_FIELDS = {"body": "xpos", "site": "site_xpos"}


class BatchedData:
    """
    MuJoCo's data of many simulations. Each field is a :class:`BatchedArray` that follows the simulations.

    MuJoCo fills a field from the first step after its first use.

    :param batch: the simulations
    :param model: dm_control's model, shared by all
    """

    def __init__(self, batch: Batch, model: Any) -> None:
        self.model = model
        self._batch = batch

    def __getattr__(self, name: str) -> BatchedArray:
        field = np.moveaxis(self._batch.bind(name), 0, -1).view(BatchedArray)
        setattr(self, name, field)
        return field


class NamedField:
    """
    A field indexed by names, as in dm_control.

    :param field: the field
    :param axes: converters of names to indices, one per axis of the field of a single simulation
    """

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
    """
    All fields of :class:`BatchedData`, indexed by names.

    :param data: the fields
    :param named_data: those of a single simulation
    """

    def __init__(self, data: BatchedData, named_data: Any) -> None:
        self._data = data
        self._named_data = named_data

    def __getattr__(self, name: str) -> NamedField:
        field = NamedField(getattr(self._data, name), getattr(self._named_data, name).axes)
        setattr(self, name, field)
        return field


def batch_physics(physics: Any, batch: Batch) -> Any:
    """
    Make a Physics that reads many simulations at once.

    :param physics: dm_control's Physics of a single simulation
    :param batch: the simulations
    :return: a copy of ``physics`` whose methods return a :class:`BatchedArray` each
    """
    batched = physics.copy(share_model=True)
    batched._data = BatchedData(batch, physics.model)
    named_data = NamedData(batched._data, physics.named.data)
    batched._named = batched._named._replace(data=named_data)

    def bind(element: Any) -> SimpleNamespace:
        """Look up the position of an element; dm_control's method returns arrays of its own class."""
        return SimpleNamespace(xpos=getattr(named_data, POSITION_FIELDS[element.tag])[element.full_identifier])

    batched.bind = bind
    return batched


class FlatObservations:
    """
    Observations of dm_control's task, flattened.

    :param task: dm_control's task
    :param physics: made by :func:`batch_physics`
    :param shape: ``(n_envs, obs_dim)``
    """

    def __init__(self, task: Any, physics: Any, shape: tuple[int, int]) -> None:
        self._task = task
        self._physics = physics
        self._shape = shape

    def __call__(self) -> np.ndarray:
        """
        Compute the observations.

        :return: observations, shape ``(n_envs, obs_dim)``, float32
        """
        observations = np.empty(self._shape, dtype=np.float32)
        parts = self._task.get_observation(self._physics).values()
        np.concatenate([np.asarray(part).reshape(-1, len(observations)) for part in parts], out=observations.T)
        return observations
