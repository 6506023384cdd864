import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch as th


@contextmanager
def preserve_random_state() -> Iterator[None]:
    """Restore the global random number generators of Python, NumPy and PyTorch (CPU) at the end of the context."""
    states = random.getstate(), np.random.get_state(), th.get_rng_state()
    try:
        yield
    finally:
        random.setstate(states[0])
        np.random.set_state(states[1])
        th.set_rng_state(states[2])


def seed_to_go_on(seed: int, num_timesteps: int) -> int:
    """
    Derive the seed for continuing a run.

    :param seed: seed of the run
    :param num_timesteps: environment steps so far
    :return: another seed, which depends only on these two
    """
    return int(np.random.SeedSequence([seed, num_timesteps]).generate_state(1)[0] >> 1)
