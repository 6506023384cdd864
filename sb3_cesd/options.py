"""Skills as options: an environment whose actions are skills, for any algorithm on top."""

from typing import Annotated, Any, SupportsFloat

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.arguments import PositiveInt, Range, checked
from sb3_cesd.common.observations import Observation, arrays_of, channels_first, plain_form, shapes_of
from sb3_cesd.common.skills import SphereSkills
from sb3_cesd.common.vec_normalize import normalize_entries, statistics_of_training
from sb3_cesd.export import ExportedPolicy
from sb3_cesd.skill_ddpg import SkillDDPG


class SkillOptions(gym.Wrapper[Any, Any, Any, np.ndarray]):
    """
    Make skills the actions of a task: each is followed for ``duration`` steps, or until the episode ends.

    An action is the index of a discrete skill, or the vector of a continuous one. For skills on a sphere any vector is
    accepted and scaled to unit length (zero stands for the first skill). For continuous skills, an integer is the index of one
    of the skills used in evaluations, as in ``predict``.

    A step of this environment is one step of a semi-Markov decision process. Its reward is the sum of the rewards of its
    primitive steps, discounted by ``gamma``. To discount as an algorithm that acts in every step would, set the discount
    factor of the algorithm on top to ``gamma**duration``. ``info["followed_steps"]`` is the number of primitive
    steps, ``info["followed_skill"]`` the skill.

    If the observation of the task is a dictionary, skills only see the entries they were trained with; the others, such as the
    goal of :class:`~sb3_cesd.envs.goals.GoalTask`, are for the algorithm on top. Any other observation is the entry
    ``"observation"``.

    :param env: the task, in the domain the model was pre-trained in and with its plain observations
    :param model: a pre-trained model or exported policy; it is not trained here
    :param duration: maximum number of steps for which a skill is followed; ``None`` for the model's ``skill_duration``
    :param gamma: discount factor of the rewards within a step, 1 for their plain sum
    :param vec_normalize: training statistics, by which observations are normalised for the model (but not for the algorithm on
        top); ``None`` for those of the model's environment, if any
    :raises ValueError: if the model does not fit the environment, has no skills to choose from, or was trained with
        ``VecNormalize`` and its statistics are missing
    """

    @checked
    def __init__(
        self,
        env: gym.Env,
        model: SkillDDPG | ExportedPolicy,
        duration: PositiveInt | None = None,
        gamma: Annotated[float, Range(0, 1, without=0)] = 1.0,
        vec_normalize: VecNormalize | None = None,
    ) -> None:
        super().__init__(env)
        if not isinstance(model, SkillDDPG | ExportedPolicy):
            raise ValueError(f"{model!r} is not a model: pass that of CeSD.load (or of its method), or of import_policy.")
        if model.reward == "extrinsic":
            raise ValueError("The model learned a task with one skill alone: pass the pre-trained model.")
        duration = duration or model.skill_duration
        if duration is None:
            raise ValueError("The model has no skill_duration: pass duration, the steps until the next choice.")
        known = shapes_of(model.plain_space)
        # SB3 puts the channels of images first, but not of those that VecNormalize has normalised
        given = [shapes_of(space) for space in (env.observation_space, channels_first(env.observation_space))]
        fits = any({name: shapes.get(name) for name in known} == known for shapes in given)
        if not fits or env.action_space != model.action_space:
            raise ValueError(
                f"Observations of {env.observation_space} and actions of {env.action_space} do not fit the model: pass an "
                f"environment with {model.plain_space} and {model.action_space}, as it was pre-trained in."
            )
        self.model = model
        self.duration = duration
        self.gamma = gamma
        self.vec_normalize = statistics_of_training(model, vec_normalize)
        self.skill_space = model.skill_space
        self.action_space = spaces.Discrete(model.n_skills) if self.skill_space.discrete else self.skill_space.box
        self._seen = tuple(known)
        self._observation: Observation | None = None
        # Of a model that remembers
        self._memory: dict[str, Any] = {}

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[Any, dict[str, Any]]:
        self._observation, info = self.env.reset(seed=seed, options=options)
        self._memory = {}
        return self._observation, info

    def step(self, action: int | np.ndarray) -> tuple[Any, SupportsFloat, bool, bool, dict[str, Any]]:
        """
        Follow a skill.

        :param action: index of the skill, or the vector of a continuous one, shape ``(dim,)``
        :return: observation, reward, terminated, truncated and info after all steps of the skill
        :raises ValueError: if there is no such skill
        """
        assert self._observation is not None, "call reset() first"
        skill = self._chosen(action)
        total_reward, discount, n_steps = 0.0, 1.0, 0
        terminated = truncated = False
        info: dict[str, Any] = {}
        while n_steps < self.duration and not (terminated or truncated):
            shown = self._shown(self._observation)
            primitive_action, state = self.model.predict(shown, deterministic=True, skill=skill, **self._memory)
            self._memory = {} if state is None else {"state": state}
            self._observation, reward, terminated, truncated, info = self.env.step(primitive_action)
            total_reward += discount * float(reward)
            discount *= self.gamma
            n_steps += 1
        info = {**info, "followed_steps": n_steps, "followed_skill": skill}
        return self._observation, total_reward, terminated, truncated, info

    def _shown(self, observation: Observation) -> Observation:
        """Select the entries that skills were trained with, and normalise them."""
        known = arrays_of(observation)
        entries = {name: known[name] for name in self._seen}
        if self.vec_normalize is not None:
            entries = normalize_entries(self.vec_normalize, entries)
        return plain_form(entries)  # type: ignore[return-value]

    def _chosen(self, action: int | np.ndarray) -> Any:
        """Convert an action to a skill: the index of a discrete one, or the vector of a continuous one."""
        space, values = self.skill_space, np.asarray(action)
        if not space.discrete and values.shape == (space.dim,):
            values = values.astype(np.float32)
            length = np.linalg.norm(values)
            if isinstance(space, SphereSkills):
                values = space.vectors[0] if length == 0 else values / length
        return space.decode(space.encode(values if values.shape else values.item()))
