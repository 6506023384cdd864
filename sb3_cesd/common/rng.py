"""Global random number generators."""

import random
from collections.abc import Iterator
from contextlib import contextmanager

import numpy as np
import torch as th
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise


@contextmanager
def preserve_random_state() -> Iterator[None]:
    """Restore the generators of Python, NumPy and PyTorch (also on GPUs in use) at the end of the context."""
    of_python, of_numpy = random.getstate(), np.random.get_state()
    try:
        with th.random.fork_rng(range(th.cuda.device_count()) if th.cuda.is_initialized() else ()):
            yield
    finally:
        random.setstate(of_python)
        np.random.set_state(of_numpy)


def seed_to_go_on(seed: int, num_timesteps: int) -> int:
    """Derive the seed for continuing a run from its seed and its number of steps so far."""
    return int(np.random.SeedSequence([seed, num_timesteps]).generate_state(1)[0] >> 1)


def unit_noise(correlation: float, action_dim: int, n_envs: int) -> OrnsteinUhlenbeckActionNoise:
    """Make Ornstein-Uhlenbeck noise of standard deviation 1. It starts at 0, as a row of ``noise_prev`` that is set to 0."""
    shape = (n_envs, action_dim)
    sigma = np.full(shape, np.sqrt(1 - correlation**2))
    return OrnsteinUhlenbeckActionNoise(np.zeros(shape), sigma, theta=1 - correlation, dt=1.0, dtype=np.float64)
