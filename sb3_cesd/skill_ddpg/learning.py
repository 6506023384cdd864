"""A run of ``learn``: its logs, callbacks and costs."""

import warnings
from collections.abc import Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Any, TypeVar

from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import MaybeCallback
from stable_baselines3.common.utils import safe_mean

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.choices import LogInterval
from sb3_cesd.common.logging import LogSchedule, MeanLogs, n_logs_for
from sb3_cesd.common.noise import unit_noise
from sb3_cesd.common.observations import entries_of
from sb3_cesd.common.progress import has_come, step_of
from sb3_cesd.skill_ddpg import checks, normalization
from sb3_cesd.skill_ddpg.acting import ActingSkillModel
from sb3_cesd.skill_ddpg.estimate import CostPhase, Estimate
from sb3_cesd.skill_ddpg.evaluation import add_skills_to_evaluation
from sb3_cesd.skill_ddpg.finetuning import ZeroShot
from sb3_cesd.skill_ddpg.saving import OF_LEARNING

#: Time of an update with a step of the actor, as a multiple of that of the critic alone: a rough figure
COST_OF_ACTOR = 1.5

SelfLearningSkillModel = TypeVar("SelfLearningSkillModel", bound="LearningSkillModel")


class LearningSkillModel(ActingSkillModel):
    """Part of :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG` that runs ``learn``: its logs, callbacks and costs."""

    noise_correlation: float
    actor_learning_starts: float
    bc_coef: float
    #: Whether the actor learned in an earlier ``learn``: it then goes on, whatever the progress of the next one
    actor_learned: bool = False
    #: Returns of all skills, if they were played to find the best one
    zero_shot: ZeroShot | None
    #: During ``learn``: contexts and clean-ups of callbacks, which are closed however it ends
    until_learned: ExitStack

    #: During ``learn``: when to write logs, and the estimate of the cost
    _log_schedule: LogSchedule | None = None
    _estimate: Estimate | None = None
    _mean_logs: MeanLogs
    #: For a model that was resumed from a checkpoint: restores what ``learn`` sets up anew
    _goes_on: "Callable[[LearningSkillModel, BaseCallback], None] | None"
    #: Folders that hold checkpoints of this run
    checkpoint_folders: frozenset[Path] = frozenset()

    def __getstate__(self) -> dict[str, Any]:
        # For copies that a callback makes: they do not learn, and clean-ups can't be copied
        state = {name: value for name, value in vars(self).items() if name not in OF_LEARNING}
        state["learning_starts"] -= state.pop("_learns_later_by", 0)
        return state

    @property
    def is_resumed(self) -> bool:
        """Whether the next ``learn`` resumes from a checkpoint, see :func:`sb3_cesd.checkpoints.resume`."""
        return self._goes_on is not None

    def learn(
        self: SelfLearningSkillModel,
        total_timesteps: int,
        callback: MaybeCallback = None,
        log_interval: LogInterval | int | None = "auto",
        tb_log_name: str | None = None,
        reset_num_timesteps: bool = True,
        progress_bar: bool = False,
    ) -> SelfLearningSkillModel:
        """
        Train the model, see :meth:`stable_baselines3.common.base_class.BaseAlgorithm.learn`.

        With ``verbose=1``, it first prints what the training takes: steps, updates, memory and file size, and after the first
        updates an estimate of its time.

        :param total_timesteps: The total number of samples (env steps) to train on
        :param callback: callback(s) called at every step with state of the algorithm.
        :param log_interval: ``"auto"`` writes logs 20 times per training (100 times if they also go to a file, such as
            TensorBoard's), and at least every minute; a number writes them after that many episodes, as in
            Stable-Baselines3 (4 by default there); ``None`` leaves it to callbacks
        :param tb_log_name: the name of the run for TensorBoard logging; ``None`` for that of the method
        :param reset_num_timesteps: whether or not to reset the current timestep number (used in logging)
        :param progress_bar: Display a progress bar using tqdm and rich.
        :return: the trained model
        :raises ValueError: if there is no environment to learn in, or ``bc_coef`` asks for a pre-trained skill to imitate, and
            there is none
        :raises TrainingDiverged: if a loss, gradient or running statistic is not finite, unless such steps are skipped; or if
            actions or weights are not
        """
        check_arguments("learn", locals())
        total_timesteps = int(total_timesteps)  # of a whole float
        if self.env is None:
            raise ValueError("The model has no environment to learn in: pass env to load, or call set_env.")
        checks.check_reference(self)
        before = dict(vars(self))
        self._log_schedule = LogSchedule() if log_interval == "auto" else None
        self._is_learning, self._has_acted = True, False
        try:
            with ExitStack() as self.until_learned:
                super().learn(
                    total_timesteps=total_timesteps,
                    callback=callback,
                    log_interval=None if log_interval == "auto" else log_interval,  # type: ignore[arg-type]
                    tb_log_name=type(self).__name__ if tb_log_name is None else tb_log_name,
                    reset_num_timesteps=reset_num_timesteps,
                    progress_bar=progress_bar,
                )
        except BaseException:
            if not self._has_acted:
                self._go_back(before)
            raise
        finally:
            self._is_learning = False
            self._clock.take_turns(None)
            self._log_schedule = self._estimate = None
            # There is no logger yet if the run failed to start
            if hasattr(self, "_logger"):
                self._mean_logs.flush(self.logger)
        checks.check_finite_model(self)
        return self

    def _go_back(self, before: dict[str, Any]) -> None:
        """
        Undo what a training that could not begin has set up, so that it can be tried again.

        :param before: attributes before it
        """
        was_reset = self._last_obs is not before["_last_obs"]
        vars(self).update(before)
        if was_reset and self._goes_on is None:  # a resumed run sets the state of environments
            self._last_obs = None

    def _setup_learn(
        self,
        total_timesteps: int,
        callback: MaybeCallback = None,
        reset_num_timesteps: bool = True,
        tb_log_name: str = "run",
        progress_bar: bool = False,
    ) -> tuple[int, BaseCallback]:
        if self._ends_episodes:
            self._last_obs = None
            self._ends_episodes = self._next_seed is not None
        if self._is_stepping:
            # A callback stopped training within a step, which was not stored: what follows is not its next step
            self._last_obs, self._is_stepping = None, False
        if self._seen_until is not None and self._seen_until != self._clock.n_moves:
            # Something else has played in the environments since
            self._last_obs = None
        if self.reward == "extrinsic" or self._skill_wrapper.own_skill is None:
            # Another model may have used the environments since
            self._follow(self.skill)
        resets = reset_num_timesteps or self._last_obs is None
        self.actor_learned = not reset_num_timesteps and (self.actor_learned or self._actor_is_due)
        goes_on = self._goes_on
        if goes_on is not None and resets:
            warnings.warn(
                "The model was resumed from a checkpoint, but this training begins anew, without the state of environments, "
                "noise and random numbers in it: to continue the run, call learn(remaining_timesteps(model), "
                "reset_num_timesteps=False) right after resume."
            )
            goes_on = None
        if goes_on is None:
            normalization.warn_of_other_statistics(self, self.get_vec_normalize_env())
        result = super()._setup_learn(total_timesteps, callback, reset_num_timesteps, tb_log_name, progress_bar)
        if self.replay_buffer is not None and resets:
            # SB3 has reset the environments without telling the buffer
            self.replay_buffer.end_trajectories()
        self._forget_states()
        self._note_normalization()
        self._unit_noise = unit_noise(self.noise_correlation, self.action_dim, self.n_envs)
        if goes_on is not None:
            goes_on(self, result[1])
        self._goes_on = None
        self._warn_of_moving_statistics()
        self._warn_of_what_comes_too_late()
        assert isinstance(self._last_obs, dict) and self.env is not None
        checks.check_finite(self.env, "observation", entries_of(self._last_obs), self.num_timesteps)
        if self._log_schedule is not None:
            n_logs = n_logs_for(self.logger)
            self._log_schedule.begin(self._num_timesteps_at_start, self._total_timesteps, self.num_timesteps, n_logs)
        if self.verbose >= 1:
            self._estimate = Estimate(self)
        return result

    def _update_current_progress_remaining(self, num_timesteps: int, total_timesteps: int) -> None:
        # The last rollout may go beyond the total, where a schedule that falls to 0 would be negative
        super()._update_current_progress_remaining(min(num_timesteps, total_timesteps), total_timesteps)

    @property
    def _actor_is_due(self) -> bool:
        """Whether the actor learns by now, as far as the progress of the training tells."""
        return has_come(self.actor_learning_starts, self._current_progress_remaining, self.num_timesteps)

    def _warn_of_moving_statistics(self) -> None:
        """Warn if ``VecNormalize`` changes the inputs of networks that learn no more."""
        if self.keeps_reference:
            normalization.warn_of_moving_statistics(
                self.get_vec_normalize_env(),
                "bc_coef imitates a skill as it was pre-trained",
                "set training = False and norm_reward = False in the VecNormalize of the task.",
            )

    def _warn_of_what_comes_too_late(self) -> None:
        """Warn if this training ends before the best skill is known, or before the actor learns."""
        total, turns = self._total_timesteps, self.skill_turns
        if turns is not None and turns.then is None and turns.n_timesteps - turns.n_done >= total - self.num_timesteps:
            warnings.warn(
                f"The best skill is known after a warm-up of learning_starts={self.learning_starts} steps, but this training "
                f"ends at step {total}, before anything is learned: train longer, or lower learning_starts."
            )
        step = step_of(self.actor_learning_starts, total)
        if not self.actor_learned and 0 < step >= total > self.num_timesteps:
            warnings.warn(
                f"The actor learns from step {step:.0f} on (actor_learning_starts), but this training ends at step {total}, "
                "so that only the critic learns: train longer, or lower actor_learning_starts."
            )

    def _init_callback(self, callback: MaybeCallback, progress_bar: bool = False) -> BaseCallback:
        assert self.env is not None
        add_skills_to_evaluation(callback, self.env, self.skill_space, self.skill, self.reward == "intrinsic")
        return super()._init_callback(callback, progress_bar)

    def _on_step(self) -> None:
        if self._log_schedule is not None and self._log_schedule.is_due(self.num_timesteps):
            self.dump_logs()
        if self._estimate is not None:
            self._estimate.follow(self)

    def cost_phases(self) -> list[CostPhase]:
        """
        List where updates become more expensive during the training, for the estimate of its time.

        :return: later phases of the training, in their order
        """
        step = 0 if self.actor_learned else step_of(self.actor_learning_starts, self._total_timesteps)
        return [CostPhase(step, COST_OF_ACTOR, "the actor")] if step > self.learning_starts else []

    def dump_logs(self) -> None:
        self._mean_logs.flush(self.logger)
        if self.ep_info_buffer and self.skill_space.discrete:
            self._skill_rewards.flush(self.logger, safe_mean([ep_info["l"] for ep_info in self.ep_info_buffer]))
        if self.n_diverged_simulations > 0:
            self.logger.record("rollout/n_diverged_simulations", self.n_diverged_simulations)
        if self.zero_shot is not None:
            self.logger.record("time/zero_shot_timesteps", self.zero_shot.n_timesteps)
        super().dump_logs()
