"""Evaluate pre-training by its skills, since it ignores the reward of the environment."""

from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.vec_env import VecEnv, sync_envs_normalization

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.evaluations import check_same_number
from sb3_cesd.common.files import with_suffix, written_whole
from sb3_cesd.common.rng import preserve_random_state
from sb3_cesd.common.vec_env import VecSkillObservation
from sb3_cesd.metrics.objective import N_EPISODES, n_rollouts_for, play_and_score
from sb3_cesd.skill_ddpg import SkillDDPG

#: SB3's and RL Zoo's default number of episodes, too few to compare skills
FEW_EPISODES = 5


class SkillEvalCallback(EvalCallback):
    """
    Evaluate a model that discovers skills by :func:`~sb3_cesd.metrics.objective.play_and_score`, and any other model as
    ``EvalCallback`` does.

    ``last_mean_reward`` and ``best_mean_reward`` are then skill scores. They determine the best model and other callbacks and,
    in RL Zoo, which evaluates with this callback, pruning and the objective of a study. ``eval/mean_reward`` is still the mean
    return of the environment over the evaluation episodes; ``evaluations.npz`` contains it and the metrics by name. To make
    scores comparable, episodes have at most 200 steps and actions get noise with a standard deviation of 0.2, so rewards
    differ from those of ``EvalCallback`` or ``evaluate_policy``. Successes are not recorded.

    Before the first update no model counts as the best: untrained networks may score higher than skills that have just begun
    to form.

    :param eval_env: environment or vectorized environment to evaluate in
    :param callback_on_new_best: called when there is a new best model
    :param callback_after_eval: called after each evaluation
    :param n_eval_episodes: number of episodes of an evaluation, for skills rounded up to a multiple of their number, at least
        two each; ``None`` for 64, and for 5 of any other model
    :param eval_freq: calls of the callback between two evaluations (environment steps divided by the number of environments)
    :param log_path: folder of ``evaluations.npz``; ``None`` to write none
    :param best_model_save_path: folder of ``best_model.zip``; ``None`` to save none
    :param deterministic: take the mean action of a stochastic policy
    :param render: render the episodes of models without skills to discover
    :param verbose: verbosity level
    :param warn: warn if ``eval_env`` is not in a ``Monitor``, for models without skills to discover
    :raises ValueError: if an evaluation has no episodes
    """

    model: Any

    def __init__(
        self,
        eval_env: gym.Env | VecEnv,
        callback_on_new_best: BaseCallback | None = None,
        callback_after_eval: BaseCallback | None = None,
        n_eval_episodes: int | None = None,
        eval_freq: int = 10000,
        log_path: str | None = None,
        best_model_save_path: str | None = None,
        deterministic: bool = True,
        render: bool = False,
        verbose: int = 1,
        warn: bool = True,
    ) -> None:
        check_arguments("SkillEvalCallback", {"n_eval_episodes": n_eval_episodes})
        super().__init__(
            eval_env,
            callback_on_new_best,
            callback_after_eval,
            FEW_EPISODES if n_eval_episodes is None else n_eval_episodes,
            eval_freq,
            log_path,
            best_model_save_path,
            deterministic,
            render,
            verbose,
            warn,
        )
        self._n_skill_episodes = N_EPISODES if n_eval_episodes is None else n_eval_episodes

    def _init_callback(self) -> None:
        super()._init_callback()
        if not hasattr(self, "evaluations_metrics"):
            #: Metrics of all evaluations by name; as the other lists, they are kept in the next call of ``learn``
            self.evaluations_metrics: dict[str, list[float]] = {}
        check_same_number(self.evaluations_results, self.n_evaluated())

    def n_evaluated(self) -> int:
        """Return the number of episodes that an evaluation of the model has."""
        if not self._evaluates_skills:
            return self.n_eval_episodes
        return self.model.n_skills * n_rollouts_for(self.n_episodes(), self.model.n_skills)

    @property
    def _evaluates_skills(self) -> bool:
        return isinstance(self.model, SkillDDPG) and self.model.reward == "intrinsic"

    def _on_step(self) -> bool:
        if not self._evaluates_skills:
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
        """Return the number of episodes of an evaluation, before rounding up to a multiple of the number of skills."""
        return self._n_skill_episodes

    def on_metrics(self, metrics: dict[str, float]) -> None:
        """
        Hook for subclasses, called after each evaluation.

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
        Save the best model and call the child callbacks, as ``EvalCallback`` does; a model without updates is never the best.

        :return: whether training should continue
        """
        goes_on = True
        if self.model._n_updates == 0:
            if self.verbose >= 1:
                learning_starts = self.model.learning_starts
                waits = self.num_timesteps <= learning_starts
                why = f"learning starts after {learning_starts} steps" if waits else "it has not learned yet"
                print(f"Not taken as the best model: {why}.")
        elif self.last_mean_reward > self.best_mean_reward:
            if self.verbose >= 1:
                print("New best skill score!")
            if self.best_model_save_path is not None:
                self.model.save(str(Path(self.best_model_save_path) / "best_model"))
            self.best_mean_reward = self.last_mean_reward
            if self.callback_on_new_best is not None:
                goes_on = self.callback_on_new_best.on_step()
        return goes_on and (self.callback is None or self._on_event())
