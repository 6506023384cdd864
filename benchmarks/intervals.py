"""Student's t-intervals over seeds."""

import warnings
from collections.abc import Sequence

import numpy as np
import pandas as pd
from aggregates import Estimate
from scipy import stats

CONFIDENCE = 0.95


def interval(values: pd.Series | Sequence[float] | np.ndarray) -> tuple[float, float]:
    """
    Compute the mean over seeds and its t-interval.

    :param values: one per seed
    :return: mean, and half the width of its 95 % t-interval (NaN for a single seed)
    """
    values = np.asarray(values, dtype=float)
    n = len(values)
    if n < 2:
        return float(values.mean()) if n else float("nan"), float("nan")
    return float(values.mean()), float(stats.t.ppf((1 + CONFIDENCE) / 2, n - 1) * values.std(ddof=1) / np.sqrt(n))


def cell(values: pd.Series, decimals: int) -> str:
    """
    Format the mean over seeds as a cell of a table.

    :param values: one per seed, NaN for a seed without a value
    :param decimals: number of decimals
    :return: mean and half the width of its interval; the mean alone for a single seed, a dash for none
    """
    values = values.dropna()
    mean, half = interval(values)
    return "-" if values.empty else f"{mean:.{decimals}f} ± {half:.{decimals}f}".replace(" ± nan", "")


def ratio(ours: Sequence[float] | np.ndarray, theirs: Sequence[float] | np.ndarray) -> Estimate:
    """
    Estimate the ratio of the values of one method to those of another.

    :param ours: one positive value per seed
    :param theirs: the same for the other method; seeds are not paired
    :return: ratio of the geometric means, with Welch's 95 % interval of the difference of logarithms (NaN if a method has a
        single seed)
    """
    logs, other_logs = np.log(np.asarray(ours, dtype=float)), np.log(np.asarray(theirs, dtype=float))
    value = float(np.exp(logs.mean() - other_logs.mean()))
    if min(len(logs), len(other_logs)) < 2:
        return Estimate(value, float("nan"), float("nan"))
    if logs.std() == other_logs.std() == 0.0:
        return Estimate(value, value, value)
    with warnings.catch_warnings():
        # All values of one method may be equal
        warnings.filterwarnings("ignore", message="Precision loss occurred")
        low, high = stats.ttest_ind(logs, other_logs, equal_var=False).confidence_interval(CONFIDENCE)
    return Estimate(value, float(np.exp(low)), float(np.exp(high)))
