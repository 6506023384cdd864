"""
What was measured of the methods, from the rows of the benchmarks: nothing is copied by hand.

``make docs`` puts it on the pages of the methods, into README.md and into that of the robots.
"""

import sys
from functools import partial
from pathlib import Path

import pandas as pd

ROOT = Path(__file__).parents[2]
if str(ROOT / "benchmarks") not in sys.path:
    sys.path.append(str(ROOT / "benchmarks"))

from estimates import head, line  # noqa: E402
from maze_methods import MAIN, N_TIMESTEPS  # noqa: E402
from maze_report import FIRST, in_order, summary  # noqa: E402
from report import robot_tables  # noqa: E402
from runs import made_with, read_rows  # noqa: E402
from scores import normalise, published  # noqa: E402
from scores import read_runs as read_tasks  # noqa: E402

from sb3_cesd import METHODS  # noqa: E402

RUNS = ROOT / "benchmarks" / "results" / "maze" / "runs.csv"
#: Rows of METRA's robots, and what the pages call these
ROBOT_RUNS = ROOT / "benchmarks" / "results" / "locomotion" / "pretraining.csv"
ROBOTS = {"SkillAnt-v0": "ant", "SkillHalfCheetah-v0": "half-cheetah"}
README = ROOT / "README.md"
ALL_FIGURES = "All figures: [results in mazes](../../benchmarks/results/maze/README.md).\n"
#: Where README.md has the table
BEGIN, END = "<!-- results, written by make docs -->\n", "<!-- end of the results -->\n"
_OF_ROBOTS = ROOT / "benchmarks" / "results" / "urlb"
#: Folder of rows of tasks -> robots whose tables are on its page
WITH_TASKS = {_OF_ROBOTS: ("Quadruped-v0", "Jaco-v0", "Walker-v0"), _OF_ROBOTS / "longer": ("Quadruped-v0",)}
BEGIN_ROBOT, END_ROBOT = "<!-- tables of {}, written by make docs -->\n", "<!-- end of the tables of {} -->\n"

#: Methods in the table of README.md
SHOWN = ("cesd", "apt", "cic", "diayn", "metra", "scratch")

#: What the page of a method shows beside the methods of :data:`~maze_methods.MAIN`, by name in the rows
VARIANTS = {"noise=white": "CeSD, white noise", "apt, noise=cesd": "APT, noise of CeSD"}

INTRODUCTION = """\
10 skills in the [mazes](../environments.md) of the literature, with the same budget (36k steps, 7000 updates), networks and
batches for all methods. *Coverage*: share of the maze that 20 rollouts of each skill visit, in bins of 0.05. *k-NN accuracy*:
how well the skill can be told from the place, by chance 0.10.
"""


def read_runs() -> pd.DataFrame:
    """Read the rows of the benchmark."""
    rows = read_rows(RUNS)
    return rows[rows.n_timesteps == N_TIMESTEPS] if len(rows) else rows


def maze_table(rows: pd.DataFrame, methods: list[str]) -> str:
    """Write what was measured of some methods."""
    known = [method for method in methods if method in set(rows.method)]
    shown = rows[rows.method.isin(known)]
    order = [VARIANTS.get(method, method) for method in in_order(shown, known)]
    return summary(shown.assign(method=shown.method.replace(VARIANTS)), order)


def results_of(key: str) -> str:
    """Write what was measured of a method."""
    rows = read_runs()
    on_robots = robots_of(key)
    if rows.empty or key not in set(rows.method):
        return f"None measured in mazes yet.\n\n{on_robots}" if on_robots else "None measured with this package yet.\n"
    methods = [*MAIN, *VARIANTS] if key == FIRST else [FIRST, key]
    others = "" if key == FIRST else " [All methods](cesd.md#results)."
    made = made_with(rows[rows.method.isin(methods)])
    return "\n".join([INTRODUCTION, maze_table(rows, methods), f"Made with {made}.{others}\n", on_robots])


def robots_of(key: str) -> str:
    """Tell where the results of a method on METRA's robots are."""
    rows = read_rows(ROBOT_RUNS)
    known = set(rows[rows.method == key].domain) if len(rows) else set()
    names = [name for domain, name in ROBOTS.items() if domain in known]
    if not names:
        return ""
    page = "../../benchmarks/results/locomotion/README.md"
    return f"Coverage, goals and paths on METRA's {' and '.join(names)}: [results]({page}).\n"


def command_of(key: str) -> str:
    """Tell what makes the rows of a method."""
    rows = read_runs()
    if rows.empty or key not in set(rows.method):
        return ""
    n_seeds = rows[rows.method == key].groupby("maze").seed.nunique()
    lines = [
        f"python benchmarks/maze.py --seeds {n} --jobs 2 --methods {key} --mazes {' '.join(mazes.index)}"
        for n, mazes in n_seeds.groupby(n_seeds)
    ]
    return "\n".join(["## How to replicate the results", "", "```sh", *lines, "```", "", ALL_FIGURES])


def results_table() -> str:
    """Write the main results: in the maze of ``make demo``, and in tasks beside the published ones."""
    rows, tasks, known = read_runs(), normalise(read_tasks([_OF_ROBOTS / "runs.csv"])), published()
    mazes = rows[rows.maze == "square_a"].groupby("method")[["policy_coverage", "knn_accuracy"]].mean()
    here = tasks.groupby(["method", "domain"]).score.mean()
    theirs = (known.return_mean / known.expert_return).groupby([known.method, known.domain]).mean()
    robots = {domain: domain.removesuffix("-v0") for domain in WITH_TASKS[_OF_ROBOTS]}
    lines = head("", "covered", "told apart", *robots.values())
    for key in SHOWN:
        name = METHODS[key].__name__ if key in METHODS else "DDPG"
        cells = [f"{mazes.loc[key, column]:.2f}" if key in mazes.index else "" for column in mazes]
        for domain, robot in robots.items():
            values = theirs.get((name, robot.lower())), here.get((key, domain))
            cells.append("" if None in values else " / ".join(f"{value:.2f}" for value in values))
        lines.append(line(name if key in METHODS else "from scratch (DDPG)", *cells))
    return "\n".join(lines) + "\n"


def with_table(text: str) -> str:
    """Put the results of all methods into README.md."""
    return replaced(text, BEGIN, END, results_table())


def with_robots(text: str, folder: Path) -> str:
    """Put the tables of robots into the page of their results."""
    for domain in WITH_TASKS[folder]:
        text = replaced(text, BEGIN_ROBOT.format(domain), END_ROBOT.format(domain), robot_tables(folder, domain))
    return text


def replaced(text: str, begin: str, end: str, table: str) -> str:
    """Put a table in its place."""
    before, found_begin, rest = text.partition(begin)
    _, found_end, after = rest.partition(end)
    assert found_begin and found_end, f"There is no place for the table: {begin.strip()} ... {end.strip()}"
    return f"{before}{begin}\n{table}\n{end}{after}"


def update_readmes() -> None:
    """Bring the pages that hold tables up to date with the rows."""
    of_robots = {folder / "README.md": partial(with_robots, folder=folder) for folder in WITH_TASKS}
    for path, with_tables in {README: with_table, **of_robots}.items():
        text = path.read_text()
        updated = with_tables(text)
        if updated != text:
            path.write_text(updated)
