"""Extensions of the methods of RL Zoo's ``ExperimentManager`` that tune hyperparameters."""

import hashlib
import os
import socket
import time
from collections.abc import Callable, Mapping
from contextlib import closing
from functools import wraps
from pathlib import Path
from pydoc import locate
from typing import Any

import optuna
from optuna.storages import JournalStorage
from optuna.storages.journal import JournalFileBackend
from optuna.trial import TrialState

from sb3_cesd.checkpoints import ResumableCheckpoint
from sb3_cesd.common.files import with_suffix
from sb3_cesd.common.merging import merge
from sb3_cesd.common.rng import preserve_random_state
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.checks import check_constructor_arguments
from sb3_cesd.skill_ddpg.estimate import duration, n_updates_to_come, remaining_time
from sb3_cesd.skill_ddpg.saved_files import read_saved_data
from sb3_cesd.skill_ddpg.search_space import Params
from sb3_cesd.zoo.experiment import going_on, warn_of_unused_reward
from sb3_cesd.zoo.given import NESTED
from sb3_cesd.zoo.nested import has, import_names, leaves
from sb3_cesd.zoo.same_space import check_search_space
from sb3_cesd.zoo.search import ARGUMENTS, NAMES, NOT_KEPT, OF_ENTRY, PROCESS, Corner, SearchSpace, SearchTrial
from sb3_cesd.zoo.without_fixed import of_policy, tell_what_is_kept, without_fixed

#: Environment steps and updates that are measured for the estimate
N_STEPS, N_UPDATES = 100, 3


def space_of(manager: Any) -> SearchSpace:
    """
    Return the search space of a study.

    :param manager: RL Zoo's ``ExperimentManager``, after it has read the hyperparameters
    :return: the search space
    """
    entry = manager._hyperparams
    # As RL Zoo converts them, but without the arguments of the entry beside nested ones
    given = {
        name: value if name in NESTED else entry.get(name, value) for name, value in (manager.custom_hyperparams or {}).items()
    }
    if manager.trained_agent:
        entry = {**entry, "ent_coef": read_saved_data(manager.trained_agent)["ent_coef"]}
    is_task = entry.get("reward") == "extrinsic"
    return SearchSpace(METHODS[manager.algo], entry, given, is_task, is_pretrained=bool(manager.trained_agent))


def run_of(manager: Any) -> Params:
    """
    Return the conditions under which the trials of a study are compared, apart from its search space.

    :param manager: RL Zoo's ``ExperimentManager``, after it has read the hyperparameters
    :return: environments and evaluations, steps, and a hash of the pre-trained model, whose folder may be moved
    """
    agent = manager.trained_agent
    return {
        **manager.settings_of_env,
        "eval_env_kwargs": manager.eval_env_kwargs,
        "n_eval_episodes": manager.n_eval_episodes,
        "n_evaluations": manager.n_evaluations,
        "env": manager.env_name.gym_id,
        "env_kwargs": manager.env_kwargs,
        "n_timesteps": manager.n_timesteps,
        "trained_agent": hashlib.sha256(with_suffix(agent, ".zip").read_bytes()).hexdigest() if agent else None,
    }


def search_by_settings(objective: Any) -> Any:
    """
    Make a trial search only what the settings leave open.

    :param objective: ``ExperimentManager.objective``
    :return: the extended method
    """

    @wraps(objective)
    def judge(self: Any, trial: Any) -> float:
        return objective(self, SearchTrial(trial, space_of(self)) if self.algo in METHODS else trial)

    return judge


def start_study(algos: dict[str, Any]) -> Callable[[Any], Any]:
    """
    Make a study print its search space and the time of a trial and, with ``-i``, start each trial from the pre-trained model.
    Trials are never resumed, so they write no checkpoints.

    :param algos: RL Zoo's algorithms by name
    :return: function that extends ``ExperimentManager.hyperparameters_optimization``
    """

    def extend(optimize: Any) -> Any:
        @wraps(optimize)
        def optimize_methods(self: Any) -> None:
            method, load = algos[self.algo], None
            if self.algo not in METHODS:
                return optimize(self)
            check_constructor_arguments(method, self._hyperparams)
            if self.trained_agent:
                given = self.custom_hyperparams or {}
                tell_what_is_kept(method, self.trained_agent, self._hyperparams, given)
                load = make_loader(method, self.trained_agent, given)
                algos[self.algo] = in_trials(load, self.trained_agent)
            self.specified_callbacks = without_checkpoints(self.specified_callbacks)
            create_study = optuna.create_study
            optuna.create_study = begin_with_entry(create_study, space_of(self), run_of(self))
            try:
                describe(self, load or method)
                return optimize(self)
            finally:
                algos[self.algo] = method
                optuna.create_study = create_study

        return optimize_methods

    return extend


def without_checkpoints(callbacks: Any) -> list[Any]:
    """
    Remove :class:`~sb3_cesd.checkpoints.ResumableCheckpoint` from callbacks.

    :param callbacks: callbacks as in a yml file: one or a list, by name, by name with arguments, or as objects
    :return: a list of all others
    """
    kept = []
    for callback in callbacks if isinstance(callbacks, list) else [callbacks]:
        name = next(iter(callback)) if isinstance(callback, dict) else callback
        found = locate(name) if isinstance(name, str) else type(name)
        if callback is not None and not (isinstance(found, type) and issubclass(found, ResumableCheckpoint)):
            kept.append(callback)
    return kept


def begin_with_entry(
    create_study: Callable[..., optuna.Study], space: SearchSpace, run: Params | None = None
) -> Callable[..., optuna.Study]:
    """
    Make a study begin with the unchanged entry, so that it can't end with anything worse and the sampler has a starting point.
    A study can only be continued with the same settings.

    :param create_study: Optuna's ``create_study``
    :param space: the search space
    :param run: conditions under which trials are compared, such as the environment
    :return: the extended function
    """

    @wraps(create_study)
    def create(*args: Any, **kwargs: Any) -> optuna.Study:
        study = create_study(*args, **kwargs)
        check_search_space(study, space, run)
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


def make_loader(method: type[SkillDDPG], path: str, given: Params) -> Callable[..., SkillDDPG]:
    """
    Make the function that trials call instead of the constructor to start from a saved model.

    :param method: class of the method
    :param path: path of the model
    :param given: arguments from ``-params``
    :return: a function of the arguments of the constructor, which ignores those that shape networks unless they are given
    """

    def load(policy: Any = None, policy_kwargs: Any = None, **kwargs: Any) -> SkillDDPG:
        return method.load(path, **without_fixed(method, kwargs, given), **of_policy(given))

    return load


def in_trials(load: Callable[..., SkillDDPG], path: str) -> Callable[..., Any]:
    """
    Make trials learn as a training with ``-i`` does: with the replay buffer beside the model, and counting on from its steps.

    :param load: loads the model, with arguments of the constructor
    :param path: path of the model
    :return: function of the same arguments that returns what RL Zoo needs of a model
    """

    def make(**kwargs: Any) -> Any:
        model = load(**kwargs)
        if (buffer := Path(path).parent / "replay_buffer.pkl").is_file():
            model.load_replay_buffer(buffer)
        return going_on(model)

    return make


def describe(manager: Any, make: Callable[..., SkillDDPG]) -> None:
    """
    Print what a study searches, and about how long a trial takes, without changing the random numbers of its trials.

    :param manager: RL Zoo's ``ExperimentManager``
    :param make: creates a model
    """
    space = space_of(manager)
    is_task = manager._hyperparams.get("reward") == "extrinsic"
    if manager.trained_agent:
        warn_of_unused_reward(manager)
    corner = Corner(largest=True)
    space.draw(corner)
    print(f"Objective: {'the mean reward of the task' if is_task else 'skill_score, a measure of the skills'}")
    print(f"Searched: {', '.join(corner.names) or 'nothing, all is fixed'}")
    print("The first trial of a new study trains with the given hyperparameters, unchanged")
    if space.given:
        print(f"Not searched, since -params sets it: {', '.join('.'.join(path) for path in leaves(space.given))}")
    with preserve_random_state():
        times = [trial_time(manager, make, space.draw(Corner(largest))) for largest in (False, True)]
    known = [each for each in times if each is not None]
    if known:
        first, last = min(known), max(known)
        print(
            f"Estimated time of a trial on this machine, without evaluations: {duration(first)} to {duration(last)} "
            f"({manager.n_timesteps:,} steps, measured over {N_UPDATES} updates with the smallest and the largest draws). "
            "Fewer steps (-n) or smaller settings (-params, --conf-file) make it shorter."
        )


def trial_time(manager: Any, make: Callable[..., SkillDDPG], arguments: dict[str, Any]) -> float | None:
    """
    Estimate the time of a trial.

    :param manager: RL Zoo's ``ExperimentManager``
    :param make: creates a model
    :param arguments: drawn arguments
    :return: time [s]; ``None`` if the number of updates depends on the length of episodes
    """
    kwargs = {**manager._hyperparams, **arguments}
    n_steps = max(N_STEPS, 2 * manager.n_envs)
    with closing(manager.create_envs(manager.n_envs, no_log=True)) as env:
        short = {"learning_starts": n_steps, "buffer_size": 10 * n_steps, "warm_up": "random"}
        # Without a seed, as trials: it would seed the generators of all devices
        model = make(env=env, seed=None, verbose=0, device=manager.device, **{**kwargs, **short})
        start = time.perf_counter()
        model.learn(n_steps)
        step_time = (time.perf_counter() - start) / n_steps
        model.train(1, model.batch_size)
        start = time.perf_counter()
        model.train(N_UPDATES, model.batch_size)
        update_time = (time.perf_counter() - start) / N_UPDATES
    model._total_timesteps, model.num_timesteps = manager.n_timesteps, 0
    model.learning_starts = min(kwargs.get("learning_starts", n_steps), manager.n_timesteps)
    n_updates = n_updates_to_come(model)
    if n_updates is None:
        return None
    step_time += update_time * n_updates / manager.n_timesteps
    phases = [phase for phase in model.cost_phases() if 0 < phase.start < manager.n_timesteps]
    return remaining_time(0, manager.n_timesteps, step_time, phases)


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
