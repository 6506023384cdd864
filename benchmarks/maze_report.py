"""Tables and figures of the maze benchmark."""

from pathlib import Path

import numpy as np
import pandas as pd
from estimates import cell, head, interval, line
from join import join
from matplotlib.figure import Figure
from maze_methods import ABLATIONS, APT_WITH_NOISE, BASE, MAIN, NUMBERS, OF_MAZE, PAPER
from runs import filled, made_with, save_figure_whole, write_text_whole
from scipy import stats

from sb3_cesd import registry
from sb3_cesd.envs.mazes.layouts import LAYOUTS
from sb3_cesd.show.figures import draw_maze_panels, skill_colors

COVERAGE, ACCURACY = "total_coverage_coarse", "knn_accuracy"
#: Column -> heading and decimals
COLUMNS = {
    COVERAGE: ("total coverage (bins of 0.1)", 3),
    "total_coverage": ("total coverage (bins of 0.05)", 3),
    "policy_coverage": ("policy coverage (bins of 0.05)", 3),
    "policy_coverage_coarse": ("policy coverage (bins of 0.1)", 3),
    "on_cluster_share": ("on-cluster share", 2),
    "mi_late": ("late MI [nats]", 2),
    "mi_plug_in": ("MI [nats]", 2),
    "mi_mine": ("MI by MINE [nats]", 2),
    "mi_mine_shuffled": ("the same, skills shuffled", 2),
    ACCURACY: ("k-NN accuracy", 2),
    "particle_entropy": ("particle entropy", 3),
    "cluster_size_entropy": ("entropy of cluster sizes [nats]", 2),
}
SUMMARISED = {"policy_coverage": ("coverage", 2), ACCURACY: ("k-NN accuracy", 2)}
#: Columns by which methods are compared, and minimum number of seeds
COMPARED = ("policy_coverage", "total_coverage", COVERAGE, "on_cluster_share", "mi_late", ACCURACY)
MIN_SEEDS = 4
#: Methods that come first and last
FIRST, LAST = "cesd", "released"


def write(output: Path, n_timesteps: int) -> None:
    """
    Write ``summary.md``, ``table.md``, ``ablations.md`` and the figures.

    :param output: folder of the benchmark, with ``runs.csv``, ``mine.csv`` and ``rollouts``
    :param n_timesteps: environment steps of the runs that are reported
    """
    rows = join([output / "runs.csv"])
    rows = rows[rows.n_timesteps == n_timesteps] if len(rows) else rows
    if rows.empty:
        print(f"There are no runs of {n_timesteps} steps yet.")
        return
    rows = with_mine(rows, join([output / "mine.csv"]))
    known = set(rows.method)
    methods = in_order(rows, [method for method in MAIN if method in known])
    if methods:
        of_methods = rows[rows.method.isin(methods)]
        write_text_whole(output / "summary.md", summary(of_methods, methods))
        save_figure_whole(draw_ranking(of_methods, methods), output / "ranking.png")
        text = table(rows, [*methods, *(method for method in (BASE, APT_WITH_NOISE) if method in known)])
        write_text_whole(output / "table.md", text)
        print(text)
    if ablations := [method for method in (*ABLATIONS, *NUMBERS, *PAPER) if method in known]:
        write_text_whole(output / "ablations.md", table(rows, [*methods[: FIRST in methods], *ablations]))
    for maze in rows.maze.unique():
        if (figure := draw_skills(output / "rollouts", maze, methods)) is not None:
            save_figure_whole(figure, output / f"skills_{maze}.png")


def draw_skills(folder: Path, maze: str, methods: list[str], kept: Path | None = None) -> Figure | None:
    """Draw the skills of methods, by the rollouts of their first seed in a folder, or in a file by method and maze."""
    panels, others = {}, {} if kept is None else np.load(kept)
    for method in methods:
        files = sorted(folder.glob(f"{method}_{maze}_*.npz"))
        states = np.load(files[0])["drawn"] if files else others.get(f"{method}_{maze}")
        if states is not None:
            panels[name_of(method)] = states.astype(float)
    return draw_maze_panels(LAYOUTS[maze], panels, legend=True) if panels else None


def with_mine(rows: pd.DataFrame, estimates: pd.DataFrame) -> pd.DataFrame:
    """Add the estimates of ``mine.csv``, without those of fewer iterations than others, whose bound is lower."""
    if estimates.empty:
        return rows
    of_runs = filled(estimates, OF_MAZE).merge(rows[list(OF_MAZE)].astype(object))
    most = of_runs[of_runs.n_iterations == of_runs.n_iterations.max()]
    columns = [*OF_MAZE, *(name for name in ("mi_mine", "mi_mine_shuffled") if name in most)]
    return rows.astype(dict.fromkeys(OF_MAZE, object)).merge(most[columns], on=list(OF_MAZE), how="left")


def in_order(rows: pd.DataFrame, methods: list[str]) -> list[str]:
    """Order methods for tables and figures: CeSD, the others by their coverage, and CeSD as released."""
    means = rows.groupby(["method", "maze"])["policy_coverage"].mean().groupby("method").mean()
    return sorted(methods, key=lambda method: (method == LAST, method != FIRST, -float(means[method]), method))


def name_of(method: str) -> str:
    """Return the name of a method in its paper, e.g. ``"DIAYN"``."""
    names = {LAST: "CeSD, released setting", "paper": "CeSD, setting of the paper", "scratch": "DDPG"}
    return names.get(method) or (registry.METHODS[method].__name__ if method in registry.METHODS else method)


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
    for method in methods:
        cells = []
        for maze, column in columns:
            text = cell(rows[(rows.maze == maze) & (rows.method == method)][column], SUMMARISED[column][1])
            cells.append(f"**{text}**" if means[maze, column].get(method) == means[maze, column].max() else text)
        lines.append(line(name_of(method), *cells))
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


def table(rows: pd.DataFrame, methods: list[str]) -> str:
    """
    Write all measures of methods, a table for each maze, and p-values.

    :param rows: runs
    :param methods: in the order of the table
    :return: Markdown
    """
    rows = rows[rows.method.isin(methods)]
    columns = [column for column in COLUMNS if column in rows and rows[column].notna().any()]
    lines = []
    for maze, of_maze in rows.groupby("maze"):
        lines += [f"### {maze}", "", *head("method", "seeds", *(COLUMNS[column][0] for column in columns))]
        for method in methods:
            of_method = of_maze[of_maze.method == method]
            if len(of_method):
                cells = (cell(of_method[column], COLUMNS[column][1]) for column in columns)
                lines.append(line(method, str(len(of_method)), *cells))
        lines.append("")
    lines += comparison(rows, methods)
    budgets = rows[["n_timesteps", "n_updates"]].drop_duplicates().to_numpy().tolist()
    budget = " or ".join(f"{steps} steps and {updates} updates" for steps, updates in budgets)
    lines.append(f"Mean and 95 % t-interval over seeds; {budget} a run, `python benchmarks/maze.py`, {made_with(rows)}.")
    return "\n".join(lines) + "\n"


def comparison(rows: pd.DataFrame, methods: list[str]) -> list[str]:
    """Tabulate p-values of the Mann-Whitney test, which allows for values that are bounded, as coverage is by 1."""
    columns = [column for column in COMPARED if column in rows]
    lines = []
    for maze, of_maze in rows.groupby("maze"):
        of_first = of_maze[of_maze.method == FIRST]
        for method in methods:
            of_method = of_maze[of_maze.method == method]
            if method == FIRST or min(len(of_first), len(of_method)) < MIN_SEEDS:
                continue
            cells = []
            for column in columns:
                values, others = of_first[column].dropna(), of_method[column].dropna()
                enough = min(len(values), len(others)) >= MIN_SEEDS
                cells.append(f"{stats.mannwhitneyu(values, others).pvalue:.2g}" if enough else "-")
            lines.append(line(str(maze), method, f"{len(of_first)}, {len(of_method)}", *cells))
    if not lines:
        return []
    title = "p-values (Mann-Whitney, two-sided, not corrected for their number)"
    headings = head("maze", f"{FIRST} against", "seeds", *(COLUMNS[column][0] for column in columns))
    return [title, "", *headings, *lines, ""]


def draw_ranking(rows: pd.DataFrame, methods: list[str], x: str = "policy_coverage", y: str = ACCURACY) -> Figure:
    """Draw one column against another: a point per method with t-intervals over seeds, a panel per maze."""
    mazes = sorted(rows.maze.unique())
    figure = Figure(figsize=(4.6 * len(mazes) + 1.5, 4.6), layout="constrained")
    all_axes = figure.subplots(1, len(mazes), squeeze=False, sharex=True, sharey=True)[0]
    colors, points = dict(zip(methods, skill_colors(len(methods)), strict=True)), {}
    for axes, maze in zip(all_axes, mazes, strict=True):
        for method in methods:
            of_method = rows[(rows.maze == maze) & (rows.method == method)]
            if len(of_method):
                (mean_x, half_x), (mean_y, half_y) = (interval(of_method[column].dropna()) for column in (x, y))
                points[name_of(method)] = axes.errorbar(mean_x, mean_y, half_y, half_x, "o", color=colors[method], alpha=0.8)
        axes.set(title=maze, xlabel=COLUMNS[x][0])
        axes.grid(alpha=0.2)
    all_axes[0].set_ylabel(COLUMNS[y][0])
    if y == ACCURACY:
        all_axes[0].set_ylim(None, 1.05)  # intervals may exceed 1
    figure.legend(list(points.values()), list(points), loc="outside right center", fontsize=8)
    return figure
