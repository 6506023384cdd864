"""Names of skills and meanings of metrics in pictures and tables."""

import math
import re
from collections.abc import Mapping, Sequence

import numpy as np

from sb3_cesd.common.skills import SkillName, SkillSpace

#: Longest vector that is written out
LONGEST = 2
#: Unit of coverage by kind of environment
MAZE, ARM, OTHER = "maze", "arm", "other"
COVERED = {MAZE: "share of the maze", ARM: "number of bins of 0.1 m", OTHER: "number of bins of 1 m"}
#: What metrics mean; N stands for a number in the name
MEANINGS = {
    "knn_accuracy": "share of states whose observation identifies the skill",
    "knn_accuracy_standardized": "the same, each entry divided by its standard deviation",
    "knn_accuracy_places": "share of states whose position identifies the skill",
    "policy_coverage": "{covered} that these rollouts visit",
    "policy_coverage_N": "number of bins of 1 m on {number} trajectories without noise",
    "total_coverage": "{covered} that all of training visited",
    "queue_coverage": "{covered} that the last 100,000 steps of training visited",
    "goal_hit_N": "share of the goals that were within {number} m at some step",
    "goal_end_N": "share of the goals that were within {number} m at the end",
    "goal_stay_N": "share of the steps within {number} m of the goal",
    "goal_distance": "to the goal at the end, mean over goals [m]",
    "mutual_information": "of position and skill [nats], at most log(n_skills) = {log_n:.2f}",
    "particle_entropy": "spread of observations, from the distances to the nearest ones",
    "moving_share": "share of the skills that move",
    "torso_speed": "of the torso, median over skills [m/s]",
    "hand_speed": "of the hand, median over skills [m/s]",
    "on_cluster_share": "share of states in the cluster of their skill",
    "cluster_size_entropy": "of the sizes of the clusters [nats], at most log(n_skills) = {log_n:.2f}",
    "mean_return": "sum of the rewards of the environment until the end of an episode or of the recording",
    "mean_length": "steps until the end of an episode or of the recording",
}
#: Metrics that are 1 / n_skills, or 0, if all skills do the same
ONE_OF_N = ("knn_accuracy", "knn_accuracy_standardized", "knn_accuracy_places", "on_cluster_share")
ZERO = ("mutual_information",)
#: Columns of metrics
TRAINED, UNTRAINED, CHANCE = "skills", "untrained", "chance"


def skill_labels(skill_space: SkillSpace) -> list[str]:
    """
    Name the skills that have an index.

    :param skill_space: space of the skills
    :return: their indices; for continuous skills with few dimensions their vectors, e.g. ``"(0.71, -0.71)"``
    """
    if skill_space.discrete or skill_space.dim > LONGEST:
        return [str(skill) for skill in range(skill_space.n_skills)]
    return [vector_label(vector) for vector in skill_space.vectors.tolist()]


def vector_label(vector: Sequence[float]) -> str:
    """
    Format the vector of a continuous skill.

    :param vector: its entries
    :return: the entries with two decimals, only the first few of a long vector
    """
    # Adding zero turns -0.00 into 0.00
    numbers = [f"{round(value, 2) + 0.0:.2f}" for value in vector[:LONGEST]]
    return f"({', '.join([*numbers, *(['…'] if len(vector) > LONGEST else [])])})"


def name_label(skill: SkillName, skill_space: SkillSpace) -> str:
    """
    Name a skill.

    :param skill: its index or vector
    :param skill_space: space of the skills
    :return: its name
    """
    if np.ndim(skill) == 0:
        return skill_labels(skill_space)[int(skill)]  # type: ignore[arg-type]
    return vector_label(list(skill))  # type: ignore[arg-type]


def by_chance(metrics: Mapping[str, float], n_skills: int) -> dict[str, float]:
    """
    Return what metrics would be if all skills did the same.

    :param metrics: metrics by name
    :param n_skills: number of skills
    :return: the metrics for which this is known
    """
    known = {**dict.fromkeys(ONE_OF_N, 1 / n_skills), **dict.fromkeys(ZERO, 0.0)}
    return {name: known[name] for name in metrics if name in known}


def meaning(name: str, n_skills: int, kind: str) -> str:
    """
    Explain a metric.

    :param name: its name
    :param n_skills: number of skills
    :param kind: kind of the environment, :data:`MAZE`, :data:`ARM` or :data:`OTHER`
    :return: a few words; empty for a metric without an explanation
    """
    numbered = re.fullmatch(r"(.+_)(\d+)", name)
    key, number = (f"{numbered[1]}N", numbered[2]) if numbered else (name, "")
    return MEANINGS.get(key, "").format(covered=COVERED[kind], log_n=math.log(n_skills), number=number)
