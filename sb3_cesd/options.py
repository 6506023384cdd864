"""Skills as options: a task whose actions are skills, for any algorithm on top."""

from typing import Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.observations import Observation, channels_first, entries_of, plain_form, shapes_of, short
from sb3_cesd.common.rules import as_array, is_whole, shown
from sb3_cesd.common.skills import check_skill
from sb3_cesd.common.vec_env import normalize_entries
from sb3_cesd.export import ExportedPolicy
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.checks import statistics_of_training


class SkillOptions(gym.Wrapper[Any, Any, Any, np.ndarray]):
    """
    Choose a skill instead of an action: it is followed for ``duration`` steps, or until the episode ends.

    The action is the index of a discrete skill, or the vector of a continuous one: for skills on a sphere any vector, which is
    brought to unit length (zero stands for the first skill). An integer then is the index of one of the skills that
    evaluations go through, as in ``predict``.

    A step of this environment then is one of a semi-Markov decision process. Its reward is the sum of the rewards on the way,
    discounted by ``gamma``; for an algorithm on top to discount as one that acts in every step, set its own discount factor to
    ``gamma**duration``. ``info["n_steps"]`` is the number of steps in the environment, ``info["skill"]`` the skill.

    Where the observation of the task is a dictionary, skills see the entries they were trained with alone; what else is in it,
    such as the goal of :class:`~sb3_cesd.envs.goals.GoalTask`, is for the algorithm on top. The observation of an environment
    that is no dictionary is the entry ``"observation"``.

    :param env: the task, in the domain the model was pre-trained in and with its plain observations
    :param model: a pre-trained model, or one that was exported; it is not trained here
    :param duration: steps for which a skill is followed, at most; ``None`` for the ``skill_duration`` of the model
    :param gamma: discount factor of the rewards within a step, 1 to add them up
    :param vec_normalize: statistics of training, by which observations are normalised for the model (not those of this
        environment); ``None`` for those of the environment that the model has, if there are any
    :raises ValueError: if the model does not fit the environment or has no skills to choose from, or it was trained with
        ``VecNormalize`` and there are no statistics
    """

    def __init__(
        self,
        env: gym.Env,
        model: SkillDDPG | ExportedPolicy,
        duration: int | None = None,
        gamma: float = 1.0,
        vec_normalize: VecNormalize | None = None,
    ) -> None:
        check_arguments("SkillOptions", locals())
        super().__init__(env)
        if model.reward == "extrinsic":
            raise ValueError(
                f"The model learned a task with skill {model.skill} alone, there is nothing to choose from: "
                "pass the pre-trained model."
            )
        if duration is None:
            duration = model.skill_duration
        if duration is None:
            raise ValueError(
                "The model keeps a skill for a whole episode, or does not say: pass duration, the steps until the next choice."
            )
        known, given = shapes_of(model.plain_space), shapes_of(channels_first(env.observation_space))
        if {name: given.get(name) for name in known} != known or env.action_space != model.action_space:
            raise ValueError(
                f"Observations of {short(env.observation_space)} and actions of {short(env.action_space)} do not fit the "
                f"model, which takes {short(model.plain_space)} and {short(model.action_space)}: pass an environment in the "
                "domain the model was pre-trained in."
            )
        self.model = model
        self.duration = duration
        self.gamma = gamma
        self.vec_normalize = statistics_of_training(model, vec_normalize)
        self.skill_space = model.skill_space
        self.action_space = spaces.Discrete(model.n_skills) if self.skill_space.discrete else self.skill_space.box
        self._seen = tuple(known)
        self._observation: Observation | None = None

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._observation, info = self.env.reset(seed=seed, options=options)
        return self._observation, info

    def step(self, action: int | np.ndarray) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """
        Follow a skill.

        :param action: index of the skill, or the vector of a continuous one, shape ``(dim,)``
        :return: observation, reward, terminated, truncated and info, as usual but for all steps under the skill
        :raises ValueError: if there is no such skill
        """
        if self._observation is None:
            raise ValueError("There is no episode to act in: call reset() first.")
        skill = self._chosen(action)
        total_reward, discount, n_steps = 0.0, 1.0, 0
        terminated = truncated = False
        info: dict[str, Any] = {}
        while n_steps < self.duration and not (terminated or truncated):
            primitive_action, _ = self.model.predict(self._shown(self._observation), deterministic=True, skill=skill)
            self._observation, reward, terminated, truncated, info = self.env.step(primitive_action)
            total_reward += discount * float(reward)
            discount *= self.gamma
            n_steps += 1
        return self._observation, total_reward, terminated, truncated, {**info, "n_steps": n_steps, "skill": skill}

    def _shown(self, observation: Observation) -> Observation:
        """
        Leave out what skills were not trained with, and normalise the rest.

        :param observation: observation of the task
        :return: the part that the model knows, in its layout
        """
        known = entries_of(observation)
        entries = {name: known[name] for name in self._seen}
        if self.vec_normalize is not None:
            entries = normalize_entries(self.vec_normalize, entries)
        return plain_form(entries)  # type: ignore[return-value]

    def _chosen(self, action: int | np.ndarray) -> int | np.ndarray:
        """
        Tell the skill of an action.

        :param action: index of the skill, or the vector of a continuous one, shape ``(dim,)``
        :return: the skill; of a continuous one the vector
        :raises ValueError: if there is no such skill
        """
        space = self.skill_space
        # For a single observation, predict of SB3 returns an array of shape ()
        values = as_array(action)
        if space.discrete or (values.shape == () and is_whole(values[()])):
            index = check_skill(action if values.shape else values[()], self.model.n_skills)  # type: ignore[arg-type]
            return index if space.discrete else space.vectors[index]
        if values.dtype.kind not in "iuf" or values.shape != (space.dim,):
            given = f"{len(values)} numbers" if values.ndim == 1 and values.dtype.kind in "iuf" else shown(action)
            raise ValueError(
                f"A skill of this model is a vector of {space.dim} numbers, not {given}: pass one of that size, or an integer "
                f"from 0 to {space.n_skills - 1}."
            )
        if not np.isfinite(values).all():
            raise ValueError("The skill is not finite: pass a vector of finite numbers.")
        skill = space.nearest(values.astype(np.float64)).astype(np.float32)
        space.check_vectors(skill)
        return skill
