import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sb3_cesd.envs.maze_layouts import MazeLayout


def draw_maze(axes: Axes, layout: MazeLayout) -> None:
    """
    :param axes: where to draw the walls
    :param layout: the maze
    """
    for wall in layout.horizontal:
        axes.plot([wall.start, wall.end], [wall.level, wall.level], color="black", linewidth=2, solid_capstyle="round")
    for wall in layout.vertical:
        axes.plot([wall.level, wall.level], [wall.start, wall.end], color="black", linewidth=2, solid_capstyle="round")
    axes.set_aspect("equal")
    axes.axis("off")
    axes.set_xlim(layout.low[0] - 0.1, layout.high[0] + 0.1)
    axes.set_ylim(layout.low[1] - 0.1, layout.high[1] + 0.1)


def render_path(layout: MazeLayout, path: np.ndarray, pixels_per_cell: int = 40) -> np.ndarray:
    """
    :param layout: the maze
    :param path: positions, the last one is where the point is now, shape ``(n, 2)``
    :param pixels_per_cell: size of the image
    :return: shape ``(height, width, 3)``, uint8
    """
    width, height = (layout.high - layout.low + 0.2) * pixels_per_cell / 100
    figure = Figure(figsize=(width, height), dpi=100)
    canvas = FigureCanvasAgg(figure)
    axes = figure.add_axes((0, 0, 1, 1))
    draw_maze(axes, layout)
    axes.plot(path[:, 0], path[:, 1], color="tab:blue", linewidth=1, alpha=0.6)
    axes.plot(*path[0], "o", color="black", markersize=4)
    axes.plot(*path[-1], "o", color="tab:red", markersize=7)
    canvas.draw()
    return np.asarray(canvas.buffer_rgba())[..., :3].copy()
