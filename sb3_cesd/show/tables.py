"""Tables of skills and metrics, for a terminal."""

from collections.abc import Mapping, Sequence

from sb3_cesd.show.labels import TRAINED, meaning
from sb3_cesd.show.play import SkillRollout


def skill_table(rollouts: Sequence[SkillRollout], labels: Sequence[str]) -> str:
    """
    Tabulate what skills do.

    :param rollouts: one per skill
    :param labels: what to call the skills
    :return: a line per skill: return, number of steps, and of a robot how far it moved and its mean height
    """
    header, *rows = [
        skill_header(rollouts),
        *(skill_row(label, rollout) for label, rollout in zip(labels, rollouts, strict=True)),
    ]
    widths = [max(len(row[column]) for row in [header, *rows]) for column in range(len(header))]
    return "\n".join("  ".join(f"{cell:>{width}}" for cell, width in zip(row, widths, strict=True)) for row in [header, *rows])


def skill_header(rollouts: Sequence[SkillRollout]) -> list[str]:
    """
    Name the columns of :func:`skill_row`.

    :param rollouts: one per skill
    :return: names, with units
    """
    if rollouts[0].positions is None:
        moved = []
    elif _is_flat(rollouts[0]):
        moved = ["moved x", "moved y"]
    else:
        moved = ["moved x [m]", "moved y [m]", "mean z [m]"]
    return ["skill", "return", "steps", *moved]


def skill_row(label: str, rollout: SkillRollout) -> list[str]:
    """
    Tell what a skill does.

    :param label: what to call the skill
    :param rollout: of the skill
    :return: a cell per column
    """
    row = [label, f"{rollout.episode_return:.1f}", f"{rollout.n_steps}"]
    if rollout.positions is not None:
        x, y, _ = rollout.positions[-1] - rollout.positions[0]
        row += [f"{x:.2f}", f"{y:.2f}"]
        if not _is_flat(rollout):
            row.append(f"{rollout.positions[:, 2].mean():.2f}")
    return row


def _is_flat(rollout: SkillRollout) -> bool:
    """Whether it is in a world without height, such as a maze."""
    return rollout.positions is not None and not rollout.positions[:, 2].any()


def metrics_table(columns: Mapping[str, Mapping[str, float]], n_skills: int, kind: str) -> str:
    """
    Tabulate metrics, with what they mean and what they are without training and by chance.

    :param columns: metrics by name, of :data:`~sb3_cesd.show.labels.TRAINED` and what that is compared with
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
    Write one metric.

    :param metrics: by name
    :param name: name of the metric
    :return: its value, or a dash if there is none
    """
    return f"{metrics[name]:.3f}" if name in metrics else "-"
