"""
The mazes of EDL (Campos et al., 2020), on which CeSD, BeCL, CIC and ExDM are compared.

Cells are unit squares centred on integer coordinates, walls lie on half-integer ones.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from sb3_cesd.common.arguments import check_value

#: Length of an episode, in steps
HORIZON = 50
#: Coordinate of walls on one axis -> ranges they span on the other axis
Walls = Mapping[float, Sequence[tuple[float, float]]]


@dataclass(frozen=True, eq=False)
class MazeLayout:
    """
    Geometry of a maze.

    Arrays over cells include a ring of outside cells: the cell centred on ``(x, y)`` is at index ``(x, y) - origin``.

    :param name: its name in :data:`LAYOUTS`, by which it is pickled
    :param horizontal: y of horizontal walls -> x-ranges
    :param vertical: x of vertical walls -> y-ranges
    :param start_cell: centre of the cell in which episodes start
    :param bins_per_cell: number of bins along the side of a cell, for state coverage
    """

    name: str
    horizontal: Walls
    vertical: Walls
    start_cell: tuple[int, int] = (0, 0)
    bins_per_cell: int = 20

    def __reduce__(self) -> tuple[Any, ...]:
        return get_layout, (self.name,)

    @cached_property
    def low(self) -> np.ndarray:
        """Lower left corner of the bounding box, shape ``(2,)``."""
        return np.array([min(self.vertical), min(self.horizontal)])

    @cached_property
    def high(self) -> np.ndarray:
        """Upper right corner of the bounding box, shape ``(2,)``."""
        return np.array([max(self.vertical), max(self.horizontal)])

    @cached_property
    def origin(self) -> np.ndarray:
        """Return the centre of the outside cell at index ``(0, 0)``, shape ``(2,)``."""
        return (self.low - 0.5).astype(np.int64)

    @cached_property
    def segments(self) -> np.ndarray:
        """Return the end points of all walls, shape ``(n_walls, 2, 2)``: wall, end, coordinate."""
        horizontal = [((x0, y), (x1, y)) for y, spans in self.horizontal.items() for x0, x1 in spans]
        vertical = [((x, y0), (x, y1)) for x, spans in self.vertical.items() for y0, y1 in spans]
        return np.array(horizontal + vertical)

    @cached_property
    def edges(self) -> np.ndarray:
        """Return whether a wall is between cell ``(i, j)`` and the one before it on an axis, ``edges[axis, i, j]``."""
        n_columns, n_rows = (self.high - self.low).astype(int)
        edges = np.zeros((2, n_columns + 2, n_rows + 2), dtype=bool)
        for (x0, y0), (x1, y1) in (self.segments + 0.5 - self.origin).astype(int):
            if x0 == x1:
                edges[0, x0, y0:y1] = True
            else:
                edges[1, x0:x1, y0] = True
        return edges

    @cached_property
    def free_cells(self) -> np.ndarray:
        """Return which cells can be reached from the start, shape ``(n_columns + 2, n_rows + 2)``, bool."""
        open_x, open_y = ~self.edges[0, 1:], ~self.edges[1, :, 1:]
        free = np.zeros(self.edges.shape[1:], dtype=bool)
        free[tuple(np.array(self.start_cell) - self.origin)] = True
        n_free = 0
        while n_free < free.sum():
            n_free = free.sum()
            free[1:] |= free[:-1] & open_x
            free[:-1] |= free[1:] & open_x
            free[:, 1:] |= free[:, :-1] & open_y
            free[:, :-1] |= free[:, 1:] & open_y
        assert not (free[0].any() or free[-1].any() or free[:, 0].any() or free[:, -1].any()), "a maze has no exit"
        return free

    @cached_property
    def n_free_cells(self) -> int:
        """Return the number of cells that can be reached."""
        return int(self.free_cells.sum())

    @cached_property
    def n_free_bins(self) -> int:
        """Return the number of bins in the cells that can be reached, the denominator of state coverage."""
        return self.n_free_cells * self.bins_per_cell**2

    def is_free(self, positions: np.ndarray) -> np.ndarray:
        """Check which positions, shape ``(..., 2)``, are in cells that can be reached, shape ``(...)``."""
        inside = np.all((positions > self.low) & (positions < self.high), axis=-1)
        indices = np.where(inside[..., None], np.rint(positions) - self.origin, 0).astype(np.int64)
        return self.free_cells[indices[..., 0], indices[..., 1]]

    def bin_indices(self, positions: np.ndarray) -> np.ndarray:
        """Look up the bins of positions in free cells, shape ``(n, 2)``: from 0 to ``n_free_bins - 1``, shape ``(n,)``."""
        # Counted from the outer corner of the ring of outside cells, which has the index (0, 0)
        bins = np.floor((positions - (self.origin - 0.5)) * self.bins_per_cell).astype(np.int64)
        cells, bins_in_cell = np.divmod(bins, self.bins_per_cell)
        # Number of free cells before each free cell
        ranks = (np.cumsum(self.free_cells).reshape(self.free_cells.shape) - 1)[cells[:, 0], cells[:, 1]]
        return (ranks * self.bins_per_cell + bins_in_cell[:, 0]) * self.bins_per_cell + bins_in_cell[:, 1]


def _mirrored(walls: Walls) -> Walls:
    """Add the mirror images of vertical walls across x = 0."""
    return {**walls, **{-x: spans for x, spans in walls.items()}}


#: Outer walls that three mazes share: at the left and right, and between the ends of corridors at the top
SIDES: Walls = dict.fromkeys((-0.5, 4.5), ((-4.5, 0.5),))
ENTRANCES = [(-0.5, 0.5), (1.5, 2.5), (3.5, 4.5)]
#: Outer walls of the bottleneck, on either axis
BOX: Walls = dict.fromkeys((-0.5, 9.5), ((-0.5, 9.5),))
#: Layouts by the name that the environments take
LAYOUTS: dict[str, MazeLayout] = {
    "square_a": MazeLayout(
        name="square_a",
        horizontal={-4.5: [(-0.5, 4.5)], **{-y - 0.5: [(0.5, y + 0.5)] for y in (1, 2, 3)}, 0.5: ENTRANCES},
        vertical={**SIDES, 0.5: [(-3.5, -2.5), (-1.5, 0.5)], **{x + 0.5: [(-x - 0.5, 0.5)] for x in (1, 2, 3)}},
    ),
    "square_b": MazeLayout(
        name="square_b",
        horizontal={-4.5: [(-0.5, 4.5)], -3.5: [(0.5, 1.5), (2.5, 3.5)], 0.5: ENTRANCES},
        vertical={**SIDES, **dict.fromkeys((0.5, 1.5, 2.5, 3.5), ((-3.5, 0.5),))},
    ),
    "square_c": MazeLayout(
        name="square_c",
        horizontal={-4.5: [(-0.5, 2.5), (3.5, 4.5)], -3.5: [(0.5, 1.5)], -0.5: [(2.5, 3.5)], 0.5: [(-0.5, 0.5), (1.5, 4.5)]},
        vertical={**SIDES, **dict.fromkeys((0.5, 1.5), ((-3.5, 0.5),)), **dict.fromkeys((2.5, 3.5), ((-4.5, -0.5),))},
    ),
    "square_d": MazeLayout(
        name="square_d",
        horizontal={
            -3.5: [(-3.5, 3.5)],
            -2.5: [(-2.5, -1.5), (1.5, 2.5)],
            -1.5: [(-1.5, -0.5), (0.5, 1.5)],
            -0.5: [(-2.5, -0.5), (0.5, 2.5)],
            0.5: [(-3.5, 3.5)],
        },
        vertical=_mirrored({0.5: [(-3.5, -0.5)], 1.5: [(-2.5, -1.5)], 2.5: [(-2.5, -0.5)], 3.5: [(-3.5, 0.5)]}),
    ),
    "tree": MazeLayout(
        name="tree",
        horizontal={
            -6.5: [(-6.5, -5.5), (-2.5, -1.5), (1.5, 2.5), (5.5, 6.5)],
            -4.5: [(-5.5, -2.5), (2.5, 5.5)],
            -3.5: [(-6.5, -4.5), (-3.5, -1.5), (1.5, 3.5), (4.5, 6.5)],
            -2.5: [(-3.5, 3.5)],
            -1.5: [(-4.5, -0.5), (0.5, 4.5)],
            0.5: [(-0.5, 0.5)],
        },
        vertical=_mirrored(
            dict.fromkeys((1.5, 6.5), ((-6.5, -3.5),))
            | dict.fromkeys((2.5, 5.5), ((-6.5, -4.5),))
            | {0.5: [(-1.5, 0.5)], 3.5: [(-3.5, -2.5)], 4.5: [(-3.5, -1.5)]}
        ),
    ),
    "bottleneck": MazeLayout(
        name="bottleneck",
        horizontal={**BOX, 0.5: [(6.5, 7.5)], 1.5: [(4.5, 6.5), (7.5, 9.5)], 4.5: [(-0.5, 4.5)]},
        vertical={**BOX, 4.5: [(-0.5, 0.5), (1.5, 4.5)], 6.5: [(3.5, 9.5)], 7.5: [(0.5, 1.5)]},
        bins_per_cell=10,
    ),
    "corridor": MazeLayout(
        name="corridor",
        horizontal={-0.5: [(-5.5, 5.5)], 0.5: [(-5.5, 5.5)]},
        vertical={-5.5: [(-0.5, 0.5)], 5.5: [(-0.5, 0.5)]},
        start_cell=(-5, 0),
    ),
}
#: Id -> name of the layout, e.g. ``MazeSquareA-v0``
MAZES: dict[str, str] = {f"Maze{name.title().replace('_', '')}-v0": name for name in LAYOUTS}


def get_layout(name: str) -> MazeLayout:
    """Look up one of :data:`LAYOUTS`."""
    check_value("layout", name, tuple(LAYOUTS))
    return LAYOUTS[name]
