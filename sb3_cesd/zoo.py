"""
CeSD in RL Zoo: its name, its hyperparameters, its search space. The only file that knows rl_zoo3.

RL Zoo calls nothing of this by itself: a start-up hook calls :func:`extend` for each of its modules right after their import.
Where packages are installed without such hooks (``pip install --target``, a folder on ``PYTHONPATH``), call :func:`register`.
"""

import inspect
import math
import sys
from collections.abc import Callable
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

from stable_baselines3.common.base_class import BaseAlgorithm

from sb3_cesd.cesd import CeSD
from sb3_cesd.envs import batch_envs

NET_ARCHS: dict[str, dict[str, list[int]]] = {
    "small": {"pi": [64, 64], "qf": [64, 64]},
    "medium": {"pi": [256, 256], "qf": [128, 256]},
    "big": {"pi": [1024, 1024], "qf": [512, 1024]},
}


class Algorithm(NamedTuple):
    """
    What RL Zoo has to know about an algorithm.

    :param model_class: the algorithm
    :param sample: draws hyperparameters from an Optuna trial
    :param convert: makes arguments of the constructor from what was drawn, by name of the draw
    """

    model_class: type[BaseAlgorithm]
    sample: Callable[[Any, int, int, dict[str, Any]], dict[str, Any]]
    convert: Callable[[dict[str, Any]], dict[str, Any]]


def register() -> None:
    """
    Make our algorithms known to RL Zoo. The start-up hook does so by itself; calling this again does no harm.

    What RL Zoo imported so far is extended now, the rest right after its import; so call it before ``rl_zoo3.train`` is
    imported or afterwards.
    """
    import _sb3_cesd_rl_zoo3

    for name in _sb3_cesd_rl_zoo3.PATCHED:
        module = sys.modules.get(name)
        # A module in the midst of its import lacks what is to be extended
        if module is not None and not getattr(module.__spec__, "_initializing", False):
            extend(module)


def extend(module: Any) -> None:
    """
    :param module: a module of rl_zoo3 whose import has ended; others than the three extended here are left alone, and so is
        one that is extended already
    """
    if module.__name__ == "rl_zoo3.utils":
        module.ALGOS.update({name: algorithm.model_class for name, algorithm in ALGORITHMS.items()})
    elif module.__name__ == "rl_zoo3.hyperparams_opt":
        module.HYPERPARAMS_SAMPLER.update({name: algorithm.sample for name, algorithm in ALGORITHMS.items()})
        module.HYPERPARAMS_CONVERTER.update({name: algorithm.convert for name, algorithm in ALGORITHMS.items()})
    elif module.__name__ == "rl_zoo3.exp_manager":
        if not hasattr(module.ExperimentManager.__init__, "finds_packaged_config"):
            module.ExperimentManager.__init__ = find_packaged_config(module.ExperimentManager.__init__)
        preprocess = module.ExperimentManager._preprocess_hyperparams
        if not hasattr(preprocess, "takes_batched"):
            module.ExperimentManager._preprocess_hyperparams = take_batched(preprocess)
        if not hasattr(module.TrialEvalCallback, "evaluates_every_skill"):
            module.TrialEvalCallback = evaluate_every_skill(module.TrialEvalCallback)


def hyperparams_folder() -> Path:
    """
    :return: the folder of the yml files, in the package or (editable install) in the repository
    """
    packaged = Path(__file__).parent / "hyperparams"
    return packaged if packaged.is_dir() else Path(__file__).parent.parent / "hyperparams"


def find_packaged_config(init: Any) -> Any:
    """
    Let RL Zoo find our hyperparameters: by the name of the algorithm, or by the bare name of one of our files (``--conf-file
    cesd_laptop.yml``) from any folder.

    :param init: ``ExperimentManager.__init__``
    :return: the same, and for our algorithms with our files
    """

    @wraps(init)
    def init_with_config(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        config = inspect.signature(init).bind(self, *args, **kwargs).arguments.get("config")
        if self.algo in ALGORITHMS:
            packaged = hyperparams_folder() / (config or f"{self.algo}.yml")
            if packaged.is_file() and not (config and Path(config).exists()):
                self.config = str(packaged)

    init_with_config.finds_packaged_config = True  # type: ignore[attr-defined]
    return init_with_config


def take_batched(preprocess: Any) -> Any:
    """
    Let RL Zoo step environments together, for training and evaluation: ``batched: True`` in a yml file, or ``-params
    batched:True``.

    :param preprocess: ``ExperimentManager._preprocess_hyperparams``
    :return: the same, and for hyperparameters with ``batched``
    """

    @wraps(preprocess)
    def preprocess_batched(self: Any, hyperparams: dict[str, Any]) -> Any:
        if hyperparams.pop("batched", False):
            self.vec_env_class = batch_envs
        return preprocess(self, hyperparams)

    preprocess_batched.takes_batched = True  # type: ignore[attr-defined]
    return preprocess_batched


def evaluate_every_skill(callback_class: Any) -> Any:
    """
    Make the objective of a trial the return averaged over all skills.

    Episode j of an evaluation follows skill j modulo ``n_skills``, so a multiple of ``n_skills`` episodes holds every skill
    as often, provided that the environments have an equal number of them (else one of them draws skills that don't count).

    :param callback_class: RL Zoo's ``TrialEvalCallback``
    :return: the same, with ``n_eval_episodes`` rounded up for models that have skills
    """

    class SkillTrialEvalCallback(callback_class):
        evaluates_every_skill = True

        def _init_callback(self) -> None:
            super()._init_callback()
            if hasattr(self.model, "n_skills"):
                self.n_eval_episodes += -self.n_eval_episodes % math.lcm(self.model.n_skills, self.eval_env.num_envs)

    return SkillTrialEvalCallback


def sample_cesd_params(trial: Any, n_actions: int, n_envs: int, additional_args: dict[str, Any]) -> dict[str, Any]:
    """
    Search space for CeSD.

    A trial replaces arguments as a whole, so the ``*_kwargs`` drawn here take the place of those in the yml file: they hold
    all that our files set, and otherwise the constructor's defaults.

    :param trial: Optuna trial
    :param n_actions: not used
    :param n_envs: not used
    :param additional_args: not used
    :return: arguments of the constructor
    """
    return convert_cesd_params(
        {
            "n_skills_pow": trial.suggest_int("n_skills_pow", 2, 5),
            "skill_duration": trial.suggest_categorical("skill_duration", [25, 50, 100, 200]),
            "alpha": trial.suggest_float("alpha", 0.01, 10.0, log=True),
            "learning_rate": trial.suggest_float("learning_rate", 1e-5, 0.002, log=True),
            "batch_size_pow": trial.suggest_int("batch_size_pow", 7, 10),
            "one_minus_gamma": trial.suggest_float("one_minus_gamma", 0.001, 0.05, log=True),
            "tau": trial.suggest_float("tau", 0.001, 0.08, log=True),
            "n_steps": trial.suggest_int("n_steps", 1, 5),
            "exploration_noise": trial.suggest_float("exploration_noise", 0.05, 0.5),
            "k": trial.suggest_int("k", 3, 24, log=True),
            "scale": trial.suggest_categorical("scale", ["variance", "std"]),
            "encoder": trial.suggest_categorical("encoder", ["contrastive", "fourier", "identity"]),
            "temperature": trial.suggest_float("temperature", 0.05, 0.2, log=True),
            "sinkhorn_temperature": trial.suggest_float("sinkhorn_temperature", 0.02, 0.1, log=True),
            "sinkhorn_iterations": trial.suggest_int("sinkhorn_iterations", 3, 6),
            "swap": trial.suggest_categorical("swap", ["next", "self"]),
            "critic": trial.suggest_categorical("critic", ["cluster", "union", "hindsight"]),
            "kappa": trial.suggest_categorical("kappa", [0.0, 1.0]),
            "actor": trial.suggest_categorical("actor", ["skill", "random"]),
            "count": trial.suggest_categorical("count", ["released", "paper"]),
            "net_arch": trial.suggest_categorical("net_arch", ["small", "medium", "big"]),
        }
    )


def convert_cesd_params(sampled_params: dict[str, Any]) -> dict[str, Any]:
    """
    :param sampled_params: what was drawn by :func:`sample_cesd_params`, by name of the draw
    :return: arguments of the constructor
    """
    params = sampled_params.copy()
    net_arch = NET_ARCHS[params.pop("net_arch")]
    encoder_kwargs = {"net_arch": net_arch["pi"]} if params["encoder"] == "contrastive" else {}
    return {
        "n_skills": 2 ** params.pop("n_skills_pow"),
        "batch_size": 2 ** params.pop("batch_size_pow"),
        "gamma": 1 - params.pop("one_minus_gamma"),
        "entropy_kwargs": {name: params.pop(name) for name in ("k", "scale")},
        "encoder_kwargs": encoder_kwargs,
        "prototype_kwargs": {
            name: params.pop(name) for name in ("temperature", "sinkhorn_temperature", "sinkhorn_iterations", "swap")
        },
        "relabel_kwargs": {name: params.pop(name) for name in ("critic", "kappa", "actor")},
        "constraint_kwargs": {"count": params.pop("count")},
        "policy_kwargs": {"net_arch": net_arch},
        **params,
    }


#: By the name that RL Zoo's ``--algo`` takes
ALGORITHMS: dict[str, Algorithm] = {"cesd": Algorithm(CeSD, sample_cesd_params, convert_cesd_params)}
