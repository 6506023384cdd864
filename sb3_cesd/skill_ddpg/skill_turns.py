"""The first steps of a task, in which all skills have their turn."""

import numpy as np

from sb3_cesd.common.logging import SkillRewards


class SkillTurns:
    """
    Every skill acts for an equal share of the steps, one after the other, and its rewards are noted.

    Tasks so start from transitions as different as the skills are, and it shows which skill does the task best as it is.

    :param n_skills: number of skills
    :param n_timesteps: steps of all environments together, at least one for each skill
    """

    def __init__(self, n_skills: int, n_timesteps: int) -> None:
        if n_timesteps < n_skills:
            raise ValueError(
                f"learning_starts={n_timesteps} leaves no step for each of {n_skills} skills: raise it, or choose another "
                "warm_up than 'skills'."
            )
        self.n_skills = n_skills
        self.n_timesteps = n_timesteps
        self.n_done = 0
        self._rewards = SkillRewards(n_skills)

    @property
    def over(self) -> bool:
        """Whether all skills have had their turn."""
        return self.n_done >= self.n_timesteps

    def skills(self, n_envs: int) -> np.ndarray:
        """
        :param n_envs: number of parallel environments, which begin with different skills
        :return: skill to act in each environment, shape ``(n_envs,)``
        """
        return (np.arange(n_envs) + self.n_done * self.n_skills // self.n_timesteps) % self.n_skills

    def add(self, rewards: np.ndarray) -> None:
        """
        :param rewards: rewards of a step with :meth:`skills`, shape ``(n_envs,)``
        """
        self._rewards.add(self.skills(len(rewards)), rewards)
        self.n_done += len(rewards)

    def mean_rewards(self) -> np.ndarray:
        """
        :return: mean reward of a step with each skill, NaN where it did not act yet, shape ``(n_skills,)``
        """
        return self._rewards.means()

    def best(self) -> int:
        """
        :return: the skill with the highest mean reward
        """
        return int(np.nanargmax(self.mean_rewards()))

    def __str__(self) -> str:
        return ", ".join(f"{reward:.4g}" for reward in self.mean_rewards())
