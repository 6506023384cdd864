"""Tables of skills and metrics, for a terminal."""

from collections.abc import Mapping, Sequence

from sb3_cesd.show.labels import TRAINED, meaning
from sb3_cesd.show.play import SkillRollout, stay_on_a_line


def skill_table(rollouts: Sequence[SkillRollout], labels: Sequence[str]) -> str:
    """
    Tabulate what skills do.

    :param rollouts: one per skill
    :param labels: names of the skills
    :return: a line per skill: return, number of steps, and for a robot how far it moved and its mean height
    """
    rows = skill_rows(rollouts, labels)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    return "\n".join("  ".join(f"{text:>{width}}" for text, width in zip(row, widths, strict=True)) for row in rows)


def skill_rows(rollouts: Sequence[SkillRollout], labels: Sequence[str]) -> list[list[str]]:
    """
    Describe what skills do.

    :param rollouts: one per skill
    :param labels: names of the skills
    :return: a header with units and a row per skill, without height in mazes, and without y for a robot that stays on a line
    """
    paths = [rollout.positions for rollout in rollouts if rollout.positions is not None]
    is_flat = not any(path[:, 2].any() for path in paths)
    axes = [] if not paths else ["x"] if not is_flat and stay_on_a_line(paths) else ["x", "y"]
    has_height = bool(paths) and not is_flat
    unit = "" if is_flat else " [m]"
    header = ["skill", "return", "steps", *(f"moved {axis}{unit}" for axis in axes), *(["mean z [m]"] if has_height else [])]
    rows = []
    for label, rollout in zip(labels, rollouts, strict=True):
        row = [label, f"{rollout.episode_return:.1f}", f"{rollout.n_steps}"]
        if rollout.positions is not None:
            moved = rollout.positions[-1] - rollout.positions[0]
            row += [f"{value:.2f}" for value in moved[: len(axes)]]
            row += [f"{rollout.positions[:, 2].mean():.2f}"] if has_height else []
        rows.append(row)
    return [header, *rows]


def metrics_table(columns: Mapping[str, Mapping[str, float]], n_skills: int, kind: str) -> str:
    """
    Tabulate metrics and their baselines, with what they mean.

    :param columns: column name -> metrics by name, of :data:`~sb3_cesd.show.labels.TRAINED` and of baselines
    :param n_skills: number of skills
    :param kind: kind of the environment, see ``sb3_cesd.show.labels``
    :return: a line per metric below a header
    """
    names = list(columns[TRAINED])
    width = max(map(len, [*names, "metric"]))
    lines = [f"{'metric':>{width}} " + " ".join(f"{column:>9}" for column in columns)]
    for name in names:
        cells = " ".join(f"{cell(column, name):>9}" for column in columns.values())
        lines.append(f"{name:>{width}} {cells}   {meaning(name, n_skills, kind)}".rstrip())
    return "\n".join(lines)


def cell(metrics: Mapping[str, float], name: str) -> str:
    """
    Format one metric.

    :param metrics: metrics by name
    :param name: name of the metric
    :return: its value, or a dash if there is none
    """
    return f"{metrics[name]:.3f}" if name in metrics else "-"
