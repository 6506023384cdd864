"""
Write tables and figures of robots: tasks, skills, and goals by choosing among skills.

    python benchmarks/report.py results/urlb/runs.csv --output results/urlb
    python benchmarks/report.py results/urlb --output results/urlb      # all that urlb.py and hierarchical.py wrote there
    python benchmarks/report.py logs --output report                    # evaluations.npz of RL Zoo; seeds are runs

Of tasks (``runs.csv``), scores are final returns (with ``--at``, earlier ones) as a share of an expert's. If a task was
learned from the same model several times, the mean counts as one run. Runs that differ in a setting count as different
methods. Writes ``report.md``, ``aggregates.csv``, ``aggregates.png`` and ``curves.png``; of ``pretraining.csv`` and
``hierarchical.csv`` ``skills.md``, ``coverage.png`` and ``goals.png``.
"""

import argparse
from collections.abc import Sequence
from itertools import permutations
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from estimates import AGGREGATES, Estimate, draw_band, estimate, head, improvement, line
from matplotlib.figure import Figure
from matplotlib.ticker import EngFormatter
from report_skills import report_skills
from runs import positive, read_rows, save_figure_whole, write_rows, write_text_whole
from scores import (
    expert_returns,
    mean_and_spread,
    normalise,
    of_last,
    published,
    read_runs,
    scores_of,
    select,
    until,
)

from sb3_cesd import METHODS
from sb3_cesd.metrics.goals import tasks_of

#: Methods whose published returns are shown
PUBLISHED = ("DDPG", "APT", "DIAYN", "CIC", "CeSD")
#: Column of pre-training -> heading in the tables of a robot; columns that a robot lacks are left out
SKILLS = {
    "knn_accuracy": "k-NN",
    "knn_accuracy_standardized": "standardised",
    "on_cluster_share": "on-cluster share",
    "moving_share": "moving share",
    "torso_speed": "torso [m/s]",
    "hand_speed": "hand [m/s]",
}
#: Files that the report of skills reads
OF_SKILLS = ("pretraining.csv", "hierarchical.csv")
#: The method that others are compared with in the tables of a robot
FIRST = "cesd"


def table_of_returns(rows: pd.DataFrame, methods: Sequence[str], tasks: Sequence[str]) -> list[str]:
    """Tabulate final returns, mean and standard deviation over seeds, next to published ones."""
    known, experts = published().set_index(["task", "method"]), expert_returns()
    lines = head("task", *methods, "expert", *(f"{method} (published)" for method in PUBLISHED))
    for task in tasks:
        cells = [mean_and_spread(rows.final_return[(rows.method == method) & (rows.task == task)]) for method in methods]
        theirs = [known.loc[(task, method)] for method in PUBLISHED]
        told = [f"{of_method.return_mean:.0f} ± {of_method.return_spread:.0f}" for of_method in theirs]
        lines.append(line(task, *cells, f"{experts[task]:.0f}", *told))
    return lines


def draw_aggregates(estimates: dict[tuple[str, str], Estimate], methods: Sequence[str]) -> Figure:
    """Draw the aggregates of all methods: an interval per method, a panel per aggregate."""
    figure = Figure(figsize=(3.2 * len(AGGREGATES), 0.5 * len(methods) + 1.2), layout="constrained")
    for axes, name in zip(figure.subplots(1, len(AGGREGATES), sharey=True), AGGREGATES, strict=True):
        for row, method in enumerate(methods):
            value, low, high = estimates[method, name]
            axes.plot([low, high], [row, row], color=f"C{row}", linewidth=8, alpha=0.4, solid_capstyle="butt")
            axes.plot([value], [row], "|", color="black", markersize=14)
        axes.set(title=name, yticks=range(len(methods)), yticklabels=methods, ylim=(len(methods) - 0.5, -0.5))
    figure.supxlabel("share of the expert's return", fontsize=9)
    return figure


def draw_curves(rows: pd.DataFrame, methods: Sequence[str], tasks: Sequence[str]) -> Figure:
    """Draw returns over the course of training with t-intervals over seeds, one panel per task."""
    figure = Figure(figsize=(3.4 * len(tasks), 3.4), layout="constrained")
    lines = {}
    for axes, task in zip(figure.subplots(1, len(tasks), squeeze=False)[0], tasks, strict=True):
        for index, method in enumerate(methods):
            runs = rows[(rows.method == method) & (rows.task == task)]
            if len(runs):
                # Steps that all runs cover, at the evaluations of the first
                first, last = max(steps[0] for steps in runs.steps), min(steps[-1] for steps in runs.steps)
                steps = runs.steps.iloc[0]
                steps = steps[(steps >= first) & (steps <= last)]
                curves = [np.interp(steps, *of_run) for of_run in zip(runs.steps, runs.returns, strict=True)]
                lines[method] = draw_band(axes, steps, curves, f"C{index}")
        axes.set(title=task, xlabel="environment step", ylim=(0, None))
        axes.xaxis.set_major_formatter(EngFormatter(sep=""))
    figure.legend(list(lines.values()), list(lines), loc="outside lower center", ncols=4, fontsize=8)
    figure.supylabel("return", fontsize=10)
    return figure


def report(rows: pd.DataFrame, output: Path, n_last: int = 1, at: int | None = None) -> str:
    """
    Write the report of tasks, its table of aggregates and its figures.

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
    told = "Mean ± standard deviation over seeds; published ones (± standard errors, it seems) after 2M + 100k steps."
    told += f" Runs as they were at step {at} of the task." if at is not None else ""
    told += f" Of each run the mean of the last {n_last} evaluations." if n_last > 1 else ""
    lines = ["## Final returns", "", told, "", *table_of_returns(rows, methods, tasks), ""]

    complete = [method for method in methods if set(tasks) == set(rows.task[rows.method == method])]
    scores = {method: scores_of(rows, method, tasks) for method in complete}
    lines += ["## Aggregates", "", "Share of the expert's return, with bootstrap 95 % intervals over whole seeds."]
    if without := [method for method in complete if len(scores[method]) < 2 or np.isnan(scores[method]).any()]:
        lines.append(f"No intervals of {', '.join(without)}: they have one seed, or seeds that lack a task.")
    if left_out := [method for method in methods if method not in complete]:
        lines.append(f"Without {', '.join(left_out)}: not all tasks are done.")
    lines += ["", *head("method", "runs", *AGGREGATES)]
    estimates = {(method, name): estimate(AGGREGATES[name], scores[method]) for method in complete for name in AGGREGATES}
    for method in complete:
        cells = (estimates[method, name].text() for name in AGGREGATES)
        lines.append(line(method, str((rows.method == method).sum()), *cells))
    if len(complete) > 1:
        lines += ["", "Probability of improvement: that a run of X scores more than one of Y.", ""]
        lines += head("X", "Y", "P(X > Y)")
        for x, y in permutations(complete, 2):
            lines.append(line(x, y, estimate(improvement, scores[x], scores[y]).text()))
    output.mkdir(parents=True, exist_ok=True)
    if complete:
        aggregates = [{"method": method, "aggregate": name, **value._asdict()} for (method, name), value in estimates.items()]
        write_rows(output / "aggregates.csv", pd.DataFrame(aggregates))
        save_figure_whole(draw_aggregates(estimates, complete), output / "aggregates.png")
    save_figure_whole(draw_curves(rows, methods, tasks), output / "curves.png")
    text = "\n".join(lines) + "\n"
    write_text_whole(output / "report.md", text)
    return text


def robot_tables(folder: Path, domain: str) -> str:
    """
    Write the tables of a robot, which ``make docs`` puts into the pages of ``results/urlb``.

    :param folder: folder with ``pretraining.csv`` and ``runs.csv`` of ``urlb.py``
    :param domain: robot, e.g. ``"Walker-v0"``
    :return: Markdown: a line per method and seed, then one per method, with experts and published methods
    :raises ValueError: if rows differ in a setting that the tables don't show
    """
    skills = read_rows(folder / "pretraining.csv")
    skills = skills[skills.domain == domain].dropna(axis="columns", how="all")
    runs = normalise(read_runs([folder / "runs.csv"], {"domain": domain}))
    methods = sorted(dict.fromkeys(runs.method), key=lambda name: name != FIRST)
    if any(", " in name for name in methods) or skills.duplicated(["method", "seed"]).any():
        raise ValueError(
            f"Rows of {domain} in {folder} differ in a setting that its table does not show: {'; '.join(methods)}."
        )
    return "\n".join([*_of_seeds(skills, runs, methods, domain), "", *_of_methods(runs, methods, domain), ""])


def _of_seeds(skills: pd.DataFrame, runs: pd.DataFrame, methods: Sequence[str], domain: str) -> list[str]:
    """Return the lines of a table of all seeds."""
    tasks = tasks_of(domain)
    headings = [task.replace("_", " ") for task in tasks]
    columns = {name: heading for name, heading in SKILLS.items() if name in skills}
    lines = head("", "seed", *columns.values(), f"best skill as it is, of an expert: {', '.join(headings)}", *headings)
    of_skills = skills.set_index(["method", "seed"]).to_dict("index")
    returns = runs.groupby(["method", "seed", "task"]).final_return.mean()
    for method in methods:
        seeds = sorted({*runs.seed[runs.method == method], *skills.seed[skills.method == method]})
        for index, seed in enumerate(seeds):
            known = of_skills.get((method, seed), {})  # a method without skills has none
            measures = [_number(known.get(name), 2) for name in columns]
            as_it_is = ", ".join(filter(None, (_number(known.get(f"best_skill_{task}"), 2) for task in tasks)))
            learned = [_number(returns.get((method, seed, task)), 0) for task in tasks.values()]
            lines.append(line("" if index else _name(method), str(seed), *measures, as_it_is, *learned))
    return lines


def _of_methods(runs: pd.DataFrame, methods: Sequence[str], domain: str) -> list[str]:
    """Return the lines of a table of all methods."""
    tasks, experts = tasks_of(domain), expert_returns()
    shown = ("IQM", "optimality gap")
    wins = f"a run of {_name(FIRST)} has more with a probability of"
    lines = head("", "seeds", *(task.replace("_", " ") for task in tasks), *shown, wins)
    in_order = [task for task in experts if task in tasks.values()]  # that of the report, for the same rounding
    of_first = scores_of(runs, FIRST, in_order)
    for method in methods:
        of_method = runs[runs.method == method]
        scores = scores_of(runs, method, in_order)
        cells = [mean_and_spread(of_method.final_return[of_method.task == task]).strip("-") for task in tasks.values()]
        cells += [estimate(AGGREGATES[name], scores).text() for name in shown] if all(cells) else ["", ""]
        against = all(cells) and method != FIRST and not np.isnan(of_first).all(axis=0).any()
        cells.append(estimate(improvement, of_first, scores).text() if against else "")
        n_seeds = of_method.groupby("task").seed.nunique()
        seeds = str(n_seeds.min()) if n_seeds.nunique() == 1 else f"{n_seeds.min()} to {n_seeds.max()}"
        lines.append(line(_name(method), seeds, *cells))
    lines.append(line("expert", "", *(f"{experts[task]:.0f}" for task in tasks.values()), "", "", ""))
    known = published().set_index(["method", "task"])
    for method in ("CeSD", "APT", "DIAYN", "CIC"):
        of_tasks = [known.loc[(method, task)] for task in tasks.values()]
        theirs = [f"{of_task.return_mean:.0f} ± {of_task.return_spread:.0f}" for of_task in of_tasks]
        lines.append(line(f"{method}, published: 2M + 100k steps", "10", *theirs, "", "", ""))
    return lines


def _name(method: str) -> str:
    """Return the class name of a method, if it has a class."""
    return METHODS[method].__name__ if method in METHODS else method


def _number(value: Any, decimals: int) -> str:
    """Format a number of a cell, without the zero before the decimal point; empty if there is none."""
    if value is None or pd.isna(value):
        return ""
    text = f"{value:.{decimals}f}"
    return text.removesuffix(".00") if value == 1 else text.removeprefix("0") if "." in text else text


def setting(text: str) -> tuple[str, str]:
    """Parse ``SETTING=VALUE``."""
    name, sign, value = text.partition("=")
    if not sign:
        raise argparse.ArgumentTypeError(f"{text!r} is not a setting with a value: write it like warm_up=policy")
    return name, value


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("paths", nargs="+", type=Path, help="CSV files or folders of urlb.py, or folders of RL Zoo")
    parser.add_argument("--methods", nargs="+", help="methods to report, in this order (default: all)")
    parser.add_argument("--domains", nargs="+", help="robots whose skills are reported (default: all)")
    parser.add_argument("--reference", default="diayn", help="method with which coverage of skills is compared")
    parser.add_argument("--where", nargs="+", type=setting, default=[], metavar="SETTING=VALUE", help="only tasks with these")
    parser.add_argument("--at", type=positive, metavar="STEPS", help="score runs as they were at this step of the task")
    parser.add_argument("--last", type=positive, default=1, help="score the mean of this many evaluations at the end")
    parser.add_argument("--output", type=Path, default=Path("report"), help="folder of the report")
    args = parser.parse_args()
    files: list[Path] = []
    for path in args.paths:
        files += [path / name for name in ("runs.csv", *OF_SKILLS) if (path / name).is_file()] or [path]
    of_tasks = [file for file in files if file.name not in OF_SKILLS]
    of_skills = {name: [file for file in files if file.name == name] for name in OF_SKILLS}
    try:
        if missing := [str(file) for file in files if not file.exists()]:
            parser.error(f"there is no {', '.join(missing)}: pass files or folders that exist")
        if of_tasks:
            rows = read_runs(of_tasks, dict(args.where))
            rows = rows if args.methods is None else select(rows, "method", args.methods)
            print(report(rows, args.output, args.last, args.at))
        if any(of_skills.values()):
            pretraining, goals = (read_rows(*of_name) for of_name in of_skills.values())
            print(report_skills(pretraining, goals, args.output, args.domains, args.methods, args.reference))
    except ValueError as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
