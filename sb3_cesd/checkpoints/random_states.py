"""States of the global random number generators."""

import random
from typing import Any

import numpy as np
import torch as th


def get_random_states() -> dict[str, Any]:
    """
    Read the states of the generators of Python, NumPy and PyTorch.

    :return: states for :func:`set_random_states`
    """
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": th.get_rng_state(),
        "cuda": th.cuda.get_rng_state_all() if th.cuda.is_available() else [],
    }


def set_random_states(states: dict[str, Any]) -> None:
    """
    Set the states of the generators; those of GPUs only if there are as many.

    :param states: states that :func:`get_random_states` returned
    """
    random.setstate(states["python"])
    np.random.set_state(states["numpy"])
    th.set_rng_state(states["torch"])
    if states["cuda"] and len(states["cuda"]) == th.cuda.device_count():
        th.cuda.set_rng_state_all(states["cuda"])
