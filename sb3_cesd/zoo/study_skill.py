"""The skill that all trials of a study fine-tune."""

from typing import Any

import optuna

from sb3_cesd.skill_ddpg.finetuning import draw_skill
from sb3_cesd.skill_ddpg.saved_files import read_saved_data
from sb3_cesd.skill_ddpg.search_space import Params
from sb3_cesd.zoo.pretrained import begins_task

#: User attribute of a study: index of the skill that its trials fine-tune
STUDY_SKILL = "fine_tuned_skill"


def draw_study_skill(manager: Any) -> int | None:
    """
    Draw a skill for all trials of a study, as a training with the same ``--seed`` draws it.

    :param manager: RL Zoo's ``ExperimentManager``, after it has read the hyperparameters
    :return: index of the skill; ``None`` if the study does not fine-tune a random skill
    """
    agent, skill = manager.trained_agent, manager._hyperparams.get("skill", "random")
    is_random = isinstance(skill, str) and skill == "random"
    if not (agent and is_random and begins_task(agent, manager._hyperparams)):
        return None
    return draw_skill(read_saved_data(agent)["n_skills"], manager.seed)


def share_skill(study: optuna.Study, drawn: int) -> None:
    """
    Store the skill of a new study, and print that of a new or a continued one.

    :param study: the study
    :param drawn: the skill of a new study
    """
    if STUDY_SKILL not in study.user_attrs:
        study.set_user_attr(STUDY_SKILL, drawn)
    print(f"All trials fine-tune skill {study.user_attrs[STUDY_SKILL]}. To choose another one, pass it with -params skill:...")


def skill_of(study: optuna.Study) -> Params:
    """
    Return the skill of a study, which another process may have begun.

    :param study: the study
    :return: the argument ``skill``; nothing if trials do not share one
    """
    attributes = study.user_attrs
    return {"skill": attributes[STUDY_SKILL]} if STUDY_SKILL in attributes else {}
