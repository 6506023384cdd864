"""RL Zoo's evaluations during pre-training, and of trials."""

from typing import Any

from sb3_cesd.callbacks import FEW_EPISODES, SkillEvalCallback
from sb3_cesd.metrics.summary import N_EPISODES


class ZooSkillEvalCallback(SkillEvalCallback):
    """Evaluate skills in as many episodes as ``--eval-episodes`` says, where RL Zoo's default of 5 stands for 64."""

    def n_episodes(self) -> int:
        # RL Zoo passes its default as any other number
        return N_EPISODES if self.n_eval_episodes == FEW_EPISODES else super().n_episodes()


def judge_trials_by_skills(callback_class: Any) -> Any:
    """
    Make the skill score the objective of trials that discover skills, and store their metrics as user attributes.

    All trials of a study play the same number of episodes, whatever their number of skills.

    :param callback_class: RL Zoo's ``TrialEvalCallback``
    :return: the extended callback
    """

    class SkillTrialEvalCallback(callback_class, ZooSkillEvalCallback):  # type: ignore[misc]
        def n_episodes(self) -> int:
            return max(super().n_episodes(), 2 * getattr(self.trial, "most_skills", 1))

        def on_metrics(self, metrics: dict[str, float]) -> None:
            for name, value in metrics.items():
                self.trial.set_user_attr(name, value)

    return SkillTrialEvalCallback
