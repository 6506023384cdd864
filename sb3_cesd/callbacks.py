"""Callbacks for SB3 and RL Zoo."""

import warnings
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.callbacks import BaseCallback, EventCallback
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from sb3_cesd.checkpoints import ResumableCheckpoint as ResumableCheckpoint
from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.observations import OBSERVATION
from sb3_cesd.common.playing import check_play_spaces
from sb3_cesd.common.rng import preserve_random_state
from sb3_cesd.common.vec_env import VecSkillObservation
from sb3_cesd.common.vec_normalize import normalize_like_training, transpose_like_training
from sb3_cesd.eval_callback import SkillEvalCallback as SkillEvalCallback
from sb3_cesd.metrics import (
    CumulativeMazeCoverage,
    TrainingCoverage,
    draw_goals,
    env_positions,
    make_env_like_training,
    make_play_env,
    play_and_measure,
    policy_coverage,
    zero_shot_goals,
)
from sb3_cesd.metrics.motion import robot_name
from sb3_cesd.metrics.places import end_positions, has_places, why_no_reach
from sb3_cesd.metrics.summary import ARM_BIN, ROBOT_BIN, env_layout
from sb3_cesd.metrics.training_env import has_wrappers
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.checks import check_finite


class SkillMetricsCallback(BaseCallback):
    """
    Log how well skills cover the environment and how distinguishable they are, as ``skills/...``.

    From rollouts of all skills (for continuous skills, those that have an index): ``knn_accuracy`` and ``particle_entropy`` of
    observations; in mazes and for robots ``policy_coverage``, ``mutual_information``, ``knn_accuracy_places`` and
    ``particle_entropy_places``; outside mazes ``knn_accuracy_standardized`` and ``moving_share``, and for robots
    ``torso_speed`` (for the arm ``hand_speed``, ``gripper_closing`` and ``gripper_opening``); for models with clusters
    ``on_cluster_share`` and ``cluster_size_entropy``. From the states visited in training, in mazes and for robots:
    ``total_coverage``, and for robots ``queue_coverage`` (last 100,000 steps). Coverage is a share of the maze, or the number
    of bins of 1 m that a robot visits (of 0.1 m for the hand of the arm).

    Training is not affected: rollouts use their own environments and random numbers.

    In RL Zoo, in the yml file or with ``-params``::

        callback:
          - sb3_cesd.callbacks.SkillMetricsCallback:
              eval_freq: 10000

    :param eval_env: vectorized environment, environment or id to play in, without skill observations; ``None`` creates
        environments like those of training, with all of their wrappers
        (:func:`~sb3_cesd.metrics.training_env.make_env_like_training`). Observations are normalised by the training
        statistics, even if ``eval_env`` has its own ``VecNormalize``.
    :param eval_freq: calls of the callback between two measurements (environment steps divided by the number of environments)
    :param n_rollouts: rollouts per skill, at least 2
    :param n_steps: length of a rollout, shorter if the episode ends
    :param seed: seed of the rollouts, the same for all measurements
    :param n_trajectories: for a robot, log the policy coverage of this many deterministic trajectories as
        ``policy_coverage_<n>``; METRA (Park et al., 2024) reports 48; 0 for none
    :param goal_range: for a robot, follow skills to 50 goals whose coordinates are within +- this range [m], and log
        ``goal_hit_3``, ``goal_end_3`` and ``goal_stay_3``, the same for 1 m, and ``goal_distance``
        (:func:`~sb3_cesd.metrics.goals.zero_shot_goals`); ``None`` for no goals
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
        n_trajectories: int = 0,
        goal_range: float | None = None,
        verbose: int = 0,
    ) -> None:
        check_arguments("SkillMetricsCallback", locals())
        super().__init__(verbose)
        self.eval_env = eval_env
        self.eval_freq = eval_freq
        self.n_rollouts = n_rollouts
        self.n_steps = n_steps
        self.seed = seed
        self.n_trajectories = n_trajectories
        self.goal_range = goal_range
        self._env: VecEnv | None = None
        #: Whether training uses other wrappers than ``VecNormalize`` that change observations or actions
        self._wrapped = False
        self._maze_coverage: CumulativeMazeCoverage | None = None
        #: Places in a maze since the last measurement, shape ``(n, 2)`` each
        self._places: list[np.ndarray] = []
        #: Coverage of a robot's positions
        self._coverage: TrainingCoverage | None = None
        self._in_hand = False
        self._has_places = False

    def _init_callback(self) -> None:
        if not isinstance(self.model, SkillDDPG):
            *others, last = [method.__name__ for method in METHODS.values()]
            raise ValueError(
                f"{type(self.model).__name__} has no skills to measure: use this callback with {', '.join(others)} or {last}."
            )
        self._wrapped = has_wrappers(self.training_env)
        with preserve_random_state():
            self._env = self._make_env()
        layout = env_layout(self.training_env)
        known = None if self._maze_coverage is None else self._maze_coverage.layout
        if self.model.num_timesteps == 0 or layout is not known:
            self._maze_coverage = None if layout is None else CumulativeMazeCoverage(layout)
            self._places.clear()
            self._coverage = None

    def _on_training_start(self) -> None:
        # Not before: a resumed run has the environments of its checkpoint only now, and some have no position before a reset
        self._has_places = has_places(self.training_env)
        if self._maze_coverage is None and self._has_places:
            self._in_hand = robot_name(self.training_env) == "jaco"
            if self._coverage is None:
                self._coverage = TrainingCoverage(ARM_BIN if self._in_hand else ROBOT_BIN)
        elif self.n_trajectories > 0 or self.goal_range is not None:
            raise ValueError(why_no_reach(self.training_env))
        # CallbackList sets the parent only after _init_callback
        if self._has_places and isinstance(self.parent, EventCallback):
            warnings.warn(
                f"total_coverage counts the states of all training steps, but {type(self.parent).__name__} calls its callback "
                "in only some of them: pass SkillMetricsCallback beside it in a list, with an eval_freq."
            )

    def get_state(self) -> dict[str, Any]:
        """
        Return which states training has visited.

        :return: state for :meth:`set_state`
        """
        visited = None if self._maze_coverage is None else self._maze_coverage._visited
        return {"visited": visited, "places": self._places, "coverage": self._coverage}

    def set_state(self, state: dict[str, Any]) -> None:
        """
        Continue with the coverage of another run in the same environments; call it once training has started.

        :param state: state that :meth:`get_state` returned in the other run
        """
        if self._maze_coverage is not None:
            self._maze_coverage._visited = state["visited"]
        self._places, self._coverage = state["places"], state["coverage"]

    def _make_env(self) -> VecEnv:
        """Create environments without skills, normalised as the model expects."""
        env = self.eval_env
        if env is None:
            env = make_env_like_training(self.training_env, self.model.n_skills, self.n_rollouts)
        if isinstance(env, str):
            env = make_play_env(env, self.model.n_skills, self.n_rollouts)
        if isinstance(env, gym.Env):
            only = env
            env = DummyVecEnv([lambda: only])
        if env.unwrapped is self.training_env.unwrapped:
            raise ValueError("eval_env is the training environment, whose episode must not be interrupted: pass another one.")
        while isinstance(env, VecSkillObservation):
            env = env.venv
        env = transpose_like_training(env, self.model.plain_space)
        check_play_spaces(env.observation_space, env.action_space, self.model, "an eval_env")
        return normalize_like_training(env, self.model.get_vec_normalize_env())

    def _on_step(self) -> bool:
        if self._has_places:
            places = env_positions(self.training_env)
            ended, ends = end_positions(self.locals["dones"], self.locals["infos"], places.shape[1])
            starts, places[ended] = places[ended], ends
            check_finite(self.training_env, "position", places, self.num_timesteps)
            places = np.concatenate([places, starts])
            if self._maze_coverage is not None:
                self._places += [places[:, :2], *self._ends_in_maze(self._maze_coverage)]
            elif self._coverage is not None:
                self._coverage.add(places if self._in_hand else places[:, :2])
        if self.n_calls % self.eval_freq == 0:
            self._measure()
        return True

    def _ends_in_maze(self, coverage: CumulativeMazeCoverage) -> list[np.ndarray]:
        """
        Return where episodes ended in this step; the environments have already been reset.

        :param coverage: coverage of the maze
        :return: final positions, shape ``(1, 2)`` each; none if observations are not positions
        """
        if self._wrapped:
            return []
        infos = [self.locals["infos"][idx] for idx in np.flatnonzero(self.locals["dones"])]
        ends = [self.model._unnormalized(info["terminal_observation"])[OBSERVATION] for info in infos]
        # Normalisation and its inverse may round a position across a nearby wall
        return [end[None] for end in ends if coverage.layout.is_free(end)]

    def _measure(self) -> None:
        assert self._env is not None
        with preserve_random_state():
            if self.eval_env is None and self._wrapped:
                # Wrappers may have updated their statistics
                self._env.close()
                self._env = self._make_env()
            else:
                # A resumed run has loaded its statistics by now
                self._env = normalize_like_training(self._env, self.model.get_vec_normalize_env())
            metrics, _ = play_and_measure(
                self.model,
                self._env,
                seed=self.seed,
                n_rollouts=self.n_rollouts,
                n_steps=self.n_steps,
                noise_std=self.model.exploration_noise,
            )
            metrics |= self._measure_places(self._env)
        if self._maze_coverage is not None:
            metrics["total_coverage"] = self._maze_coverage.add(np.concatenate(self._places))
            self._places.clear()
        elif self._coverage is not None:
            metrics["total_coverage"] = float(self._coverage.total)
            metrics["queue_coverage"] = float(self._coverage.queue)
        for name, value in metrics.items():
            self.logger.record(f"skills/{name}", value)
        # As EvalCallback does: log at this time step, even if training ends now
        self.logger.record("time/total_timesteps", self.num_timesteps, exclude="tensorboard")
        self.logger.dump(self.num_timesteps)

    def _measure_places(self, env: VecEnv) -> dict[str, float]:
        """
        Measure the policy coverage and how well skills reach goals.

        :param env: environments of a robot
        :return: the requested metrics by name
        """
        metrics = {}
        if self.n_trajectories > 0:
            coverage = policy_coverage(self.model, env, self.n_trajectories, self.n_steps, seed=self.seed)
            metrics[f"policy_coverage_{self.n_trajectories}"] = float(coverage)
        if self.goal_range is not None:
            goals = draw_goals(env, goal_range=self.goal_range, seed=self.seed)
            metrics |= zero_shot_goals(self.model, env, goals, self.n_steps, self.seed).metrics()
        return metrics

    def _on_training_end(self) -> None:
        # Environments of the user stay open
        if self._env is not None and (self.eval_env is None or isinstance(self.eval_env, str)):
            self._env.close()
