"""Draw curves of several seeds."""

from collections.abc import Sequence

import numpy as np
from intervals import interval
from matplotlib.axes import Axes
from matplotlib.lines import Line2D


def draw_band(axes: Axes, steps: Sequence[float], values: Sequence[Sequence[float]], color: str, style: str = "-") -> Line2D:
    """
    Draw the mean over seeds, and Student's 95 % interval as a band around it.

    :param axes: where to draw
    :param steps: environment steps, at least as many as the shortest curve has points
    :param values: a curve per seed; longer ones are cut
    :param color: colour of line and band
    :param style: style of the line
    :return: the line
    """
    n_points = min(len(curve) for curve in values)
    means, halves = np.array([interval(column) for column in zip(*(curve[:n_points] for curve in values), strict=True)]).T
    (line,) = axes.plot(steps[:n_points], means, style, color=color)
    axes.fill_between(steps[:n_points], means - halves, means + halves, color=color, alpha=0.15, linewidth=0)
    return line
