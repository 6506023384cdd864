import numpy as np
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise


def unit_noise(correlation: float, action_dim: int, n_envs: int) -> OrnsteinUhlenbeckActionNoise:
    """
    Make correlated Gaussian noise of standard deviation 1: an Ornstein-Uhlenbeck process with time step 1, which starts at 0.

    :param correlation: correlation of the noise between consecutive steps, from 0 (white noise) to below 1; noise is forgotten
        over about 1 / (1 - correlation) steps
    :param action_dim: size of the action
    :param n_envs: number of environments, each with a process of its own
    :return: the process; a call returns noise of shape ``(n_envs, action_dim)``, and setting a row of its ``noise_prev`` to 0
        restarts that row
    """
    shape = (n_envs, action_dim)
    sigma = np.full(shape, np.sqrt(1 - correlation**2))
    return OrnsteinUhlenbeckActionNoise(np.zeros(shape), sigma, theta=1 - correlation, dt=1.0, dtype=np.float64)
