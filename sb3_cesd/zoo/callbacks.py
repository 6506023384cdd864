"""Callbacks of RL Zoo, extended for models with skills."""

import math
from typing import Any

from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.parallel import LearnerThread


def evaluate_every_skill(callback_class: Any) -> Any:
    """
    Make the objective of a trial the return averaged over all skills.

    Episode j of an evaluation follows skill j modulo ``n_skills``, so a multiple of ``n_skills`` episodes holds every skill
    as often, provided that the environments have an equal number of them (else one of them draws skills that don't count).

    :param callback_class: RL Zoo's ``TrialEvalCallback``
    :return: the same, with ``n_eval_episodes`` rounded up for models that discover skills
    """

    class SkillTrialEvalCallback(callback_class):
        def _init_callback(self) -> None:
            super()._init_callback()
            if getattr(self.model, "reward", None) == "intrinsic":
                self.n_eval_episodes += -self.n_eval_episodes % math.lcm(self.model.n_skills, self.eval_env.num_envs)

    return SkillTrialEvalCallback


def train_in_parallel(callback_class: Any) -> Any:
    """
    Let RL Zoo's callback that acts and learns in two threads take the methods; as it comes, it takes SAC and TQC only.

    :param callback_class: RL Zoo's ``ParallelTrainCallback``
    :return: the same, with a :class:`~sb3_cesd.skill_ddpg.parallel.LearnerThread` for the methods
    """

    class ParallelTrainCallback(callback_class):
        learner: LearnerThread | None = None

        def _init_callback(self) -> None:
            if isinstance(self.model, SkillDDPG):
                self.learner = LearnerThread(self.model, self.gradient_steps)
            else:
                super()._init_callback()

        def _on_rollout_end(self) -> None:
            if self.learner is not None:
                self.learner.start_next_round()
            else:
                super()._on_rollout_end()

        def _on_training_end(self) -> None:
            if self.learner is not None:
                self.learner.finish()  # RL Zoo ends training a second time
            else:
                super()._on_training_end()

    ParallelTrainCallback.__doc__ = callback_class.__doc__
    return ParallelTrainCallback
