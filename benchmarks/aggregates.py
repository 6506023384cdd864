"""
Aggregates of scores over tasks and seeds with stratified bootstrap intervals, as defined by Agarwal et al., "Deep
Reinforcement Learning at the Edge of the Statistical Precipice" (2021).

A sample is one array of normalised scores per task, of shape ``(n_seeds,)``; scores are resampled within tasks.
"""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from scipy import stats

N_RESAMPLES = 5000
CONFIDENCE = 0.95
Sample = Sequence[np.ndarray]


class Estimate(NamedTuple):
    """
    A point estimate with its interval.

    :param value: point estimate
    :param low: lower end of the 95 % interval, NaN if a task has a single seed
    :param high: upper end
    """

    value: float
    low: float
    high: float

    def text(self, decimals: int = 2) -> str:
        """
        Format the estimate.

        :param decimals: number of decimals
        :return: value and interval
        """
        value = f"{self.value:.{decimals}f}"
        return value if np.isnan(self.low) else f"{value} [{self.low:.{decimals}f}, {self.high:.{decimals}f}]"


def iqm(*scores: np.ndarray, axis: int = -1) -> Any:
    """Interquartile mean: the mean of the middle half of all runs."""
    return stats.trim_mean(np.concatenate(scores, axis=axis), 0.25, axis=axis)


def mean(*scores: np.ndarray, axis: int = -1) -> Any:
    """Mean of the means of the tasks."""
    return np.mean([task.mean(axis=axis) for task in scores], axis=0)


def median(*scores: np.ndarray, axis: int = -1) -> Any:
    """Median of the means of the tasks."""
    return np.median([task.mean(axis=axis) for task in scores], axis=0)


def optimality_gap(*scores: np.ndarray, axis: int = -1) -> Any:
    """Mean amount by which runs fall short of a score of 1; scores above 1 count as 1."""
    return np.mean([(1.0 - np.minimum(task, 1.0)).mean(axis=axis) for task in scores], axis=0)


AGGREGATES: dict[str, Callable[..., Any]] = {"IQM": iqm, "mean": mean, "median": median, "optimality gap": optimality_gap}


def estimate(statistic: Callable[..., Any], sample: Sample, seed: int = 0) -> Estimate:
    """
    Estimate a statistic and its interval by the stratified bootstrap.

    :param statistic: function of the scores of all tasks along ``axis``
    :param sample: the scores
    :param seed: seed of the bootstrap
    :return: the statistic and its percentile interval
    """
    value = float(statistic(*sample))
    if min(len(task) for task in sample) < 2:
        return Estimate(value, float("nan"), float("nan"))
    result = stats.bootstrap(
        tuple(sample), statistic, n_resamples=N_RESAMPLES, confidence_level=CONFIDENCE, vectorized=True, method="percentile",
        rng=np.random.default_rng(seed),
    )  # fmt: skip
    return Estimate(value, float(result.confidence_interval.low), float(result.confidence_interval.high))


def probability_of_improvement(ours: Sample, theirs: Sample, seed: int = 0) -> Estimate:
    """
    Estimate the probability that a run of one method scores higher than a run of another.

    :param ours: scores of a method X
    :param theirs: scores of a method Y on the same tasks
    :param seed: seed of the bootstrap
    :return: P(X > Y) for a random run of each on a random task, ties counting half
    """

    def statistic(*scores: np.ndarray, axis: int = -1) -> Any:
        assert axis == -1
        wins = []
        for x, y in zip(scores[: len(ours)], scores[len(ours) :], strict=True):
            x, y = x[..., :, None], y[..., None, :]
            wins.append(((x > y) + 0.5 * (x == y)).mean(axis=(-2, -1)))
        return np.mean(wins, axis=0)

    return estimate(statistic, [*ours, *theirs], seed)


def performance_profile(sample: Sample, thresholds: np.ndarray) -> np.ndarray:
    """
    Compute the share of runs above each of several thresholds.

    :param sample: the scores
    :param thresholds: shape ``(n,)``
    :return: share of runs with a score above each, with equal weight per task, shape ``(n,)``
    """
    return np.mean([(task[:, None] > thresholds).mean(axis=0) for task in sample], axis=0)
