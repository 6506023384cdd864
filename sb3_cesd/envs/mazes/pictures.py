"""What a point in a maze observes: its position, or a picture of the maze."""

from functools import cached_property

import numpy as np
from gymnasium import spaces

from sb3_cesd.envs.mazes.layouts import MazeLayout

#: Brightness of walls and of the point
WALL, POINT = 96, 255
#: Thickness of walls, and standard deviation of the bell that draws a point [pixels]
WALL_WIDTH, POINT_SIZE = 1.0, 1.0


class MazeObserver:
    """
    Observations of points in a maze.

    A picture has one channel. The point is a bell around its exact position, so that steps far below a pixel change it.

    :param layout: the maze
    :param image_size: height and width of the pictures [pixel]; ``None`` to observe the position (x, y)
    """

    def __init__(self, layout: MazeLayout, image_size: int | None) -> None:
        self.layout, self.image_size = layout, image_size

    @property
    def space(self) -> spaces.Box:
        """The observation space: pictures, or the bounding box of the maze."""
        if self.image_size is not None:
            return spaces.Box(0, 255, (self.image_size, self.image_size, 1), np.uint8)
        return spaces.Box(self.layout.low.astype(np.float32), self.layout.high.astype(np.float32), dtype=np.float32)

    def __call__(self, positions: np.ndarray) -> np.ndarray:
        """Observe positions ``(n, 2)``: float32, same shape, or pictures ``(n, image_size, image_size, 1)``, uint8."""
        if self.image_size is None:
            return positions.astype(np.float32)
        columns, rows = self._to_pixels(positions).T
        offsets = np.arange(self.image_size) - np.stack([rows, columns])[..., None]  # (2, n, image_size)
        vertical, horizontal = np.exp(-0.5 * (offsets / POINT_SIZE) ** 2).astype(np.float32)
        points = POINT * vertical[:, :, None] * horizontal[:, None, :]
        return np.maximum(points, self._walls).astype(np.uint8)[..., None]

    def _to_pixels(self, positions: np.ndarray) -> np.ndarray:
        """Convert positions, ``(..., 2)``, to columns and rows; the maze fills the picture and is in its middle."""
        assert self.image_size is not None
        low, high = self.layout.low, self.layout.high
        scale = (self.image_size - WALL_WIDTH) / (high - low).max()
        return (self.image_size - 1) / 2 + scale * (positions - (low + high) / 2) * np.array([1, -1])

    @cached_property
    def _walls(self) -> np.ndarray:
        """The picture without a point: how much of each pixel walls cover, shape ``(image_size, image_size)``."""
        assert self.image_size is not None
        pixels = np.stack(np.meshgrid(*[np.arange(self.image_size)] * 2), axis=-1)  # (row, column) -> (column, row)
        ends = np.sort(self._to_pixels(self.layout.segments), axis=1)[:, :, None, None]  # (n_walls, 2, 1, 1, 2)
        distances = np.maximum(np.maximum(ends[:, 0] - pixels, pixels - ends[:, 1]), 0).max(axis=-1)  # to each wall
        return WALL * np.clip((WALL_WIDTH + 1) / 2 - distances.min(axis=0), 0, 1).astype(np.float32)
