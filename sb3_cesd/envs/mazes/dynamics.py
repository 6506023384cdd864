"""
Motion of many points in a maze.

All positions are odd multiples of :data:`RESOLUTION`. Float32 represents them exactly, none lies on a wall, and which of two
walls a step hits first is decided without rounding errors, so no point can slip through a corner.
"""

import numpy as np

from sb3_cesd.envs.mazes.layouts import MazeLayout

#: Largest change of a coordinate in a step: less than the side of a cell, so a step hits two walls at most
MAX_ACTION = 0.95
#: A point that hits a wall backs off from it by U(0, MAX_BACK_OFF)
MAX_BACK_OFF = 0.01
#: From the start of an episode, a step of this length on both axes, away from the centre of the cell, hits no wall
START_CLEARANCE = 0.05
RESOLUTION = 2.0**-20


def snap(coordinates: np.ndarray) -> np.ndarray:
    """Round coordinates (absolute values below 16) to odd multiples of :data:`RESOLUTION`."""
    return (2 * np.floor(coordinates / (2 * RESOLUTION)) + 1) * RESOLUTION


def move(layout: MazeLayout, positions: np.ndarray, actions: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """
    Move points straight to the first wall, back off along its normal, and slide along it for the rest of the step.

    EDL repeats this until it has hit three walls. No loop is needed here: walls are parallel to the axes, so hitting one ends
    the motion along one axis and does not change the other. Positions and actions have the shape ``(n, 2)``.
    """
    targets = snap(positions + np.minimum(np.maximum(actions, -MAX_ACTION), MAX_ACTION))
    blocked, contacts = _collide(layout, positions, targets)
    back_off = snap(MAX_BACK_OFF * rng.random(positions.shape))
    return np.where(blocked, contacts - np.copysign(back_off, targets - positions), targets)


def sample_starts(layout: MazeLayout, n: int, rng: np.random.Generator) -> np.ndarray:
    """Sample start positions uniformly in the start cell, except for strips along its walls; shape ``(n, 2)``."""
    center = np.array(layout.start_cell)
    starts = np.empty((n, 2))
    missing = np.arange(n)
    while missing.size > 0:
        draws = snap(center + rng.uniform(-0.5, 0.5, size=(missing.size, 2)))
        outward = snap(draws + START_CLEARANCE * np.sign(draws - center))
        starts[missing] = draws
        missing = missing[_collide(layout, draws, outward)[0].any(axis=1)]
    return starts


def place(layout: MazeLayout, position: np.ndarray) -> np.ndarray:
    """Turn a requested start position into one that :func:`move` accepts, shape ``(2,)``."""
    snapped = snap(np.asarray(position, dtype=np.float64))
    if snapped.shape != (2,) or not layout.is_free(snapped):
        raise ValueError(f"The start {position} is not inside this maze: pass (x, y) in one of its free cells.")
    return snapped


def _collide(layout: MazeLayout, positions: np.ndarray, targets: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Check on which axes steps of less than 1 hit a wall, ``(n, 2)``; return that, and the lines that they would cross."""
    centers = np.rint(positions)
    crossings = np.rint(targets) - centers  # -1, 0 or 1
    lines = centers + 0.5 * crossings
    i, j = (centers - layout.origin).astype(np.int64).T
    di, dj = crossings.astype(np.int64).T
    crosses_x, crosses_y = di != 0, dj != 0
    column, row = i + (di > 0), j + (dj > 0)  # index of the edge ahead
    edges_x, edges_y = layout.edges

    # Seen from the cell of the position, and from its neighbour once the step has crossed the line of the other axis
    x_wall, y_wall = edges_x[column, j] & crosses_x, edges_y[i, row] & crosses_y
    x_wall_later, y_wall_later = edges_x[column, j + dj] & crosses_x, edges_y[i + di, row] & crosses_y

    # Compare the fraction of the step up to the x-line with that up to the y-line, as products: exact in float64
    to_line, steps = np.abs(lines - positions), np.abs(targets - positions)
    x_share, y_share = to_line[:, 0] * steps[:, 1], to_line[:, 1] * steps[:, 0]
    # A step straight through a corner is free only if both ways around it are
    x_first = (x_share < y_share) | ((x_share == y_share) & (x_wall | y_wall_later))

    blocked = np.empty(positions.shape, dtype=bool)
    blocked[:, 0] = np.where(x_first | y_wall, x_wall, x_wall_later)
    blocked[:, 1] = np.where(x_first & ~x_wall, y_wall_later, y_wall)
    return blocked, lines
