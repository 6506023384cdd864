"""Methods of RL Zoo's ``ExperimentManager``, extended."""

import inspect
from collections.abc import Mapping
from functools import partial, wraps
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from sb3_cesd.checkpoints import ResumableCheckpoint, resume
from sb3_cesd.checkpoints.folders import is_checkpoint, read_manifest
from sb3_cesd.common.files import dump_with_checksum, written_whole
from sb3_cesd.common.rules import plain
from sb3_cesd.envs import batch_envs
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg.saved_files import read_saved_data
from sb3_cesd.zoo.hyperparams import find_config, make_module
from sb3_cesd.zoo.nested import has, look_up, walk
from sb3_cesd.zoo.without_fixed import tell_what_is_kept, without_fixed


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
            # RL Zoo would train the agent of -i, without a study
            self.continue_training = self.continue_training and not self.optimize_hyperparameters

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


def save_whole(save: Any) -> Any:
    """
    Let a ``VecNormalize`` be saved as models are: killed meanwhile, the previous file stays, and a checksum tells damage.

    :param save: ``VecNormalize.save``
    :return: the same; SB3 loads what it writes
    """

    @wraps(save)
    def save_statistics(self: Any, save_path: str) -> None:
        with written_whole(save_path) as file:
            dump_with_checksum(self, file)

    return save_statistics


def resume_checkpoint(load_pretrained: Any) -> Any:
    """
    Let RL Zoo resume a run: ``-i`` with the model of a checkpoint goes on as if the run had never stopped, whatever the
    hyperparameters of the yml file say. With the checkpoint of a pre-training, a task starts as with any other model.

    :param load_pretrained: ``ExperimentManager._load_pretrained_agent``
    :return: the same, and for a checkpoint of the methods the whole of it
    """

    @wraps(load_pretrained)
    def load_or_resume(self: Any, hyperparams: dict[str, Any], env: Any) -> Any:
        if self.algo not in METHODS:
            return load_pretrained(self, hyperparams, env)
        if not is_resumed(self, hyperparams):
            warn_of_unused_reward(self)
            method, given = METHODS[self.algo], self.custom_hyperparams or {}
            tell_what_is_kept(method, self.trained_agent, hyperparams, given)
            return load_pretrained(self, without_fixed(method, hyperparams, given), env)
        check_same_run(self)
        print(f"Resuming the run of the checkpoint {Path(self.trained_agent).parent}")
        return resume(self.trained_agent, env, self.device, tensorboard_log=self.tensorboard_log or None, verbose=self.verbose)

    return load_or_resume


def is_resumed(manager: Any, hyperparams: Mapping[str, Any]) -> bool:
    """
    Tell whether ``-i`` goes on with a run.

    :param manager: RL Zoo's ``ExperimentManager``, with ``-i``
    :param hyperparams: its hyperparameters
    :return: whether it is the model of a checkpoint, unless a task is to start from skills
    """
    if not is_checkpoint(Path(manager.trained_agent).parent):
        return False
    is_of_skills = read_saved_data(manager.trained_agent).get("reward", "intrinsic") == "intrinsic"
    return not (is_of_skills and hyperparams.get("reward") == "extrinsic")


def check_same_run(manager: Any) -> None:
    """
    Refuse to go on with a checkpoint as another run.

    :param manager: RL Zoo's ``ExperimentManager``, of a method, with ``-i``
    :raises ValueError: if the checkpoint is of another method, or ``-params`` gives other hyperparameters
    """
    folder = Path(manager.trained_agent).parent
    method, module_and_name = METHODS[manager.algo], read_manifest(folder)["class"]
    if module_and_name != [method.__module__, method.__qualname__]:
        raise ValueError(
            f"{folder} is a checkpoint of {module_and_name[1]}, not of {method.__name__}: pass its name in lower case to "
            "--algo."
        )
    saved = read_saved_data(manager.trained_agent)
    changed = [
        f"{'.'.join(path)} was {look_up(saved, path)!r}"
        for path, value in walk(plain(manager.custom_hyperparams or {}))
        if has(saved, path) and differs(look_up(saved, path), value)
    ]
    if changed:
        raise ValueError(
            f"A run that is resumed goes on as it began ({', '.join(changed)}): leave that out of -params, or start from the "
            "model that a run saves at its end."
        )


def differs(saved: Any, given: Any) -> bool:
    """
    Tell whether an argument is another one than that of a saved model, as far as both tell.

    :param saved: what the model has
    :param given: what was given
    :return: whether they are two numbers, or two texts, and not the same: a model has a number for the skill that was called
        the best, and for some other texts and ``None``
    """
    kinds = [kind for kind in (int | float, str) if isinstance(saved, kind) and isinstance(given, kind)]
    return bool(kinds) and saved != given


def warn_of_unused_reward(manager: Any) -> None:
    """
    Say that ``-i`` goes on discovering skills in an environment other than that of the pre-training, where fine-tuning may be
    meant: an id that no entry knows has the default one, of a pre-training.

    :param manager: RL Zoo's ``ExperimentManager``, of a method, with ``-i``
    """
    env_id = manager.env_name.gym_id
    pretrained_in = [folder.parent.name for folder in Path(manager.trained_agent).parent.glob("*/args.yml")]
    says_reward = "reward" in manager._hyperparams or "reward" in (manager.custom_hyperparams or {})
    if manager.algo not in METHODS or says_reward or str(manager.env_name) in pretrained_in:
        return
    if read_saved_data(manager.trained_agent).get("reward") == "extrinsic":
        return
    print(
        f"""{"!" * 100}
WARNING: this goes on discovering skills in {env_id}, and does not use its reward: nothing says that it is a task.
To fine-tune a skill on the reward of {env_id}, add one of
    -params reward:'"extrinsic"'
    --conf-file mine.yml    with  reward: 'extrinsic'  under {env_id}
(a file to start from is printed by: python -m sb3_cesd.zoo.hyperparams template).
To go on discovering skills without this warning, add -params reward:'"intrinsic"'.
{"!" * 100}"""
    )


def go_on(learn: Any) -> Any:
    """
    Let RL Zoo count on from what a loaded model has learned, rather than from 0: a model whose constraint has started does
    not go back to exploring. A resumed run ends where it would have ended, ``-n`` steps after its start; another loaded model
    learns for that many more. Checkpoints without a path are written to the folder of the run.

    :param learn: ``ExperimentManager.learn``
    :return: the same, and for the methods with such counts
    """

    @wraps(learn)
    def learn_on(self: Any, model: Any) -> None:
        for callback in self.callbacks:
            if isinstance(callback, ResumableCheckpoint) and callback.path is None:
                callback.path = str(Path(self.save_path) / "checkpoints")
        if self.algo not in METHODS or model.num_timesteps == 0:
            learn(self, model)
            return
        waits_for = 0
        if model.is_resumed:
            self.n_timesteps += model._num_timesteps_at_start - model.num_timesteps
            if self.n_timesteps <= 0:
                print(f"The run has come to its end already, with {model.num_timesteps} steps: for more, pass a larger -n")
            self.n_timesteps = max(self.n_timesteps, 0)
        elif model.replay_buffer.size() == 0:
            # Without the transitions it has learned from, it collects as many again before it learns
            waits_for = model.num_timesteps
        with model.learning_later(waits_for):
            # All that RL Zoo's method has to do with a model
            learn(self, SimpleNamespace(learn=partial(model.learn, reset_num_timesteps=False), env=model.env))

    return learn_on
