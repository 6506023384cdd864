"""Tables and figures of the maze benchmark."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib import colormaps
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from maze_methods import ABLATIONS, APT_WITH_NOISE, BASE, CONTINUOUS, ENVIRONMENTS, MAIN, N_TIMESTEPS
from runs import read_rows
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
    "knn_accuracy": ("k-NN accuracy", 2),
    "particle_entropy": ("particle entropy", 3),
    "cluster_size_entropy": ("entropy of cluster sizes [nats]", 2),
}
#: Total coverage of CeSD in the literature (bins of 0.05), of a longer training
PUBLISHED_COVERAGE = {
    "square_a": 0.71, "square_b": 0.66, "square_c": 0.60, "square_d": 0.57, "tree": 0.40, "corridor": 0.82,
}  # fmt: skip
CONFIDENCE = 0.95
#: Arguments of the trade-off of clusters and coverage: method -> value
VARIED = {
    "alpha": {"alpha=0.1": "0.1", BASE: "1", "alpha=2": "2", "alpha=10": "10"},
    "kappa": {BASE: "0", "kappa=0.25": "0.25", "kappa=0.5": "0.5", "kappa=1": "1"},
    "ensemble_size": {f"ensemble_size={size}": str(size) for size in (1, 2, 5)} | {BASE: "10"},
}
VARYING = {method for methods in VARIED.values() for method in methods} - {BASE}
#: Columns that methods are compared by, and from how many seeds on
COMPARED = ("total_coverage_coarse", "policy_coverage_coarse", "on_cluster_share", "mi_late", "knn_accuracy")
MIN_SEEDS = 4


def write(output: Path, n_timesteps: int) -> None:
    """
    Write ``table.md``, ``ablations.md`` and the figures.

    :param output: folder of the benchmark, with ``runs.csv``, ``mine.csv`` and ``rollouts``
    :param n_timesteps: environment steps of the runs that are reported
    """
    rows, estimates, rollouts_folder = read_rows(output / "runs.csv"), read_rows(output / "mine.csv"), output / "rollouts"
    if len(rows):
        others = sorted(set(rows.n_timesteps) - {n_timesteps})
        rows = rows[rows.n_timesteps == n_timesteps]
        if others:
            print(f"Runs of {', '.join(map(str, others))} steps are left out: report them with --steps.")
    if rows.empty:
        print(f"There are no runs of {n_timesteps} steps yet.")
        return
    if len(estimates):
        key = ["method", "maze", "seed", "n_timesteps"]
        of_rows = estimates.assign(n_timesteps=estimates.get("n_timesteps", N_TIMESTEPS))
        of_rows = of_rows.fillna({"n_timesteps": N_TIMESTEPS}).sort_values("n_iterations").drop_duplicates(key, keep="last")
        rows = rows.merge(of_rows[[*key, "mi_mine"]], on=key, how="left")
    methods = [method for method in MAIN if method in set(rows.method)]
    compared = methods + [method for method in (BASE, APT_WITH_NOISE) if method in set(rows.method)]
    ablations = [method for method in (*ABLATIONS, *ENVIRONMENTS, *CONTINUOUS) if method in set(rows.method)]
    if methods:
        write_text_whole(output / "table.md", table(rows[rows.method.isin(compared)], compared))
        print((output / "table.md").read_text())
    if ablations:
        both = [*(["cesd"] if "cesd" in methods else []), *ablations]
        write_text_whole(output / "ablations.md", table(rows[rows.method.isin(both)], both))
    if set(ablations) & VARYING:
        save_figure_whole(draw_trade_off(rows), output / "trade_off.png", dpi=110)
    for maze in rows.maze.unique():
        panels = {}
        for method in methods:
            files = sorted(rollouts_folder.glob(f"{method}_{maze}_*_{n_timesteps}.npz"))
            if files:
                panels[method] = np.load(files[0])["drawn"].astype(float)
        if panels:
            figure = draw_maze_panels(LAYOUTS[maze], panels, legend=True)
            save_figure_whole(figure, output / f"skills_{maze}.png", dpi=110)
    if methods and any(rollouts_folder.glob("*.npz")):
        save_figure_whole(draw_curves(rows, methods, rollouts_folder), output / "coverage.png", dpi=110)


def interval(values: pd.Series) -> tuple[float, float]:
    """
    Compute the mean of several seeds with Student's interval.

    :param values: one per seed
    :return: mean, and half the width of its 95 % t-interval (NaN for a single seed)
    """
    n = len(values)
    if n < 2:
        return float(values.mean()), float("nan")
    return float(values.mean()), float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))


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
                values = of_method[column].dropna()
                mean, half = interval(values)
                decimals = COLUMNS[column][1]
                cells.append("-" if values.empty else f"{mean:.{decimals}f} ± {half:.{decimals}f}".replace(" ± nan", ""))
            lines.append(f"| {method} | {len(of_method)} | " + " | ".join(cells) + " |")
        if maze in PUBLISHED_COVERAGE and "cesd" in methods:
            empty = " | ".join(f"{PUBLISHED_COVERAGE[maze]}" if column == "total_coverage" else "" for column in columns)
            lines.append(f"| CeSD as published | | {empty} |")
        lines.append("")
    lines += comparison(rows, methods)
    lines.append(f"Mean and 95 % t-interval over seeds. Made by `python benchmarks/maze.py` with {made_with(rows)}.")
    return "\n".join(lines) + "\n"


def comparison(rows: pd.DataFrame, methods: list[str], reference: str = "cesd") -> list[str]:
    """
    Two-sided p-values of the Mann-Whitney test, which does not mind that coverage ends at 1.

    :param rows: runs
    :param methods: methods to be compared with the reference
    :param reference: the other method
    :return: lines of Markdown, none where no two methods have enough seeds
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
    return ["p-values (Mann-Whitney, two-sided)", "", heading, "|---" * (len(columns) + 3) + "|", *lines, ""]


def made_with(rows: pd.DataFrame) -> str:
    """
    Tell what runs were made with.

    :param rows: runs
    :return: versions of the first run, processors and budgets of all
    """
    versions = json.loads(rows.versions.iloc[0])
    versions.pop("processor")
    processor = " or ".join(dict.fromkeys(json.loads(each)["processor"] for each in rows.versions))
    packages = ", ".join(f"{name} {number}" for name, number in versions.items())
    budgets = rows[["n_timesteps", "n_updates"]].drop_duplicates().to_numpy().tolist()
    sizes = " or ".join(f"{steps} steps and {updates} updates" for steps, updates in budgets)
    return f"{sizes} a run, one thread of {processor}, {packages}"


def draw_curves(rows: pd.DataFrame, methods: list[str], rollouts_folder: Path) -> Figure:
    """
    Draw how coverage grows in the course of training.

    :param rows: runs
    :param methods: which to draw
    :param rollouts_folder: curves of the runs
    :return: total coverage over environment steps, one panel per maze, mean and 95 % t-interval over seeds
    """
    mazes = list(rows.maze.unique())
    figure = Figure(figsize=(4 * len(mazes), 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, maze in zip(figure.subplots(1, len(mazes), squeeze=False, sharey=True)[0], mazes, strict=True):
        for index, method in enumerate(methods):
            files = sorted(rollouts_folder.glob(f"{method}_{maze}_*_{rows.n_timesteps.iloc[0]}.npz"))
            curves = [np.load(path) for path in files]
            if not curves:
                continue
            steps = curves[0]["steps"]
            points = [interval(pd.Series(values)) for values in np.stack([curve["coverage"] for curve in curves]).T]
            means, halves = np.array(points).T
            axes.plot(steps, means, label=method, color=f"C{index}")
            axes.fill_between(steps, means - halves, means + halves, color=f"C{index}", alpha=0.15, linewidth=0)
        axes.set(title=maze, xlabel="environment step", ylim=(0, 1.02))
        axes.label_outer()
    axes.legend(fontsize=8)
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
        # The same seeds for all: what varies from seed to seed would hide what an argument does
        of_maze = of_maze[of_maze.seed.isin(of_maze[of_maze.method.isin(VARYING)].seed)]
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
