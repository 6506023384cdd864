"""Summary of the maze benchmark: a table and a figure of coverage and k-NN accuracy of all methods."""

import pandas as pd
from intervals import cell, interval
from labels import add_labels
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sb3_cesd import registry
from sb3_cesd.metrics.plots import skill_colors

COVERAGE, ACCURACY = "total_coverage_coarse", "knn_accuracy"
#: Column -> heading and decimals
SUMMARISED = {COVERAGE: ("coverage", 3), ACCURACY: ("k-NN accuracy", 2)}
#: Methods that come first and last
FIRST, LAST = "cesd", "released"
#: Names of methods that are not in the registry
NAMES = {LAST: "CeSD, released setting"}


def in_order(rows: pd.DataFrame, methods: list[str]) -> list[str]:
    """
    Order methods for tables and figures.

    :param rows: runs
    :param methods: methods that have runs
    :return: CeSD, the others by their coverage, and CeSD as released
    """
    means = rows.groupby(["method", "maze"])[COVERAGE].mean().groupby("method").mean()

    def place(method: str) -> tuple[int, float, str]:
        return (method == LAST) - (method == FIRST), -float(means[method]), method

    return sorted(methods, key=place)


def name_of(method: str) -> str:
    """
    Return the name of a method in its paper.

    :param method: name in the rows
    :return: e.g. ``"DIAYN"``
    """
    return registry.METHODS[method].__name__ if method in registry.METHODS else NAMES.get(method, method)


def method_colors() -> dict[str, str]:
    """
    Choose a colour for each method, the same in all figures, independent of the methods that have runs.

    :return: method -> colour
    """
    methods = [*registry.METHODS, LAST]
    return dict(zip(methods, skill_colors(len(methods)), strict=True))


def summary(rows: pd.DataFrame, methods: list[str]) -> str:
    """
    Write coverage and k-NN accuracy of all methods in all mazes as one table.

    :param rows: runs of these methods
    :param methods: in the order of the table
    :return: Markdown; the largest mean of each column is bold
    """
    mazes = sorted(rows.maze.unique())
    columns = [(maze, column) for maze in mazes for column in SUMMARISED]
    headings = [f"{maze}: {SUMMARISED[column][0]}" for maze, column in columns]
    lines = ["| | " + " | ".join(headings) + " |", "|---" * (len(columns) + 1) + "|"]
    means = {key: rows[rows.maze == key[0]].groupby("method")[key[1]].mean() for key in columns}
    best = {key: means[key].reindex(methods).max() for key in columns}
    for method in methods:
        cells = []
        for maze, column in columns:
            values = rows[(rows.maze == maze) & (rows.method == method)][column]
            text = cell(values, SUMMARISED[column][1])
            cells.append(f"**{text}**" if means[maze, column].get(method) == best[maze, column] else text)
        lines.append(f"| {name_of(method)} | " + " | ".join(cells) + " |")
    seeds = rows.groupby(["method", "maze"], sort=False).seed.nunique().unstack()
    usual = int(seeds.stack().mode().max())
    others = {name: seeds.loc[name, mazes] for name in methods if (seeds.loc[name, mazes] != usual).any()}
    told = "; ".join(
        f"{name_of(name)}: {', '.join(f'{n:.0f}' for n in of_mazes.fillna(0))}" for name, of_mazes in others.items()
    )
    lines += [
        "",
        f"Means over {usual} seeds{f' ({told})' if told else ''} with 95 % t-intervals; the largest of a column is bold.",
    ]
    return "\n".join(lines) + "\n"


def draw_ranking(rows: pd.DataFrame, methods: list[str]) -> Figure:
    """
    Draw k-NN accuracy against total coverage.

    :param rows: runs of these methods
    :param methods: methods to draw
    :return: a point per method with 95 % t-intervals over seeds, a panel per maze
    """
    mazes = sorted(rows.maze.unique())
    figure = Figure(figsize=(4.6 * len(mazes), 4.6), layout="constrained")
    FigureCanvasAgg(figure)
    all_axes = figure.subplots(1, len(mazes), squeeze=False, sharex=True, sharey=True)[0]
    colors = method_colors()
    points: dict[str, dict[str, tuple[float, float]]] = {maze: {} for maze in mazes}
    for axes, maze in zip(all_axes, mazes, strict=True):
        for method in methods:
            of_method = rows[(rows.maze == maze) & (rows.method == method)]
            if of_method.empty:
                continue
            (x, x_half), (y, y_half) = (interval(of_method[column]) for column in SUMMARISED)
            axes.errorbar(x, y, y_half, x_half, "o", color=colors[method], markersize=5, elinewidth=0.8, alpha=0.8)
            points[maze][name_of(method)] = x, y
        axes.set(title=maze, xlabel="total coverage (bins of 0.1)")
        axes.grid(alpha=0.2)
    # Intervals may exceed 1
    all_axes[0].set(ylabel="k-NN accuracy", xlim=(None, 1.05), ylim=(None, 1.05))
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    for axes, maze in zip(all_axes, mazes, strict=True):
        add_labels(axes, points[maze])
    return figure
