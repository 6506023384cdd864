"""Figures of the paths of skills, as in the paper's figures 3, 6 and 7."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.collections import LineCollection
from matplotlib.colors import hsv_to_rgb, to_hex
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from sb3_cesd.envs.mazes.layouts import MazeLayout

#: Margin around a maze [cells]
MARGIN = 0.2
#: Maximum number of panels in a row
MAX_COLUMNS = 6
#: Columns of the legend below each panel, and the number of characters of a label that fit
LEGEND_COLUMNS, SHORT_LABEL = 5, 4


def draw_maze_panels(
    layout: MazeLayout,
    panels: Mapping[str, np.ndarray],
    legend: bool = False,
    panel_width: float = 2.4,
    labels: Sequence[str] | None = None,
) -> Figure:
    """
    Draw the paths of the skills of some methods in a maze.

    The paper draws 20 stochastic rollouts per skill from one start.

    :param layout: the maze
    :param panels: title (the method) -> states, shape ``(n_skills, n_rollouts, n_steps + 1, 2)``
    :param legend: whether to add a legend of the skills
    :param panel_width: width of a panel [inch]
    :param labels: names of the skills in the legend, their indices by default
    :return: one panel per method
    """
    (left, bottom), (right, top) = layout.low - MARGIN, layout.high + MARGIN
    figure, all_axes = make_panels(len(panels), panel_width, panel_width * (top - bottom) / (right - left))
    for axes, (title, states) in zip(all_axes, panels.items(), strict=True):
        draw_paths(axes, states)
        walls = LineCollection(list(layout.segments), colors="black", linewidths=1.5, capstyle="projecting", zorder=3)
        axes.add_collection(walls)
        axes.plot(*states[:, :, 0].mean(axis=(0, 1)), "o", color="black", markersize=5, zorder=4)
        axes.set(title=title, aspect="equal", xlim=(left, right), ylim=(bottom, top))
        axes.axis("off")
    if legend:
        n_skills = max(len(states) for states in panels.values())
        _add_legend(figure, labels or [str(skill) for skill in range(n_skills)], min(len(panels), MAX_COLUMNS))
    return figure


def make_panels(n_panels: int, width: float, height: float, share: bool = False) -> tuple[Figure, list[Axes]]:
    """Make a figure with some panels [inch], in rows."""
    title_height = 0.35  # [inch]
    n_rows = -(-n_panels // MAX_COLUMNS)
    n_columns = -(-n_panels // n_rows)
    figure = Figure(figsize=(n_columns * width, n_rows * (height + title_height)), layout="constrained")
    FigureCanvasAgg(figure)
    all_axes = figure.subplots(n_rows, n_columns, squeeze=False, sharex=share, sharey=share).ravel()
    for spare in all_axes[n_panels:]:
        spare.remove()
    return figure, list(all_axes[:n_panels])


def skill_colors(n_skills: int) -> list[str]:
    """Choose different colours: those of Matplotlib for up to 20 skills, else hues in light and dark."""
    if n_skills <= 20:
        colors = colormaps["tab10" if n_skills <= 10 else "tab20"].colors  # type: ignore[attr-defined]
    else:
        hues = np.arange(n_skills) / n_skills
        brightness = np.array([0.95, 0.6, 0.8])[np.arange(n_skills) % 3]
        colors = hsv_to_rgb(np.stack([hues, np.full(n_skills, 0.85), brightness], axis=1))
    return [to_hex(color) for color in colors[:n_skills]]


def draw_paths(axes: Axes, states: np.ndarray, alpha: float = 0.2) -> None:
    """Draw the paths of all skills, shape ``(n_skills, n_rollouts, n_steps + 1, 2)``."""
    n_skills, n_rollouts = states.shape[:2]
    # The first rollout of each skill, then the second of each, ..., so that no skill hides the others
    paths = [path for paths in states.swapaxes(0, 1) for path in paths]
    colors = skill_colors(n_skills) * n_rollouts
    axes.add_collection(LineCollection(paths, colors=colors, alpha=alpha, linewidths=2))
    axes.autoscale_view()


def _add_legend(figure: Figure, labels: Sequence[str], n_panels: int) -> None:
    """Add a legend of the skills below the panels of a row."""
    colors = skill_colors(len(labels))
    handles = [Line2D([], [], color=color, linewidth=2, label=label) for color, label in zip(colors, labels, strict=True)]
    per_panel = LEGEND_COLUMNS if max(map(len, labels)) <= SHORT_LABEL else LEGEND_COLUMNS // 2
    n_columns = min(len(labels), per_panel * n_panels)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.25 + 0.15 * -(-len(labels) // n_columns))
    figure.legend(handles=handles, title="skill", loc="outside lower center", ncols=n_columns, fontsize=7, title_fontsize=7)
