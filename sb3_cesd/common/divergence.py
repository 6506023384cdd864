"""Errors of a training whose numbers are no longer finite."""

from collections.abc import Iterator, Mapping
from typing import Any

import torch as th


class TrainingDiverged(ValueError):
    """Raised when something that is learned, or follows from it, is not finite."""


def not_finite(state: Any, name: str) -> Iterator[str]:
    """
    Find tensors that are not finite.

    :param state: tensors in dictionaries and lists, as ``state_dict`` returns them
    :param name: name of the state, with which the paths start
    :return: path of each tensor that holds NaN or infinity
    """
    if isinstance(state, th.Tensor):
        if not state.isfinite().all():
            yield name
    elif isinstance(state, Mapping):
        for key, value in state.items():
            yield from not_finite(value, f"{name}.{key}")
    elif isinstance(state, list | tuple):
        for idx, value in enumerate(state):
            yield from not_finite(value, f"{name}[{idx}]")
