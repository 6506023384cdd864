"""The layout of a skill-augmented observation, ``[observation | one-hot skill]``, and when skills change."""

from numbers import Real

import numpy as np
from gymnasium import spaces


def is_whole(value: object) -> bool:
    """
    :param value: anything
    :return: whether it is a whole number, of whatever type
    """
    return isinstance(value, Real) and not isinstance(value, bool) and float(value).is_integer()


def check_skill(skill: int, n_skills: int) -> int:
    """
    :param skill: index of a skill
    :param n_skills: number of skills
    :return: the skill as an int
    :raises ValueError: if there is no such skill
    """
    if not is_whole(skill) or not 0 <= skill < n_skills:
        raise ValueError(
            f"Unknown skill {skill!r}: the model has {n_skills} skills, choose an integer from 0 to {n_skills - 1}."
        )
    return int(skill)


def check_n_skills(n_skills: int) -> int:
    """
    :param n_skills: number of skills
    :return: the number as an int
    :raises ValueError: if there are fewer than two skills
    """
    if not is_whole(n_skills) or n_skills < 2:
        raise ValueError(f"n_skills={n_skills!r}: telling skills apart needs at least two of them, pass n_skills >= 2.")
    return int(n_skills)


def check_plain_space(observation_space: spaces.Space) -> spaces.Box:
    """
    :param observation_space: the space of the environment, before the skill is appended
    :return: the same space
    :raises ValueError: if a one-hot skill can't be appended to it
    """
    if not isinstance(observation_space, spaces.Box) or len(observation_space.shape) != 1:
        raise ValueError(
            f"A skill can only be appended to a flat vector (1D Box), but the observation space is {observation_space}: "
            "flatten it first, for instance with gymnasium.wrappers.FlattenObservation(env)."
        )
    return observation_space


def skill_space(observation_space: spaces.Space, n_skills: int) -> spaces.Box:
    """
    :param observation_space: 1D Box of shape ``(obs_dim,)``
    :param n_skills: number of skills
    :return: 1D Box of shape ``(obs_dim + n_skills,)`` and the same dtype
    """
    box = check_plain_space(observation_space)
    low = np.concatenate([box.low, np.zeros(n_skills, dtype=box.low.dtype)])
    high = np.concatenate([box.high, np.ones(n_skills, dtype=box.high.dtype)])
    return spaces.Box(low=low, high=high, dtype=box.dtype)  # type: ignore[arg-type]


def plain_space(observation_space: spaces.Box, n_skills: int) -> spaces.Box:
    """
    The inverse of :func:`skill_space`.

    :param observation_space: skill-augmented space, shape ``(obs_dim + n_skills,)``
    :param n_skills: number of skills
    :return: the space without the one-hot, shape ``(obs_dim,)``
    """
    low, high = observation_space.low[:-n_skills], observation_space.high[:-n_skills]
    return spaces.Box(low=low, high=high, dtype=observation_space.dtype)  # type: ignore[arg-type]


def append_skill(observations: np.ndarray, skills: np.ndarray | int, n_skills: int) -> np.ndarray:
    """
    :param observations: shape ``(obs_dim,)`` or ``(n, obs_dim)``
    :param skills: one skill for all, or one each, shape ``(n,)``
    :param n_skills: number of skills
    :return: shape ``(obs_dim + n_skills,)`` or ``(n, obs_dim + n_skills)``, dtype of the observations
    """
    one_hot = (np.arange(n_skills) == np.asarray(skills)[..., None]).astype(observations.dtype)
    one_hot = np.broadcast_to(one_hot, (*observations.shape[:-1], n_skills))
    return np.concatenate([observations, one_hot], axis=-1)


def split_skill(observations: np.ndarray, n_skills: int) -> tuple[np.ndarray, np.ndarray]:
    """
    The inverse of :func:`append_skill`.

    :param observations: shape ``(..., obs_dim + n_skills)``
    :param n_skills: number of skills
    :return: plain observations ``(..., obs_dim)`` and skills ``(...)``
    """
    return observations[..., :-n_skills], observations[..., -n_skills:].argmax(axis=-1)


class SkillClock:
    """
    Decides which skill each environment follows, and when it changes.

    :param n_envs: number of parallel environments
    :param n_skills: number of skills
    :param duration: steps after which a skill is drawn anew; ``None`` keeps it to the end of the episode
    :param skill: follow this skill always
    :param order: ``"random"`` draws skills uniformly; ``"cycle"`` goes through them in turn, so that
        ``n_skills`` consecutive draws (counted over all environments) hold each skill once
    """

    def __init__(
        self,
        n_envs: int,
        n_skills: int,
        duration: int | None = 50,
        skill: int | None = None,
        order: str = "random",
    ) -> None:
        if duration is not None and (not is_whole(duration) or duration < 1):
            raise ValueError(f"skill_duration={duration}: a skill lasts at least one step, pass a positive integer or None.")
        if order not in ("random", "cycle"):
            raise ValueError(f"Unknown order {order!r} of skills: choose 'random' or 'cycle'.")
        self.n_skills = check_n_skills(n_skills)
        self.duration = duration
        self.order = order
        self.skills = np.zeros(n_envs, dtype=np.int64)
        # Steps for which each skill was followed, -1 for one that is to be replaced at the next reset in any case
        self._ages = np.full(n_envs, -1, dtype=np.int64)
        self._n_drawn = 0
        self._rng = np.random.default_rng()
        self.skill: int | None = None
        self.set_skill(skill)

    def seed(self, seed: int | None) -> None:
        """
        :param seed: seed of the draws; also restarts the cycle
        """
        self._rng = np.random.default_rng(seed)
        self._n_drawn = 0
        self._ages[:] = -1

    def set_skill(self, skill: int | None) -> None:
        """
        :param skill: follow this skill from now on, or ``None`` to draw skills again from the next change on
        """
        self.skill = None if skill is None else check_skill(skill, self.n_skills)
        if self.skill is not None:
            self.skills[:] = self.skill

    def reset(self) -> None:
        """Draw a skill for every environment, except where one was drawn at the end of an episode and not followed yet."""
        self._draw(self._ages != 0)

    def tick(self, dones: np.ndarray) -> None:
        """
        Count one step and draw a new skill where the episode ended or the old skill has had its time.

        :param dones: shape ``(n_envs,)``
        """
        self._ages += 1
        expired = np.asarray(dones, dtype=bool)
        if self.duration is not None:
            expired = expired | (self._ages >= self.duration)
        self._draw(expired)

    def _draw(self, where: np.ndarray) -> None:
        n_new = int(where.sum())
        self._ages[where] = 0
        if n_new == 0 or self.skill is not None:
            return
        if self.order == "cycle":
            self.skills[where] = (self._n_drawn + np.arange(n_new)) % self.n_skills
            self._n_drawn += n_new
        else:
            self.skills[where] = self._rng.integers(self.n_skills, size=n_new)
