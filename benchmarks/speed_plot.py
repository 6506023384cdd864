"""The picture of ``speed.py``, with a panel per part."""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from sb3_cesd.common.files import save_figure_whole


def draw_bars(axes: Axes, values: pd.DataFrame, label: str) -> None:
    """
    Draw groups of bars.

    :param axes: where to draw
    :param values: rows are groups of bars, columns are bars
    :param label: label of the axis of values
    """
    width = 0.8 / len(values.columns)
    for index, column in enumerate(values.columns):
        offset = (index - (len(values.columns) - 1) / 2) * width
        axes.barh(np.arange(len(values)) + offset, values[column], width, label=column)
    axes.set_yticks(range(len(values)), values.index, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel(label)
    if len(values.columns) > 1:
        axes.legend(fontsize=7)


def by_threads(figures: pd.DataFrame, values: str) -> pd.DataFrame:
    """
    Arrange figures by the number of threads.

    :param figures: figures of one part
    :param values: column of the values
    :return: values by setting and variant (rows) and number of threads (columns)
    """
    names = figures.setting + ": " + figures.variant
    threads = figures.threads.astype(str) + " threads"
    table = figures.assign(name=names, threads=threads).pivot(index="name", columns="threads", values=values)
    return table.reindex(names.drop_duplicates())


def draw_update(axes: Axes, figures: pd.DataFrame) -> None:
    draw_bars(axes, by_threads(figures[figures.variant != figures.reference], "ratio"), "times as fast as dense")
    axes.axvline(1.0, color="black", linewidth=0.8)


def draw_breakdown(axes: Axes, figures: pd.DataFrame) -> None:
    parts = figures[figures.variant != figures.reference]
    shares = parts.pivot(index="setting", columns="variant", values="ratio").reindex(parts.setting.drop_duplicates())
    left = np.zeros(len(shares))
    for part in parts.variant.drop_duplicates():
        axes.barh(range(len(shares)), shares[part], left=left, label=part)
        left += shares[part].to_numpy()
    axes.set_yticks(range(len(shares)), shares.index, fontsize=8)
    axes.invert_yaxis()
    axes.set_xlabel("share of an update")
    axes.legend(fontsize=6, ncol=4, loc="upper center", bbox_to_anchor=(0.4, -0.13))


def draw_steps(axes: Axes, figures: pd.DataFrame) -> None:
    draw_bars(axes, by_threads(figures[figures.unit == "steps/s"], "value"), "steps/s")


def draw_scaling(axes: Axes, figures: pd.DataFrame) -> None:
    for index, (setting, rows) in enumerate(figures.groupby("setting", sort=False)):
        numbers = rows.variant.str.extract(r"(\d+)")[0].astype(int)
        axes.plot(numbers, rows.value, "o-", label=str(setting), color=f"C{index}")
    axes.set(xscale="log", yscale="log", xlabel="skills, or transitions of a batch", ylabel="ms")
    axes.legend(fontsize=6)


def draw_memory(axes: Axes, figures: pd.DataFrame) -> None:
    draw_bars(axes, by_threads(figures, "value"), "GB")


PANELS: dict[str, Callable[[Axes, pd.DataFrame], None]] = {
    "update": draw_update,
    "breakdown": draw_breakdown,
    "envs": draw_steps,
    "training": draw_steps,
    "scaling": draw_scaling,
    "memory": draw_memory,
}


def plot(figures: pd.DataFrame, titles: dict[str, str], path: Path) -> None:
    """
    Draw all parts in one picture.

    :param figures: all figures
    :param titles: part -> title
    :param path: file of the picture
    """
    parts = [part for part in PANELS if (figures.part == part).any()]
    n_rows = (len(parts) + 1) // 2
    figure = Figure(figsize=(15, 4.6 * n_rows), layout="constrained")
    FigureCanvasAgg(figure)
    panels = figure.subplots(n_rows, 2, squeeze=False).ravel()
    for axes, part in zip(panels, parts, strict=False):
        PANELS[part](axes, figures[figures.part == part])
        axes.set_title(titles[part], fontsize=10)
    for axes in panels[len(parts) :]:
        axes.remove()
    save_figure_whole(figure, path, dpi=80)
