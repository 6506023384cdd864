import numpy as np

from sb3_cesd.envs.maze_layouts import MazeLayout


def bin_indices(layout: MazeLayout, positions: np.ndarray) -> np.ndarray:
    """
    :param layout: the maze
    :param positions: shape ``(..., 2)``
    :return: index of the bin each position is in, over the bounding box, row by row, shape ``(...)``
    """
    n_columns, n_rows = np.round((layout.high - layout.low) / layout.bin_size).astype(int)
    cells = np.floor((positions - layout.low) / layout.bin_size).astype(int)
    column, row = np.clip(cells[..., 0], 0, n_columns - 1), np.clip(cells[..., 1], 0, n_rows - 1)
    return row * n_columns + column


class CoverageReward:
    """
    The share of the free bins that a step is the first to visit; its sum over some episodes is the coverage of these episodes.

    :param layout: the maze
    :param n_episodes: what was visited is forgotten after this many episodes
    """

    def __init__(self, layout: MazeLayout, n_episodes: int) -> None:
        if n_episodes < 1:
            raise ValueError(f"coverage_episodes={n_episodes}: coverage is counted over at least one episode, pass 1 or more.")
        self.layout = layout
        self.n_episodes = n_episodes
        self._visited: set[int] = set()
        self._n_started = 0

    def start_episode(self, position: np.ndarray, forget: bool = False) -> None:
        """
        :param position: where the episode starts, which earns nothing, shape ``(2,)``
        :param forget: begin to count anew
        """
        if forget or self._n_started == self.n_episodes:
            self._visited.clear()
            self._n_started = 0
        self._n_started += 1
        self._visited.add(int(bin_indices(self.layout, position)))

    def __call__(self, position: np.ndarray) -> float:
        """
        :param position: where a step led, shape ``(2,)``
        :return: reward of the step
        """
        index = int(bin_indices(self.layout, position))
        is_new = index not in self._visited
        self._visited.add(index)
        return float(is_new) / self.layout.n_free_bins
