"""Tables and figures of the maze benchmark."""

from pathlib import Path

import numpy as np
import pandas as pd
from bands import draw_band
from intervals import cell
from join import join_files
from made_with import made_with
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from maze_methods import ABLATIONS, APT_WITH_NOISE, BASE, CONTINUOUS, ENVIRONMENTS, MAIN, N_TIMESTEPS, NUMBERS
from maze_summary import draw_ranking, in_order, method_colors, name_of, summary
from scipy import stats

from sb3_cesd.common.files import save_figure_whole, write_text_whole
from sb3_cesd.envs.mazes.layouts import LAYOUTS
from sb3_cesd.metrics.plots import draw_maze_panels

#: Column -> (heading, decimals)
COLUMNS = {
    "total_coverage_coarse": ("total coverage (bins of 0.1)", 3),
    "total_coverage": ("total coverage (bins of 0.05)", 3),
    "policy_coverage": ("policy coverage (bins of 0.05)", 3),
    "policy_coverage_coarse": ("policy coverage (bins of 0.1)", 3),
    "on_cluster_share": ("on-cluster share", 2),
    "mi_late": ("late MI [nats]", 2),
    "mi_plug_in": ("MI [nats]", 2),
    "mi_mine": ("MI by MINE [nats]", 2),
    "mi_mine_shuffled": ("the same, skills shuffled", 2),
    "knn_accuracy": ("k-NN accuracy", 2),
    "particle_entropy": ("particle entropy", 3),
    "cluster_size_entropy": ("entropy of cluster sizes [nats]", 2),
}
#: Published total coverage of CeSD (bins of 0.05), after a longer training
PUBLISHED_COVERAGE = {
    "square_a": 0.71, "square_b": 0.66, "square_c": 0.60, "square_d": 0.57, "tree": 0.40, "corridor": 0.82,
}  # fmt: skip
#: Arguments that trade off clusters and coverage: method -> value
VARIED = {
    "alpha": {"alpha=0.1": "0.1", BASE: "1", "alpha=2": "2", "alpha=10": "10"},
    "kappa": {BASE: "0", "kappa=0.25": "0.25", "kappa=0.5": "0.5", "kappa=1": "1"},
    "ensemble_size": {f"ensemble_size={size}": str(size) for size in (1, 2, 5)} | {BASE: "10"},
}
VARYING = {method for methods in VARIED.values() for method in methods} - {BASE}
#: Columns by which methods are compared, and minimum number of seeds
COMPARED = ("total_coverage_coarse", "policy_coverage_coarse", "on_cluster_share", "mi_late", "knn_accuracy")
MIN_SEEDS = 4


def write(output: Path, n_timesteps: int) -> None:
    """
    Write ``summary.md``, ``table.md``, ``ablations.md`` and the figures.

    :param output: folder of the benchmark, with ``runs.csv``, ``mine.csv`` and ``rollouts``
    :param n_timesteps: environment steps of the runs that are reported
    :raises ValueError: if a file is damaged, or of another benchmark
    """
    rows, estimates = (join_files([output], name) for name in ("runs.csv", "mine.csv"))
    rollouts_folder = output / "rollouts"
    if len(rows):
        if "maze" not in rows:
            raise ValueError(f"{output / 'runs.csv'} is of another benchmark: pass a folder that maze.py wrote to.")
        others = sorted(set(rows.n_timesteps) - {n_timesteps})
        rows = rows[rows.n_timesteps == n_timesteps]
        if others:
            print(f"Runs of {', '.join(map(str, others))} steps are left out: pass --steps to report them.")
    if rows.empty:
        print(f"There are no runs of {n_timesteps} steps yet.")
        return
    rows = with_mine(rows, estimates)
    methods = in_order(rows, [method for method in MAIN if method in set(rows.method)])
    compared = methods + [method for method in (BASE, APT_WITH_NOISE) if method in set(rows.method)]
    ablations = [method for method in (*ABLATIONS, *ENVIRONMENTS, *NUMBERS, *CONTINUOUS) if method in set(rows.method)]
    if methods:
        of_methods = rows[rows.method.isin(methods)]
        write_text_whole(output / "summary.md", summary(of_methods, methods))
        save_figure_whole(draw_ranking(of_methods, methods), output / "ranking.png", dpi=110)
        write_text_whole(output / "table.md", table(rows[rows.method.isin(compared)], compared))
        print((output / "table.md").read_text(encoding="utf-8"))
    if ablations:
        both = [*(["cesd"] if "cesd" in methods else []), *ablations]
        write_text_whole(output / "ablations.md", table(rows[rows.method.isin(both)], both))
    if set(ablations) & VARYING:
        save_figure_whole(draw_trade_off(rows), output / "trade_off.png", dpi=110)
    with_rollouts = {maze: rollout_files(rollouts_folder, methods, maze, n_timesteps) for maze in rows.maze.unique()}
    for maze, files in with_rollouts.items():
        here = set(rows.method[rows.maze == maze])
        left_out = ", ".join(method for method in methods if method in here - set(files))
        if left_out:
            print(f"There are no rollouts of {left_out} in {maze}: pictures and curves are without them.")
        if files:
            panels = {name_of(method): np.load(of_method[0])["drawn"].astype(float) for method, of_method in files.items()}
            figure = draw_maze_panels(LAYOUTS[maze], panels, legend=True)
            save_figure_whole(figure, output / f"skills_{maze}.png", dpi=110)
    if any(with_rollouts.values()):
        figure = draw_curves({maze: files for maze, files in with_rollouts.items() if files})
        save_figure_whole(figure, output / "coverage.png", dpi=110)


def with_mine(rows: pd.DataFrame, estimates: pd.DataFrame) -> pd.DataFrame:
    """
    Add mutual information by MINE.

    :param rows: runs
    :param estimates: rows of ``mine.csv``; those with fewer iterations than others are left out, as their bound is lower
    :return: the runs with ``mi_mine`` and, as far as known, ``mi_mine_shuffled``, NaN without an estimate; without these
        columns if there are no estimates
    """
    if estimates.empty:
        return rows
    key = ["method", "maze", "seed", "n_timesteps"]
    of_runs = estimates.assign(n_timesteps=estimates.get("n_timesteps", N_TIMESTEPS)).fillna({"n_timesteps": N_TIMESTEPS})
    of_runs = of_runs.merge(rows[key])
    most = of_runs.n_iterations.max()
    if (of_runs.n_iterations < most).any():
        print(f"Estimates of MINE of fewer than {most} iterations are left out: complete them by maze.py --mine.")
    columns = [*key, *(name for name in COLUMNS if name.startswith("mi_mine") and name in of_runs)]
    return rows.merge(of_runs.loc[of_runs.n_iterations == most, columns], on=key, how="left")


def rollout_files(folder: Path, methods: list[str], maze: str, n_timesteps: int) -> dict[str, list[Path]]:
    """
    Find the rollouts of methods in a maze.

    :param folder: folder of the rollouts
    :param methods: methods
    :param maze: the maze
    :param n_timesteps: environment steps of the runs
    :return: method -> its files, one per seed; methods without files are left out
    """
    found = {method: sorted(folder.glob(f"{method}_{maze}_*_{n_timesteps}.npz")) for method in methods}
    return {method: files for method, files in found.items() if files}


def table(rows: pd.DataFrame, methods: list[str]) -> str:
    """
    Write the measures of methods as tables.

    :param rows: runs
    :param methods: in the order of the table
    :return: Markdown, a table for each maze
    """
    columns = [column for column in COLUMNS if column in rows and rows[column].notna().any()]
    lines = []
    for maze, of_maze in rows.groupby("maze"):
        lines += [f"### {maze}", ""]
        lines.append("| method | seeds | " + " | ".join(COLUMNS[column][0] for column in columns) + " |")
        lines.append("|---" * (len(columns) + 2) + "|")
        for method in methods:
            of_method = of_maze[of_maze.method == method]
            if of_method.empty:
                continue
            cells = []
            for column in columns:
                cells.append(cell(of_method[column], COLUMNS[column][1]))
            lines.append(f"| {method} | {len(of_method)} | " + " | ".join(cells) + " |")
        if maze in PUBLISHED_COVERAGE and "cesd" in methods:
            empty = " | ".join(f"{PUBLISHED_COVERAGE[maze]}" if column == "total_coverage" else "" for column in columns)
            lines.append(f"| CeSD as published | | {empty} |")
        lines.append("")
    lines += comparison(rows, methods)
    lines.append(f"Mean and 95 % t-interval over seeds; {budget(rows)} a run, `python benchmarks/maze.py`, {made_with(rows)}.")
    return "\n".join(lines) + "\n"


def comparison(rows: pd.DataFrame, methods: list[str], reference: str = "cesd") -> list[str]:
    """
    Compute two-sided p-values of the Mann-Whitney test, which allows for values that are bounded, as coverage is by 1.

    :param rows: runs
    :param methods: methods to be compared with the reference
    :param reference: the other method
    :return: lines of Markdown; empty if no two methods have enough seeds
    """
    columns = [column for column in COMPARED if column in rows]
    lines = []
    for maze, of_maze in rows.groupby("maze"):
        of_reference = of_maze[of_maze.method == reference]
        for method in methods:
            of_method = of_maze[of_maze.method == method]
            if method == reference or min(len(of_reference), len(of_method)) < MIN_SEEDS:
                continue
            cells = []
            for column in columns:
                values, others = of_reference[column].dropna(), of_method[column].dropna()
                enough = min(len(values), len(others)) >= MIN_SEEDS
                cells.append(f"{stats.mannwhitneyu(values, others).pvalue:.2g}" if enough else "-")
            lines.append(f"| {maze} | {method} | {len(of_reference)}, {len(of_method)} | " + " | ".join(cells) + " |")
    if not lines:
        return []
    heading = f"| maze | {reference} against | seeds | " + " | ".join(COLUMNS[column][0] for column in columns) + " |"
    return [
        "p-values (Mann-Whitney, two-sided, not corrected for their number)",
        "",
        heading,
        "|---" * (len(columns) + 3) + "|",
        *lines,
        "",
    ]


def budget(rows: pd.DataFrame) -> str:
    """
    Describe how long runs were.

    :param rows: runs
    :return: environment steps and updates
    """
    budgets = rows[["n_timesteps", "n_updates"]].drop_duplicates().to_numpy().tolist()
    return " or ".join(f"{steps} steps and {updates} updates" for steps, updates in budgets)


def draw_curves(files: dict[str, dict[str, list[Path]]]) -> Figure:
    """
    Draw coverage over the course of training.

    :param files: maze -> method -> rollouts with the curves of its runs
    :return: total coverage over environment steps, one panel per maze, mean and 95 % t-interval over seeds
    """
    figure = Figure(figsize=(4 * len(files) + 1.5, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    colors, lines = method_colors(), {}
    for axes, (maze, of_maze) in zip(
        figure.subplots(1, len(files), squeeze=False, sharey=True)[0], files.items(), strict=True
    ):
        for method, paths in of_maze.items():
            curves = [np.load(path) for path in paths]
            coverage = [curve["coverage"] for curve in curves]
            lines[name_of(method)] = draw_band(axes, curves[0]["steps"], coverage, colors[method])
        axes.set(title=maze, xlabel="environment step", ylim=(0, 1.02))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
        axes.label_outer()
    figure.legend(list(lines.values()), list(lines), loc="outside right center", fontsize=8)
    figure.supylabel("total coverage (bins of 0.1)", fontsize=10)
    return figure


def draw_trade_off(rows: pd.DataFrame) -> Figure:
    """
    Draw how arguments of CeSD trade coverage for clusters.

    :param rows: runs
    :return: on-cluster share against total coverage of CeSD, one row per argument that varies, one
        column per maze
    """
    mazes = list(rows.maze.unique())
    figure = Figure(figsize=(4 * len(mazes), 2.6 * len(VARIED)), layout="constrained")
    FigureCanvasAgg(figure)
    all_axes = figure.subplots(len(VARIED), len(mazes), squeeze=False, sharex=True, sharey="col")
    for column, maze in enumerate(mazes):
        of_maze = rows[rows.maze == maze]
        # The same seeds for all methods: differences between seeds would hide the effect of an argument
        drawn = of_maze[of_maze.method.isin(VARYING)].groupby("method").seed
        of_maze = of_maze[of_maze.seed.isin(set.intersection(*(set(seeds) for _, seeds in drawn)) if len(drawn) else ())]
        means = of_maze.groupby("method")[["on_cluster_share", "total_coverage_coarse"]].mean()
        for axes, (name, methods) in zip(all_axes[:, column], VARIED.items(), strict=True):
            known = [method for method in methods if method in means.index]
            axes.plot(*means.loc[known].to_numpy().T, color="lightgrey", zorder=1)
            for method in known:
                color = colormaps["viridis"](0.9 * list(methods).index(method) / (len(methods) - 1))
                axes.scatter(*means.loc[method], color=color, s=45, label=methods[method], zorder=2)
            if "apt" in means.index:
                axes.axhline(means.total_coverage_coarse["apt"], color="grey", linestyle="--", linewidth=1, label="APT")
            if column == len(mazes) - 1:
                axes.legend(title=name, fontsize=8, loc="center left", bbox_to_anchor=(1, 0.5))
        low, high = all_axes[0, column].get_ylim()
        low = min(low, high - 0.1)
        all_axes[0, column].set(title=maze, xlim=(-0.03, 1.03), ylim=(low, high + 0.05 * (high - low)))
    figure.supxlabel("on-cluster share", fontsize=10)
    figure.supylabel("total coverage (bins of 0.1)", fontsize=10)
    return figure
