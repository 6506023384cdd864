"""Film strips of skills, their paths, and a grid of their images."""

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure, SubFigure
from PIL import Image, ImageDraw, ImageFont

from sb3_cesd.metrics.plots import skill_colors
from sb3_cesd.show.play import MANY, SkillRollout

#: Width of an image and of the paths, height of a row [inch]
IMAGE_WIDTH, PATH_WIDTH, ROW_HEIGHT = 1.6, 6.4, 1.25
#: Maximum number of observations that a plane is fitted to
MAX_FITTED = 2000
LABEL_HEIGHT, GAP = 22, 4  # [pixels]


def draw_strips(rollouts: Sequence[SkillRollout], title: str, n_frames: int) -> Figure:
    """
    Draw a film strip of each skill, and the paths of all skills.

    :param rollouts: one per skill
    :param title: title of the figure
    :param n_frames: images per skill, equally spaced in time; 0 for the paths alone
    :return: the figure
    """
    n_frames = n_frames if all(rollout.frames for rollout in rollouts) else 0
    widths = [n_frames * IMAGE_WIDTH, PATH_WIDTH] if n_frames else [PATH_WIDTH]
    height = max(ROW_HEIGHT * len(rollouts) if n_frames else 0, 4.8) + 0.4
    figure = Figure(figsize=(sum(widths), height), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    *left, right = figure.subfigures(1, len(widths), squeeze=False, width_ratios=widths)[0]
    for panel in left:
        _draw_images(panel, rollouts, n_frames)
    if rollouts[0].positions is None:
        _draw_projected(right.add_subplot(), rollouts)
    else:
        _draw_places(right, rollouts)
    return figure


def _draw_images(panel: SubFigure, rollouts: Sequence[SkillRollout], n_frames: int) -> None:
    # Columns are the same time steps of all skills: a row ends with its episode
    longest = max(len(rollout.frames) for rollout in rollouts)
    for row, (rollout, color) in enumerate(zip(rollouts, skill_colors(len(rollouts)), strict=True)):
        for column, index in enumerate(np.linspace(0, longest - 1, n_frames, dtype=int)):
            if index >= len(rollout.frames):
                break
            axes = panel.add_subplot(len(rollouts), n_frames, row * n_frames + column + 1)
            axes.imshow(rollout.frames[index])
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_color(color)
            axes.spines[:].set_linewidth(2)
            if column == 0:
                label = f"skill {rollout.label}\nreturn {rollout.episode_return:.0f}\n{rollout.n_steps} steps"
                axes.set_ylabel(label, fontsize=8)


def _draw_places(panel: SubFigure, rollouts: Sequence[SkillRollout]) -> None:
    """Draw paths on the ground, and heights; x over time for robots that stay on a line, as a walker does."""
    ground, height = panel.subplots(2, 1)
    paths = [rollout.positions for rollout in rollouts if rollout.positions is not None]
    if all(np.ptp(path[:, 1]) < 1e-6 for path in paths):
        _plot(ground, rollouts, [path[:, :1] for path in paths])
        ground.set(xlabel="step", ylabel="x [m]", title="path")
    else:
        _plot(ground, rollouts, [path[:, :2] for path in paths])
        ground.set(xlabel="x [m]", ylabel="y [m]", title="path")
        ground.set_aspect("equal", adjustable="datalim")
    _plot(height, rollouts, [path[:, 2:] for path in paths])
    height.set(xlabel="step", ylabel="z [m]", title="height")
    _add_legend(ground, len(rollouts))


def _draw_projected(axes: Axes, rollouts: Sequence[SkillRollout]) -> None:
    """Draw observations in the plane in which they vary most (principal component analysis)."""
    observations = np.concatenate([rollout.observations for rollout in rollouts])
    center, plane, shares = fit_plane(observations)
    _plot(axes, rollouts, [(rollout.observations - center) @ plane.T for rollout in rollouts])
    names = [f"principal component {index + 1} ({share:.0%})" for index, share in enumerate(shares)]
    axes.set(xlabel=names[0] if len(names) > 1 else "step", ylabel=names[-1], title="observations, projected")
    _add_legend(axes, len(rollouts))


def fit_plane(observations: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """
    Find the plane in which observations vary most.

    :param observations: shape ``(n, obs_dim)``
    :return: a point of it, shape ``(obs_dim,)``; its directions, shape ``(2, obs_dim)``, or ``(1, obs_dim)`` for a single
        number; and the share of the variance along each
    """
    rows = observations[:: -(-len(observations) // MAX_FITTED)].astype(np.float64)
    center = rows.mean(axis=0)
    _, scales, directions = np.linalg.svd(rows - center, full_matrices=False)
    plane = directions[:2]
    # The sign of a direction is arbitrary: make its largest entry positive, so that figures are comparable
    largest = np.take_along_axis(plane, np.abs(plane).argmax(axis=1)[:, None], axis=1)
    return center, plane * np.where(largest < 0, -1.0, 1.0), scales[:2] ** 2 / max((scales**2).sum(), 1e-12)


def _plot(axes: Axes, rollouts: Sequence[SkillRollout], paths: Sequence[np.ndarray]) -> None:
    """Plot paths of shape ``(n, 2)``, or ``(n, 1)`` over time, with their common start and their ends."""
    for rollout, path, color in zip(rollouts, paths, skill_colors(len(rollouts)), strict=True):
        x, y = path.T if path.shape[1] > 1 else (np.arange(len(path)), path[:, 0])
        axes.plot(x, y, color=color, label=f"skill {rollout.label}", linewidth=1.2)
        axes.plot(x[-1], y[-1], "o", color=color, markersize=4)
        axes.plot(x[0], y[0], "o", color="black", markersize=5, zorder=4)


def _add_legend(axes: Axes, n_skills: int) -> None:
    axes.legend(fontsize=7 if n_skills <= MANY else 5, ncols=2 if n_skills <= MANY else 4)


def grid_frames(rollouts: Sequence[SkillRollout]) -> list[np.ndarray]:
    """
    Put the images of all skills side by side.

    :param rollouts: one per skill, with images; the last one is repeated if there are fewer
    :return: images of all skills in a grid, labelled
    """
    n_skills = len(rollouts)
    # As few gaps in the last row as possible: 4 columns for 8 skills, 5 for 10, 8 for 32
    n_columns = n_skills
    if n_skills > 5:
        n_columns = min(range(4, 9), key=lambda n: (-n_skills % n, abs(n - (2 * n_skills) ** 0.5)))
    n_rows = -(-n_skills // n_columns)
    height, width = rollouts[0].frames[0].shape[:2]
    font = ImageFont.load_default(size=LABEL_HEIGHT - 6)
    images = []
    for time in range(max(len(rollout.frames) for rollout in rollouts)):
        size = n_columns * (width + GAP), n_rows * (height + LABEL_HEIGHT + GAP)
        image = Image.new("RGB", (size[0] // 2 * 2, size[1] // 2 * 2), "white")  # the codec of mp4 needs even sizes
        draw = ImageDraw.Draw(image)
        for index, rollout in enumerate(rollouts):
            row, column = divmod(index, n_columns)
            x, y = column * (width + GAP), row * (height + LABEL_HEIGHT + GAP)
            draw.text((x + GAP, y + 2), f"skill {rollout.label}", fill="black", font=font)
            image.paste(Image.fromarray(rollout.frames[min(time, len(rollout.frames) - 1)]), (x, y + LABEL_HEIGHT))
        images.append(np.asarray(image))
    return images
