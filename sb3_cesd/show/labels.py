"""Names of skills, and tables of what they do."""

import re
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from sb3_cesd.common.skills import SkillName, SkillSpace

if TYPE_CHECKING:
    from sb3_cesd.show.play import SkillRollout

#: Longest vector that is written out
LONGEST = 2
#: What metrics mean; N stands for a number in the name
MEANINGS = {
    "knn_accuracy": "share of states whose observation identifies the skill",
    "knn_accuracy_standardized": "the same, each entry divided by its standard deviation",
    "knn_accuracy_places": "share of states whose position identifies the skill",
    "policy_coverage": "share of a maze, or number of bins of 1 m (arm: 0.1 m), that these rollouts visit",
    "policy_coverage_N": "number of bins of 1 m on N trajectories without noise",
    "goal_hit_N": "share of the goals that were within N m at some step",
    "goal_end_N": "share of the goals that were within N m at the end",
    "goal_stay_N": "share of the steps within N m of the goal",
    "goal_distance": "to the goal at the end, mean over goals [m]",
    "mutual_information": "of position and skill [nats], at most log(n_skills)",
    "particle_entropy": "spread of observations, from the distances to the nearest ones",
    "moving_share": "share of the skills that move",
    "torso_speed": "of the torso, median over skills [m/s]",
    "hand_speed": "of the hand, median over skills [m/s]",
    "on_cluster_share": "share of states in the cluster of their skill",
    "cluster_size_entropy": "of the sizes of the clusters [nats], at most log(n_skills)",
    "mean_return": "sum of the rewards of the environment until the end of an episode or of the recording",
    "mean_length": "steps until the end of an episode or of the recording",
}
#: Metrics that are 1 / n_skills if all skills do the same
ONE_OF_N = ("knn_accuracy", "knn_accuracy_standardized", "knn_accuracy_places", "on_cluster_share")


def name_label(skill: SkillName, skill_space: SkillSpace) -> str:
    """
    Name a skill.

    :param skill: its index or vector
    :param skill_space: space of the skills
    :return: its index; of a continuous skill its vector, e.g. ``"(0.71, -0.71)"``, unless that is long
    """
    if np.ndim(skill) == 0:
        if skill_space.discrete or skill_space.dim > LONGEST:
            return str(skill)
        skill = skill_space.vectors[int(skill)]  # type: ignore[arg-type]
    # Adding zero turns -0.00 into 0.00
    numbers = [f"{round(float(value), 2) + 0.0:.2f}" for value in skill[:LONGEST]]  # type: ignore[index]
    return f"({', '.join([*numbers, *(['…'] if len(skill) > LONGEST else [])])})"  # type: ignore[arg-type]


def by_chance(metrics: Mapping[str, float], n_skills: int) -> dict[str, float]:
    """Return what metrics would be if all skills did the same, as far as this is known."""
    known = {**dict.fromkeys(ONE_OF_N, 1 / n_skills), "mutual_information": 0.0}
    return {name: known[name] for name in metrics if name in known}


def metric_rows(columns: Mapping[str, Mapping[str, float]]) -> list[list[str]]:
    """
    Tabulate metrics.

    :param columns: title of a column -> metrics by name
    :return: a header, and a row per metric, which ends in its meaning
    """
    rows = [["metric", *columns, "meaning"]]
    for name in dict.fromkeys(name for metrics in columns.values() for name in metrics):
        cells = [f"{metrics[name]:.3f}" if name in metrics else "-" for metrics in columns.values()]
        prefix, _, number = name.rpartition("_")
        meaning = MEANINGS.get(name) or re.sub(r"\bN\b", number, MEANINGS.get(f"{prefix}_N", ""))
        rows.append([name, *cells, meaning])
    return rows


def skill_rows(rollouts: Sequence["SkillRollout"]) -> list[list[str]]:
    """
    Describe what skills do.

    :param rollouts: one per skill
    :return: a header and a row per skill: return, number of steps, and for a robot how far it moved and its mean height
    """
    paths = [rollout.positions for rollout in rollouts if rollout.positions is not None]
    has_height = any(path[:, 2].any() for path in paths)
    unit = " [m]" if has_height else ""
    moved = [f"moved x{unit}", f"moved y{unit}"] if paths else []
    rows = [["skill", "return", "steps", *moved, *(["mean z [m]"] if has_height else [])]]
    for rollout in rollouts:
        row = [rollout.label, f"{rollout.episode_return:.1f}", f"{rollout.n_steps}"]
        if rollout.positions is not None:
            row += [f"{value:.2f}" for value in (rollout.positions[-1] - rollout.positions[0])[:2]]
            row += [f"{rollout.positions[:, 2].mean():.2f}"] if has_height else []
        rows.append(row)
    return rows


def aligned(rows: Sequence[Sequence[str]], n_texts: int = 0) -> str:
    """Format a table for a terminal; the last ``n_texts`` columns are aligned at the left."""
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    sides = [">"] * (len(widths) - n_texts) + ["<"] * n_texts
    lines = ("  ".join(f"{text:{side}{width}}" for text, side, width in zip(row, sides, widths, strict=True)) for row in rows)
    return "\n".join(line.rstrip() for line in lines)
