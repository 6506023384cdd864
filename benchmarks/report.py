"""
Write tables and figures of runs on the tasks of robots.

    python benchmarks/report.py results/urlb/runs.csv --output results/urlb
    python benchmarks/report.py logs --output report                    # evaluations.npz of RL Zoo; seeds are runs

Scores are final returns (with ``--at``, earlier ones) as a share of an expert's. If a task was learned from the same model
several times, the mean counts as one run. Runs that differ in a setting count as different methods. Writes ``report.md``,
``scores.csv``, ``aggregates.csv``, ``aggregates.png``, ``profiles.png`` and ``curves.png``.
"""

import argparse
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path

import numpy as np
import pandas as pd
from aggregates import AGGREGATES, Estimate, estimate, performance_profile, probability_of_improvement
from arguments import at_least, existing, make_folder, output_folder
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from runs import write_rows
from urlb_scores import (
    check_have_runs,
    expert_returns,
    mean_and_spread,
    normalise,
    of_last,
    published,
    read_runs,
    samples,
    until,
)

from sb3_cesd.common.files import save_figure_whole, write_text_whole

THRESHOLDS = np.linspace(0.0, 1.2, 121)


def aggregate(rows: pd.DataFrame, methods: Sequence[str], tasks: Sequence[str]) -> dict[tuple[str, str], Estimate]:
    """
    Estimate all aggregates of all methods.

    :param rows: runs with scores
    :param methods: methods
    :param tasks: tasks for which all methods have runs
    :return: (method, name of the aggregate) -> estimate
    """
    return {
        (method, name): estimate(statistic, samples(rows[rows.method == method], tasks))
        for method in methods
        for name, statistic in AGGREGATES.items()
    }


def table_of_returns(rows: pd.DataFrame, methods: Sequence[str], tasks: Sequence[str]) -> list[str]:
    """
    Tabulate returns next to published ones.

    :param rows: runs
    :param methods: methods
    :param tasks: tasks
    :return: lines of Markdown: final returns, mean and standard deviation over seeds
    """
    known = published().set_index(["task", "method"])
    theirs = [method for method in ("DDPG", "APT", "DIAYN", "CIC", "CeSD")]
    header = [*methods, "expert", *(f"{method} (published)" for method in theirs)]
    lines = ["| task | " + " | ".join(header) + " |", "|---" * (len(header) + 1) + "|"]
    experts = expert_returns()
    for task in tasks:
        cells = []
        for method in methods:
            (values,) = samples(rows[rows.method == method], [task], "final_return")
            cells.append(mean_and_spread(values) if len(values) else "-")
        cells.append(f"{experts[task]:.0f}")
        for method in theirs:
            cells.append(f"{known.return_mean[task, method]:.0f} ± {known.return_spread[task, method]:.0f}")
        lines.append(f"| {task} | " + " | ".join(cells) + " |")
    return lines


def draw_aggregates(estimates: dict[tuple[str, str], Estimate], methods: Sequence[str]) -> Figure:
    """
    Draw the aggregates of all methods.

    :param estimates: estimates of :func:`aggregate`
    :param methods: methods
    :return: an interval per method, a panel per aggregate
    """
    figure = Figure(figsize=(3.2 * len(AGGREGATES), 0.5 * len(methods) + 1.2), layout="constrained")
    FigureCanvasAgg(figure)
    for axes, name in zip(figure.subplots(1, len(AGGREGATES), sharey=True), AGGREGATES, strict=True):
        for row, method in enumerate(methods):
            value, low, high = estimates[method, name]
            axes.plot([low, high], [row, row], color=f"C{row}", linewidth=8, alpha=0.4, solid_capstyle="butt")
            axes.plot([value], [row], "|", color="black", markersize=14)
        axes.set(title=name, yticks=range(len(methods)), yticklabels=methods, ylim=(len(methods) - 0.5, -0.5))
    figure.supxlabel("share of the expert's return", fontsize=9)
    return figure


def draw_profiles(rows: pd.DataFrame, methods: Sequence[str], tasks: Sequence[str]) -> Figure:
    """
    Draw the performance profile of each method.

    :param rows: runs with scores
    :param methods: methods
    :param tasks: tasks
    :return: performance profiles
    """
    figure = Figure(figsize=(5, 3.6), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots()
    for method in methods:
        axes.plot(THRESHOLDS, performance_profile(samples(rows[rows.method == method], tasks), THRESHOLDS), label=method)
    axes.set(xlabel="score", ylabel="share of runs above it", ylim=(0, 1.02))
    axes.legend(fontsize=8)
    return figure


def draw_curves(rows: pd.DataFrame, methods: Sequence[str], tasks: Sequence[str]) -> Figure:
    """
    Draw returns over the course of training.

    :param rows: runs
    :param methods: methods
    :param tasks: tasks
    :return: one panel per task with the mean, and the 95 % bootstrap interval over seeds if there are several
    """
    figure = Figure(figsize=(3.4 * len(tasks), 3.4), layout="constrained")
    FigureCanvasAgg(figure)
    lines = {}
    for axes, task in zip(figure.subplots(1, len(tasks), squeeze=False)[0], tasks, strict=True):
        for index, method in enumerate(methods):
            runs = rows[(rows.method == method) & (rows.task == task)]
            if runs.empty:
                continue
            # Steps that all runs cover, at the evaluations of the first
            steps = runs.steps.iloc[0]
            steps = steps[
                (steps >= max(of_run[0] for of_run in runs.steps)) & (steps <= min(of_run[-1] for of_run in runs.steps))
            ]
            # (n_seeds, n_points)
            values = np.stack([np.interp(steps, *of_run) for of_run in zip(runs.steps, runs.returns, strict=True)])
            (lines[method],) = axes.plot(steps, values.mean(axis=0), color=f"C{index}")
            bands = [estimate(lambda sample, axis=-1: sample.mean(axis=axis), [column]) for column in values.T]
            lows, highs = [band.low for band in bands], [band.high for band in bands]
            axes.fill_between(steps, lows, highs, color=f"C{index}", alpha=0.15, linewidth=0)
        axes.set(title=task, xlabel="environment step", ylim=(0, None))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    figure.legend(list(lines.values()), list(lines), loc="outside lower center", ncols=4, fontsize=8)
    figure.supylabel("return", fontsize=10)
    return figure


def select(rows: pd.DataFrame, methods: Sequence[str]) -> pd.DataFrame:
    """
    Select the runs of some methods.

    :param rows: runs
    :param methods: methods to select
    :return: their runs, in the order of the methods
    :raises ValueError: if one has no runs
    """
    check_have_runs(methods, rows.method)
    return pd.concat([rows[rows.method == method] for method in dict.fromkeys(methods)], ignore_index=True)


def report(rows: pd.DataFrame, output: Path, n_last: int = 1, at: int | None = None) -> str:
    """
    Write the report, its tables and its figures.

    :param rows: runs
    :param output: folder to write to
    :param n_last: number of evaluations at the end of a run whose mean is its final return
    :param at: step of the task at which runs end; ``None`` for all of their steps
    :return: the report, in Markdown
    :raises ValueError: if a run has fewer evaluations, or its task has no expert
    """
    rows = normalise(of_last(rows if at is None else until(rows, at), n_last))
    methods = list(dict.fromkeys(rows.method))
    tasks = [task for task in expert_returns() if task in set(rows.task)]
    output.mkdir(parents=True, exist_ok=True)
    scores = rows[["method", "task", "seed", "final_return", "score"]]
    write_rows(output / "scores.csv", scores)
    lines = ["## Final returns", "", "Mean ± standard deviation over seeds; published ones after 2M + 100k steps.", ""]
    if at is not None:
        lines[2] += f" Runs as they were at step {at} of the task."
    if n_last > 1:
        lines[2] += f" Of each run the mean of the last {n_last} evaluations."
    lines += [*table_of_returns(rows, methods, tasks), ""]

    complete = [method for method in methods if set(tasks) == set(rows.task[rows.method == method])]
    left_out = [method for method in methods if method not in complete]
    seeds = rows[rows.method.isin(complete)].groupby(["method", "task"]).seed.nunique()
    lines += [
        "## Aggregates",
        "",
        "Share of the expert's return, with stratified bootstrap 95 % intervals over tasks and seeds.",
    ]
    if seeds.min() < 2:
        lines.append("Some task has one seed only: there is no interval.")
    if unequal := [method for method in complete if seeds[method].nunique() > 1]:
        lines.append(f"{', '.join(unequal)}: tasks have unequal numbers of seeds, and in the IQM those with more count more.")
    if left_out:
        lines.append(f"Without {', '.join(left_out)}: not all tasks are done.")
    lines += ["", "| method | runs | " + " | ".join(AGGREGATES) + " |", "|---" * (len(AGGREGATES) + 2) + "|"]
    estimates = aggregate(rows, complete, tasks)
    for method in complete:
        cells = " | ".join(estimates[method, name].text() for name in AGGREGATES)
        lines.append(f"| {method} | {(rows.method == method).sum()} | {cells} |")
    aggregates = [{"method": method, "aggregate": name, **value._asdict()} for (method, name), value in estimates.items()]
    write_rows(output / "aggregates.csv", pd.DataFrame(aggregates))
    if len(complete) > 1:
        lines += ["", "Probability of improvement: that a run of X scores more than one of Y.", ""]
        lines += ["| X | Y | P(X > Y) |", "|---|---|---|"]
        for x, y in permutations(complete, 2):
            ours, theirs = (samples(rows[rows.method == method], tasks) for method in (x, y))
            lines.append(f"| {x} | {y} | {probability_of_improvement(ours, theirs).text()} |")
    if complete:
        save_figure_whole(draw_aggregates(estimates, complete), output / "aggregates.png", dpi=110)
        save_figure_whole(draw_profiles(rows, complete, tasks), output / "profiles.png", dpi=110)
    save_figure_whole(draw_curves(rows, methods, tasks), output / "curves.png", dpi=110)
    text = "\n".join(lines) + "\n"
    write_text_whole(output / "report.md", text)
    return text


def setting(text: str) -> tuple[str, str]:
    """
    Parse a setting of the command line.

    :param text: ``SETTING=VALUE``
    :return: setting and value
    :raises argparse.ArgumentTypeError: if it has another form
    """
    name, sign, value = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is not a setting with a value: write it like warm_up=policy.")
    return name, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("runs", nargs="+", type=existing, help="runs.csv of urlb.py (several are joined), folders of RL Zoo")
    parser.add_argument("--methods", nargs="+", help="methods to report, in this order (default: all)")
    parser.add_argument("--where", nargs="+", type=setting, default=[], metavar="SETTING=VALUE", help="only runs with these")
    parser.add_argument("--at", type=at_least(1), metavar="STEPS", help="score runs as they were at this step of the task")
    parser.add_argument("--last", type=at_least(1), default=1, help="score the mean of this many evaluations at the end")
    parser.add_argument("--output", type=output_folder, default=Path("report"), help="folder of the report")
    args = parser.parse_args()
    try:
        rows = read_runs(args.runs, dict(args.where))
        if args.methods is not None:
            rows = select(rows, args.methods)
        make_folder(parser, args.output)
        print(report(rows, args.output, args.last, args.at))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
