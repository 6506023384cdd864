import numpy as np

from sb3_cesd.envs.maze_layouts import MazeLayout, Wall

MAX_BOUNCES = 3
#: After contact an agent backs off by a random distance up to this
MAX_BACK_OFF = 0.01
#: Agents stop at this distance before a wall
CLEARANCE = 1e-4
#: A start is drawn again if a step of this length along an axis meets a wall
START_MARGIN = 0.05


class MazeDynamics:
    """
    Points that move among walls, many at once.

    A move goes straight to the first wall, backs off along its normal by U(0, 0.01), and goes on with the tangential part of
    what is left;
    after three bounces it stops at the contact. Walls are as thick as ``CLEARANCE`` to either side, which is what the
    original lacks: there, points in contact with two walls slip through a corner now and then.

    :param layout: the maze
    """

    def __init__(self, layout: MazeLayout) -> None:
        self.layout = layout
        # By axis of the normal: 0 for vertical walls, 1 for horizontal ones. The end of a wall is a tiny wall across it
        self._walls = (
            _as_array(layout.vertical + _ends(layout.horizontal)),
            _as_array(layout.horizontal + _ends(layout.vertical)),
        )

    def start_positions(self, n: int, rng: np.random.Generator) -> np.ndarray:
        """
        :param n: number of agents
        :param rng: source of randomness
        :return: uniform in the start cell, a margin away from walls, shape ``(n, 2)``
        """
        center = np.array(self.layout.start, dtype=np.float64)
        positions = np.empty((n, 2))
        missing = np.arange(n)
        while len(missing) > 0:
            positions[missing] = center + rng.uniform(-0.5, 0.5, size=(len(missing), 2))
            outward = START_MARGIN * np.where(positions[missing] > center, 1.0, -1.0)
            blocked = np.zeros(len(missing), dtype=bool)
            for axis in (0, 1):
                step = np.zeros_like(outward)
                step[:, axis] = outward[:, axis]
                blocked |= np.isfinite(self._first_contact(positions[missing], step)[0]).any(axis=1)
            missing = missing[blocked]
        return positions

    def move(self, positions: np.ndarray, displacements: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """
        :param positions: shape ``(n, 2)``
        :param displacements: shape ``(n, 2)``
        :param rng: source of randomness of the back-off
        :return: new positions, shape ``(n, 2)``
        """
        positions, remaining = positions.astype(np.float64), displacements.astype(np.float64)
        moving = np.nonzero((remaining != 0).any(axis=1))[0]
        for _ in range(MAX_BOUNCES):
            if len(moving) == 0:
                break
            start, step = positions[moving], remaining[moving]
            times, levels = self._first_contact(start, step)
            first = times.min(axis=1, keepdims=True)  # (n, 1)
            # Walls met within the clearance of the first contact are met together: an inner corner
            together = CLEARANCE / np.linalg.norm(step, axis=1, keepdims=True)
            hit = np.isfinite(times) & (times <= first + together)
            travelled = np.minimum(first, 1.0)
            # Back off to the side the move came from, but not behind where it started
            back_off = rng.uniform(CLEARANCE, MAX_BACK_OFF, size=step.shape)
            back_off = np.minimum(back_off, np.maximum(np.abs(levels - start), CLEARANCE))
            positions[moving] = np.where(hit, levels - np.sign(step) * back_off, start + travelled * step)
            remaining[moving] = np.where(hit, 0.0, (1.0 - travelled) * step)
            moving = moving[hit.any(axis=1) & (remaining[moving] != 0).any(axis=1)]
        return positions

    def _first_contact(self, start: np.ndarray, step: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """
        :param start: shape ``(n, 2)``
        :param step: shape ``(n, 2)``
        :return: by axis of the wall's normal: share of the step at which the agent comes within ``CLEARANCE`` of the first
            wall (infinity if it meets none), and the level of this wall; both of shape ``(n, 2)``
        """
        times, levels = np.full(start.shape, np.inf), np.zeros(start.shape)
        for axis, walls in enumerate(self._walls):
            speed = step[:, axis, None]  # (n, 1)
            towards = np.sign(speed)
            # Distance to go until CLEARANCE before the wall, along the normal; negative once passed
            distance = (walls[:, 0] - start[:, axis, None]) * towards - CLEARANCE  # (n, n_walls)
            ahead = (distance + CLEARANCE > 0) & (distance < np.abs(speed)) & (speed != 0)
            with np.errstate(divide="ignore", invalid="ignore"):
                time = np.maximum(distance, 0.0) / np.abs(speed)
                # Where the agent is along the wall when it gets there, and when it would cross it
                along = start[:, 1 - axis, None] + time * step[:, 1 - axis, None]
                crossing = start[:, 1 - axis, None] + (distance + CLEARANCE) / np.abs(speed) * step[:, 1 - axis, None]
            low, high = np.minimum(along, crossing), np.maximum(along, crossing)
            met = ahead & (high >= walls[:, 1] - CLEARANCE) & (low <= walls[:, 2] + CLEARANCE)
            time = np.where(met, time, np.inf)
            nearest = time.argmin(axis=1)
            times[:, axis] = time[np.arange(len(start)), nearest]
            levels[:, axis] = walls[nearest, 0]
        return times, levels


def _ends(walls: list[Wall]) -> list[Wall]:
    return [Wall(end, wall.level, wall.level) for wall in walls for end in (wall.start, wall.end)]


def _as_array(walls: list[Wall]) -> np.ndarray:
    """(level, start, end) of each wall, shape ``(n_walls, 3)``"""
    return np.array(walls, dtype=np.float64)
