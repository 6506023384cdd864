"""Functions shared by the robots of dm_control's suite."""

from typing import Any

import numpy as np


def flatten(observation: dict[str, Any]) -> np.ndarray:
    """
    Return the observation as a vector.

    :param observation: observation of an environment that was made with ``flat_observation=True``
    :return: shape ``(obs_dim,)``
    """
    return observation["observations"]


def position(physics: Any) -> np.ndarray:
    """
    Return the position of the torso.

    :param physics: dm_control's Physics
    :return: position [m], shape ``(3,)``
    """
    return physics.named.data.xpos["torso"].copy()
