"""Which skill acts, and when that changes."""

import copy
from typing import Any, ClassVar

import numpy as np

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.choices import SkillOrder
from sb3_cesd.common.logging import SkillRewards, listed
from sb3_cesd.common.skills import SkillName, SkillSpace, best_of, check_skill

#: Attributes of a clock that change over time
STATE = ("vectors", "fixed", "_ages", "_n_drawn", "_rng")
#: What to do if a warm-up does not tell which skill is best
RAISE_WARM_UP = "Raise learning_starts, so that the warm-up shows what the task rewards"


class SkillTurns:
    """
    A warm-up in which all skills act for an equal share of the steps, one after the other.

    It fills the replay buffer with diverse transitions before a task is learned, and shows which skill does the task best.

    :param n_skills: number of skills
    :param n_timesteps: steps of all environments together, at least one per skill
    :param then: the skill that acts afterwards, its index or vector; ``None`` for the one with the highest mean reward
    :raises ValueError: if a skill gets no step, or there is no such skill
    """

    def __init__(self, n_skills: int, n_timesteps: int, then: SkillName | None = None) -> None:
        check_arguments("SkillTurns", locals())
        if n_timesteps < n_skills:
            raise ValueError(
                f"learning_starts={n_timesteps} is less than one step for each of {n_skills} skills: raise it, or choose a "
                "warm_up other than 'skills'."
            )
        self.n_skills = n_skills
        #: An integer, also where ``learning_starts`` is a whole float
        self.n_timesteps = int(n_timesteps)
        #: The skill that acts afterwards; vectors are checked by the clock
        self.then = check_skill(then, n_skills) if then is not None and np.ndim(then) == 0 else then  # type: ignore[arg-type]
        #: How that skill was chosen: by ``"states"``, ``"rewards"`` or ``"features"``; ``None`` if it was known before
        self.chosen_by: str | None = None
        self.n_done = 0
        self._rewards = SkillRewards(n_skills)

    @property
    def over(self) -> bool:
        """Whether all skills have had their turn."""
        return self.n_done >= self.n_timesteps

    def skills(self, n_envs: int) -> np.ndarray:
        """
        Get the skills that act now, during the turns.

        :param n_envs: number of parallel environments, which begin with different skills
        :return: index of the skill in each environment, shape ``(n_envs,)``
        """
        return (np.arange(n_envs) + self.n_done * self.n_skills // self.n_timesteps) % self.n_skills

    def add(self, rewards: np.ndarray) -> None:
        """
        Count a step.

        :param rewards: rewards of a step with :meth:`skills`, shape ``(n_envs,)``
        """
        self._rewards.add(self.skills(len(rewards)), rewards)
        self.n_done += len(rewards)

    def mean_rewards(self) -> np.ndarray:
        """
        Compute the mean reward of each skill.

        :return: mean reward per step of each skill, NaN where it did not act yet, shape ``(n_skills,)``
        """
        return self._rewards.means()

    def best(self) -> int:
        """
        Choose the skill with the highest mean reward.

        :return: its index
        """
        return best_of(self.mean_rewards(), "mean reward in the warm-up", RAISE_WARM_UP)

    def next_skill(self) -> SkillName:
        """
        Get the skill that acts after the turns.

        :return: its index or vector
        """
        return self.best() if self.then is None else self.then

    def __str__(self) -> str:
        return listed(self.mean_rewards())


class SkillClock:
    """
    Draws the skill that acts in each environment, and keeps track of it.

    :param n_envs: number of parallel environments
    :param skill_space: space that skills are drawn from
    :param duration: steps after which a new skill is drawn; ``None`` keeps a skill to the end of the episode
    :param skill: index or vector of a skill that always acts
    :param order: ``"random"`` draws skills; ``"cycle"`` goes through the ``n_skills`` of the space in turn: environment i of n
        through the skills i, i + n, i + 2n, ..., so that all skills are drawn equally often if the environments make the same
        number of draws, and a multiple of ``n_skills`` altogether. See also :meth:`take_turns`
    """

    #: Whether skills change as a model that learns them says
    follows_model: ClassVar[bool] = True
    #: Number of steps and resets so far
    n_moves = 0

    def __init__(
        self,
        n_envs: int,
        skill_space: SkillSpace,
        duration: int | None = 50,
        skill: SkillName | None = None,
        order: SkillOrder = "random",
    ) -> None:
        check_arguments("SkillClock", {**locals(), "skill_duration": duration})
        self.skill_space = skill_space
        self.duration = duration
        self.order = order
        #: Vector of the skill in each environment, shape ``(n_envs, dim)``; replaced, never changed in place
        self.vectors = np.tile(skill_space.vectors[0], (n_envs, 1))
        self.turns: SkillTurns | None = None
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
        """
        Seed the draws, and restart the cycle.

        :param seed: seed of the draws
        """
        self._rng = np.random.default_rng(seed)
        self._n_drawn[:] = 0
        self._ages[:] = -1

    def set_skill(self, skill: SkillName | None) -> None:
        """
        Let one skill act from the next observation on, or draw skills again from the next change on.

        :param skill: its index or vector, or ``None`` to draw again
        :raises ValueError: if there is no such skill
        """
        if self.fixed is not None:
            # It was not drawn, so the next reset has to replace it
            self._ages = np.maximum(self._ages, 1)
        self.fixed = None if skill is None else self.skill_space.encode(skill)

    def switch_to(self, skill: SkillName) -> None:
        """
        Let one skill act from now on. Whoever holds the last observation has to replace the skill in it.

        :param skill: its index or vector
        """
        self.turns = None
        self.set_skill(skill)
        self._follow()

    def take_turns(self, turns: SkillTurns | None) -> None:
        """
        Let all skills act in turn from the next observation on, until the turns are over.

        :param turns: the turns, which may have begun in another environment; ``None`` to end those of another model
        :raises ValueError: if they end with a skill that does not exist
        """
        if turns is not None and turns.then is not None:
            self.skill_space.encode(turns.then)
        self.turns = turns

    def get_state(self) -> dict[str, Any]:
        """
        Get everything that determines how the clock continues, except the turns, which the model keeps.

        :return: what :meth:`set_state` takes
        """
        return {name: copy.deepcopy(getattr(self, name)) for name in STATE}

    def set_state(self, state: dict[str, Any]) -> None:
        """
        Continue from the state of another clock with the same number of environments.

        :param state: what :meth:`get_state` of the other clock returned
        """
        vars(self).update(copy.deepcopy(state))

    def reset(self) -> None:
        """Draw a skill for every environment, except where one was drawn at the end of an episode and not followed yet."""
        self.n_moves += 1
        self._draw(self._ages != 0)
        self._follow()

    def tick(self, dones: np.ndarray, rewards: np.ndarray) -> None:
        """
        Count one step, and draw a new skill where the episode ended or the old skill has had its time.

        :param dones: shape ``(n_envs,)``
        :param rewards: rewards of the environments, shape ``(n_envs,)``
        """
        self.n_moves += 1
        self._ages += 1
        expired = np.asarray(dones, dtype=bool)
        if self.duration is not None:
            expired = expired | (self._ages >= self.duration)
        self._draw(expired)
        if self.turns is not None:
            self.turns.add(rewards)
        self._follow()

    def _follow(self) -> None:
        """Replace the drawn skills by the one that always acts, or by those whose turn it is."""
        if self.turns is not None and self.turns.over:
            self.set_skill(self.turns.next_skill())
            self.turns = None
        if self.turns is not None:
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
