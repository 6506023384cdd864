"""Moving averages over paths, as the replay buffer computes them over its episodes."""

import numpy as np


def moving_averages(paths: np.ndarray, window: int) -> np.ndarray:
    """
    Average observations over the last steps.

    :param paths: observations in the order of time, each path from the start of an episode, shape ``(..., n_states, d)``
    :param window: number of observations to average, fewer at the start
    :return: means of up to ``window`` observations, ending with the one at the same index, same shape, float32
    """
    if window == 1:
        return paths
    sums = np.cumsum(paths, axis=-2, dtype=np.float64)
    sums[..., window:, :] -= sums[..., :-window, :].copy()
    counts = np.minimum(np.arange(paths.shape[-2]) + 1, window)[:, None]
    return (sums / counts).astype(np.float32)
