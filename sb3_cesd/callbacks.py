"""Callbacks for SB3 and RL Zoo."""

import gymnasium as gym
import numpy as np
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from sb3_cesd.checkpoints import ResumableCheckpoint as ResumableCheckpoint
from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.observations import OBSERVATION
from sb3_cesd.common.rng import preserve_random_state
from sb3_cesd.common.vec_env import VecSkillObservation, normalize_like_training
from sb3_cesd.envs.mazes.layouts import LAYOUTS
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.metrics import CumulativeMazeCoverage, env_positions, make_play_env, play_and_measure
from sb3_cesd.metrics.summary import env_layout
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.checks import check_play_spaces


class SkillMetricsCallback(BaseCallback):
    """
    Log how well skills cover the environment and can be told apart, as ``skills/...``.

    From rollouts of all skills (of continuous ones, those that an index stands for): ``knn_accuracy`` and
    ``particle_entropy``; in mazes and for robots ``coverage`` and ``mutual_information``; of models with clusters
    ``on_cluster_share`` and ``cluster_size_entropy``. From all states of training in a maze or of a robot:
    ``cumulative_coverage``. Coverage is a share of the maze, or for a robot the number of bins of 1 m.

    Training goes on as it would without: the rollouts are played in environments and with random numbers of their own.

    In RL Zoo, in the yml file or with ``-params``::

        callback:
          - sb3_cesd.callbacks.SkillMetricsCallback:
              eval_freq: 10000

    :param eval_env: what to play in, without skill observations: environments, one environment, or an id; ``None`` makes
        environments by the id and arguments of those of training, without wrappers. Observations are normalised by the
        statistics of training, also where ``eval_env`` has a ``VecNormalize`` of its own.
    :param eval_freq: calls of the callback between two measurements (environment steps over the number of environments)
    :param n_rollouts: rollouts per skill, at least 2
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
        check_arguments("SkillMetricsCallback", locals())
        super().__init__(verbose)
        self.eval_env = eval_env
        self.eval_freq = eval_freq
        self.n_rollouts = n_rollouts
        self.n_steps = n_steps
        self.seed = seed
        self._env: VecEnv | None = None
        self._maze_coverage: CumulativeMazeCoverage | None = None
        #: Places in a maze since the last measurement, shape ``(n, 2)`` each
        self._places: list[np.ndarray] = []
        self._bins: set[tuple[int, int]] = set()

    def _init_callback(self) -> None:
        if not isinstance(self.model, SkillDDPG):
            *others, last = [method.__name__ for method in METHODS.values()]
            raise ValueError(
                f"{type(self.model).__name__} has no skills to measure: use this callback with {', '.join(others)} or {last}."
            )
        with preserve_random_state():
            self._env = self._make_env()
        layout = env_layout(self.training_env)
        known = None if self._maze_coverage is None else self._maze_coverage.layout
        if self.model.num_timesteps == 0 or layout is not known:
            self._maze_coverage = None if layout is None else CumulativeMazeCoverage(layout)
            self._places.clear()
            self._bins.clear()

    def _make_env(self) -> VecEnv:
        """Make environments without skills, normalised as the model expects them."""
        env = self._make_default_env() if self.eval_env is None else self.eval_env
        if isinstance(env, str):
            env = make_play_env(env, self.model.n_skills, self.n_rollouts)
        if isinstance(env, gym.Env):
            only = env
            env = DummyVecEnv([lambda: only])
        if env.unwrapped is self.training_env.unwrapped:
            raise ValueError("eval_env is the training environment, which goes on with its episode: pass another one.")
        while isinstance(env, VecSkillObservation):
            env = env.venv
        check_play_spaces(env.observation_space, env.action_space, self.model, "an eval_env")
        return normalize_like_training(env, self.model.get_vec_normalize_env())

    def _make_default_env(self) -> VecEnv:
        layout = env_layout(self.training_env)
        spec = self.training_env.get_attr("spec", indices=0)[0] if self.training_env.has_attr("spec") else None
        if spec is not None:
            env_kwargs = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
            return make_play_env(spec.id, self.model.n_skills, self.n_rollouts, env_kwargs)
        if layout is None:
            raise ValueError("The training environment has no id to make another one by: pass eval_env.")
        name = next(name for name, known in LAYOUTS.items() if known is layout)
        return MazeVecEnv(name, self.model.n_skills * self.n_rollouts)

    def _on_step(self) -> bool:
        if self.training_env.has_attr("position"):
            places = env_positions(self.training_env)[:, :2]
            if self._maze_coverage is not None:
                self._places += [places, *self._ends_in_maze(self._maze_coverage)]
            else:
                self._bins.update(map(tuple, np.floor(places).astype(int).tolist()))
        if self.n_calls % self.eval_freq == 0:
            self._measure()
        return True

    def _ends_in_maze(self, coverage: CumulativeMazeCoverage) -> list[np.ndarray]:
        """
        Locate the ends of episodes, which the environments have left already.

        :param coverage: of the maze
        :return: where episodes ended in this step, shape ``(1, 2)`` each; none if observations are no places
        """
        if self.model.plain_space.shape != (2,):
            return []
        infos = [self.locals["infos"][idx] for idx in np.flatnonzero(self.locals["dones"])]
        ends = [self.model._unnormalized(info["terminal_observation"])[OBSERVATION] for info in infos]
        # Normalised and back, an end near a wall may be rounded across
        return [end[None] for end in ends if coverage.layout.is_free(end)]

    def _measure(self) -> None:
        assert self._env is not None
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
            metrics["cumulative_coverage"] = self._maze_coverage.add(np.concatenate(self._places))
            self._places.clear()
        elif self._bins:
            metrics["cumulative_coverage"] = float(len(self._bins))
        for name, value in metrics.items():
            self.logger.record(f"skills/{name}", value)
        # As EvalCallback does: with the right time step, and even if training ends now
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.logger.dump(self.num_timesteps)

    def _on_training_end(self) -> None:
        # Not the user's
        if self._env is not None and (self.eval_env is None or isinstance(self.eval_env, str)):
            self._env.close()
