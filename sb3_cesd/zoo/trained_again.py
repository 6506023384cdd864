"""``--trial-id`` trains with the arguments of a trial."""

import json
import warnings
from collections.abc import Collection
from functools import wraps
from pathlib import Path
from typing import Any

import optuna

from sb3_cesd.common.merging import merge
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import Params
from sb3_cesd.zoo.given import added
from sb3_cesd.zoo.nested import has, import_names, leaves, only_json
from sb3_cesd.zoo.same_run import OF_NOISE
from sb3_cesd.zoo.same_space import RUN, SEARCH_SPACE
from sb3_cesd.zoo.search import ARGUMENTS, NAMES, NOT_KEPT
from sb3_cesd.zoo.storage import LOG, open_storage


def load_arguments(load_trial: Any) -> Any:
    """
    Make ``--trial-id`` train with all arguments of a trial, including those that ``-params`` gave in its study.

    :param load_trial: ``ExperimentManager.load_trial``
    :return: the extended method
    """

    @wraps(load_trial)
    def load(self: Any, storage: str, study_name: str, trial_id: int | None = None, convert: bool = True) -> dict[str, Any]:
        if self.algo not in METHODS or not convert:
            return load_trial(self, storage, study_name, trial_id, convert)
        study = find_study(study_name, storage)
        check_method(study, METHODS[self.algo])
        trial = study.best_trial if trial_id is None else find_trial(study, trial_id)
        if ARGUMENTS not in trial.user_attrs:
            return load_trial(self, storage, study_name, trial_id, convert)
        arguments = arguments_of(trial, self.custom_hyperparams or {})
        self.search_of_trial, self.arguments_of_trial = study.user_attrs.get(SEARCH_SPACE), set(arguments)
        # In RL Zoo, -params replaces dictionaries as a whole. What the trial did not draw is that of the entry
        kept = {**getattr(self, "nested_of_entry", {}), **arguments}
        for name, value in (self.custom_hyperparams or {}).items():
            self.custom_hyperparams[name] = added(METHODS[self.algo], kept.get(name), value)
        return arguments

    return load


def compare_settings(preprocess: Any) -> Any:
    """
    Make ``--trial-id`` warn if settings that a trial did not keep, such as the number of environments, are not those of its
    study.

    :param preprocess: ``ExperimentManager._preprocess_hyperparams``
    :return: the extended method
    """

    @wraps(preprocess)
    def preprocess_compared(self: Any, hyperparams: dict[str, Any]) -> Any:
        result = preprocess(self, hyperparams)
        search = getattr(self, "search_of_trial", None)
        if search is not None:
            now = {**result[0], **self.settings_of_env, "env": self.env_name.gym_id, "env_kwargs": self.env_kwargs}
            begun = {**search["entry"], **{name: search[RUN].get(name) for name in now if name in search[RUN]}}
            known = {*self.arguments_of_trial, *(self.custom_hyperparams or {}), *OF_NOISE}
            if self.trained_agent:
                known.add("ent_coef")  # that of the model
            changed = other_settings(begun, now, known)
            if changed:
                warnings.warn(
                    f"The trial was trained with other settings ({', '.join(changed)}): to train as it did, pass --env, "
                    "--conf-file and --env-kwargs as in its study."
                )
        return result

    return preprocess_compared


def other_settings(begun: Params, now: Params, known: Collection[str]) -> list[str]:
    """
    Find the settings of a study that are not those of a training.

    :param begun: settings of the study, in JSON types
    :param now: those of the training
    :param known: names of those that need not be compared
    :return: the settings that differ, as in ``"n_envs: 8, now 1"``, sorted
    """
    now = json.loads(json.dumps(only_json(now)))
    names = sorted({*begun, *now} - set(known))
    return [f"{name}: {begun.get(name)}, now {now.get(name)}" for name in names if begun.get(name) != now.get(name)]


def find_study(name: str, storage: str) -> optuna.Study:
    """
    Load a study.

    :param name: its name
    :param storage: see :func:`~sb3_cesd.zoo.storage.open_storage`
    :return: the study
    :raises ValueError: if there is none
    """
    if storage.endswith(LOG) and not Path(storage).is_file():
        raise ValueError(f"There is no {storage}: pass the --storage of the study.")
    try:
        return optuna.load_study(study_name=name, storage=open_storage(storage))
    except KeyError:
        known = ", ".join(optuna.get_all_study_names(open_storage(storage)))
        raise ValueError(f"{storage} has no study {name!r}, but {known or 'none'}: correct --study-name.") from None


def check_method(study: optuna.Study, method: type[SkillDDPG]) -> None:
    """
    Check that a study is of a method.

    :param study: the study
    :param method: class of the method
    :raises ValueError: if it is of another one
    """
    begun = study.user_attrs.get(SEARCH_SPACE, {}).get("of", {}).get("method", method.__name__)
    if begun != method.__name__:
        raise ValueError(
            f"The study {study.study_name!r} is of {begun}, not of {method.__name__}: pass --algo {begun.lower()}."
        )


def find_trial(study: optuna.Study, number: int) -> Any:
    """
    Find a trial.

    :param study: its study
    :param number: its number
    :return: the trial
    :raises ValueError: if there is none
    """
    n_trials = len(study.trials)
    if not 0 <= number < n_trials:
        raise ValueError(f"The study has {n_trials} trials, counted from 0, but --trial-id is {number}: choose one of them.")
    return study.trials[number]


def arguments_of(trial: Any, given: Params) -> Params:
    """
    Return the arguments that a trial was trained with.

    :param trial: Optuna trial
    :param given: arguments that the user passes now
    :return: arguments by name, without those that the study could not store and the user passes
    :raises ValueError: if the user does not pass one of the latter
    """
    names = trial.user_attrs.get(NAMES, {})
    found = import_names(names)
    paths = [*(path for path in leaves(names) if not has(found, path)), *map(tuple, trial.user_attrs.get(NOT_KEPT, []))]
    missing = [".".join(path) for path in paths if not has(given, path)]
    if missing:
        raise ValueError(
            f"Trial {trial.number} was trained with {', '.join(missing)}, which its study could not store: pass it again with "
            "-params."
        )
    # RL Zoo only accepts a policy by its name
    return merge(trial.user_attrs[ARGUMENTS], {**found, **{name: names[name] for name in ("policy",) if name in names}})
