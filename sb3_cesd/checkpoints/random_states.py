"""The random number generators that all share."""

import random
from typing import Any

import numpy as np
import torch as th


def get_random_states() -> dict[str, Any]:
    """
    Read the states of the generators of Python, NumPy and PyTorch.

    :return: what :func:`set_random_states` takes
    """
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": th.get_rng_state(),
        "cuda": th.cuda.get_rng_state_all() if th.cuda.is_available() else [],
    }


def set_random_states(states: dict[str, Any]) -> None:
    """
    Let the generators go on from other states; those of GPUs where there are as many.

    :param states: what :func:`get_random_states` returned
    """
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    th.set_rng_state(states["torch"])
    if states["cuda"] and len(states["cuda"]) == th.cuda.device_count():
        th.cuda.set_rng_state_all(states["cuda"])
