"""Patches of RL Zoo's modules, since RL Zoo has no plugin hook."""

import sys
from collections.abc import Callable
from importlib import import_module
from typing import Any

import huggingface_sb3
from huggingface_hub import HfApi, repocard

from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.zoo import (
    evaluation,
    experiment,
    given,
    hub,
    normalization,
    same_run,
    studies,
    trained_again,
    without_fixed,
)
from sb3_cesd.zoo.playing import PlayedModel
from sb3_cesd.zoo.search import SearchTrial


def register() -> None:
    """
    Add the methods to RL Zoo, as the start-up hook does automatically. Calling this again is harmless.

    It imports the modules to extend, and skips a module that is still being imported.
    """
    for name in PATCHES:
        module = sys.modules.get(name) or import_module(name)
        # A module that is still being imported lacks the functions to extend
        if not getattr(module.__spec__, "_initializing", False):
            extend(module)


def extend(module: Any) -> None:
    """
    Apply the patch of a module of RL Zoo, once.

    :param module: a module after its import; one that is not in :data:`PATCHES` is left alone
    """
    if module.__name__ in PATCHES:
        PATCHES[module.__name__](module)


def add_methods(utils: Any) -> None:
    """
    Add the methods to the choices of ``--algo``, and show which skill acts when a model is played.

    :param utils: ``rl_zoo3.utils``
    """
    utils.ALGOS.update(METHODS)
    played = PlayedModel()
    replace(utils, "get_model_path", played.note_path)
    replace(utils, "create_test_env", played.add_skills)
    # Without the start-up hook, RL Zoo has imported the function already, from where enjoy takes it
    for name in ("rl_zoo3", "rl_zoo3.enjoy"):
        if hasattr(module := sys.modules.get(name), "create_test_env"):
            module.create_test_env = utils.create_test_env  # type: ignore[union-attr]
    extend_hub(import_module("huggingface_sb3.push_to_hub"))


def extend_hub(push_to_hub: Any) -> None:
    """
    Extend RL Zoo's ``push_to_hub`` and ``load_from_hub`` through the functions that they import: run by ``python -m``, they
    are not modules that could be extended. Functions that another version lacks are skipped.

    :param push_to_hub: ``huggingface_sb3.push_to_hub``
    """
    if not hasattr(push_to_hub, "generate_metadata") and hasattr(push_to_hub, "_generate_metadata"):
        push_to_hub.generate_metadata = hub.make_generate_metadata(push_to_hub._generate_metadata)
    pushed = hub.PushedSkills()
    for owner, name, extended in (
        (push_to_hub, "_evaluate_agent", pushed.evaluate_each),
        (push_to_hub, "_generate_replay", pushed.film_later),
        (repocard, "metadata_save", pushed.complete_card),
        (HfApi, "upload_folder", pushed.delete_earlier),
        (huggingface_sb3, "load_from_hub", hub.raise_as_requests),
    ):
        if hasattr(owner, name):
            replace(owner, name, extended)


def add_search_spaces(hyperparams_opt: Any) -> None:
    """
    Add the search spaces of the methods, for ``-optimize`` and ``--trial-id``.

    :param hyperparams_opt: ``rl_zoo3.hyperparams_opt``
    """
    for name, method in METHODS.items():
        hyperparams_opt.HYPERPARAMS_SAMPLER[name] = make_sampler(method)
        hyperparams_opt.HYPERPARAMS_CONVERTER[name] = method.convert_hyperparams


def make_sampler(method: type[SkillDDPG]) -> Callable[..., dict[str, Any]]:
    """
    Wrap a search space in the signature that RL Zoo expects.

    :param method: class of the method
    :return: a function of the Optuna trial (and three unused arguments) that returns arguments of the constructor
    """

    def sample(trial: Any, n_actions: int, n_envs: int, additional_args: dict[str, Any]) -> dict[str, Any]:
        return trial.draw() if isinstance(trial, SearchTrial) else method.convert_hyperparams(method.draw_hyperparams(trial))

    return sample


def extend_experiments(exp_manager: Any) -> None:
    """
    Extend experiments: find our hyperparameters, add those of ``-params`` to nested ones, step environments in batches,
    evaluate in the same environment, normalise a task like its pre-training, continue from loaded models, and evaluate skills
    by the skill score.

    :param exp_manager: ``rl_zoo3.exp_manager``
    """
    manager = exp_manager.ExperimentManager
    replace(manager, "__init__", experiment.find_entries)
    replace(manager, "read_hyperparameters", given.add_to_entry)
    replace(
        manager,
        "_preprocess_hyperparams",
        lambda preprocess: trained_again.compare_settings(
            experiment.keep_settings_of_env(experiment.evaluate_in_same_env(experiment.take_batched(preprocess)))
        ),
    )
    replace(manager, "_maybe_normalize", normalization.find_pretrained_statistics)
    replace(
        manager,
        "_save_config",
        lambda save_config: same_run.keep_config(without_fixed.keep_values(normalization.save_normalize(save_config))),
    )
    replace(manager, "_load_pretrained_agent", experiment.resume_checkpoint(exp_manager.ALGOS))
    replace(manager, "learn", experiment.go_on)
    replace(manager, "objective", studies.search_by_settings)
    replace(manager, "hyperparameters_optimization", studies.start_study(exp_manager.ALGOS))
    replace(manager, "load_trial", trained_again.load_arguments)
    replace(manager, "save_trained_model", normalization.save_model_whole)
    replace(exp_manager, "EvalCallback", lambda _: evaluation.ZooSkillEvalCallback)
    replace(exp_manager, "TrialEvalCallback", evaluation.judge_trials_by_skills)


def extend_callbacks(zoo_callbacks: Any) -> None:
    """
    Make the callback for statistics save those of methods whole.

    :param zoo_callbacks: ``rl_zoo3.callbacks``
    """
    replace(zoo_callbacks.SaveVecNormalizeCallback, "_on_step", normalization.save_step_whole)


def replace(owner: Any, name: str, extended: Callable[[Any], Any]) -> None:
    """
    Replace a function or class by an extended one, unless it is already extended.

    :param owner: the module or class that has it
    :param name: its name
    :param extended: creates the extended one from the original
    """
    original = getattr(owner, name)
    if not hasattr(original, "extended_by_sb3_cesd"):
        replacement = extended(original)
        replacement.extended_by_sb3_cesd = True
        setattr(owner, name, replacement)


#: Patch of each module of RL Zoo
PATCHES: dict[str, Callable[[Any], None]] = {
    "rl_zoo3.utils": add_methods,
    "rl_zoo3.hyperparams_opt": add_search_spaces,
    "rl_zoo3.exp_manager": extend_experiments,
    "rl_zoo3.callbacks": extend_callbacks,
}
