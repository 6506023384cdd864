"""States of the global random number generators."""

import random
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch as th


def get_random_states() -> dict[str, Any]:
    """
    Read the states of the generators of Python, NumPy and PyTorch, with those of GPUs that are in use.

    :return: states for :func:`set_random_states`
    """
    return {
        "python": random.getstate(),
        "numpy": np.random.get_state(),
        "torch": th.get_rng_state(),
        "cuda": th.cuda.get_rng_state_all() if th.cuda.is_initialized() else [],
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


@contextmanager
def preserve_random_state() -> Iterator[None]:
    """Restore the global random number generators at the end of the context."""
    states = get_random_states()
    try:
        yield
    finally:
        set_random_states(states)


def seed_to_go_on(seed: int, num_timesteps: int) -> int:
    """
    Derive the seed for continuing a run.

    :param seed: seed of the run
    :param num_timesteps: environment steps so far
    :return: another seed, which depends only on these two
    """
    return int(np.random.SeedSequence([seed, num_timesteps]).generate_state(1)[0] >> 1)
