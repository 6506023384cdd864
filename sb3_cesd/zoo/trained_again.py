"""``--trial-id`` trains with the arguments of a trial."""

from collections.abc import Mapping
from functools import wraps
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend

from sb3_cesd.common.merging import merge
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg.search_space import Params
from sb3_cesd.zoo.nested import has, import_names, leaves
from sb3_cesd.zoo.search import ARGUMENTS, NAMES, NOT_KEPT


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
        study = optuna.load_study(study_name=study_name, storage=open_storage(storage))
        trial = study.best_trial if trial_id is None else study.trials[trial_id]
        if ARGUMENTS not in trial.user_attrs:
            return load_trial(self, storage, study_name, trial_id, convert)
        arguments = arguments_of(trial, self.custom_hyperparams or {})
        # In RL Zoo, -params replaces dictionaries as a whole
        for name, value in (self.custom_hyperparams or {}).items():
            if isinstance(value, Mapping):
                self.custom_hyperparams[name] = merge(arguments.get(name) or {}, value)
        return arguments

    return load


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


def open_storage(storage: str) -> Any:
    """
    Open the storage of a study as RL Zoo does.

    :param storage: path that ends in ``.log``, or a URL
    :return: storage for Optuna
    """
    if not storage.endswith(".log"):
        return storage
    return JournalStorage(JournalFileBackend(storage))
