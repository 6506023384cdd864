"""RL Zoo's evaluations of a pre-training, and of trials."""

from typing import Any

from stable_baselines3.common.callbacks import EvalCallback

from sb3_cesd.eval_callback import SkillEvalCallback


def evaluate_skills(callback_class: Any) -> Any:
    """
    Let RL Zoo's evaluations during training, and ``best_model.zip``, follow the skills.

    :param callback_class: ``EvalCallback`` as RL Zoo names it
    :return: one that evaluates models that discover skills by their skills
    """
    return (
        SkillEvalCallback
        if callback_class is EvalCallback
        else type(callback_class.__name__, (callback_class, SkillEvalCallback), {})
    )


def judge_trials_by_skills(callback_class: Any) -> Any:
    """
    Make the skills the objective of a trial that discovers some, and their metrics its user attributes.

    All trials of a study play the same number of episodes, whatever their number of skills.

    :param callback_class: RL Zoo's ``TrialEvalCallback``
    :return: the same, for models that discover skills with that objective
    """

    class SkillTrialEvalCallback(callback_class, SkillEvalCallback):  # type: ignore[misc]
        def n_episodes(self) -> int:
            return max(super().n_episodes(), 2 * getattr(self.trial, "most_skills", 1))

        def on_metrics(self, metrics: dict[str, float]) -> None:
            for name, value in metrics.items():
                self.trial.set_user_attr(name, value)

    return SkillTrialEvalCallback
