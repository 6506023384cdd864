"""Conversion of the actions that users pass to robots and mazes."""

from typing import Any

import numpy as np

from sb3_cesd.common.rules import as_array, shown

#: Error message of a step before the first reset
NO_EPISODE = "There is no episode to step: call reset() first."


def to_numbers(actions: Any, shape: tuple[int, ...], several: bool = False) -> np.ndarray:
    """
    Convert actions to an array.

    :param actions: actions as passed by the user
    :param shape: expected shape
    :param several: whether they are actions of several environments
    :return: float64 actions
    :raises ValueError: if they are not numbers, or have another shape
    """
    have, some = ("The actions have", "some") if several else ("The action has", "one")
    values = as_array(actions)
    if values.dtype.kind not in "iufb":
        raise ValueError(f"{have} entries that are not numbers ({shown(actions)}): pass {some} of shape {shape}.")
    if values.shape != shape:
        raise ValueError(f"{have} shape {values.shape}: pass {some} of shape {shape}.")
    return values.astype(np.float64)
