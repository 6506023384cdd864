"""A film strip of each skill, next to the paths of all of them."""

from collections.abc import Sequence

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure

from sb3_cesd.metrics.plots import skill_colors
from sb3_cesd.show.paths import draw_places, draw_projected
from sb3_cesd.show.play import SkillRollout

#: Width of an image and of the paths, height of a row [inch]
IMAGE_WIDTH, PATH_WIDTH, ROW_HEIGHT = 1.6, 6.4, 1.25


def draw_strips(rollouts: list[SkillRollout], labels: Sequence[str], title: str, n_frames: int) -> Figure:
    """
    Draw a film strip of each skill, and the paths of all skills.

    :param rollouts: one per skill
    :param labels: names of the skills
    :param title: title of the figure
    :param n_frames: images per skill, equally spaced in time; 0 for the paths alone
    :return: the figure
    """
    n_frames = n_frames if all(rollout.frames for rollout in rollouts) else 0
    width = n_frames * IMAGE_WIDTH + PATH_WIDTH
    figure = Figure(figsize=(width, max(ROW_HEIGHT * len(rollouts) if n_frames else 0, 4.8) + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    colors = skill_colors(len(rollouts))
    widths = [n_frames * IMAGE_WIDTH, PATH_WIDTH] if n_frames else [PATH_WIDTH]
    *left, right = figure.subfigures(1, len(widths), squeeze=False, width_ratios=widths)[0]
    for panel in left:
        _draw_images(panel, rollouts, labels, colors, n_frames)
    draw_paths = draw_projected if rollouts[0].positions is None else draw_places
    draw_paths(right, rollouts, labels, colors)
    return figure


def _draw_images(
    panel: SubFigure, rollouts: list[SkillRollout], labels: Sequence[str], colors: Sequence[str], n_frames: int
) -> None:
    """
    Draw a row of images per skill.

    :param panel: where to draw
    :param rollouts: one per skill, with images
    :param labels: names of the skills
    :param colors: colors of the skills
    :param n_frames: images per skill
    """
    # Columns are the same time steps of all skills: a row ends with its episode
    longest = max(len(rollout.frames) for rollout in rollouts)
    for row, rollout in enumerate(rollouts):
        for column, index in enumerate(np.linspace(0, longest - 1, n_frames, dtype=int)):
            if index >= len(rollout.frames):
                break
            axes = panel.add_subplot(len(rollouts), n_frames, row * n_frames + column + 1)
            axes.imshow(rollout.frames[index])
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_color(colors[row])
            axes.spines[:].set_linewidth(2)
            if column == 0:
                label = f"skill {labels[row]}\nreturn {rollout.episode_return:.0f}\n{rollout.n_steps} steps"
                axes.set_ylabel(label, fontsize=8)
