import numpy as np

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.envs.mazes.coverage import bin_indices
from sb3_cesd.envs.mazes.layouts import MazeLayout


class CumulativeMazeCoverage:
    """
    State coverage of a maze, over states that are added as training visits them.

    :param layout: the maze, which tells the size of the bins (0.05, in the bottleneck 0.1)
    """

    def __init__(self, layout: MazeLayout) -> None:
        check_arguments("CumulativeMazeCoverage", locals())
        self.layout = layout
        self._visited = np.empty(0, dtype=np.int64)  # indices of bins

    def add(self, states: np.ndarray) -> float:
        """
        Count the bins of states.

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
    :param layout: the maze, which tells the size of the bins (0.05, in the bottleneck 0.1)
    :return: share of the free bins that were visited, from 0 to 1
    :raises ValueError: if a state can't be reached in this maze
    """
    check_arguments("maze_coverage", locals())
    return CumulativeMazeCoverage(layout).add(states)


def torso_coverage(positions: np.ndarray, bin_size: float = 1.0) -> int:
    """
    Measure the state coverage of a DeepMind Control robot.

    :param positions: of the torso [m], (x, y), or x alone for a walker, shape ``(n, 2)`` or ``(n, 1)``
    :param bin_size: side of the bins [m]
    :return: number of occupied bins
    """
    check_arguments("torso_coverage", locals())
    return len(np.unique(np.floor(positions / bin_size), axis=0))
