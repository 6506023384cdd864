"""Which skill acts, and when that changes."""

from typing import Literal

import numpy as np

from sb3_cesd.common.arguments import PositiveInt, checked
from sb3_cesd.common.logging import SkillRewards
from sb3_cesd.common.skills import SkillName, SkillSpace

SkillOrder = Literal["random", "cycle"]


class SkillTurns:
    """
    A warm-up in which all skills act for an equal share of the steps, one after the other.

    It fills the replay buffer with diverse transitions before a task is learned, and shows which skill does the task best.

    :param n_skills: number of skills
    :param n_timesteps: steps of all environments together, at least one per skill
    :raises ValueError: if a skill gets no step
    """

    def __init__(self, n_skills: int, n_timesteps: int) -> None:
        if n_timesteps < n_skills:
            raise ValueError(f"learning_starts={n_timesteps} is less than a step of each of {n_skills} skills: raise it.")
        self.n_skills = n_skills
        self.n_timesteps = int(n_timesteps)
        #: How the skill that acts afterwards was chosen: by ``"rewards"`` or ``"features"``
        self.chosen_by: str | None = None
        self.n_done = 0
        self._rewards = SkillRewards(n_skills)

    @property
    def over(self) -> bool:
        """Whether all skills have had their turn."""
        return self.n_done >= self.n_timesteps

    def skills(self, n_envs: int) -> np.ndarray:
        """Get the index of the skill that acts in each environment, shape ``(n_envs,)``; they begin with different ones."""
        return (np.arange(n_envs) + self.n_done * self.n_skills // self.n_timesteps) % self.n_skills

    def add(self, rewards: np.ndarray) -> None:
        """Count a step of :meth:`skills` with these rewards, shape ``(n_envs,)``."""
        self._rewards.add(self.skills(len(rewards)), rewards)
        self.n_done += len(rewards)

    def mean_rewards(self) -> np.ndarray:
        """Average the rewards per step of each skill, NaN where it did not act yet, shape ``(n_skills,)``."""
        return self._rewards.means()

    def __str__(self) -> str:
        return ", ".join(f"{value:.4g}" for value in self.mean_rewards())


class SkillClock:
    """
    Draws the skill that acts in each environment, and keeps track of it.

    :param n_envs: number of parallel environments
    :param skill_space: space that skills are drawn from
    :param duration: steps after which a new skill is drawn; ``None`` keeps a skill to the end of the episode
    :param skill: index or vector of a skill that always acts
    :param order: ``"random"`` draws skills; ``"cycle"`` goes through the ``n_skills`` of the space in turn: environment i of n
        through the skills i, i + n, i + 2n, ..., so that all skills are drawn equally often if the environments make the same
        number of draws, and a multiple of ``n_skills`` altogether
    """

    #: Warm-up in which all skills act in turn; set by the model that learns
    turns: SkillTurns | None = None
    #: Number of resets and steps that environments have begun
    n_moves: int = 0

    @checked
    def __init__(
        self,
        n_envs: int,
        skill_space: SkillSpace,
        duration: PositiveInt | None = 50,
        skill: SkillName | None = None,
        order: SkillOrder = "random",
    ) -> None:
        self.skill_space = skill_space
        self.duration = duration
        self.order = order
        #: Vector of the skill in each environment, shape ``(n_envs, dim)``; replaced, never changed in place
        self.vectors = np.tile(skill_space.vectors[0], (n_envs, 1))
        # Steps for which each skill was followed, -1 for one that is to be replaced at the next reset in any case
        self._ages = np.full(n_envs, -1, dtype=np.int64)
        # Number of draws in each environment, for the cycle
        self._n_drawn = np.zeros(n_envs, dtype=np.int64)
        self._rng = np.random.default_rng()
        #: Vector of the skill that always acts, shape ``(dim,)``
        self.fixed: np.ndarray | None = None
        self.set_skill(skill)
        self._follow()

    @property
    def skills(self) -> np.ndarray:
        """The skill in each environment: its index, shape ``(n_envs,)``, or its vector, shape ``(n_envs, dim)``."""
        return self.skill_space.decode(self.vectors)

    def seed(self, seed: int | None) -> None:
        """Seed the draws, and restart the cycle."""
        self._rng = np.random.default_rng(seed)
        self._n_drawn[:] = 0
        self._ages[:] = -1

    def set_skill(self, skill: SkillName | None, at_once: bool = False) -> None:
        """
        Let one skill act, or draw skills again from the next change on.

        :param skill: its index or vector, or ``None`` to draw again
        :param at_once: let it act from now on, not from the next observation on. Whoever holds the last observation has to
            replace the skill in it
        :raises ValueError: if there is no such skill
        """
        if self.fixed is not None:
            # It was not drawn, so the next reset has to replace it
            self._ages = np.maximum(self._ages, 1)
        self.fixed = None if skill is None else self.skill_space.encode(skill)
        if at_once:
            self._follow()

    def reset(self) -> None:
        """Draw a skill for every environment, except where one was drawn at the end of an episode and not followed yet."""
        self._draw(self._ages != 0)
        self._follow()

    def tick(self, dones: np.ndarray, rewards: np.ndarray) -> None:
        """Count one step, and draw a new skill where the episode ended or the old skill has had its time."""
        self._ages += 1
        self._draw(dones if self.duration is None else dones | (self._ages >= self.duration))
        if self.turns is not None and not self.turns.over:
            self.turns.add(rewards)
        self._follow()

    def _follow(self) -> None:
        """Replace the drawn skills by those whose turn it is, or by the one that always acts."""
        if self.turns is not None and not self.turns.over:
            self.vectors = self.skill_space.vectors[self.turns.skills(len(self.vectors))]
        elif self.fixed is not None:
            self.vectors = np.tile(self.fixed, (len(self.vectors), 1))

    def _draw(self, where: np.ndarray) -> None:
        n_new = int(where.sum())
        self._ages[where] = 0
        if n_new == 0 or self.fixed is not None or self.turns is not None:
            return
        if self.order == "cycle":
            n_envs = len(self.vectors)
            numbers = np.arange(n_envs) + self._n_drawn * n_envs
            drawn = self.skill_space.vectors[numbers[where] % self.skill_space.n_skills]
            self._n_drawn[where] += 1
        else:
            drawn = self.skill_space.draw(n_new, self._rng)
        self.vectors = self.vectors.copy()
        self.vectors[where] = drawn
