"""Statistics of ``VecNormalize`` in RL Zoo: a task has those of its pre-training, and they are needed to play a model."""

import copy
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial, wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize

from sb3_cesd.checkpoints.folders import STATISTICS, is_checkpoint
from sb3_cesd.common.vec_normalize import lacks_statistics, load_statistics, save_statistics
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg import SkillDDPG

#: Files that RL Zoo writes beside the statistics of a run
OF_RUN = ("args.yml", "config.yml")


def find_pretrained_statistics(maybe_normalize: Any) -> Any:
    """
    Make RL Zoo normalise a task like its pre-training, also when it is resumed.

    By itself, RL Zoo only looks for statistics by the id of the task, and would start new ones, with which skills behave
    differently. It only saves statistics that it finds if the entry has ``normalize``.

    :param maybe_normalize: ``ExperimentManager._maybe_normalize``
    :return: the extended method, with the statistics next to the pre-trained model, or those of a checkpoint. It raises a
        ``ValueError`` if a ``vec_env_wrapper`` normalises already, or the statistics are of other observations
    """

    @wraps(maybe_normalize)
    def normalize_as_pretrained(self: Any, env: Any, eval_env: bool) -> Any:
        if self.algo in METHODS and unwrap_vec_normalize(env) is not None:
            raise ValueError(
                "VecNormalize among the vec_env_wrapper of an entry would be applied twice when the model is played, as RL "
                "Zoo saves its statistics: replace it by normalize: {norm_obs: True, norm_reward: False}."
            )
        # A copy, since trials in other threads use the manager at the same time
        manager = copy.copy(self)
        if self.algo in METHODS and self.trained_agent:
            folder = Path(self.trained_agent).parent
            manager.env_name = folder_of_statistics(folder, self.env_name, Path(self.trained_agent).stem)
            refuse_damaged_statistics(folder / manager.env_name)
        if self.algo in METHODS and not self.normalize and (normalize := of_checkpoint(self.trained_agent)):
            manager.normalize, manager.normalize_kwargs = True, normalize
        with explain_other_statistics(self):
            env = maybe_normalize(manager, env, eval_env)
        if self.algo in METHODS and isinstance(env, VecNormalize) and not self.normalize and not eval_env:
            self.normalize_kwargs = {name: getattr(env, name) for name in ("norm_obs", "norm_reward")}
            self.normalize = True
        return env

    return normalize_as_pretrained


@contextmanager
def explain_other_statistics(manager: Any) -> Iterator[None]:
    """
    Tell what to do about statistics that are of other observations than those of the environment.

    :param manager: RL Zoo's ``ExperimentManager``
    :raises ValueError: if those of a pre-trained model are loaded, and do not fit
    """
    try:
        yield
    except AssertionError as error:
        if manager.algo not in METHODS or not manager.trained_agent:
            raise
        raise ValueError(
            f"The {STATISTICS} of {manager.trained_agent} does not fit {manager.env_name} ({error}). The model was "
            "pre-trained in another domain: choose an --env with the same observations, or pre-train a model in this domain."
        ) from error


def folder_of_statistics(folder: Path, env_name: str, model: str) -> str:
    """
    Find the statistics of a pre-trained model.

    :param folder: folder of the model
    :param env_name: name of the task, after which RL Zoo names the folder in there in which it looks for them
    :param model: name of the model, after which RL Zoo names the folder in there in which it writes them
    :return: name of the folder in there that holds them: that of a checkpoint is its own, that of a run may have any name;
        ``env_name`` if there are none
    :raises ValueError: if there are those of several models, and none has the name of the model or of the task
    """
    if is_checkpoint(folder) and (folder / STATISTICS).is_file():
        return "."
    names = [path.parent.name for path in sorted(folder.glob(f"*/{STATISTICS}"))]
    if len(names) > 1 and not {model, env_name} & set(names):
        raise ValueError(
            f"{folder} holds the {STATISTICS} of {', '.join(names)}, of which none is called like {model}.zip: leave those of "
            "the model alone in it, or name their folder like it."
        )
    of_run = [name for name in names if any((folder / name / file).is_file() for file in OF_RUN)]
    return next((name for name in (model, env_name, *of_run) if name in names), env_name)


def of_checkpoint(path: str) -> dict[str, bool] | None:
    """
    Return how the environments of a checkpoint are normalised.

    :param path: path of a saved model, or an empty string
    :return: arguments of ``VecNormalize``; ``None`` if they are not normalised, or the model is not that of a checkpoint
    """
    file = Path(path).parent / STATISTICS
    if not path or not is_checkpoint(file.parent) or not file.is_file():
        return None
    statistics = load_statistics(file)
    return {"norm_obs": statistics.norm_obs, "norm_reward": statistics.norm_reward}


def save_normalize(save_config: Any) -> Any:
    """
    Record in ``config.yml`` of a run that it was normalised, even if only its pre-training was configured to be. Otherwise
    RL Zoo would not look for statistics when it plays the model.

    :param save_config: ``ExperimentManager._save_config``
    :return: the extended method
    """

    @wraps(save_config)
    def save_with_normalize(self: Any, saved_hyperparams: dict[str, Any]) -> None:
        if self.algo in METHODS and self.normalize and not saved_hyperparams.get("normalize"):
            # With a dictionary, enjoy would say that it normalises rewards even without --norm-reward
            saved_hyperparams["normalize"] = True if all(self.normalize_kwargs.values()) else dict(self.normalize_kwargs)
        save_config(self, saved_hyperparams)

    return save_with_normalize


def save_model_whole(save_trained_model: Any) -> Any:
    """
    Make RL Zoo save the statistics of a method with :func:`save_statistics`. Those of other algorithms are left to SB3.

    :param save_trained_model: ``ExperimentManager.save_trained_model``
    :return: the extended method
    """

    @wraps(save_trained_model)
    def save_whole(self: Any, model: Any) -> None:
        save_trained_model(self, SavedModel(model) if isinstance(model, SkillDDPG) else model)

    return save_whole


def save_step_whole(on_step: Any) -> Any:
    """
    Make RL Zoo's callback save the statistics of a method with :func:`save_statistics`. Those of other algorithms are left to
    SB3.

    :param on_step: ``SaveVecNormalizeCallback._on_step``
    :return: the extended method
    """

    @wraps(on_step)
    def save_whole(self: Any) -> bool:
        if not isinstance(self.model, SkillDDPG):
            return on_step(self)
        model, self.model = self.model, SavedModel(self.model)
        try:
            return on_step(self)
        finally:
            self.model = model

    return save_whole


class SavedModel:
    """
    Stands in for a model while RL Zoo saves it, so that its statistics are written with :func:`save_statistics`.

    :param model: the model
    """

    def __init__(self, model: SkillDDPG) -> None:
        self._model = model

    def __getattr__(self, name: str) -> Any:
        return getattr(self._model, name)

    def get_vec_normalize_env(self) -> SimpleNamespace | None:
        """
        Return what RL Zoo uses of the statistics.

        :return: an object with the method ``save``; ``None`` if the model has no statistics
        """
        statistics = self._model.get_vec_normalize_env()
        return None if statistics is None else SimpleNamespace(save=partial(save_statistics, statistics))


def refuse_damaged_statistics(folder: Path) -> None:
    """
    Refuse statistics that are damaged, before RL Zoo unpickles them.

    :param folder: where RL Zoo looks for them
    :raises ValueError: see :func:`~sb3_cesd.common.vec_normalize.load_statistics`
    """
    if (path := folder / STATISTICS).is_file():
        load_statistics(path)


def refuse_without_statistics(path: Path, saved: dict[str, Any], env: VecEnv) -> None:
    """
    Refuse to play a model without the statistics it was trained with.

    :param path: file of the model
    :param saved: its attributes
    :param env: environments that it is to be played in
    :raises ValueError: if nothing normalises their observations, while those of training were
    """
    model = SimpleNamespace(trained_normalized=saved.get("trained_normalized", False))
    if lacks_statistics(model, unwrap_vec_normalize(env)):
        raise ValueError(
            f"{path} was trained with VecNormalize, but its config.yml does not say so: put vecnormalize.pkl of the training "
            "next to config.yml, and add the line 'normalize: true' to it."
        )
