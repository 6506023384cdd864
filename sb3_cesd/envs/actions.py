from typing import Any

import numpy as np


def finite_actions(actions: Any, shape: tuple[int, ...]) -> np.ndarray:
    """
    Convert actions to float64.

    :param actions: actions as passed by the user
    :param shape: their shape
    :return: the actions
    :raises ValueError: if they have another shape, or an entry is not finite
    """
    actions = np.asarray(actions, dtype=np.float64).reshape(shape)
    if not np.isfinite(actions).all():
        raise ValueError(
            f"The action is not finite: {actions}. If it is of a policy, its training has diverged: lower the learning rate."
        )
    return actions
