"""State coverage of a maze, in square bins."""

import numpy as np

from sb3_cesd.envs.mazes.layouts import MazeLayout


def bin_indices(layout: MazeLayout, positions: np.ndarray) -> np.ndarray:
    """
    Look up the free bin of each position.

    :param layout: the maze
    :param positions: positions in free cells (:meth:`MazeLayout.is_free`), shape ``(n, 2)``
    :return: indices from 0 to ``layout.n_free_bins - 1``, shape ``(n,)``
    """
    # Counted from the outer corner of the ring of outside cells, which has the index (0, 0)
    bins = np.floor((positions - (layout.origin - 0.5)) * layout.bins_per_cell).astype(np.int64)
    cells, bins_in_cell = np.divmod(bins, layout.bins_per_cell)
    ranks = layout.cell_ranks[cells[:, 0], cells[:, 1]]
    return (ranks * layout.bins_per_cell + bins_in_cell[:, 0]) * layout.bins_per_cell + bins_in_cell[:, 1]


class CoverageReward:
    """
    Reward the first visit of each bin by its share of all free bins.

    The rewards sum to the state coverage, except for bins that are only visited at the start of an episode.

    :param layout: the maze
    :param n_envs: number of environments, each with its own memory
    """

    def __init__(self, layout: MazeLayout, n_envs: int) -> None:
        self.layout = layout
        #: Whether each bin was visited, shape ``(n_envs, n_free_bins)``
        self.visited = np.zeros((n_envs, layout.n_free_bins), dtype=bool)

    def forget(self) -> None:
        """Forget which bins were visited."""
        self.visited[:] = False

    def __call__(self, positions: np.ndarray) -> np.ndarray:
        """Return the rewards of new positions, one per environment, float32, and remember their bins."""
        visited = (np.arange(len(positions)), bin_indices(self.layout, positions))
        rewards = ~self.visited[visited] / np.float32(self.visited.shape[1])
        self.visited[visited] = True
        return rewards
