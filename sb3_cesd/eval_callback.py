"""Evaluations of a pre-training: by its skills, as the reward of the environment says nothing about them."""

import inspect
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.vec_env import VecEnv, sync_envs_normalization

from sb3_cesd.common.files import with_suffix, written_whole
from sb3_cesd.common.rng import preserve_random_state
from sb3_cesd.common.vec_env import VecSkillObservation
from sb3_cesd.metrics.objective import N_EPISODES, play_and_score
from sb3_cesd.skill_ddpg import SkillDDPG

#: Number of episodes unless the user says otherwise; too few to compare skills
FEW_EPISODES = inspect.signature(EvalCallback).parameters["n_eval_episodes"].default


class SkillEvalCallback(EvalCallback):
    """
    Evaluate a model that discovers skills by :func:`~sb3_cesd.metrics.objective.play_and_score`; any other model as before.

    ``last_mean_reward`` and ``best_mean_reward`` are scores then, so all that is done by them follows the skills: the best
    model, other callbacks, and in RL Zoo, which evaluates by it, pruning and the objective of a study. ``eval/mean_reward``
    still is the reward of the environment, over the episodes that were played; ``evaluations.npz`` holds it with the metrics
    beside it, by name. These episodes are of at most 200 steps and have noise of 0.2 on their actions, as scores are compared
    by them, so rewards are not those that ``EvalCallback`` or ``evaluate_policy`` would tell. Successes are not recorded.

    Before the first update no model is the best: untrained networks may score higher than skills that have just begun to form.

    There are 64 episodes, or as many as ``n_eval_episodes`` (``--eval-episodes``) says unless that is SB3's default of 5, at
    least two of each skill. Arguments are those of ``EvalCallback``, of which ``render`` and ``warn`` have no effect here.
    """

    model: Any

    def _init_callback(self) -> None:
        super()._init_callback()
        if not hasattr(self, "evaluations_metrics"):
            #: Metrics of each evaluation, by name; they go on in another training, as evaluations do
            self.evaluations_metrics: dict[str, list[float]] = {}

    def _on_step(self) -> bool:
        if not isinstance(self.model, SkillDDPG) or self.model.reward != "intrinsic":
            return super()._on_step()
        if self.eval_freq <= 0 or self.n_calls % self.eval_freq != 0:
            return True
        if self.model.get_vec_normalize_env() is not None:
            sync_envs_normalization(self.training_env, self.eval_env)
        env: VecEnv = self.eval_env
        while isinstance(env, VecSkillObservation):
            env = env.venv
        with preserve_random_state():
            metrics, rollouts = play_and_score(self.model, env, self.n_episodes(), deterministic=self.deterministic)
        metrics["mean_reward"] = float(rollouts.returns.mean())
        self._write(metrics, rollouts.returns.ravel(), rollouts.lengths.ravel())
        self.on_metrics(metrics)
        self.last_mean_reward = metrics["skill_score"]
        return self._follow_score()

    def n_episodes(self) -> int:
        """Tell how many episodes an evaluation has, before they are rounded up to a multiple of the number of skills."""
        return N_EPISODES if self.n_eval_episodes == FEW_EPISODES else self.n_eval_episodes

    def on_metrics(self, metrics: dict[str, float]) -> None:
        """
        Take note of an evaluation.

        :param metrics: metrics by name
        """

    def _write(self, metrics: dict[str, float], returns: np.ndarray, lengths: np.ndarray) -> None:
        """Write an evaluation to the logs and to ``evaluations.npz``."""
        for name, value in metrics.items():
            self.logger.record(f"eval/{name}", value)
            self.evaluations_metrics.setdefault(name, []).append(value)
        self.logger.record("eval/mean_ep_length", float(lengths.mean()))
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.logger.dump(self.num_timesteps)
        if self.verbose >= 1:
            factors = ", ".join(f"{name}={metrics[name]:.3g}" for name in ("knn_accuracy", "coarse_coverage", "mean_reward"))
            print(f"Eval num_timesteps={self.num_timesteps}, skill_score={metrics['skill_score']:.4g} ({factors})")
        if self.log_path is not None:
            self.evaluations_timesteps.append(self.num_timesteps)
            self.evaluations_results.append(returns.tolist())
            self.evaluations_length.append(lengths.tolist())
            with written_whole(with_suffix(self.log_path, ".npz")) as file:
                np.savez(
                    file,
                    timesteps=self.evaluations_timesteps,
                    results=self.evaluations_results,
                    ep_lengths=self.evaluations_length,
                    **self.evaluations_metrics,  # type: ignore[arg-type]
                )

    def _follow_score(self) -> bool:
        """
        Do what is to be done after an evaluation, as ``EvalCallback`` does, but for a model that has not learned yet.

        :return: whether training goes on
        """
        goes_on = True
        if self.model._n_updates == 0:
            if self.verbose >= 1:
                print(f"Not taken as the best model: learning starts after {self.model.learning_starts} steps.")
        elif self.last_mean_reward > self.best_mean_reward:
            if self.verbose >= 1:
                print("New best skill score!")
            if self.best_model_save_path is not None:
                self.model.save(str(Path(self.best_model_save_path) / "best_model"))
            self.best_mean_reward = self.last_mean_reward
            if self.callback_on_new_best is not None:
                goes_on = self.callback_on_new_best.on_step()
        return goes_on and (self.callback is None or self._on_event())
