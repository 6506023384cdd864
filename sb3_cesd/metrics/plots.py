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
    width, height = layout.high - layout.low + 2 * MARGIN
    figure, all_axes = _make_panels(len(panels), panel_width, panel_width * height / width)
    for axes, (title, states) in zip(all_axes, panels.items(), strict=True):
        _draw_paths(axes, states)
        axes.add_collection(
            LineCollection(list(layout.segments), colors="black", linewidths=1.5, capstyle="projecting", zorder=3)
        )
        axes.plot(*states[:, :, 0].mean(axis=(0, 1)), "o", color="black", markersize=5, zorder=4)
        axes.set(title=title, aspect="equal")
        axes.set(
            xlim=(layout.low[0] - MARGIN, layout.high[0] + MARGIN), ylim=(layout.low[1] - MARGIN, layout.high[1] + MARGIN)
        )
        axes.axis("off")
    if legend:
        _add_legend(figure, panels, labels)
    return figure


def draw_torso_panels(
    panels: Mapping[str, np.ndarray], legend: bool = False, panel_width: float = 3.0, alpha: float = 0.2
) -> Figure:
    """
    Draw the paths of the skills of robots on the ground; x over time for a robot that stays on a line, as the walker does.

    :param panels: title (the method) -> positions of the torso [m], of which x and y are drawn, shape
        ``(n_skills, n_rollouts, n_steps + 1, d)``
    :param legend: whether to add a legend of the skills
    :param panel_width: width of a panel [inch]
    :param alpha: opacity of a path, from 0 to 1
    :return: one panel per method, all to the same scale
    """
    figure, all_axes = _make_panels(len(panels), panel_width, panel_width, share=True)
    on_a_line = all(np.ptp(positions[..., 1]) < 1e-6 for positions in panels.values())
    for axes, (title, positions) in zip(all_axes, panels.items(), strict=True):
        if on_a_line:
            steps = np.broadcast_to(np.arange(positions.shape[2]), positions.shape[:3])
            paths = np.stack([steps, positions[..., 0]], axis=-1)
            axes.set(xlabel="step", ylabel="x [m]")
        else:
            paths = positions[..., :2]
            axes.set(xlabel="x [m]", ylabel="y [m]", aspect="equal")
        _draw_paths(axes, paths, alpha)
        axes.plot(*paths[:, :, 0].mean(axis=(0, 1)), "o", color="black", markersize=5, zorder=4)
        axes.set_title(title)
        axes.label_outer()
    if legend:
        _add_legend(figure, panels)
    return figure


def _make_panels(n_panels: int, width: float, height: float, share: bool = False) -> tuple[Figure, list[Axes]]:
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
    """
    Choose a colour for each skill.

    :param n_skills: number of skills
    :return: different colours, e.g. ``"#1f77b4"``: those of Matplotlib for up to 20 skills, else hues in light and dark
    """
    if n_skills <= 20:
        colors = colormaps["tab10" if n_skills <= 10 else "tab20"].colors  # type: ignore[attr-defined]
    else:
        hues = np.arange(n_skills) / n_skills
        brightness = np.array([0.95, 0.6, 0.8])[np.arange(n_skills) % 3]
        colors = hsv_to_rgb(np.stack([hues, np.full(n_skills, 0.85), brightness], axis=1))
    return [to_hex(color) for color in colors[:n_skills]]


def _draw_paths(axes: Axes, states: np.ndarray, alpha: float = 0.2) -> None:
    """
    Draw the paths of all skills.

    :param axes: where to draw
    :param states: shape ``(n_skills, n_rollouts, n_steps + 1, 2)``
    :param alpha: opacity of a path, from 0 to 1
    """
    n_skills, n_rollouts = states.shape[:2]
    # The first rollout of each skill, then the second of each, ..., so that no skill hides the others
    paths = [path for paths in states.swapaxes(0, 1) for path in paths]
    colors = skill_colors(n_skills) * n_rollouts
    axes.add_collection(LineCollection(paths, colors=colors, alpha=alpha, linewidths=2))
    axes.autoscale_view()


def _add_legend(figure: Figure, panels: Mapping[str, np.ndarray], labels: Sequence[str] | None = None) -> None:
    n_skills = max(len(states) for states in panels.values())
    if labels is None:
        labels = [str(skill) for skill in range(n_skills)]
    colors = skill_colors(n_skills)
    handles = [Line2D([], [], color=color, linewidth=2, label=label) for color, label in zip(colors, labels, strict=False)]
    is_short = max(map(len, labels)) <= SHORT_LABEL
    n_columns = min(n_skills, (LEGEND_COLUMNS if is_short else LEGEND_COLUMNS // 2) * min(len(panels), MAX_COLUMNS))
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.25 + 0.15 * -(-n_skills // n_columns))
    figure.legend(handles=handles, title="skill", loc="outside lower center", ncols=n_columns, fontsize=7, title_fontsize=7)
