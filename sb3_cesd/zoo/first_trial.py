"""The first trial of a study, which trains with the unchanged entry."""

import os
import socket
from collections.abc import Callable
from functools import wraps
from typing import Any

import optuna
from optuna.trial import TrialState

from sb3_cesd.skill_ddpg.search_space import Params
from sb3_cesd.zoo.same_space import check_search_space
from sb3_cesd.zoo.search import OF_ENTRY, PROCESS, SearchSpace
from sb3_cesd.zoo.study_skill import share_skill


def begin_with_entry(
    create_study: Callable[..., optuna.Study], space: SearchSpace, run: Params | None = None, skill: int | None = None
) -> Callable[..., optuna.Study]:
    """
    Make a study begin with the unchanged entry, so that it can't end with anything worse and the sampler has a starting point.
    A study can only be continued with the same settings.

    :param create_study: Optuna's ``create_study``
    :param space: the search space
    :param run: conditions under which trials are compared, such as the environment
    :param skill: skill that the trials of a new study fine-tune; ``None`` if they share none
    :return: the extended function
    """

    @wraps(create_study)
    def create(*args: Any, **kwargs: Any) -> optuna.Study:
        study = create_study(*args, **kwargs)
        check_search_space(study, space, run)
        if skill is not None:
            share_skill(study, skill)
        if lacks_entry(study):
            # Without skip_if_exists, which would also skip it after a failed trial of the same draws
            study.enqueue_trial(space.entry_draws, user_attrs={OF_ENTRY: True})
        return study

    return create


def lacks_entry(study: optuna.Study) -> bool:
    """
    Check whether a study needs a trial of the entry.

    :param study: the study
    :return: whether it has no trials of the entry but those that were stopped, killed or failed
    """
    return all(is_lost(trial) for trial in study.trials if trial.user_attrs.get(OF_ENTRY))


def is_lost(trial: Any) -> bool:
    """
    Check whether a trial has ended without a score.

    :param trial: Optuna trial
    :return: whether it was stopped, failed, or runs in a process of this machine that has ended
    """
    if trial.state == TrialState.RUNNING:
        host, pid = trial.user_attrs.get(PROCESS, (None, 0))
        return host == socket.gethostname() and has_ended(pid)
    # RL Zoo also prunes trials that fail
    return trial.state == TrialState.FAIL or (trial.state == TrialState.PRUNED and not trial.intermediate_values)


def has_ended(pid: int) -> bool:
    """
    Check whether a process has ended.

    :param pid: id of a process of this machine
    :return: whether there is none with this id; always ``False`` on Windows, where looking would end it
    """
    if os.name != "posix":
        return False
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    except PermissionError:
        pass
    return False
