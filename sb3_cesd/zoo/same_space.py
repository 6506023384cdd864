"""Check that a continued study has the same search space, since Optuna requires the same choices throughout."""

import json
from typing import Any

import optuna

from sb3_cesd.skill_ddpg.search_space import Params
from sb3_cesd.zoo.nested import leaves, only_json, only_names
from sb3_cesd.zoo.search import SearchSpace

#: User attribute of a study: what it searches
SEARCH_SPACE = "search_space"
#: Group of the conditions under which trials are compared, apart from the search space
RUN = "run"
#: Group of the classes and functions among the settings, by name
CLASSES = "classes"
#: How many settings a message names
N_NAMED = 6


def check_search_space(study: optuna.Study, space: SearchSpace, run: Params | None = None) -> None:
    """
    Store the search space of a new study, and compare with it when the study is continued.

    :param study: the study
    :param space: the search space
    :param run: conditions under which trials are compared, such as the environment
    :raises ValueError: if the study began with other settings, or something else began it
    """
    # Read first: a process that begins the study at the same time stores its search space before it adds trials
    has_trials = bool(study.trials)
    begun, now = study.user_attrs.get(SEARCH_SPACE), description(space, run)
    if begun is None and has_trials:
        raise ValueError(
            f"The study {study.study_name!r} has trials of another algorithm or program: begin another one with --study-name."
        )
    if begun is None:
        study.set_user_attr(SEARCH_SPACE, now)
        return
    changed = differences(begun, now)
    if changed:
        names = ", ".join(changed[:N_NAMED]) + (", ..." if len(changed) > N_NAMED else "")
        raise ValueError(
            f"The study {study.study_name!r} began with other settings ({names}): begin another one with --study-name, or "
            "go on with the same --env, -n, --conf-file, -params and -i, and the same evaluations."
        )


def description(space: SearchSpace, run: Params | None = None) -> dict[str, Any]:
    """
    Describe a search space.

    :param space: the search space
    :param run: conditions under which trials are compared, such as the environment
    :return: all that its choices and scores depend on, in JSON types
    """
    groups = {"entry": space.entry, "given": space.given, "limits": space.limits, "fixed": space.fixed}
    of = {"method": space.method.__name__, "task": space.is_for_task}
    described = {"of": of, RUN: run or {}, CLASSES: only_names(space.entry), **groups}
    return json.loads(json.dumps(only_json(described)))


def differences(begun: dict[str, Any], now: dict[str, Any]) -> list[str]:
    """
    Find the settings in which two search spaces differ.

    :param begun: description of one
    :param now: description of the other
    :return: their names, as in ``intrinsic_kwargs.k``, sorted
    """
    missing = object()
    first, second = leaves(begun), leaves(now)
    changed = (path for path in {**first, **second} if first.get(path, missing) != second.get(path, missing))
    return sorted({".".join(path[1:]) for path in changed})
