"""Callbacks for SB3 and RL Zoo."""

from pathlib import Path
from typing import Annotated, Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, sync_envs_normalization

from sb3_cesd.checkpoints import ResumableCheckpoint as ResumableCheckpoint
from sb3_cesd.common.arguments import PositiveInt, Range, checked
from sb3_cesd.common.files import with_suffix, written_whole
from sb3_cesd.common.playing import check_play_spaces
from sb3_cesd.common.rng import preserve_random_state
from sb3_cesd.common.vec_env import VecSkillObservation, check_not_training
from sb3_cesd.common.vec_normalize import normalize_like_training, transpose_like_training
from sb3_cesd.metrics.environments import (
    end_positions,
    env_layout,
    find_positions,
    make_env_like_training,
    make_play_env,
    robot_name,
)
from sb3_cesd.metrics.measures import TrainingCoverage
from sb3_cesd.metrics.summary import ARM_BIN, N_EPISODES, ROBOT_BIN, play_and_measure, play_and_score
from sb3_cesd.skill_ddpg import SkillDDPG

#: SB3's and RL Zoo's default number of episodes, too few to compare skills
FEW_EPISODES = 5


class SkillMetricsCallback(BaseCallback):
    """
    Log how well skills cover the environment and how distinguishable they are, as ``skills/...``.

    From rollouts of all skills (for continuous skills, those that have an index): the metrics of
    :func:`~sb3_cesd.metrics.summary.play_and_measure`. From the states visited in training, in mazes and for robots:
    ``total_coverage``, and for robots ``queue_coverage`` (last 100,000 steps). Coverage is a share of the maze, or the number
    of bins of 1 m that a robot visits (of 0.1 m for the hand of the arm).

    Training is not affected: rollouts use their own environments and random numbers.

    :param eval_env: vectorized environment, environment or id to play in, without skill observations; ``None`` creates
        environments like those of training, with their Gymnasium wrappers
        (:func:`~sb3_cesd.metrics.environments.make_env_like_training`). Observations are normalised by the training
        statistics, even if ``eval_env`` has its own ``VecNormalize``.
    :param eval_freq: calls of the callback between two measurements (environment steps divided by the number of environments)
    :param n_rollouts: rollouts per skill, at least 2
    :param n_steps: length of a rollout, shorter if the episode ends
    :param seed: seed of the rollouts, the same for all measurements
    :param verbose: verbosity level
    """

    model: SkillDDPG  # type: ignore[assignment]

    @checked
    def __init__(
        self,
        eval_env: VecEnv | gym.Env | str | None = None,
        eval_freq: PositiveInt = 10_000,
        n_rollouts: Annotated[int, Range(2)] = 10,
        n_steps: PositiveInt = 200,
        seed: int = 0,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        self.eval_env = eval_env
        self.eval_freq = eval_freq
        self.n_rollouts = n_rollouts
        self.n_steps = n_steps
        self.seed = seed
        #: Coverage of training; ``None`` if the environments have no positions
        self._coverage: TrainingCoverage | None = None

    def _init_callback(self) -> None:
        if not isinstance(self.model, SkillDDPG):
            raise ValueError(f"{type(self.model).__name__} has no skills to measure: use a method of sb3_cesd, such as CeSD.")
        self._layout = env_layout(self.training_env)
        with preserve_random_state():
            self._env = self._make_env()

    def _on_training_start(self) -> None:
        self._is_first_step = True
        if self.model.num_timesteps == 0:
            self._coverage = None

    def get_state(self) -> dict[str, Any]:
        """Return what training has covered."""
        return {"coverage": self._coverage}

    def set_state(self, state: dict[str, Any]) -> None:
        """Continue with the coverage of another run in the same environments, once training has started."""
        self._coverage = state["coverage"]

    def _make_env(self) -> VecEnv:
        """Create environments without skills, normalised as the model expects."""
        env, counts = self.eval_env, (self.model.n_skills, self.n_rollouts)
        if env is None:
            env = make_env_like_training(self.training_env, *counts)
        elif isinstance(env, str):
            env = make_play_env(env, *counts)
        elif isinstance(env, gym.Env):
            only = env
            env = DummyVecEnv([lambda: only])
        check_not_training(env, self.training_env)
        while isinstance(env, VecSkillObservation):
            env = env.venv
        env = transpose_like_training(env, self.model.plain_space)
        check_play_spaces(env, self.model, "an eval_env")
        return normalize_like_training(env, self.model.get_vec_normalize_env())

    def _on_step(self) -> bool:
        dones, infos = self.locals["dones"], self.locals["infos"]
        if self._is_first_step:
            # Not before, as some environments tell their positions after a step only
            self._is_first_step, self._positions = False, find_positions(self.training_env, infos)
            self._is_arm = robot_name(self.training_env) == "jaco"
        if self._positions is not None:
            # Positions after a step, and those where episodes have ended
            positions = self._positions(dones, infos)
            positions = np.concatenate([positions, end_positions(dones, infos, positions.shape[1])[1]])
            if self._layout is not None:
                positions = self._layout.bin_indices(positions[:, :2])[:, None]
            self._coverage = self._coverage or TrainingCoverage(ARM_BIN if self._is_arm else ROBOT_BIN)
            self._coverage.add(positions if self._is_arm else positions[:, :2])
        if self.n_calls % self.eval_freq == 0:
            self._measure()
        return True

    def _measure(self) -> None:
        with preserve_random_state():
            # Statistics of wrappers may have changed; a resumed run has loaded those of VecNormalize by now
            self._on_training_end()
            self._env = self._make_env()
            metrics, _ = play_and_measure(
                self.model,
                self._env,
                seed=self.seed,
                n_rollouts=self.n_rollouts,
                n_steps=self.n_steps,
                noise_std=self.model.exploration_noise,
            )
        if self._coverage is not None and self._layout is not None:
            metrics["total_coverage"] = self._coverage.total / self._layout.n_free_bins
        elif self._coverage is not None:
            metrics["total_coverage"] = float(self._coverage.total)
            metrics["queue_coverage"] = float(self._coverage.queue)
        for name, value in metrics.items():
            self.logger.record(f"skills/{name}", value)
        # As EvalCallback does: log at this time step, even if training ends now
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.logger.dump(self.num_timesteps)

    def _on_training_end(self) -> None:
        # Environments of the user stay open
        if self.eval_env is None or isinstance(self.eval_env, str):
            self._env.close()


class SkillEvalCallback(EvalCallback):
    """
    Evaluate a model that discovers skills by :func:`~sb3_cesd.metrics.summary.play_and_score`, and any other model as
    ``EvalCallback`` does.

    ``last_mean_reward`` and ``best_mean_reward`` are then skill scores. They determine the best model and other callbacks and,
    in RL Zoo, which evaluates with this callback, pruning and the objective of a study. ``eval/mean_reward`` is still the mean
    return of the environment over the evaluation episodes; ``evaluations.npz`` contains it and the metrics by name. To make
    scores comparable, episodes have at most 200 steps and actions get noise with a standard deviation of 0.2, so rewards
    differ from those of ``EvalCallback`` or ``evaluate_policy``.

    Before the first update no model counts as the best, nor do other callbacks hear of an evaluation: untrained networks may
    score higher than skills that have just begun to form.

    :param eval_env: environment or vectorized environment to evaluate in
    :param n_eval_episodes: number of episodes of an evaluation, for skills rounded up to a multiple of their number, at least
        two each; ``None`` for 64, and for 5 of any other model
    :param kwargs: other arguments of ``EvalCallback``
    """

    model: Any

    @checked
    def __init__(self, eval_env: gym.Env | VecEnv, *, n_eval_episodes: PositiveInt | None = None, **kwargs: Any) -> None:
        super().__init__(eval_env, n_eval_episodes=n_eval_episodes or FEW_EPISODES, **kwargs)
        self._n_skill_episodes = n_eval_episodes or N_EPISODES
        #: Metrics of all evaluations by name; as the other lists, they are kept in the next call of ``learn``
        self.evaluations_metrics: dict[str, list[Any]] = {}

    def on_metrics(self, metrics: dict[str, float]) -> None:
        """Hook for subclasses, called with the metrics by name after each evaluation."""

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
            metrics, rollouts = play_and_score(self.model, env, self._n_skill_episodes, deterministic=self.deterministic)
        metrics["mean_reward"] = float(rollouts.returns.mean())
        if rollouts.successes is not None:
            metrics["success_rate"] = float(rollouts.successes.mean())
            self.evaluations_metrics.setdefault("successes", []).append(rollouts.successes.ravel().tolist())
        self._write(metrics, rollouts.returns.ravel(), rollouts.lengths.ravel())
        self.on_metrics(metrics)
        self.last_mean_reward = metrics["skill_score"]
        if self.model._n_updates == 0:
            return True
        # As EvalCallback does: save the best model and call the child callbacks
        goes_on = True
        if self.last_mean_reward > self.best_mean_reward:
            if self.verbose >= 1:
                print("New best skill score!")
            if self.best_model_save_path is not None:
                self.model.save(str(Path(self.best_model_save_path) / "best_model"))
            self.best_mean_reward = self.last_mean_reward
            if self.callback_on_new_best is not None:
                goes_on = self.callback_on_new_best.on_step()
        return goes_on and (self.callback is None or self._on_event())

    def _write(self, metrics: dict[str, float], returns: np.ndarray, lengths: np.ndarray) -> None:
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
