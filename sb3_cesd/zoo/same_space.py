"""A study that goes on searches what it began with: Optuna draws from the same choices always."""

import json
from typing import Any

import optuna

from sb3_cesd.skill_ddpg.search_space import Params
from sb3_cesd.zoo.nested import LINEAR, leaves, only_json, only_names
from sb3_cesd.zoo.search import SearchSpace

#: User attribute of a study: what it searches
SEARCH_SPACE = "search_space"
#: Group of what trials are compared under, beside the search space
RUN = "run"
#: Group of the classes and functions among the settings, by name
CLASSES = "classes"
#: How many settings a message names
N_NAMED = 6


def check_search_space(study: optuna.Study, space: SearchSpace, run: Params | None = None) -> None:
    """
    Note what a new study searches, and compare with it when the study goes on. One of an earlier version has no such note,
    and goes on as it is.

    :param study: the study
    :param space: the search space
    :param run: what trials are compared under, such as the environment
    :raises ValueError: if the study began with other settings
    """
    begun, now = study.user_attrs.get(SEARCH_SPACE), description(space, run)
    if begun is None:
        if not study.trials:
            study.set_user_attr(SEARCH_SPACE, now)
        return
    changed = differences(begun, now)
    if changed:
        names = ", ".join(changed[:N_NAMED]) + (", ..." if len(changed) > N_NAMED else "")
        raise ValueError(
            f"The study {study.study_name!r} began with other settings ({names}): begin another one with --study-name, or "
            "go on with the same --env, -n, --conf-file, -params and -i."
        )


def description(space: SearchSpace, run: Params | None = None) -> dict[str, Any]:
    """
    Describe a search space.

    :param space: the search space
    :param run: what trials are compared under, such as the environment
    :return: all that its choices and scores depend on, as JSON has it
    """
    groups = {"entry": space.entry, "given": space.given, "limits": space.limits, "fixed": space.fixed}
    of = {"method": space.method.__name__, "task": space.is_for_task}
    described = {"of": of, RUN: run or {}, CLASSES: only_names(space.entry), **groups}
    return json.loads(json.dumps(only_json(described)))


def differences(begun: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """
    Find the settings in which two search spaces differ. What an earlier version did not note is not compared: the run,
    linear schedules, classes.

    :param begun: description of one
    :param now: description of the other
    :return: their names, as in ``intrinsic_kwargs.k``, sorted
    """
    missing = object()
    first, second = leaves(begun), leaves(now)
    unnoted = {path for path in second if path[0] in {RUN, CLASSES} - begun.keys()}
    if RUN not in begun:
        unnoted |= {path for path, value in second.items() if str(value).startswith(LINEAR)} - first.keys()
    second = {path: value for path, value in second.items() if path not in unnoted}
    changed = (path for path in {**first, **second} if first.get(path, missing) != second.get(path, missing))
    return sorted({".".join(path[1:]) for path in changed})
