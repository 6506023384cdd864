"""Runs and studies of RL Zoo."""

import argparse
import inspect
import os
import sys
import warnings
from collections import OrderedDict
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import optuna
import torch as th
from rl_zoo3 import exp_manager
from rl_zoo3.callbacks import TrialEvalCallback
from rl_zoo3.exp_manager import ExperimentManager
from rl_zoo3.hyperparams_opt import HYPERPARAMS_SAMPLER
from rl_zoo3.utils import ALGOS, get_latest_run_id
from stable_baselines3.common.utils import get_device
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from sb3_cesd.callbacks import FEW_EPISODES, SkillEvalCallback
from sb3_cesd.checkpoints import STATISTICS, ResumableCheckpoint, is_checkpoint, remaining_timesteps, resume
from sb3_cesd.common.arguments import check_names, constructor_names, parts_of, parts_of_model
from sb3_cesd.envs import batch_envs
from sb3_cesd.metrics.summary import N_EPISODES
from sb3_cesd.presets import hyperparams_folder
from sb3_cesd.registry import ALGORITHMS
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.saved_files import read_saved_data
from sb3_cesd.skill_ddpg.search_space import TASK_ARGUMENTS
from sb3_cesd.zoo.tuning import NESTED, SearchSpace, with_params

Params = dict[str, Any]
#: Batch size up to which one thread of a CPU is fastest
SMALL_BATCH = 512
#: User attribute of a study: what its trials train
STUDY_OF = "study_of"


def find_conf_file(conf_file: str) -> str:
    """Find what RL Zoo is to read for ``--conf-file``: a file or module of the user, or one of ours by its name."""
    ours = {path.stem: path for path in sorted(hyperparams_folder().glob("*.yml"))}
    name, package = conf_file.removesuffix(".yml"), conf_file.partition(".")[0]
    if Path(conf_file).is_file():
        return conf_file
    if name in ours:
        return str(ours[name])
    if not conf_file.endswith((".yml", ".yaml", ".py")) and package and find_spec(package) is not None:
        return conf_file
    raise ValueError(f"There is no {conf_file}: pass --conf-file the path of a file, or one of {', '.join(ours)}.")


class SkillTrialEvalCallback(TrialEvalCallback, SkillEvalCallback):  # type: ignore[misc]
    """Judge trials that discover skills by the skill score, and note their metrics as user attributes of the trial."""

    def on_metrics(self, metrics: dict[str, float]) -> None:
        for name, value in metrics.items():
            self.trial.set_user_attr(name, value)


class SkillExperimentManager(ExperimentManager):
    """
    RL Zoo's experiments with the methods of this package. Other algorithms get RL Zoo's own class.

    It finds our hyperparameters, steps environments in batches, evaluates by the skills, goes on from models and checkpoints
    with their statistics, and searches the hyperparameters of the methods.
    """

    #: Whether ``-i`` resumes the run of a checkpoint
    resumes = False

    def __new__(cls, args: argparse.Namespace, algo: str, *others: Any, **kwargs: Any) -> Any:
        if algo in ALGORITHMS:
            return super().__new__(cls)
        # What the user has set on this class, in place of RL Zoo's
        ExperimentManager.default_vec_env_cls = cls.default_vec_env_cls
        return ExperimentManager(args, algo, *others, **kwargs)

    def __init__(self, args: argparse.Namespace, algo: str, *others: Any, config: str | None = None, **kwargs: Any) -> None:
        config = str(hyperparams_folder() / f"{algo}.yml") if config is None else find_conf_file(config)
        super().__init__(args, algo, *others, config=config, **kwargs)  # type: ignore[misc]
        self.method: type[SkillDDPG] = ALGORITHMS[algo]
        self.given: Params = self.custom_hyperparams or {}
        #: What is saved in the model of -i
        self.pretrained: Params = read_saved_data(self.trained_agent) if self.trained_agent else {}
        # Otherwise RL Zoo would train that model instead of starting a study
        self.continue_training = self.continue_training and not self.optimize_hyperparameters

    def read_hyperparameters(self) -> tuple[Params, Params]:
        # RL Zoo would replace dictionaries as a whole, and ignore trial 0
        trial_id, self.custom_hyperparams, self.trial_id = self.trial_id, None, None
        hyperparams, _ = super().read_hyperparameters()
        self.custom_hyperparams, self.trial_id = self.given, trial_id
        for name in {*NESTED} & {*hyperparams}:
            if isinstance(hyperparams[name], str):
                hyperparams[name] = eval(hyperparams[name], vars(exp_manager))
        hyperparams = with_params(self.method, hyperparams, self.given)
        self.reward = hyperparams.get("reward", self.pretrained.get("reward", "intrinsic"))
        of_trial = self.storage and self.study_name and trial_id is not None
        if of_trial or self.optimize_hyperparameters:
            kept = {name: value for name, value in self.pretrained.items() if name in self.method.fixed_by_save}
            own = {
                name: self.pretrained[name] for name in TASK_ARGUMENTS if isinstance(self.pretrained.get(name), int | float)
            }
            self.search_space = SearchSpace(
                self.method, {**own, **hyperparams, **kept}, self.given, self.reward == "extrinsic", bool(self.pretrained)
            )
        if of_trial:
            drawn = self.load_trial(self.storage, self.study_name, trial_id, convert=False)  # type: ignore[arg-type]
            hyperparams.update(changed := self.search_space.arguments(drawn))
            print(f"With the arguments of trial {trial_id}: {changed}")
        if self.given:
            print(f"With -params: {self.given}")
        return hyperparams, OrderedDict(sorted(hyperparams.items()))

    def _preprocess_hyperparams(self, hyperparams: Params) -> Any:
        if hyperparams.pop("batched", False):
            self.vec_env_class = batch_envs  # type: ignore[assignment]
        result = super()._preprocess_hyperparams(hyperparams)
        if self.args.eval_env_kwargs is None:
            # Also those of the yml file, which RL Zoo gives to the environments of training alone
            self.eval_env_kwargs = self.env_kwargs
        if self.reward == "intrinsic" and self.n_eval_episodes == FEW_EPISODES:
            # RL Zoo's default is too small to compare skills
            self.n_eval_episodes = N_EPISODES
        self._check_names(result[0])
        is_small = self._argument(result[0], "batch_size") <= SMALL_BATCH
        if self.args.num_threads < 1 and is_small and get_device(self.device).type == "cpu":
            print("Using one thread, which is fastest for small networks: --num-threads sets another number")
            th.set_num_threads(1)
        return result

    def _argument(self, hyperparams: Params, name: str) -> Any:
        return hyperparams.get(name, inspect.signature(self.method).parameters[name].default)

    def _check_names(self, hyperparams: Params) -> None:
        """Check for misspelt arguments, with what may have been meant; those of the reward are checked where it is made."""
        parameters = [inspect.signature(each).parameters for each in (self.method, self.method.from_pretrained)]
        known = {*parameters[0], *parameters[1], "noise_type", "noise_std"}
        check_names(f"{self.config} (or -params)", hyperparams, known, parts_of_model(self.method))
        policy = self.method.policy_aliases.get(hyperparams.get("policy", ""))
        if policy is not None:
            check_names("policy_kwargs", hyperparams.get("policy_kwargs") or {}, constructor_names(policy), parts_of(policy))

    def create_log_folder(self) -> None:
        # By one alone of the runs that begin at the same moment
        while True:
            try:
                return os.makedirs(self.params_path)
            except FileExistsError:
                number = get_latest_run_id(self.log_path, self.env_name) + 1
                self.save_path = os.path.join(self.log_path, f"{self.env_name}_{number}")
                self.params_path = f"{self.save_path}/{self.env_name}"

    def create_callbacks(self) -> None:
        super().create_callbacks()
        for callback in self.callbacks:
            if isinstance(callback, ResumableCheckpoint) and callback.path is None:
                callback.path = str(Path(self.save_path) / "checkpoints")

    def _maybe_normalize(self, env: VecEnv, eval_env: bool) -> VecEnv:
        statistics = self._find_statistics()
        if statistics is None:
            return super()._maybe_normalize(env, eval_env)
        print(f"Loading {statistics}")
        normalized = VecNormalize.load(str(statistics), env)
        if eval_env:
            normalized.training = normalized.norm_reward = False
        else:
            # RL Zoo is to save them, whatever the entry says
            self.normalize = True
        return normalized

    def _find_statistics(self) -> Path | None:
        """Find the statistics of the model of -i, which RL Zoo only looks for by the id of the new environment."""
        if not self.trained_agent:
            return None
        agent = Path(self.trained_agent)
        if (of_checkpoint := agent.parent / STATISTICS).is_file():
            return of_checkpoint
        found = {path.parent.name: path for path in agent.parent.glob(f"*/{STATISTICS}")}
        only = next(iter(found.values())) if len(found) == 1 else None
        return found.get(agent.stem) or found.get(str(self.env_name)) or only

    def _save_config(self, saved_hyperparams: Params) -> None:
        if self.normalize and not saved_hyperparams.get("normalize"):
            # enjoy looks for statistics
            saved_hyperparams["normalize"] = True
        super()._save_config(saved_hyperparams)

    def _load_pretrained_agent(self, hyperparams: Params, env: VecEnv) -> SkillDDPG:
        begins_task = self.reward == "extrinsic" and self.pretrained.get("reward", "intrinsic") == "intrinsic"
        self.resumes = is_checkpoint(Path(self.trained_agent).parent) and not begins_task
        if self.resumes:
            print(f"Resuming the run of {self.trained_agent} with its own hyperparameters")
            return resume(self.trained_agent, env, self.device, tensorboard_log=self.tensorboard_log, verbose=self.verbose)
        of_run = [path.parent.name for path in Path(self.trained_agent).parent.glob("*/args.yml")]
        if self.reward == "intrinsic" and "reward" not in self.given and of_run and str(self.env_name) not in of_run:
            # A task without an entry gets the default one, which is for pre-training
            warnings.warn(
                f"This continues to discover skills in {self.env_name.gym_id} and does not use its reward. To fine-tune a "
                "skill on it, add -params \"reward:'extrinsic'\", or reward: 'extrinsic' to its entry in your yml file."
            )
        kept = {name: self.pretrained[name] for name in self.method.fixed_by_save if name not in self.given}
        print(f"Loading {self.trained_agent}, which keeps its networks and {', '.join(f'{k}={v!r}' for k, v in kept.items())}")
        return self._load(
            env, seed=self.seed, tensorboard_log=self.tensorboard_log, verbose=self.verbose, device=self.device, **hyperparams
        )

    def _load(self, env: VecEnv, **arguments: Any) -> SkillDDPG:
        """Load the model of -i without the arguments of the entry that shape networks or skills, but with those of -params."""
        of_reward = self.method.reward_class.fixed_by_save
        fixed = {"policy", "policy_kwargs", *self.method.fixed_by_save}
        arguments = {name: value for name, value in arguments.items() if name not in fixed or name in self.given}
        if "policy_kwargs" in self.given:
            arguments["policy_kwargs"] = self.given["policy_kwargs"]
        if "intrinsic_kwargs" in arguments:
            given, own = self.given.get("intrinsic_kwargs") or {}, arguments["intrinsic_kwargs"] or {}
            is_fixed = {name: of_reward is None or name in of_reward for name in own}
            arguments["intrinsic_kwargs"] = {name: own[name] for name in own if not is_fixed[name]} | given
        model = self.method.load(self.trained_agent, env=env, **arguments)
        buffer = Path(self.trained_agent).with_name("replay_buffer.pkl")
        if buffer.is_file():
            print("Loading replay buffer")
            model.load_replay_buffer(buffer)
        return model

    def learn(self, model: SkillDDPG) -> None:  # type: ignore[override]
        if model.num_timesteps == 0:
            return super().learn(model)
        # Go on counting, so that a constraint that has started stays
        kwargs = {} if self.log_interval == -1 else {"log_interval": self.log_interval if self.log_interval >= 0 else None}
        if self.resumes:
            to_come = remaining_timesteps(model)
            if self.args.n_timesteps > 0:
                to_come = max(model._num_timesteps_at_start + self.args.n_timesteps - model.num_timesteps, 0)
            self.n_timesteps = to_come
        try:
            model.learn(self.n_timesteps, self.callbacks, reset_num_timesteps=False, **kwargs)  # type: ignore[arg-type]
        except KeyboardInterrupt:
            pass  # as in RL Zoo, to save the model
        finally:
            if self.show_progress:
                self.callbacks[0].on_training_end()
            assert model.env is not None
            model.env.close()

    def hyperparameters_optimization(self) -> None:
        n_before = self._argument(self._hyperparams, "learning_starts")
        if self.n_timesteps <= n_before:
            warnings.warn(
                f"Trials of {self.n_timesteps} steps learn nothing, as their first {n_before} steps only collect data "
                "(learning_starts): pass a larger -n, or a lower learning_starts with -params."
            )
        if self.reward == "intrinsic":
            space = self.search_space
            most_skills = max(space.searched.get("n_skills", [space.fixed.get("n_skills", 0)]))
            self.n_eval_episodes = max(self.n_eval_episodes, 2 * most_skills)
        # Trials are never resumed
        callbacks = self.specified_callbacks if isinstance(self.specified_callbacks, list) else [self.specified_callbacks]
        self.specified_callbacks = [each for each in callbacks if each and ResumableCheckpoint.__name__ not in str(each)]
        HYPERPARAMS_SAMPLER[self.algo] = lambda trial, *_: self.search_space.draw(trial)
        create_study = optuna.create_study
        # RL Zoo has no other place to begin a study
        optuna.create_study = lambda *args, **kwargs: self._begin(create_study(*args, **kwargs))
        if self.pretrained:
            ALGOS[self.algo] = self._load  # type: ignore[assignment]
        try:
            super().hyperparameters_optimization()
        finally:
            optuna.create_study, ALGOS[self.algo] = create_study, self.method

    def _begin(self, study: optuna.Study) -> optuna.Study:
        """Begin or continue a study. Its first trial trains with the entry as it is; all trials fine-tune the same skill."""
        study_of = f"{self.algo} in {self.env_name.gym_id}"
        if study.trials and study.user_attrs.get(STUDY_OF) != study_of:
            raise ValueError(f"The study {study.study_name!r} is not of {study_of}: begin another one with --study-name.")
        study.set_user_attr(STUDY_OF, study_of)
        space, skill = self.search_space, self._hyperparams.get("skill", "random")
        if self.pretrained.get("reward") == "intrinsic" and self.reward == "extrinsic" and skill == "random":
            drawn = [trial.params["skill"] for trial in study.trials if "skill" in trial.params]
            skill = drawn[0] if drawn else int(np.random.RandomState(self.seed).randint(self.pretrained["n_skills"]))
            space.searched["skill"], space.start["skill"] = [skill], skill
            print(f"All trials fine-tune skill {skill}. To choose another one, pass it with -params skill:...")
        print(f"Objective: {'the mean reward of the task' if self.reward == 'extrinsic' else 'skill_score'}")
        print(f"Searched: {', '.join(space.searched) or 'nothing, all is fixed'}")
        same = [trial for trial in study.trials if trial.system_attrs.get("fixed_params", trial.params) == space.start]
        # A worker that was killed before it had stored its draws leaves a trial that runs for ever
        if all(trial.state == optuna.trial.TrialState.RUNNING and not trial.params for trial in same):
            study.enqueue_trial(space.start)
        return study


# Here, as whatever imports this first runs the start-up hook halfway through
exp_manager.EvalCallback = SkillEvalCallback  # type: ignore[misc, assignment]
exp_manager.TrialEvalCallback = SkillTrialEvalCallback  # type: ignore[misc]
# Without the hook, rl_zoo3.train may have imported its manager already
for module in (exp_manager, sys.modules.get("rl_zoo3.train")):
    if hasattr(module, "ExperimentManager"):
        module.ExperimentManager = SkillExperimentManager  # type: ignore[union-attr]
