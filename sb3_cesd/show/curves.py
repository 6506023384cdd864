"""Training curves, from the logs next to a model."""

import csv
import math
import re
import zipfile
import zlib
from pathlib import Path
from typing import NamedTuple

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

#: Files of SB3's CSV logger, EvalCallback and Monitor
PROGRESS, EVALUATIONS, MONITOR = "progress.csv", "evaluations.npz", "*monitor.csv"
STEPS = "time/total_timesteps"
#: Coverage of training, as logged by SkillMetricsCallback
COVERAGE = ("total_coverage", "queue_coverage")
#: Groups of logged values that are drawn, the most informative ones first
GROUPS = ("skills/", "eval/", "rollout/", "train/")
#: Errors of reading a damaged file; with a changed byte, zipfile may ask for a password (RuntimeError)
UNREADABLE = (OSError, ValueError, KeyError, EOFError, RuntimeError, csv.Error, zipfile.BadZipFile, zlib.error)
#: Maximum number of curves in a figure, and in a row of it
MAX_CURVES, N_COLUMNS = 16, 4
#: Number of episodes of Monitor that are averaged
WINDOW = 20


class Curve(NamedTuple):
    """
    A value over the course of training.

    :param steps: environment steps, shape ``(n,)``
    :param values: the value after these steps, shape ``(n,)``
    """

    steps: np.ndarray
    values: np.ndarray


def find_curves(folder: Path) -> dict[str, Curve]:
    """
    Read the logs in the folder of a model.

    :param folder: the folder
    :return: curves by name, of at least two points each; files that can't be read are left out
    """
    return {name: curve for name, curve in _read_logs(folder).items() if len(curve.steps) > 1}


def logged_coverage(folder: Path, n_steps: int) -> dict[str, float]:
    """
    Read the coverage of training when a model was saved, from the logs in its folder.

    :param folder: the folder
    :param n_steps: number of environment steps of the model
    :return: ``total_coverage`` and ``queue_coverage``, as last logged by ``SkillMetricsCallback`` until then; empty if they
        were not logged
    """
    curves = _read_logs(folder)
    coverage = {}
    for name in COVERAGE:
        if f"skills/{name}" in curves:
            steps, values = curves[f"skills/{name}"]
            if (steps <= n_steps).any():
                coverage[name] = float(values[steps <= n_steps][-1])
    return coverage


def _read_logs(folder: Path) -> dict[str, Curve]:
    """
    Read the logs in a folder.

    :param folder: the folder
    :return: curves by name, of finite values; files that can't be read are left out
    """
    curves: dict[str, Curve] = {}
    for read, pattern in ((_progress, PROGRESS), (_evaluations, EVALUATIONS), (_monitors, MONITOR)):
        paths = sorted(folder.glob(pattern))
        try:
            curves.update({name: curve for name, curve in read(paths).items() if name not in curves} if paths else {})
        except UNREADABLE:
            continue
    return {
        name: Curve(*(array[np.isfinite(values)] for array in (steps, values))) for name, (steps, values) in curves.items()
    }


def draw_curves(curves: dict[str, Curve]) -> Figure:
    """
    Draw curves side by side.

    :param curves: by name
    :return: the figure, with the most informative curves if there are many
    """
    # SB3 writes columns in any order
    order = sorted(curves, key=lambda name: (_rank(name), name))
    names = order[:MAX_CURVES]
    n_rows = -(-len(names) // N_COLUMNS)
    figure = Figure(figsize=(3.2 * min(len(names), N_COLUMNS), 2.3 * n_rows), layout="constrained")
    FigureCanvasAgg(figure)
    for index, name in enumerate(names):
        axes = figure.add_subplot(n_rows, min(len(names), N_COLUMNS), index + 1)
        axes.plot(*curves[name], linewidth=1.2)
        axes.set_title(name, fontsize=9)
        axes.tick_params(labelsize=7)
        axes.ticklabel_format(axis="x", style="sci", scilimits=(-3, 4))
        axes.set_xlabel("step", fontsize=7)
    return figure


def _rank(name: str) -> int:
    """Rank a curve by its group; curves of single skills come last."""
    if re.search(r"(skill|share)_\d+$", name):
        return len(GROUPS)
    return next((rank for rank, group in enumerate(GROUPS) if name.startswith(group)), 0)


def _progress(paths: list[Path]) -> dict[str, Curve]:
    """Read what SB3's CSV logger wrote."""
    with paths[0].open(newline="") as file:
        rows = list(csv.DictReader(file))
    steps = np.array([_number(row[STEPS]) for row in rows])
    names = [name for name in rows[0] if name is not None and name.startswith(GROUPS)] if rows else []
    return {name: Curve(steps, np.array([_number(row[name]) for row in rows])) for name in names}


def _evaluations(paths: list[Path]) -> dict[str, Curve]:
    """Read what SB3's ``EvalCallback`` wrote, and the metrics that evaluations of skills add."""
    with np.load(paths[0]) as logged:
        steps = logged["timesteps"]
        curves = {
            "eval/mean_reward": Curve(steps, logged["results"].mean(axis=1)),
            "eval/mean_ep_length": Curve(steps, logged["ep_lengths"].mean(axis=1)),
        }
        of_skills = {f"eval/{name}": Curve(steps, logged[name]) for name in logged if logged[name].shape == steps.shape}
        return {**{name: curve for name, curve in of_skills.items() if name != "eval/timesteps"}, **curves}


def _monitors(paths: list[Path]) -> dict[str, Curve]:
    """Read what SB3's ``Monitor`` wrote: episodes of all environments, in the order in which they ended."""
    episodes = []
    for path in paths:
        with path.open(newline="") as file:
            file.readline()  # a comment
            episodes += [(_number(row["t"]), _number(row["r"]), _number(row["l"])) for row in csv.DictReader(file)]
    if len(episodes) < 2:
        return {}
    _, returns, lengths = np.array(sorted(episodes)).T
    window = min(WINDOW, len(returns) // 2)
    means = np.convolve(returns, np.full(window, 1 / window), mode="valid")
    return {f"rollout/return, mean of {window} episodes": Curve(lengths.cumsum()[window - 1 :], means)}


def _number(text: str | None) -> float:
    """Read a number; NaN where none was logged, or something else."""
    try:
        return float(text or math.nan)
    except ValueError:
        return math.nan
