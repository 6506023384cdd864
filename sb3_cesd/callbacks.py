"""Callbacks for SB3 and RL Zoo."""

import gymnasium as gym
import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from sb3_cesd.common.rng import preserve_random_state
from sb3_cesd.metrics import CumulativeMazeCoverage, env_positions, play_and_measure
from sb3_cesd.metrics.summary import env_layout
from sb3_cesd.skill_ddpg import SkillDDPG


class SkillMetricsCallback(BaseCallback):
    """
    Log how well the skills cover the environment and can be told apart, as ``skills/...`` (TensorBoard too):
    ``coverage``, ``mutual_information``, ``knn_accuracy``, ``particle_entropy``, ``on_cluster_share`` and
    ``cluster_size_entropy`` of rollouts of all skills, and ``cumulative_coverage`` of all states of training; of these, what
    the environment and the model have. In a maze coverage is a share of the maze, for a robot the number of bins of 1 m.

    Training goes on as it would without: the rollouts are played in environments and with random numbers of their own.

    In RL Zoo, in the yml file or with ``-params``::

        callback:
          - sb3_cesd.callbacks.SkillMetricsCallback:
              eval_freq: 10000

    :param eval_env: what to play in, without skill observations: environments, one environment, or an id; ``None`` makes one
        by the id of the training environment
    :param eval_freq: calls of the callback between two measurements (environment steps over the number of environments)
    :param n_rollouts: rollouts of each skill, at least 2
    :param n_steps: length of a rollout, shorter if the episode ends
    :param seed: seed of the rollouts, the same in all measurements
    :param verbose: verbosity level
    """

    model: SkillDDPG  # type: ignore[assignment]

    def __init__(
        self,
        eval_env: VecEnv | gym.Env | str | None = None,
        eval_freq: int = 10_000,
        n_rollouts: int = 10,
        n_steps: int = 200,
        seed: int = 0,
        verbose: int = 0,
    ) -> None:
        super().__init__(verbose)
        if n_rollouts < 2:
            raise ValueError(f"n_rollouts={n_rollouts} leaves none to compare with: play at least 2 of each skill.")
        if eval_freq < 1:
            raise ValueError(f"eval_freq={eval_freq} must be a positive number of steps.")
        self.eval_env = eval_env
        self.eval_freq = eval_freq
        self.n_rollouts = n_rollouts
        self.n_steps = n_steps
        self.seed = seed
        self._env: VecEnv | None = None
        self._maze_coverage: CumulativeMazeCoverage | None = None
        self._bins: set[tuple[int, int]] = set()

    def _init_callback(self) -> None:
        if not isinstance(self.model, SkillDDPG):
            raise ValueError(
                f"{type(self.model).__name__} has no skills to measure: use this callback with CeSD, DIAYN, DADS, CIC or APT."
            )
        with preserve_random_state():
            self._env = self._make_env()
        layout = env_layout(self.training_env)
        self._maze_coverage = None if layout is None else CumulativeMazeCoverage(layout)
        self._bins.clear()

    def _make_env(self) -> VecEnv:
        env = self.eval_env
        if env is None:
            spec = self.training_env.get_attr("spec", indices=0)[0] if self.training_env.has_attr("spec") else None
            if spec is None:
                raise ValueError("The training environment has no id to make another one by: pass eval_env.")
            env = spec.id
        if isinstance(env, str):
            env = gym.make(env)
        if isinstance(env, gym.Env):
            only = env
            env = DummyVecEnv([lambda: only])
        statistics = self.model.get_vec_normalize_env()
        if statistics is not None and not isinstance(env, VecNormalize):
            env = VecNormalize(env, training=False, norm_obs=statistics.norm_obs, norm_reward=False)
        return env

    def _on_step(self) -> bool:
        if self.training_env.has_attr("position"):
            places = env_positions(self.training_env)[:, :2]
            if self._maze_coverage is not None:
                self._maze_coverage.add(places)
            else:
                self._bins.update(map(tuple, np.floor(places).astype(int).tolist()))
        if self.n_calls % self.eval_freq == 0:
            self._measure()
        return True

    def _measure(self) -> None:
        assert self._env is not None
        statistics = self.model.get_vec_normalize_env()
        if statistics is not None and isinstance(self._env, VecNormalize):
            self._env.obs_rms = statistics.obs_rms
        with preserve_random_state():
            metrics, _ = play_and_measure(
                self.model,
                self._env,
                seed=self.seed,
                n_rollouts=self.n_rollouts,
                n_steps=self.n_steps,
                noise_std=self.model.exploration_noise,
            )
        if self._maze_coverage is not None:
            metrics["cumulative_coverage"] = self._maze_coverage.share
        elif self._bins:
            metrics["cumulative_coverage"] = float(len(self._bins))
        for name, value in metrics.items():
            self.logger.record(f"skills/{name}", value)
