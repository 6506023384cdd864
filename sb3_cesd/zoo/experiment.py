"""Extensions of the methods of RL Zoo's ``ExperimentManager``."""

import copy
import inspect
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

from stable_baselines3.common.utils import configure_logger

from sb3_cesd.checkpoints import ResumableCheckpoint, remaining_timesteps, resume
from sb3_cesd.checkpoints.folders import is_checkpoint
from sb3_cesd.envs import batch_envs
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg.saved_files import read_saved_data
from sb3_cesd.zoo.hyperparams import configs, find_config, make_module
from sb3_cesd.zoo.pretrained import begins_task
from sb3_cesd.zoo.same_run import OF_ENV, check_same_run, folder_of_run, keep_best_model
from sb3_cesd.zoo.without_fixed import of_policy, tell_what_is_kept, values_of_model, without_fixed


def find_entries(init: Any) -> Any:
    """
    Make RL Zoo find our hyperparameters by the name of the algorithm, or by that of a config (``--conf-file cesd_laptop.yml``)
    from any folder.

    :param init: ``ExperimentManager.__init__``
    :return: the extended method. It raises a ``ValueError`` if there is no such file
    """

    @wraps(init)
    def init_with_config(self: Any, *args: Any, **kwargs: Any) -> None:
        init(self, *args, **kwargs)
        conf_file = inspect.signature(init).bind(self, *args, **kwargs).arguments.get("config")
        if self.algo in METHODS:
            config = find_config(conf_file) if conf_file else self.algo
            if config is None:
                check_conf_file(self.config, self.algo)
            else:
                self.config = make_module(config)
            # Otherwise RL Zoo would train the agent of -i instead of starting the study
            self.continue_training = self.continue_training and not self.optimize_hyperparameters

    return init_with_config


def check_conf_file(conf_file: str, algo: str) -> None:
    """
    Check that RL Zoo can read ``--conf-file``.

    :param conf_file: path of a file, or name of a module; not the name of a config
    :param algo: name of the algorithm
    :raises ValueError: if there is neither
    """
    if conf_file.endswith((".yml", ".yaml", ".py")):
        exists = Path(conf_file).is_file()
    else:
        package = conf_file.partition(".")[0]
        exists = bool(package) and find_spec(package) is not None
    if not exists:
        known = ", ".join(f"{name}.yml" for name in configs() if name.split("_")[0] == algo)
        raise ValueError(f"There is no {conf_file}: pass --conf-file the path of a file, or one of {known}.")


def take_batched(preprocess: Any) -> Any:
    """
    Make RL Zoo step environments in batches, in training and evaluation, for ``batched: True`` in a yml file or ``-params
    batched:True``.

    :param preprocess: ``ExperimentManager._preprocess_hyperparams``
    :return: the extended method
    """

    @wraps(preprocess)
    def preprocess_batched(self: Any, hyperparams: dict[str, Any]) -> Any:
        if hyperparams.pop("batched", False):
            self.vec_env_class = batch_envs
        return preprocess(self, hyperparams)

    return preprocess_batched


def evaluate_in_same_env(preprocess: Any) -> Any:
    """
    Make RL Zoo evaluate with the ``env_kwargs`` of the yml file, which it gives to the environments of training alone.

    :param preprocess: ``ExperimentManager._preprocess_hyperparams``
    :return: the extended method
    """

    @wraps(preprocess)
    def preprocess_for_both(self: Any, hyperparams: dict[str, Any]) -> Any:
        result = preprocess(self, hyperparams)
        if self.algo in METHODS and self._eval_env_kwargs_args is None:
            self.eval_env_kwargs = self.env_kwargs
        return result

    return preprocess_for_both


def keep_settings_of_env(preprocess: Any) -> Any:
    """
    Keep the settings of environments as they were given (``settings_of_env``), for studies.

    :param preprocess: ``ExperimentManager._preprocess_hyperparams``
    :return: the extended method
    """

    @wraps(preprocess)
    def preprocess_and_keep(self: Any, hyperparams: dict[str, Any]) -> Any:
        # A copy, since RL Zoo adds to that of normalize
        self.settings_of_env = copy.deepcopy({name: hyperparams.get(name) for name in ("n_envs", *OF_ENV)})
        return preprocess(self, hyperparams)

    return preprocess_and_keep


def resume_checkpoint(algos: dict[str, Any]) -> Callable[[Any], Any]:
    """
    Make RL Zoo resume a run: with ``-i`` and the model of a checkpoint, it continues as if it had never stopped, whatever the
    yml file says. A task starts from the checkpoint of a pre-training as from any other model. A model that is not resumed is
    also loaded with ``policy_kwargs`` from ``-params``, which RL Zoo leaves out, and ``values_of_model`` notes what it keeps.

    :param algos: RL Zoo's algorithms by name
    :return: function that extends ``ExperimentManager._load_pretrained_agent``
    """

    def extend(load_pretrained: Any) -> Any:
        @wraps(load_pretrained)
        def load_or_resume(self: Any, hyperparams: dict[str, Any], env: Any) -> Any:
            if self.algo not in METHODS:
                return load_pretrained(self, hyperparams, env)
            if not is_resumed(self, hyperparams):
                warn_of_unused_reward(self)
                method, given = METHODS[self.algo], self.custom_hyperparams or {}
                tell_what_is_kept(method, self.trained_agent, hyperparams, given)
                with loaded_with(algos, self.algo, of_policy(given)):
                    model = load_pretrained(self, without_fixed(method, hyperparams, given), env)
                self.values_of_model = values_of_model(model, given)
                return model
            check_same_run(self)
            print(f"Resuming the run of the checkpoint {Path(self.trained_agent).parent}")
            model = resume(
                self.trained_agent, env, self.device, tensorboard_log=self.tensorboard_log or None, verbose=self.verbose
            )
            self.resumed_run = folder_of_run(self.trained_agent)
            if self.resumed_run is not None:
                keep_best_model(self.resumed_run, self.save_path)
            return model

        return load_or_resume

    return extend


@contextmanager
def loaded_with(algos: dict[str, Any], name: str, arguments: Mapping[str, Any]) -> Iterator[None]:
    """
    Make RL Zoo load models of an algorithm with further arguments.

    :param algos: RL Zoo's algorithms by name
    :param name: name of the algorithm
    :param arguments: arguments of ``load``
    """
    method = algos[name]
    algos[name] = SimpleNamespace(load=partial(method.load, **arguments))
    try:
        yield
    finally:
        algos[name] = method


def is_resumed(manager: Any, hyperparams: Mapping[str, Any]) -> bool:
    """
    Check whether ``-i`` resumes a run.

    :param manager: RL Zoo's ``ExperimentManager``, with ``-i``
    :param hyperparams: its hyperparameters
    :return: whether the model is that of a checkpoint, and it is not a task that starts from skills
    """
    agent = manager.trained_agent
    return is_checkpoint(Path(agent).parent) and not begins_task(agent, hyperparams)


def warn_of_unused_reward(manager: Any) -> None:
    """
    Warn that ``-i`` continues to discover skills in another environment than that of the pre-training, where fine-tuning may
    be intended: an id without an entry gets the default one, which is for pre-training.

    :param manager: RL Zoo's ``ExperimentManager``, of a method, with ``-i``
    """
    env_id = manager.env_name.gym_id
    pretrained_in = [folder.parent.name for folder in Path(manager.trained_agent).parent.glob("*/args.yml")]
    says_reward = "reward" in manager._hyperparams or "reward" in (manager.custom_hyperparams or {})
    if says_reward or str(manager.env_name) in pretrained_in:
        return
    if read_saved_data(manager.trained_agent).get("reward") == "extrinsic":
        return
    print(
        f"""{"!" * 100}
WARNING: this continues to discover skills in {env_id} and does not use its reward, as no setting says that it is a task.
To fine-tune a skill on the reward of {env_id}, add one of
    -params "reward:'extrinsic'"
    --conf-file mine.yml    with  reward: 'extrinsic'  under {env_id}
(a file to start from is printed by: python -m sb3_cesd.zoo.hyperparams template).
To continue discovering skills without this warning, add -params "reward:'intrinsic'".
{"!" * 100}"""
    )


def go_on(learn: Any) -> Any:
    """
    Make RL Zoo continue counting from the steps of a loaded model instead of from 0, so that a model whose constraint has
    started does not explore again. A resumed run ends where it would have ended, or as many steps after its start as ``-n`` or
    ``-params n_timesteps:...`` says; any other loaded model learns for ``-n`` more steps, or those of its entry. Checkpoints
    without a path are written to the folder of the run.

    :param learn: ``ExperimentManager.learn``
    :return: the extended method
    """

    @wraps(learn)
    def learn_on(self: Any, model: Any) -> None:
        for callback in self.callbacks:
            if isinstance(callback, ResumableCheckpoint) and callback.path is None:
                callback.path = str(Path(self.save_path) / "checkpoints")
        if self.algo not in METHODS:
            learn(self, model)
            return
        if is_resumed(self, {}):
            to_come = remaining_timesteps(model)
            self.n_timesteps += model._num_timesteps_at_start - model.num_timesteps
            if self.args.n_timesteps <= 0 and "n_timesteps" not in (self.custom_hyperparams or {}):
                self.n_timesteps = to_come
            elif self.n_timesteps != to_come:
                end = model.num_timesteps + to_come
                print(f"The run was to end at step {end}. With this -n, it ends at step {end + self.n_timesteps - to_come}")
            if self.n_timesteps <= 0:
                print(f"The run has already ended, after {model.num_timesteps} steps: pass a larger -n to continue it")
            self.n_timesteps = max(self.n_timesteps, 0)
        learn(self, going_on(model))

    return learn_on


def going_on(model: Any) -> Any:
    """
    Make a model go on counting its steps when RL Zoo lets it learn.

    :param model: a loaded model
    :return: the only attributes of a model that RL Zoo uses for that; the model if it has no steps yet
    """
    if model.num_timesteps == 0:
        return model

    def learn(*args: Any, **kwargs: Any) -> Any:
        # With an empty replay buffer, collect learning_starts new transitions before learning
        is_empty = model.replay_buffer.size() == 0
        if model.tensorboard_log is not None:
            # SB3 would go on in the latest folder, which may be that of another run
            model.set_logger(configure_logger(model.verbose, model.tensorboard_log, type(model).__name__))
        model.learning_starts += model.num_timesteps if is_empty else 0
        return model.learn(*args, reset_num_timesteps=False, **kwargs)

    return SimpleNamespace(learn=learn, env=model.env)
