"""A film strip of each skill of a robot, and the paths of all skills."""

from collections.abc import Callable, Sequence
from functools import partial

import gymnasium as gym
import numpy as np
from matplotlib import colormaps
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_cesd.common.playing import SkillModel
from sb3_cesd.common.vec_env import normalize_like_training
from sb3_cesd.show.play import SkillRollout, play_skill


def play_all(
    model: SkillModel,
    make: Callable[..., gym.Env],
    n_steps: int,
    seed: int,
    n_frames: int,
    vec_normalize: VecNormalize | None,
) -> list[SkillRollout]:
    """
    Play every skill from the same start.

    :param model: a trained model; of continuous skills, those that an index stands for are played
    :param make: makes its environment, with ``render_mode`` as an argument
    :param n_steps: steps per skill, at most
    :param seed: seed of every reset
    :param n_frames: images per skill
    :param vec_normalize: statistics of training, by which observations are normalised for the model
    :return: a rollout per skill, without images (and with a message) on a machine that can't render
    """
    if n_frames > 0:
        probe = make()
        modes = probe.metadata.get("render_modes") or []
        probe.close()
        if "rgb_array" not in modes:
            known = ", ".join(map(str, modes)) or "nothing"
            print(f"No images and no video: the environment renders {known}, not 'rgb_array'.")
            n_frames = 0
    for frames in (n_frames, 0):
        plain_env = DummyVecEnv([partial(make, render_mode="rgb_array" if frames else None)])
        env = normalize_like_training(plain_env, vec_normalize)
        try:
            return [play_skill(model, env, skill, n_steps, seed, frames) for skill in range(model.n_skills)]
        except (RuntimeError, ImportError, gym.error.DependencyNotInstalled) as error:
            if not frames:
                raise
            print(f"No images and no video: {error}")
        finally:
            env.close()
    raise AssertionError("unreachable")


def draw(rollouts: list[SkillRollout], labels: Sequence[str], title: str, n_frames: int) -> Figure:
    """
    Draw a film strip of each skill, and the paths of all skills.

    :param rollouts: one per skill
    :param labels: what to call the skills
    :param title: title of the figure
    :param n_frames: images per skill, at equal distances in time
    :return: the figure
    """
    n_rows = len(rollouts)
    n_frames = min(n_frames, *(len(rollout.frames) for rollout in rollouts))
    has_paths = rollouts[0].positions is not None
    widths = [max(1.6 * n_frames, 0.1), 6.4 if has_paths else 0.1]
    figure = Figure(figsize=(sum(widths), max(1.25 * n_rows, 4.0) + 0.4), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(title)
    left, right = figure.subfigures(1, 2, width_ratios=widths)  # type: ignore[misc]
    colors = colormaps["tab10" if n_rows <= 10 else "tab20"].colors  # type: ignore[attr-defined]
    for row, rollout in enumerate(rollouts):
        for column, index in enumerate(np.linspace(0, len(rollout.frames) - 1, n_frames, dtype=int)):
            axes = left.add_subplot(n_rows, n_frames, row * n_frames + column + 1)
            axes.imshow(rollout.frames[index])
            axes.set(xticks=[], yticks=[])
            axes.spines[:].set_color(colors[row % len(colors)])
            axes.spines[:].set_linewidth(2)
            if column == 0:
                axes.set_ylabel(f"skill {labels[row]}\nreturn {rollout.episode_return:.0f}", fontsize=8)
    if has_paths:
        draw_paths(right.add_subplot(2, 1, 1), right.add_subplot(2, 1, 2), rollouts, labels, colors)
    return figure


def draw_paths(ground: Axes, height: Axes, rollouts: list[SkillRollout], labels: Sequence[str], colors: Sequence) -> None:
    """
    Draw where the skills go.

    :param ground: axes of the path on the ground (x over time for a robot that stays on a line)
    :param height: axes of the height over time
    :param rollouts: one per skill, with positions
    :param labels: what to call the skills
    :param colors: colors of the skills
    """
    paths = [rollout.positions for rollout in rollouts if rollout.positions is not None]
    planar = all(np.ptp(path[:, 1]) < 1e-6 for path in paths)
    for index, (label, path) in enumerate(zip(labels, paths, strict=True)):
        style = {"color": colors[index % len(colors)], "label": f"skill {label}", "linewidth": 1.2}
        ground.plot(np.arange(len(path)) if planar else path[:, 0], path[:, 0] if planar else path[:, 1], **style)
        height.plot(path[:, 2], **style)
    ground.set(xlabel="step" if planar else "x [m]", ylabel="x [m]" if planar else "y [m]", title="path")
    if not planar:
        ground.set_aspect("equal", adjustable="datalim")
    height.set(xlabel="step", ylabel="z [m]", title="height")
    ground.legend(fontsize=7, ncols=2)


def table(rollouts: list[SkillRollout], labels: Sequence[str]) -> str:
    """
    Tabulate what skills do.

    :param rollouts: one per skill
    :param labels: what to call the skills
    :return: a line per skill: return, how far the robot moved, and its mean height
    """
    width = max(5, *map(len, labels))
    header = f"{'skill':>{width}} {'return':>9}"
    if rollouts[0].positions is not None:
        header += f" {'moved x [m]':>12} {'moved y [m]':>12} {'mean z [m]':>11}"
    lines = [header]
    for label, rollout in zip(labels, rollouts, strict=True):
        line = f"{label:>{width}} {rollout.episode_return:>9.1f}"
        if rollout.positions is not None:
            x, y, _ = rollout.positions[-1] - rollout.positions[0]
            line += f" {x:>12.2f} {y:>12.2f} {rollout.positions[:, 2].mean():>11.2f}"
        lines.append(line)
    return "\n".join(lines)
