import numpy as np

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.metrics.neighbors import nearest_neighbors


def particle_entropy(states: np.ndarray, k: int = 16) -> float:
    """
    Estimate the state entropy from particles (as APT does), up to a constant and a scale: only compare sets of equal size.

    The published comparison uses 10 rollouts of each of 10 skills.

    :param states: shape ``(n, d)``
    :param k: number of nearest states; the first is the state itself, as in the intrinsic reward
    :return: mean over states of log(1 + mean distance to the k nearest)
    :raises ValueError: if there are fewer than k states
    """
    check_arguments("particle_entropy", locals())
    distances, _ = nearest_neighbors(states, states, k)
    return float(np.log1p(distances.mean(axis=1)).mean())
