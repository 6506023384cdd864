"""What pictures and tables call skills."""

from sb3_cesd.common.skills import SkillSpace

#: Longest vector that is written out
LONGEST = 2


def skill_labels(skill_space: SkillSpace) -> list[str]:
    """
    Name the skills that an index stands for.

    :param skill_space: space of the skills
    :return: their indices; of continuous skills with few dimensions the vectors, e.g. ``"(0.71, -0.71)"``
    """
    if skill_space.discrete or skill_space.dim > LONGEST:
        return [str(skill) for skill in range(skill_space.n_skills)]
    # Adding zero makes -0.00 plain
    vectors = skill_space.vectors.round(2) + 0.0
    return [f"({', '.join(f'{value:.2f}' for value in vector)})" for vector in vectors]
