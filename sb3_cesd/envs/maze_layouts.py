"""
The mazes of EDL (Campos et al., 2020), as used by CeSD, BeCL and CIC.

Cells are unit squares centred on integer coordinates; walls lie on half-integer coordinates.
"""

from functools import cached_property
from typing import NamedTuple

import numpy as np


class Wall(NamedTuple):
    """
    A straight wall.

    :param level: the coordinate that is the same all along it: y of a horizontal wall, x of a vertical one
    :param start: its lower end in the other coordinate
    :param end: its upper end
    """

    level: float
    start: float
    end: float


class MazeLayout:
    """
    Walls and start of a maze.

    :param horizontal: y -> x-ranges of horizontal walls
    :param vertical: x -> y-ranges of vertical walls
    :param start: the cell in which episodes start
    :param bin_size: side of the bins in which state coverage is counted; a divisor of 1
    """

    def __init__(
        self,
        horizontal: dict[float, list[tuple[float, float]]],
        vertical: dict[float, list[tuple[float, float]]],
        start: tuple[int, int] = (0, 0),
        bin_size: float = 0.05,
    ) -> None:
        self.horizontal = [Wall(level, *span) for level, spans in horizontal.items() for span in spans]
        self.vertical = [Wall(level, *span) for level, spans in vertical.items() for span in spans]
        self.start = start
        self.bin_size = bin_size

    @cached_property
    def low(self) -> np.ndarray:
        """Lower left corner of the bounding box, shape ``(2,)``."""
        return np.array([min(wall.level for wall in self.vertical), min(wall.level for wall in self.horizontal)])

    @cached_property
    def high(self) -> np.ndarray:
        """Upper right corner of the bounding box, shape ``(2,)``."""
        return np.array([max(wall.level for wall in self.vertical), max(wall.level for wall in self.horizontal)])

    @cached_property
    def free_cells(self) -> frozenset[tuple[int, int]]:
        """The cells that can be reached from the start."""
        reached, frontier = {self.start}, [self.start]
        while frontier:
            x, y = frontier.pop()
            for dx, dy in ((1, 0), (-1, 0), (0, 1), (0, -1)):
                cell = (x + dx, y + dy)
                if cell not in reached and not self._wall_between((x, y), (dx, dy)):
                    reached.add(cell)
                    frontier.append(cell)
        return frozenset(reached)

    def _wall_between(self, cell: tuple[int, int], step: tuple[int, int]) -> bool:
        axis = 0 if step[0] != 0 else 1
        level, along = cell[axis] + step[axis] / 2, cell[1 - axis]
        walls = self.vertical if axis == 0 else self.horizontal
        return any(wall.level == level and wall.start <= along <= wall.end for wall in walls)

    @cached_property
    def _is_free_cell(self) -> np.ndarray:
        """By column and row of the bounding box, shape ``(n_columns, n_rows)``, bool."""
        is_free = np.zeros((self.high - self.low).astype(int), dtype=bool)
        columns, rows = (np.array(sorted(self.free_cells)) - self.low).astype(int).T
        is_free[columns, rows] = True
        return is_free

    def is_free(self, positions: np.ndarray) -> np.ndarray:
        """
        :param positions: shape ``(n, 2)``
        :return: whether each can be reached from the start, shape ``(n,)``
        """
        inside = np.all((positions > self.low) & (positions < self.high), axis=1)
        columns, rows = np.where(inside[:, None], positions - self.low, 0).astype(int).T
        return inside & self._is_free_cell[columns, rows]

    @cached_property
    def segments(self) -> np.ndarray:
        """End points of all walls, shape ``(n_walls, 2, 2)``: wall, end, coordinate."""
        horizontal = [((wall.start, wall.level), (wall.end, wall.level)) for wall in self.horizontal]
        vertical = [((wall.level, wall.start), (wall.level, wall.end)) for wall in self.vertical]
        return np.array(horizontal + vertical)

    @cached_property
    def n_free_bins(self) -> int:
        """Number of bins in the free cells, the denominator of state coverage."""
        return len(self.free_cells) * round(1 / self.bin_size) ** 2


def _box(low: tuple[float, float], high: tuple[float, float]) -> tuple[dict, dict]:
    horizontal = {y: [(low[0], high[0])] for y in (low[1], high[1])}
    vertical = {x: [(low[1], high[1])] for x in (low[0], high[0])}
    return horizontal, vertical


SQUARE_A = MazeLayout(
    {
        -4.5: [(-0.5, 4.5)],
        -3.5: [(0.5, 3.5)],
        -2.5: [(0.5, 2.5)],
        -1.5: [(0.5, 1.5)],
        0.5: [(-0.5, 0.5), (1.5, 2.5), (3.5, 4.5)],
    },
    {
        -0.5: [(-4.5, 0.5)],
        0.5: [(-3.5, -2.5), (-1.5, 0.5)],
        1.5: [(-1.5, 0.5)],
        2.5: [(-2.5, 0.5)],
        3.5: [(-3.5, 0.5)],
        4.5: [(-4.5, 0.5)],
    },
)
SQUARE_B = MazeLayout(
    {-4.5: [(-0.5, 4.5)], -3.5: [(0.5, 1.5), (2.5, 3.5)], 0.5: [(-0.5, 0.5), (1.5, 2.5), (3.5, 4.5)]},
    {-0.5: [(-4.5, 0.5)], 4.5: [(-4.5, 0.5)], **{x: [(-3.5, 0.5)] for x in (0.5, 1.5, 2.5, 3.5)}},
)
SQUARE_C = MazeLayout(
    {
        -4.5: [(-0.5, 2.5), (3.5, 4.5)],
        -3.5: [(0.5, 1.5)],
        -0.5: [(2.5, 3.5)],
        0.5: [(-0.5, 0.5), (1.5, 4.5)],
    },
    {
        -0.5: [(-4.5, 0.5)],
        4.5: [(-4.5, 0.5)],
        0.5: [(-3.5, 0.5)],
        1.5: [(-3.5, 0.5)],
        2.5: [(-4.5, -0.5)],
        3.5: [(-4.5, -0.5)],
    },
)
SQUARE_D = MazeLayout(
    {
        -3.5: [(-3.5, 3.5)],
        0.5: [(-3.5, 3.5)],
        -2.5: [(-2.5, -1.5), (1.5, 2.5)],
        -1.5: [(-1.5, -0.5), (0.5, 1.5)],
        -0.5: [(-2.5, -0.5), (0.5, 2.5)],
    },
    {
        **{x: [(-3.5, 0.5)] for x in (-3.5, 3.5)},
        **{x: [(-2.5, -0.5)] for x in (-2.5, 2.5)},
        **{x: [(-2.5, -1.5)] for x in (-1.5, 1.5)},
        **{x: [(-3.5, -0.5)] for x in (-0.5, 0.5)},
    },
)
TREE = MazeLayout(
    {
        -6.5: [(-6.5, -5.5), (-2.5, -1.5), (1.5, 2.5), (5.5, 6.5)],
        -4.5: [(-5.5, -2.5), (2.5, 5.5)],
        -3.5: [(-6.5, -4.5), (-3.5, -1.5), (1.5, 3.5), (4.5, 6.5)],
        -2.5: [(-3.5, 3.5)],
        -1.5: [(-4.5, -0.5), (0.5, 4.5)],
        0.5: [(-0.5, 0.5)],
    },
    {
        **{x: [(-6.5, -3.5)] for x in (-6.5, 6.5)},
        **{x: [(-6.5, -4.5)] for x in (-5.5, 5.5)},
        **{x: [(-3.5, -1.5)] for x in (-4.5, 4.5)},
        **{x: [(-3.5, -2.5)] for x in (-3.5, 3.5)},
        **{x: [(-6.5, -4.5)] for x in (-2.5, 2.5)},
        **{x: [(-6.5, -3.5)] for x in (-1.5, 1.5)},
        **{x: [(-1.5, 0.5)] for x in (-0.5, 0.5)},
    },
)
_bottleneck_box = _box((-0.5, -0.5), (9.5, 9.5))
BOTTLENECK = MazeLayout(
    {**_bottleneck_box[0], 0.5: [(6.5, 7.5)], 1.5: [(4.5, 6.5), (7.5, 9.5)], 4.5: [(-0.5, 4.5)]},
    {**_bottleneck_box[1], 4.5: [(-0.5, 0.5), (1.5, 4.5)], 6.5: [(3.5, 9.5)], 7.5: [(0.5, 1.5)]},
    bin_size=0.1,
)
CORRIDOR = MazeLayout(*_box((-5.5, -0.5), (5.5, 0.5)), start=(-5, 0))

#: Layouts by the name under which the environments take them
LAYOUTS = {
    "square_a": SQUARE_A,
    "square_b": SQUARE_B,
    "square_c": SQUARE_C,
    "square_d": SQUARE_D,
    "tree": TREE,
    "bottleneck": BOTTLENECK,
    "corridor": CORRIDOR,
}
