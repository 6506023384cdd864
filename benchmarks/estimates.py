"""
Aggregates of scores as defined by Agarwal et al., "Deep Reinforcement Learning at the Edge of the Statistical Precipice"
(2021), and intervals over seeds.

Their ``rliable`` resamples the seeds of each task by themselves. Our tasks are learned from the same pre-trained model, so
they are not independent: whole seeds are resampled here. Scores have the shape ``(n_seeds, n_tasks)``.
"""

import warnings
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.lines import Line2D
from scipy import stats

N_RESAMPLES = 5000
CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A point estimate with its 95 % interval, NaN for a single seed."""

    value: float
    low: float = float("nan")
    high: float = float("nan")

    def text(self, decimals: int = 2) -> str:
        """Format value and interval."""
        value = f"{self.value:.{decimals}f}"
        return value if np.isnan(self.low) else f"{value} [{self.low:.{decimals}f}, {self.high:.{decimals}f}]"


def iqm(scores: np.ndarray) -> Any:
    """Interquartile mean: the mean of the middle half of all runs."""
    return stats.trim_mean(scores.reshape(*scores.shape[:-2], -1), 0.25, axis=-1, nan_policy="omit")


def mean(scores: np.ndarray) -> Any:
    """Mean of the means of the tasks."""
    return np.nanmean(scores, axis=-2).mean(axis=-1)


def median(scores: np.ndarray) -> Any:
    """Median of the means of the tasks."""
    return np.median(np.nanmean(scores, axis=-2), axis=-1)


def optimality_gap(scores: np.ndarray) -> Any:
    """Mean amount by which runs fall short of a score of 1; scores above 1 count as 1."""
    return mean(1.0 - np.minimum(scores, 1.0))


AGGREGATES: dict[str, Callable[..., Any]] = {"IQM": iqm, "mean": mean, "median": median, "optimality gap": optimality_gap}


def improvement(ours: np.ndarray, theirs: np.ndarray) -> Any:
    """Probability that a run of X scores higher than one of Y on a random task, ties counting half."""
    difference = ours[..., :, None, :] - theirs[..., None, :, :]
    wins = np.where(np.isnan(difference), np.nan, (difference > 0) + 0.5 * (difference == 0))
    return np.nanmean(wins, axis=(-3, -2)).mean(axis=-1)


def estimate(statistic: Callable[..., Any], *scores: np.ndarray) -> Estimate:
    """
    Estimate a statistic and its percentile interval by the bootstrap over whole seeds.

    :param statistic: function of the scores of one method, or of several, whose seeds are resampled independently
    :param scores: those of each method; NaN where a seed lacks a task, which leaves no interval
    :return: the statistic
    """
    value = float(statistic(*scores))
    if any(len(of_method) < 2 or np.isnan(of_method).any() for of_method in scores):
        return Estimate(value)
    interval = stats.bootstrap(
        [np.arange(len(of_method)) for of_method in scores],
        lambda *seeds, axis: statistic(*(of_method[chosen] for of_method, chosen in zip(scores, seeds, strict=True))),
        n_resamples=N_RESAMPLES,
        confidence_level=CONFIDENCE,
        vectorized=True,
        method="percentile",
        rng=np.random.default_rng(0),
    ).confidence_interval
    return Estimate(value, float(interval.low), float(interval.high))


def interval(values: pd.Series | Sequence[float] | np.ndarray) -> tuple[float, float]:
    """Compute the mean over seeds, and half the width of its 95 % t-interval (NaN for a single seed)."""
    values = np.asarray(values, dtype=float)
    n = len(values)
    if n < 2:
        return float(values.mean()) if n else float("nan"), float("nan")
    return float(values.mean()), float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * stats.sem(values))


def cell(values: pd.Series, decimals: int) -> str:
    """Format the mean over seeds, NaN for a seed without a value, and half the width of its interval."""
    values = values.dropna()
    mean, half = interval(values)
    return "-" if values.empty else f"{mean:.{decimals}f} ± {half:.{decimals}f}".replace(" ± nan", "")


def line(*cells: str) -> str:
    """Format a line of a table."""
    return "| " + " | ".join(cells) + " |"


def head(*cells: str) -> list[str]:
    """Format the head of a table, and the line below it."""
    return [line(*cells), "|---" * len(cells) + "|"]


def ratio(ours: pd.Series, theirs: pd.Series) -> Estimate:
    """Estimate the ratio of geometric means over seeds, with Welch's interval of the difference of logarithms."""
    logs, other_logs = np.log(ours.to_numpy(dtype=float)), np.log(theirs.to_numpy(dtype=float))
    value = float(np.exp(logs.mean() - other_logs.mean()))
    if min(len(logs), len(other_logs)) < 2 or logs.std() == other_logs.std() == 0.0:
        return Estimate(value)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # all values of one method may be equal
        low, high = stats.ttest_ind(logs, other_logs, equal_var=False).confidence_interval(CONFIDENCE)
    return Estimate(value, float(np.exp(low)), float(np.exp(high)))


def draw_band(axes: Axes, steps: Sequence[float], curves: Sequence[Sequence[float]], color: str) -> Line2D:
    """Draw the mean of curves over seeds, up to the end of the shortest, with its t-interval as a band."""
    n_points = min(len(curve) for curve in curves)
    means, halves = np.array([interval(column) for column in zip(*(curve[:n_points] for curve in curves), strict=True)]).T
    (line,) = axes.plot(steps[:n_points], means, color=color)
    axes.fill_between(steps[:n_points], means - halves, means + halves, color=color, alpha=0.15, linewidth=0)
    return line
