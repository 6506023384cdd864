"""What skills and training cover, in square bins."""

from collections import Counter, deque

import numpy as np

from sb3_cesd.common.arguments import Positive, PositiveInt, checked
from sb3_cesd.envs.mazes.coverage import bin_indices
from sb3_cesd.envs.mazes.layouts import MazeLayout

#: Side of the coarse bins, in cells of a maze and in standard deviations under random actions
COARSE_BIN = 0.5
#: Number of planes that observations are projected to, and number of standard deviations they are clipped to
N_PLANES, OUTLIER = 8, 10.0


class TrainingCoverage:
    """
    Coverage accumulated over the positions that training visits, as in TLDR (Bae et al., 2024).

    :param bin_size: side of the bins [m]
    :param queue_size: number of most recent positions that :attr:`queue` counts
    """

    @checked
    def __init__(self, bin_size: Positive = 1.0, queue_size: PositiveInt = 100_000) -> None:
        self.bin_size = bin_size
        self.queue_size = queue_size
        self._queue: deque[tuple[int, ...]] = deque()
        #: Number of positions of the queue in each bin
        self._counts: Counter[tuple[int, ...]] = Counter()
        self._visited: set[tuple[int, ...]] = set()

    def add(self, positions: np.ndarray) -> None:
        """Add the positions after a step [m], shape ``(n_envs, d)``."""
        bins = [tuple(row) for row in np.floor(positions / self.bin_size).astype(int).tolist()]
        self._visited.update(bins)
        self._queue.extend(bins)
        self._counts.update(bins)
        while len(self._queue) > self.queue_size:
            oldest = self._queue.popleft()
            self._counts[oldest] -= 1
            if self._counts[oldest] == 0:
                del self._counts[oldest]

    @property
    def queue(self) -> int:
        """Number of bins that the most recent steps visited."""
        return len(self._counts)

    @property
    def total(self) -> int:
        """Number of bins that all steps visited."""
        return len(self._visited)


def maze_coverage(states: np.ndarray, layout: MazeLayout) -> float:
    """
    Measure the share of the free bins of a maze (side 0.05, in the bottleneck 0.1) that states, shape ``(n, 2)``, visited.

    The paper's policy coverage is that of 20 stochastic rollouts per skill.
    """
    free = layout.is_free(states)
    if not free.all():
        raise ValueError(f"The state {states[~free][0]} can't be reached in this maze: pass (x, y) recorded in the same maze.")
    return len(np.unique(bin_indices(layout, states))) / layout.n_free_bins


def torso_coverage(positions: np.ndarray, bin_size: float = 1.0) -> int:
    """Count the bins that positions, shape ``(n, d)``, occupy."""
    return len(np.unique(np.floor(positions / bin_size), axis=0))


def cell_coverage(states: np.ndarray, layout: MazeLayout) -> float:
    """
    Measure the share of the half cells of a maze that states, shape ``(n, 2)``, visited. No wall crosses such a bin.

    The bins of 0.05 in the literature reward a slow drift from random starts, which visits a new bin at each step.
    """
    return torso_coverage(states, COARSE_BIN) / (layout.n_free_cells / COARSE_BIN**2)


def observation_coverage(observations: np.ndarray, random_observations: np.ndarray) -> float:
    """
    Count the bins of observations, shape ``(n, d)``, with sides of half a standard deviation under random actions, so that
    neither units nor ``VecNormalize`` matter.

    Many dimensions are projected to random planes, the same ones for all models of an environment, and counts averaged, since
    bins in more than a few dimensions would contain one state each.
    """
    mean, std = random_observations.mean(axis=0), random_observations.std(axis=0)
    scaled = np.clip((observations - mean) / (std + 1e-6), -OUTLIER, OUTLIER)  # (n, d)
    dim = scaled.shape[1]
    rng = np.random.default_rng(0)
    planes = [np.eye(dim)] if dim <= 2 else [np.linalg.qr(rng.standard_normal((dim, 2)))[0] for _ in range(N_PLANES)]
    return float(np.mean([torso_coverage(scaled @ plane, COARSE_BIN) for plane in planes]))
