"""Paths of skills: on the ground, or projected to a plane in observation space."""

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import SubFigure

from sb3_cesd.show.play import SkillRollout, stay_on_a_line

#: Maximum number of observations that the plane is fitted to
MAX_FITTED = 2000
#: Number of skills above which the legend has more columns
MANY = 16


class Projection(NamedTuple):
    """
    The plane in which observations vary most (principal component analysis).

    :param center: mean observation, shape ``(obs_dim,)``
    :param axes: directions of the plane, shape ``(2, obs_dim)``, or ``(1, obs_dim)`` for a single number
    :param shares: share of the variance along each
    """

    center: np.ndarray
    axes: np.ndarray
    shares: np.ndarray

    def __call__(self, observations: np.ndarray) -> np.ndarray:
        """
        Project observations.

        :param observations: shape ``(n, obs_dim)``
        :return: coordinates in the plane, shape ``(n, 2)`` or ``(n, 1)``
        """
        return (observations - self.center) @ self.axes.T


def fit_projection(observations: np.ndarray) -> Projection:
    """
    Find the plane in which observations vary most.

    :param observations: shape ``(n, obs_dim)``
    :return: the plane
    """
    rows = observations[:: -(-len(observations) // MAX_FITTED)].astype(np.float64)
    center = rows.mean(axis=0)
    _, scales, directions = np.linalg.svd(rows - center, full_matrices=False)
    variance = scales**2
    # The sign of a direction is arbitrary: make its largest entry positive, so that figures are comparable
    plane = directions[:2]
    signs = np.sign(np.take_along_axis(plane, np.abs(plane).argmax(axis=1)[:, None], axis=1))
    return Projection(center, plane * np.where(signs == 0, 1.0, signs), variance[:2] / max(variance.sum(), 1e-12))


def draw_places(panel: SubFigure, rollouts: Sequence[SkillRollout], labels: Sequence[str], colors: Sequence[str]) -> None:
    """
    Draw the paths of skills, and their height; x over time for a robot that stays on a line.

    :param panel: where to draw
    :param rollouts: one per skill, with positions
    :param labels: names of the skills
    :param colors: colors of the skills
    """
    ground, height = panel.add_subplot(2, 1, 1), panel.add_subplot(2, 1, 2)
    paths = [rollout.positions for rollout in rollouts if rollout.positions is not None]
    planar = stay_on_a_line(paths)
    for path, color, label in zip(paths, colors, labels, strict=True):
        style: dict[str, Any] = {"color": color, "label": f"skill {label}", "linewidth": 1.2}
        ground.plot(np.arange(len(path)) if planar else path[:, 0], path[:, 0] if planar else path[:, 1], **style)
        height.plot(path[:, 2], **style)
    ground.set(xlabel="step" if planar else "x [m]", ylabel="x [m]" if planar else "y [m]", title="path")
    if not planar:
        ground.set_aspect("equal", adjustable="datalim")
    height.set(xlabel="step", ylabel="z [m]", title="height")
    _add_legend(ground, len(labels))


def draw_projected(panel: SubFigure, rollouts: Sequence[SkillRollout], labels: Sequence[str], colors: Sequence[str]) -> None:
    """
    Draw observations of skills in the plane in which they vary most, for an environment without a position.

    :param panel: where to draw
    :param rollouts: one per skill
    :param labels: names of the skills
    :param colors: colors of the skills
    """
    axes = panel.add_subplot(1, 1, 1)
    projection = fit_projection(np.concatenate([rollout.observations for rollout in rollouts]))
    for rollout, color, label in zip(rollouts, colors, labels, strict=True):
        path = projection(rollout.observations)
        xs, ys = (path[:, 0], path[:, 1]) if path.shape[1] > 1 else (np.arange(len(path)), path[:, 0])
        axes.plot(xs, ys, color=color, label=f"skill {label}", linewidth=1.2)
        axes.plot(xs[-1:], ys[-1:], "o", color=color, markersize=4)
    names = [f"principal component {index + 1} ({share:.0%})" for index, share in enumerate(projection.shares)]
    axes.set(xlabel=names[0] if len(names) > 1 else "step", ylabel=names[-1], title="observations, projected")
    start = projection(rollouts[0].observations[:1])[0]
    axes.plot(start[0] if len(names) > 1 else 0, start[-1], "o", color="black", markersize=5, zorder=4)
    _add_legend(axes, len(labels))


def _add_legend(axes: Axes, n_skills: int) -> None:
    axes.legend(fontsize=7 if n_skills <= MANY else 5, ncols=2 if n_skills <= MANY else 4)
