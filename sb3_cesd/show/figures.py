"""Film strips of skills, a grid of their images, and their paths, in mazes as in the paper's figures 3, 6 and 7."""

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.collections import LineCollection
from matplotlib.colors import hsv_to_rgb, to_hex
from matplotlib.figure import Figure, SubFigure
from matplotlib.lines import Line2D
from PIL import Image, ImageDraw, ImageFont

from sb3_cesd.envs.mazes.layouts import MazeLayout
from sb3_cesd.show.play import MANY, SkillRollout

#: Width of an image and of the paths, height of a row [inch]
IMAGE_WIDTH, PATH_WIDTH, ROW_HEIGHT = 1.6, 6.4, 1.25
#: Maximum number of observations that a plane is fitted to
MAX_FITTED = 2000
LABEL_HEIGHT, GAP = 22, 4  # [pixels]
#: Margin around a maze [cells]
MARGIN = 0.2
#: Maximum number of panels in a row
MAX_COLUMNS = 6
#: Columns of the legend below each panel, and the number of characters of a label that fit
LEGEND_COLUMNS, SHORT_LABEL = 5, 4


def draw_maze_panels(
    layout: MazeLayout,
    panels: Mapping[str, np.ndarray],
    legend: bool = False,
    panel_width: float = 2.4,
    labels: Sequence[str] | None = None,
) -> Figure:
    """
    Draw the paths of the skills of some methods in a maze; the paper draws 20 stochastic rollouts per skill from one start.

    :param panels: title (the method) -> states, shape ``(n_skills, n_rollouts, n_steps + 1, 2)``
    :param panel_width: width of a panel [inch]
    :param labels: names of the skills in the legend, their indices by default
    """
    (left, bottom), (right, top) = layout.low - MARGIN, layout.high + MARGIN
    figure, all_axes = make_panels(len(panels), panel_width, panel_width * (top - bottom) / (right - left))
    for axes, (title, states) in zip(all_axes, panels.items(), strict=True):
        # The first rollout of each skill, then the second of each, ..., so that no skill hides the others
        paths = [path for paths in states.swapaxes(0, 1) for path in paths]
        colors = skill_colors(len(states)) * states.shape[1]
        axes.add_collection(LineCollection(paths, colors=colors, alpha=0.2, linewidths=2))
        walls = LineCollection(list(layout.segments), colors="black", linewidths=1.5, capstyle="projecting", zorder=3)
        axes.add_collection(walls)
        axes.plot(*states[:, :, 0].mean(axis=(0, 1)), "o", color="black", markersize=5, zorder=4)
        axes.set(aspect="equal", xlim=(left, right), ylim=(bottom, top))
        axes.set_title(title, fontsize="medium")
        axes.axis("off")
    if legend:
        n_skills = max(len(states) for states in panels.values())
        _add_skill_legend(figure, labels or [str(skill) for skill in range(n_skills)], min(len(panels), MAX_COLUMNS))
    return figure


def make_panels(n_panels: int, width: float, height: float, share: bool = False) -> tuple[Figure, list[Axes]]:
    """Make a figure with some panels [inch], in rows."""
    title_height = 0.35  # [inch]
    n_rows = -(-n_panels // MAX_COLUMNS)
    n_columns = -(-n_panels // n_rows)
    figure = Figure(figsize=(n_columns * width, n_rows * (height + title_height)), layout="constrained")
    all_axes = figure.subplots(n_rows, n_columns, squeeze=False, sharex=share, sharey=share).ravel()
    for spare in all_axes[n_panels:]:
        spare.remove()
    return figure, list(all_axes[:n_panels])


def skill_colors(n_skills: int) -> list[str]:
    """Choose different colours: those of Matplotlib for up to 20 skills, else hues in light and dark."""
    if n_skills <= 20:
        colors = colormaps["tab10" if n_skills <= 10 else "tab20"].colors  # type: ignore[attr-defined]
    else:
        hues = np.arange(n_skills) / n_skills
        brightness = np.array([0.95, 0.6, 0.8])[np.arange(n_skills) % 3]
        colors = hsv_to_rgb(np.stack([hues, np.full(n_skills, 0.85), brightness], axis=1))
    return [to_hex(color) for color in colors[:n_skills]]


def _add_skill_legend(figure: Figure, labels: Sequence[str], n_panels: int) -> None:
    """Add a legend of the skills below the panels of a row."""
    colors = skill_colors(len(labels))
    handles = [Line2D([], [], color=color, linewidth=2, label=label) for color, label in zip(colors, labels, strict=True)]
    per_panel = LEGEND_COLUMNS if max(map(len, labels)) <= SHORT_LABEL else LEGEND_COLUMNS // 2
    n_columns = min(len(labels), per_panel * n_panels)
    width, height = figure.get_size_inches()
    figure.set_size_inches(width, height + 0.25 + 0.15 * -(-len(labels) // n_columns))
    figure.legend(handles=handles, title="skill", loc="outside lower center", ncols=n_columns, fontsize=7, title_fontsize=7)


def draw_strips(rollouts: Sequence[SkillRollout], title: str, n_frames: int) -> Figure:
    """Draw a film strip of each skill, with images equally spaced in time, and the paths of all skills."""
    n_frames = n_frames if all(rollout.frames for rollout in rollouts) else 0
    widths = [n_frames * IMAGE_WIDTH, PATH_WIDTH] if n_frames else [PATH_WIDTH]
    height = max(ROW_HEIGHT * len(rollouts) if n_frames else 0, 4.8) + 0.4
    figure = Figure(figsize=(sum(widths), height), layout="constrained")
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
    has_rewards = any(rollout.episode_return for rollout in rollouts)
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
                label = f"skill {rollout.label}" + f"\nreturn {rollout.episode_return:.0f}" * has_rewards
                axes.set_ylabel(f"{label}\n{rollout.n_steps} steps", fontsize=8)


def _draw_places(panel: SubFigure, rollouts: Sequence[SkillRollout]) -> None:
    """Draw paths on the ground, and heights; x over time for robots that stay on a line, as a walker does."""
    paths = [rollout.positions for rollout in rollouts if rollout.positions is not None]
    has_height = any(np.ptp(path[:, 2]) > 0 for path in paths)
    ground, *height = panel.subplots(1 + has_height, 1, squeeze=False)[:, 0]
    if all(np.ptp(path[:, 1]) < 1e-6 for path in paths):
        _plot(ground, rollouts, [path[:, :1] for path in paths])
        ground.set(xlabel="step", ylabel="x [m]", title="path")
    else:
        _plot(ground, rollouts, [path[:, :2] for path in paths])
        ground.set(xlabel="x [m]", ylabel="y [m]", title="path")
        ground.set_aspect("equal", adjustable="datalim")
    for axes in height:
        _plot(axes, rollouts, [path[:, 2:] for path in paths])
        axes.set(xlabel="step", ylabel="z [m]", title="height")
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
    """Find the plane in which observations, ``(n, obs_dim)``, vary most: a point, its directions, and the share of each."""
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


def grid_frames(rollouts: Sequence[SkillRollout]) -> list[Image.Image]:
    """Put the images of all skills side by side, labelled; the last one stays if a skill has fewer."""
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
        image = Image.new("RGB", (n_columns * (width + GAP), n_rows * (height + LABEL_HEIGHT + GAP)), "white")
        draw = ImageDraw.Draw(image)
        for index, rollout in enumerate(rollouts):
            row, column = divmod(index, n_columns)
            x, y = column * (width + GAP), row * (height + LABEL_HEIGHT + GAP)
            draw.text((x + GAP, y + 2), f"skill {rollout.label}", fill="black", font=font)
            image.paste(Image.fromarray(rollout.frames[min(time, len(rollout.frames) - 1)]), (x, y + LABEL_HEIGHT))
        images.append(image)
    return images
