"""Extensions of the methods of RL Zoo's ``ExperimentManager`` that tune hyperparameters."""

import hashlib
from collections.abc import Callable
from functools import wraps
from pydoc import locate
from typing import Any

import optuna

from sb3_cesd.checkpoints import ResumableCheckpoint
from sb3_cesd.common.files import with_suffix
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.saved_files import read_saved_data
from sb3_cesd.skill_ddpg.search_space import Params
from sb3_cesd.zoo.experiment import going_on, warn_of_unused_reward
from sb3_cesd.zoo.first_trial import begin_with_entry
from sb3_cesd.zoo.given import NESTED
from sb3_cesd.zoo.nested import leaves
from sb3_cesd.zoo.pretrained import buffer_beside, has_buffer
from sb3_cesd.zoo.search import Corner, SearchSpace, SearchTrial
from sb3_cesd.zoo.storage import check_storage
from sb3_cesd.zoo.study_skill import draw_study_skill
from sb3_cesd.zoo.without_fixed import of_policy, tell_what_is_kept, without_fixed

#: Environment steps and updates that are measured for the estimate
N_STEPS, N_UPDATES = 100, 3
#: More steps than a rollout has
NEVER = 1_000_000_000


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
        entry = {**entry, "ent_coef": read_saved_data(manager.trained_agent).get("ent_coef")}
    is_task = entry.get("reward") == "extrinsic"
    is_normalized = bool(manager.normalize) and manager.normalize_kwargs.get("norm_obs", True)
    return SearchSpace(METHODS[manager.algo], entry, given, is_task, bool(manager.trained_agent), is_normalized)


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
        return objective(self, SearchTrial(trial, self.search_space) if self.algo in METHODS else trial)

    return judge


def start_study(algos: dict[str, Any]) -> Callable[[Any], Any]:
    """
    Make a study print its search space and the time of a trial and, with ``-i``, start each trial from the pre-trained model,
    for a task with the same skill. Trials are never resumed, so they write no checkpoints.

    :param algos: RL Zoo's algorithms by name
    :return: function that extends ``ExperimentManager.hyperparameters_optimization``
    """

    def extend(optimize: Any) -> Any:
        @wraps(optimize)
        def optimize_methods(self: Any) -> None:
            method, load = algos[self.algo], None
            if self.algo not in METHODS:
                return optimize(self)
            check_storage(self.storage)
            # Once, as it reads the model of -i
            self.search_space = space_of(self)
            if self.trained_agent:
                given = self.custom_hyperparams or {}
                tell_what_is_kept(method, self.trained_agent, self._hyperparams, given)
                load = make_loader(method, self.trained_agent, given)
                algos[self.algo] = in_trials(load, self.trained_agent)
            self.specified_callbacks = without_checkpoints(self.specified_callbacks)
            create_study = optuna.create_study
            optuna.create_study = begin_with_entry(create_study, self.search_space, run_of(self), draw_study_skill(self))
            try:
                describe(self, self.search_space, load or method)
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
        if has_buffer(path):
            model.load_replay_buffer(buffer_beside(path))
        return going_on(model)

    return make


def describe(manager: Any, space: SearchSpace, make: Callable[..., SkillDDPG]) -> None:
    """
    Print what a study searches, and about how long a trial takes, without changing the random numbers of its trials.

    :param manager: RL Zoo's ``ExperimentManager``
    :param space: the search space
    :param make: creates a model
    """
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
