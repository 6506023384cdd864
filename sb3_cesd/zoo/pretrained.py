"""The model that ``-i`` names, before it is loaded."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sb3_cesd.skill_ddpg.saved_files import read_saved_data

#: Name that RL Zoo gives to the replay buffer beside a model
BUFFER = "replay_buffer.pkl"


def begins_task(agent: str, hyperparams: Mapping[str, Any]) -> bool:
    """
    Check whether a task begins with the skills of a model.

    :param agent: path of the model
    :param hyperparams: hyperparameters from the entry and ``-params``
    :return: whether the model discovered skills, and a task is to be learned
    """
    is_of_skills = read_saved_data(agent).get("reward", "intrinsic") == "intrinsic"
    return is_of_skills and hyperparams.get("reward") == "extrinsic"


def has_buffer(agent: str) -> bool:
    """
    Check whether RL Zoo finds the replay buffer of a model.

    :param agent: path of the model; empty for none
    :return: whether it lies beside the model
    """
    return bool(agent) and buffer_beside(agent).is_file()


def buffer_beside(agent: str) -> Path:
    """
    Return where RL Zoo looks for the replay buffer of a model.

    :param agent: path of the model
    :return: path of the replay buffer
    """
    return Path(agent).parent / BUFFER
