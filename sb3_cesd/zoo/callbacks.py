"""Callbacks of RL Zoo, extended for models with skills."""

from typing import Any

from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.parallel import LearnerThread


def train_in_parallel(callback_class: Any) -> Any:
    """
    Make RL Zoo's callback that acts and learns in two threads accept the methods; by itself it only accepts SAC and TQC.

    :param callback_class: RL Zoo's ``ParallelTrainCallback``
    :return: the callback with a :class:`~sb3_cesd.skill_ddpg.parallel.LearnerThread` for the methods
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
            elif hasattr(self, "process"):  # and one that could not begin
                super()._on_training_end()

    ParallelTrainCallback.__doc__ = callback_class.__doc__
    return ParallelTrainCallback
