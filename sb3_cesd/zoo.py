"""
Our algorithms in RL Zoo: their names, hyperparameters, search spaces. The only file that knows rl_zoo3.

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

from sb3_cesd import search_spaces
from sb3_cesd.baselines import APT, CIC, DADS, DIAYN
from sb3_cesd.cesd import CeSD
from sb3_cesd.envs import batch_envs
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.parallel import LearnerThread


class Algorithm(NamedTuple):
    """
    What RL Zoo has to know about an algorithm.

    :param model_class: the algorithm
    :param draw: draws from an Optuna trial
    :param convert: makes arguments of the constructor from what was drawn, by name of the draw
    """

    model_class: type[BaseAlgorithm]
    draw: Callable[[Any], dict[str, Any]]
    convert: Callable[[dict[str, Any]], dict[str, Any]]

    def sample(self, trial: Any, n_actions: int, n_envs: int, additional_args: dict[str, Any]) -> dict[str, Any]:
        """
        RL Zoo's signature of a search space.

        :param trial: Optuna trial
        :param n_actions: not used
        :param n_envs: not used
        :param additional_args: not used
        :return: arguments of the constructor
        """
        return self.convert(self.draw(trial))


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
    :param module: a module of rl_zoo3 whose import has ended; others than those extended here are left alone, and so is
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
            module.ExperimentManager._maybe_normalize = find_pretrained_statistics(module.ExperimentManager._maybe_normalize)
        preprocess = module.ExperimentManager._preprocess_hyperparams
        if not hasattr(preprocess, "takes_batched"):
            module.ExperimentManager._preprocess_hyperparams = take_batched(preprocess)
        if not hasattr(module.TrialEvalCallback, "evaluates_every_skill"):
            module.TrialEvalCallback = evaluate_every_skill(module.TrialEvalCallback)
    elif module.__name__ == "rl_zoo3.callbacks":
        if not hasattr(module.ParallelTrainCallback, "takes_skills"):
            module.ParallelTrainCallback = train_in_parallel(module.ParallelTrainCallback)


def train_in_parallel(callback: Any) -> Any:
    """
    Let RL Zoo's callback that acts and learns in two threads, which takes SAC and TQC alone, take our algorithms, too.

    :param callback: ``ParallelTrainCallback``
    :return: the same, and for our algorithms a thread of ours
    """

    class ParallelTrainCallback(callback):
        takes_skills = True
        learner: LearnerThread | None = None

        def _init_callback(self) -> None:
            if isinstance(self.model, SkillDDPG):
                self.learner = LearnerThread(self.model, self.gradient_steps)
            else:
                super()._init_callback()

        def _on_rollout_end(self) -> None:
            if self.learner is not None:
                self.learner.start_next_round()
            else:
                super()._on_rollout_end()

        def _on_training_end(self) -> None:
            if self.learner is not None:
                self.learner.finish()  # RL Zoo ends training a second time
            else:
                super()._on_training_end()

    ParallelTrainCallback.__doc__ = callback.__doc__
    return ParallelTrainCallback


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


def find_pretrained_statistics(maybe_normalize: Any) -> Any:
    """
    Let RL Zoo normalise a task as the pre-training was. It looks for statistics by the id of the task alone, and would start
    new ones, on which skills behave in another way.

    :param maybe_normalize: ``ExperimentManager._maybe_normalize``
    :return: the same, and for our algorithms with the statistics beside the pre-trained model
    """

    @wraps(maybe_normalize)
    def normalize_as_pretrained(self: Any, env: Any, eval_env: bool) -> Any:
        files = sorted(Path(self.trained_agent).parent.glob("*/vecnormalize.pkl")) if self.trained_agent else []
        env_name = self.env_name
        if self.algo in ALGORITHMS and files and env_name not in [file.parent.name for file in files]:
            self.env_name = files[0].parent.name
        try:
            return maybe_normalize(self, env, eval_env)
        finally:
            self.env_name = env_name

    return normalize_as_pretrained


def evaluate_every_skill(callback_class: Any) -> Any:
    """
    Make the objective of a trial the return averaged over all skills.

    Episode j of an evaluation follows skill j modulo ``n_skills``, so a multiple of ``n_skills`` episodes holds every skill
    as often, provided that the environments have an equal number of them (else one of them draws skills that don't count).

    :param callback_class: RL Zoo's ``TrialEvalCallback``
    :return: the same, with ``n_eval_episodes`` rounded up for models that discover skills
    """

    class SkillTrialEvalCallback(callback_class):
        evaluates_every_skill = True

        def _init_callback(self) -> None:
            super()._init_callback()
            if getattr(self.model, "reward", None) == "intrinsic":
                self.n_eval_episodes += -self.n_eval_episodes % math.lcm(self.model.n_skills, self.eval_env.num_envs)

    return SkillTrialEvalCallback


#: By the name that RL Zoo's ``--algo`` takes
ALGORITHMS: dict[str, Algorithm] = {
    "cesd": Algorithm(CeSD, search_spaces.draw_cesd, search_spaces.convert_cesd),
    "diayn": Algorithm(DIAYN, search_spaces.draw_diayn, search_spaces.convert_diayn),
    "dads": Algorithm(DADS, search_spaces.draw_dads, search_spaces.convert_dads),
    "cic": Algorithm(CIC, search_spaces.draw_cic, search_spaces.convert_cic),
    "apt": Algorithm(APT, search_spaces.draw_apt, search_spaces.convert_apt),
}
