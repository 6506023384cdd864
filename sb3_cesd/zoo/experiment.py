"""Methods of RL Zoo's ``ExperimentManager``, extended."""

import inspect
from functools import wraps
from pathlib import Path
from typing import Any

from sb3_cesd.envs import batch_envs
from sb3_cesd.registry import METHODS
from sb3_cesd.zoo.hyperparams import find_config, make_module


def find_entries(init: Any) -> Any:
    """
    Let RL Zoo find our hyperparameters: by the name of the algorithm, or by that of a config (``--conf-file cesd_laptop.yml``)
    from any folder.

    :param init: ``ExperimentManager.__init__``
    :return: the same, and for the methods with our entries
    """

    @wraps(init)
    def init_with_config(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        conf_file = inspect.signature(init).bind(self, *args, **kwargs).arguments.get("config")
        if self.algo in METHODS:
            config = find_config(conf_file) if conf_file else self.algo
            if config is not None:
                self.config = make_module(config)

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

    return preprocess_batched


def find_pretrained_statistics(maybe_normalize: Any) -> Any:
    """
    Let RL Zoo normalise a task as the pre-training was. It looks for statistics by the id of the task alone, and would start
    new ones, on which skills behave in another way.

    :param maybe_normalize: ``ExperimentManager._maybe_normalize``
    :return: the same, and for the methods with the statistics beside the pre-trained model
    """

    @wraps(maybe_normalize)
    def normalize_as_pretrained(self: Any, env: Any, eval_env: bool) -> Any:
        files = sorted(Path(self.trained_agent).parent.glob("*/vecnormalize.pkl")) if self.trained_agent else []
        env_name = self.env_name
        if self.algo in METHODS and files and env_name not in [file.parent.name for file in files]:
            self.env_name = files[0].parent.name
        try:
            return maybe_normalize(self, env, eval_env)
        finally:
            self.env_name = env_name

    return normalize_as_pretrained
