from collections import Counter, deque

import numpy as np

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.envs.mazes.coverage import bin_indices
from sb3_cesd.envs.mazes.layouts import MazeLayout


class CumulativeMazeCoverage:
    """
    State coverage of a maze, accumulated over the states that training visits.

    :param layout: the maze, which determines the size of the bins (0.05, in the bottleneck 0.1)
    """

    def __init__(self, layout: MazeLayout) -> None:
        check_arguments("CumulativeMazeCoverage", locals())
        self.layout = layout
        self._visited = np.empty(0, dtype=np.int64)  # indices of bins

    def add(self, states: np.ndarray) -> float:
        """
        Add the bins of states.

        :param states: (x, y), shape ``(n, 2)``
        :return: share of the free bins that were visited so far, from 0 to 1
        :raises ValueError: if a state can't be reached in this maze
        """
        free = self.layout.is_free(states)
        if not free.all():
            raise ValueError(
                f"{np.count_nonzero(~free)} of {len(states)} states can't be reached in this maze, the first is "
                f"{states[~free][0]}: pass (x, y) recorded in the same maze."
            )
        self._visited = np.union1d(self._visited, bin_indices(self.layout, states))
        return self.share

    @property
    def share(self) -> float:
        """Share of the free bins that were visited so far, from 0 to 1."""
        return len(self._visited) / self.layout.n_free_bins


def maze_coverage(states: np.ndarray, layout: MazeLayout) -> float:
    """
    Measure the state coverage of a maze.

    The paper's policy coverage is that of 20 stochastic rollouts per skill.

    :param states: (x, y), shape ``(n, 2)``
    :param layout: the maze, which determines the size of the bins (0.05, in the bottleneck 0.1)
    :return: share of the free bins that were visited, from 0 to 1
    :raises ValueError: if a state can't be reached in this maze
    """
    check_arguments("maze_coverage", locals())
    return CumulativeMazeCoverage(layout).add(states)


class TrainingCoverage:
    """
    Coverage of a robot, accumulated over the positions that training visits, as in TLDR (Bae et al., 2024).

    :param bin_size: side of the bins [m]
    :param queue_size: number of most recent environment steps that :attr:`queue` counts
    """

    def __init__(self, bin_size: float = 1.0, queue_size: int = 100_000) -> None:
        check_arguments("TrainingCoverage", locals())
        self.bin_size = bin_size
        self.queue_size = queue_size
        self._queue: deque[tuple[int, ...]] = deque()
        #: Number of steps of the queue in each bin
        self._counts: Counter[tuple[int, ...]] = Counter()
        self._visited: set[tuple[int, ...]] = set()

    def add(self, positions: np.ndarray) -> None:
        """
        Add the positions after a step.

        :param positions: position in each environment [m], shape ``(n_envs, d)``
        :raises ValueError: if they have another shape, or are not finite
        """
        if np.ndim(positions) != 2 or not np.isfinite(positions).all():
            raise ValueError("Positions must be finite, of shape (n_envs, d): pass one per environment.")
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


def torso_coverage(positions: np.ndarray, bin_size: float = 1.0) -> int:
    """
    Measure the state coverage of a robot.

    :param positions: positions of the torso [m], (x, y), or x alone for a walker, shape ``(n, 2)`` or ``(n, 1)``
    :param bin_size: side of the bins [m]
    :return: number of occupied bins
    """
    check_arguments("torso_coverage", locals())
    return len(np.unique(np.floor(positions / bin_size), axis=0))
