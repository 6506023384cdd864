"""Actions as users pass them, of robots and in mazes."""

from typing import Any

import numpy as np

from sb3_cesd.common.rules import as_array, shown

#: What is wrong with a step before the first reset
NO_EPISODE = "There is no episode to step: call reset() first."


def to_numbers(actions: Any, shape: tuple[int, ...], several: bool = False) -> np.ndarray:
    """
    Make an array of actions.

    :param actions: what was passed as such
    :param shape: the shape that they are to have
    :param several: whether they are those of several environments
    :return: float64 actions
    :raises ValueError: if they are no numbers, or of another shape
    """
    have, some = ("The actions have", "some") if several else ("The action has", "one")
    values = as_array(actions)
    if values.dtype.kind not in "iufb":
        raise ValueError(f"{have} entries that are no numbers ({shown(actions)}): pass {some} of shape {shape}.")
    if values.shape != shape:
        raise ValueError(f"{have} shape {values.shape}: pass {some} of shape {shape}.")
    return values.astype(np.float64)
