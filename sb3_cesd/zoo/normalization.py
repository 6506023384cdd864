"""Statistics of ``VecNormalize`` with RL Zoo: a task has those of its pre-training, and what plays a model needs them."""

import copy
from functools import wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from stable_baselines3.common.vec_env import VecEnv, VecNormalize, unwrap_vec_normalize

from sb3_cesd.checkpoints.folders import is_checkpoint, read_manifest
from sb3_cesd.common.vec_env import lacks_statistics
from sb3_cesd.registry import METHODS


def find_pretrained_statistics(maybe_normalize: Any) -> Any:
    """
    Let RL Zoo normalise a task as the pre-training was, also when it is resumed. It looks for statistics by the id of the task
    alone, and would start new ones, on which skills behave in another way. Those that it finds it saves only if the entry says
    ``normalize``.

    :param maybe_normalize: ``ExperimentManager._maybe_normalize``
    :return: the same, and for the methods with the statistics beside the pre-trained model, or those of a checkpoint
    """

    @wraps(maybe_normalize)
    def normalize_as_pretrained(self: Any, env: Any, eval_env: bool) -> Any:
        files = sorted(Path(self.trained_agent).parent.glob("*/vecnormalize.pkl")) if self.trained_agent else []
        # Trials in other threads use the manager meanwhile
        manager = copy.copy(self)
        if self.algo in METHODS and files and self.env_name not in [file.parent.name for file in files]:
            manager.env_name = files[0].parent.name
        if self.algo in METHODS and not self.normalize and (normalize := of_checkpoint(self.trained_agent)):
            manager.normalize, manager.normalize_kwargs = True, normalize
        env = maybe_normalize(manager, env, eval_env)
        if self.algo in METHODS and isinstance(env, VecNormalize) and not self.normalize and not eval_env:
            self.normalize_kwargs = {name: getattr(env, name) for name in ("norm_obs", "norm_reward")}
            self.normalize = True
        return env

    return normalize_as_pretrained


def of_checkpoint(path: str) -> dict[str, bool] | None:
    """
    Tell how the environments of a checkpoint are normalised, whose statistics come with the rest of it.

    :param path: path of a saved model, or an empty text
    :return: arguments of ``VecNormalize``; ``None`` if they are not, or the model is not that of a checkpoint
    """
    folder = Path(path).parent
    # Checkpoints of earlier versions do not tell
    return read_manifest(folder).get("normalize") if path and is_checkpoint(folder) else None


def save_normalize(save_config: Any) -> Any:
    """
    Let the ``config.yml`` of a run say that it was normalised, also where only the pre-training was told to: what plays the
    model looks for statistics only then.

    :param save_config: ``ExperimentManager._save_config``
    :return: the same, and for the methods with ``normalize``
    """

    @wraps(save_config)
    def save_with_normalize(self: Any, saved_hyperparams: dict[str, Any]) -> None:
        if self.algo in METHODS and self.normalize and not saved_hyperparams.get("normalize"):
            saved_hyperparams["normalize"] = dict(self.normalize_kwargs)
        save_config(self, saved_hyperparams)

    return save_with_normalize


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
            "beside config.yml, and add the line 'normalize: true' to it."
        )
