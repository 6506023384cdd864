"""
Tables of a robot: metrics of skills per seed, and returns of the tasks that are learned from them.

``make docs`` inserts them into the pages of ``results/urlb``.
"""

from collections.abc import Iterable, Sequence
from pathlib import Path

import pandas as pd
from aggregates import AGGREGATES, estimate, probability_of_improvement
from runs import read_rows
from urlb_scores import expert_returns, mean_and_spread, normalise, published, read_runs, samples

from sb3_cesd import METHODS
from sb3_cesd.metrics.tasks import tasks_of

#: Column of pre-training -> heading; columns that a robot lacks are left out
SKILLS = {
    "knn_accuracy": "k-NN",
    "knn_accuracy_standardized": "standardised",
    "on_cluster_share": "on-cluster share",
    "moving_share": "moving share",
    "torso_speed": "torso [m/s]",
    "hand_speed": "hand [m/s]",
}
#: Methods whose published returns are shown
PUBLISHED = ("CeSD", "APT", "DIAYN", "CIC")
#: Aggregates that are shown
SHOWN = ("IQM", "optimality gap")
#: The method that others are compared with
FIRST = "cesd"


def robot_tables(folder: Path, domain: str) -> str:
    """
    Write the tables of a robot.

    :param folder: folder with ``pretraining.csv`` and ``runs.csv`` of ``urlb.py``
    :param domain: robot, e.g. ``"Walker-v0"``
    :return: Markdown: a line per method and seed, then one per method, with experts and published methods
    :raises ValueError: if rows differ in a setting that the tables don't show
    """
    skills = read_rows(folder / "pretraining.csv")
    runs = normalise(read_runs([folder / "runs.csv"], {"domain": domain}))
    methods = sorted(dict.fromkeys(runs.method), key=lambda name: name != FIRST)
    of_robot = skills[skills.domain == domain].dropna(axis="columns", how="all")
    # See name_variants
    if any(", " in name for name in methods) or of_robot.duplicated(["method", "seed"]).any():
        raise ValueError(
            f"{folder} has rows of {domain} that differ in a setting ({'; '.join(methods)}), which its table does not show: "
            "keep them in another folder."
        )
    return "\n".join([*_of_seeds(of_robot, runs, methods, domain), "", *_of_methods(runs, methods, domain), ""])


def _of_seeds(skills: pd.DataFrame, runs: pd.DataFrame, methods: Sequence[str], domain: str) -> list[str]:
    """Return the lines of a table of all seeds."""
    tasks = tasks_of(domain)
    headings = _headings(tasks)
    columns = {name: heading for name, heading in SKILLS.items() if name in skills}
    shares = [f"best_skill_{task}" for task in tasks]
    best = f"best skill as it is, of an expert: {', '.join(headings)}"
    header = ["", "seed", *columns.values(), best, *headings]
    lines = [_line(header), "|---" * len(header) + "|"]
    returns = runs.groupby(["method", "seed", "task"]).final_return.mean()
    for method in methods:
        seeds = sorted({*runs.seed[runs.method == method], *skills.seed[skills.method == method]})
        for index, seed in enumerate(seeds):
            # A method without skills has no such row
            row = skills[(skills.method == method) & (skills.seed == seed)].reindex(columns=[*columns, *shares])
            known = {} if row.empty else row.iloc[0].to_dict()
            measures = [_number(known.get(name), 2) for name in columns]
            as_it_is = ", ".join(filter(None, (_number(known.get(name), 2) for name in shares)))
            learned = [_number(returns.get((method, seed, task)), 0) for task in tasks.values()]
            lines.append(_line(["" if index else _name(method), str(seed), *measures, as_it_is, *learned]))
    return lines


def _of_methods(runs: pd.DataFrame, methods: Sequence[str], domain: str) -> list[str]:
    """Return the lines of a table of all methods."""
    tasks = tasks_of(domain)
    experts = expert_returns()
    of_report = [task for task in experts if task in tasks.values()]  # the order of report.py, for the same intervals
    wins = f"a run of {_name(FIRST)} has more with a probability of"
    header = ["", "seeds", *_headings(tasks), *SHOWN, wins]
    lines = [_line(header), "|---" * len(header) + "|"]
    of_first = samples(runs[runs.method == FIRST], of_report)
    for method in methods:
        of_method = runs[runs.method == method]
        scores, returns = samples(of_method, of_report), samples(of_method, tasks.values(), "final_return")
        cells = ["" if not len(of_task) else mean_and_spread(of_task) for of_task in returns]
        complete = all(map(len, scores))
        shares = [estimate(AGGREGATES[name], scores).text() if complete else "" for name in SHOWN]
        against = complete and all(map(len, of_first)) and method != FIRST
        shares.append(probability_of_improvement(of_first, scores).text() if against else "")
        n_seeds = of_method.groupby("task").seed.nunique()
        seeds = str(n_seeds.min()) if n_seeds.nunique() == 1 else f"{n_seeds.min()} to {n_seeds.max()}"
        lines.append(_line([_name(method), seeds, *cells, *shares]))
    lines.append(_line(["expert", "", *(f"{experts[task]:.0f}" for task in tasks.values()), "", "", ""]))
    known = published().set_index(["method", "task"])
    for method in PUBLISHED:
        cells = [f"{known.return_mean[method, task]:.0f} ± {known.return_spread[method, task]:.0f}" for task in tasks.values()]
        lines.append(_line([f"{method}, published: 2M + 100k steps", "10", *cells, "", "", ""]))
    return lines


def _line(cells: Sequence[str]) -> str:
    return "| " + " | ".join(cells) + " |"


def _name(method: str) -> str:
    """Return the class name of a method, if it has a class."""
    return METHODS[method].__name__ if method in METHODS else method


def _headings(tasks: Iterable[str]) -> list[str]:
    """Return the names of tasks in words."""
    return [task.replace("_", " ") for task in tasks]


def _number(value: float | None, decimals: int) -> str:
    """Format a number of a cell, without the zero before the decimal point; empty if there is none."""
    if value is None or pd.isna(value):
        return ""
    text = f"{value:.{decimals}f}"
    return text.removesuffix(".00") if value == 1 else text.removeprefix("0") if "." in text else text
