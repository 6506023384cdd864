import inspect
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.vec_env import (
    VecEnv,
    VecEnvWrapper,
    VecNormalize,
    VecTransposeImage,
    unwrap_vec_normalize,
    unwrap_vec_wrapper,
)
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.choices import SkillOrder
from sb3_cesd.common.observations import (
    OBSERVATION,
    SKILL,
    Observation,
    add_skill,
    channels_first,
    entries_of,
    plain_form,
    shapes_of,
    short,
    skill_observation_space,
)
from sb3_cesd.common.skill_clock import SkillClock
from sb3_cesd.common.skills import DiscreteSkills, SkillName, SkillSpace


class VecSkillObservation(VecEnvWrapper):
    """
    Add the skill to follow to the observations: ``Dict(observation, skill)``, as HER adds goals.

    A new skill is drawn for an environment when its episode ends and after every ``skill_duration`` steps.
    The observation returned by a step already contains the skill to follow from there; ``terminal_observation`` keeps the
    skill of the episode that ended. ``infos[i]["skill"]`` is the skill that was followed during the step: its index, or the
    vector of a continuous one.

    :param venv: the vectorized environment to wrap, with Box observations or a Dict of Boxes (which keeps its keys)
    :param skill_space: space of the skills, or the number of discrete ones
    :param skill_duration: steps after which a new skill is drawn; ``None`` keeps a skill to the end of the episode
    :param skill: always follow this skill
    :param order: ``"random"``, or ``"cycle"`` to go through the skills in turn (for evaluation)
    """

    #: The skill that the user fixed here, in the form that models store; that of a model is fixed in the clock only
    own_skill: int | list[float] | None = None

    def __init__(
        self,
        venv: VecEnv,
        skill_space: SkillSpace | int,
        skill_duration: int | None = 50,
        skill: SkillName | None = None,
        order: SkillOrder = "random",
    ) -> None:
        check_arguments("VecSkillObservation", locals())
        self.skill_space = skill_space if isinstance(skill_space, SkillSpace) else DiscreteSkills(skill_space)
        self.clock = SkillClock(venv.num_envs, self.skill_space, skill_duration, skill, order)
        self.own_skill = None if skill is None else self.skill_space.name_of(skill)
        super().__init__(venv, observation_space=skill_observation_space(venv.observation_space, self.skill_space))

    def __getstate__(self) -> dict[str, Any]:
        # A mappingproxy, which can't be copied; VecNormalize leaves it out, too
        return {name: value for name, value in self.__dict__.items() if name != "class_attributes"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.class_attributes = dict(inspect.getmembers(type(self)))

    @property
    def skills(self) -> np.ndarray:
        """
        The skill each environment is to follow in its next step: its index, shape ``(n_envs,)``, or its vector, shape
        ``(n_envs, skill_dim)``.
        """
        return self.clock.skills.copy()

    def set_skill(self, skill: SkillName | None) -> None:
        """
        Fix the skill.

        :param skill: follow this skill from the next observation on, or ``None`` to draw skills again
        """
        self.clock.set_skill(skill)
        self.own_skill = None if skill is None else self.skill_space.name_of(skill)

    def get_state(self) -> dict[str, Any]:
        """
        Get the state of the skills: which act, for how long, and which are drawn next; not that of the wrapped environments.

        :return: what :meth:`set_state` takes
        """
        return self.clock.get_state()

    def set_state(self, state: dict[str, Any]) -> None:
        """
        Continue from the skills of another wrapper with the same number of environments.

        :param state: what :meth:`get_state` of the other wrapper returned
        """
        self.clock.set_state(state)

    def seed(self, seed: int | None = None) -> list[int | None]:  # type: ignore[override]
        self.clock.seed(seed)
        return self.venv.seed(seed)  # type: ignore[return-value]

    def reset(self) -> dict[str, np.ndarray]:  # type: ignore[override]
        observations = self.venv.reset()
        self.clock.reset()
        return add_skill(observations, self.clock.vectors)  # type: ignore[arg-type]

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, dones, infos = self.venv.step_wait()
        vectors, skills = self.clock.vectors, self.clock.skills
        # Skills are compared by the rewards of the environment itself
        normalize = unwrap_vec_normalize(self.venv)
        self.clock.tick(dones, rewards if normalize is None else normalize.get_original_reward())
        # Copies, as environments may share one dictionary, or keep theirs
        infos = [dict(info) for info in infos]
        for idx, info in enumerate(infos):
            info["skill"] = int(skills[idx]) if self.skill_space.discrete else skills[idx]
            if "terminal_observation" in info:
                info["terminal_observation"] = add_skill(info["terminal_observation"], vectors[idx])
        return add_skill(observations, self.clock.vectors), rewards, dones, infos  # type: ignore[arg-type, return-value]


def add_skill_observation(
    env: VecEnv,
    skill_space: SkillSpace,
    skill_duration: int | None,
    skill: SkillName | None = None,
    order: SkillOrder = "random",
) -> VecEnv:
    """
    Wrap a vectorized environment with :class:`VecSkillObservation`, unless it is wrapped already.

    :param env: vectorized environment, with or without skill observations
    :param skill_space: space of the skills
    :param skill_duration: see :class:`VecSkillObservation`
    :param skill: see :class:`VecSkillObservation`
    :param order: see :class:`VecSkillObservation`
    :return: an environment with skill observations
    :raises ValueError: if it is wrapped for other skills, or changed after the skill was added
    """
    wrapper = unwrap_vec_wrapper(env, VecSkillObservation)
    if wrapper is None:
        wrapper = VecSkillObservation(env, skill_space, skill_duration, skill, order)
        wrapper.own_skill = None
        return wrapper
    if wrapper.skill_space != skill_space:
        raise ValueError(
            f"The environment is wrapped for {wrapper.skill_space.n_skills} skills ({wrapper.skill_space}), the model has "
            f"{skill_space.n_skills} ({skill_space}): pass the environment without VecSkillObservation (the model adds it), "
            "or wrap it for the skills of the model."
        )
    outer: VecEnv = env
    while outer is not wrapper:
        if isinstance(outer, VecNormalize) and outer.norm_obs and SKILL in (outer.norm_obs_keys or [SKILL]):
            raise ValueError(
                "VecNormalize around VecSkillObservation would normalise the skill: pass VecNormalize(env) alone (the model "
                f"adds the skill), or norm_obs_keys=[{OBSERVATION!r}] to VecNormalize."
            )
        assert hasattr(outer, "venv")
        outer = outer.venv
    if not _same_layout(env.observation_space, wrapper.observation_space):
        raise ValueError(
            "A wrapper around VecSkillObservation changes the observation space to "
            f"{short(env.observation_space)}: apply it before VecSkillObservation, or pass the environment without "
            "VecSkillObservation (the model adds it)."
        )
    return env


def _same_layout(first: spaces.Space, second: spaces.Space) -> bool:
    """Whether two spaces have equal keys and shapes; VecNormalize changes bounds."""
    if isinstance(first, spaces.Dict) and isinstance(second, spaces.Dict):
        return first.spaces.keys() == second.spaces.keys() and all(
            first[name].shape == second[name].shape for name in first.spaces
        )
    return first == second


#: What :func:`normalize_like_training` changes of a ``VecNormalize``
NORMALIZATION = ("training", "norm_obs", "norm_obs_keys", "obs_rms", "clip_obs", "epsilon")


def normalize_like_training(env: VecEnv, statistics: VecNormalize | None) -> VecEnv:
    """
    Normalise the observations of other environments as in training.

    The statistics of training are shared, so that they are always the latest, and never changed.

    :param env: environments without skill observations, with a ``VecNormalize`` of their own (which is changed) or without
    :param statistics: ``VecNormalize`` of training, ``None`` if there was none
    :return: the environments, normalised
    :raises ValueError: if the statistics are of other observations
    """
    normalizer = unwrap_vec_normalize(env)
    if normalizer is None:
        if statistics is None:
            return env
        keys = None
        if isinstance(env.observation_space, spaces.Dict) and statistics.norm_obs:
            # Not all entries, as the space describes images that are normalised as other arrays
            keys = [name for name in observation_statistics(statistics) if name in env.observation_space.spaces]
        env = normalizer = VecNormalize(env, norm_obs=statistics.norm_obs, norm_reward=False, norm_obs_keys=keys)
    normalizer.training = False
    normalizer.norm_obs = statistics is not None and statistics.norm_obs
    if statistics is not None and statistics.norm_obs:
        # The normalizer has none of its own if it did not normalise observations
        known, trained = shapes_of(normalizer.observation_space), observation_statistics(statistics)
        shapes = {name: rms.mean.shape for name, rms in trained.items()}
        if {name: known.get(name) for name in shapes} != shapes:
            raise ValueError(
                f"The statistics of VecNormalize are of observations of shape {_shapes(shapes)}, those to "
                f"normalise are of shape {_shapes(known)}: pass environments wrapped as those of training."
            )
        if isinstance(normalizer.observation_space, spaces.Dict):
            normalizer.obs_rms, normalizer.norm_obs_keys = trained, list(trained)
        else:
            normalizer.obs_rms = trained[OBSERVATION]
        normalizer.clip_obs, normalizer.epsilon = statistics.clip_obs, statistics.epsilon
    return env


def transpose_like_training(env: VecEnv, space: spaces.Space) -> VecEnv:
    """
    Put the channels of images first where the model observes them so: Stable-Baselines3 transposes only the environments of
    training.

    :param env: environments
    :param space: space that the model observes
    :return: the environments, in a ``VecTransposeImage`` if that makes their observations those of the model
    """
    given, observed = shapes_of(env.observation_space), shapes_of(space)
    if given == observed or shapes_of(channels_first(env.observation_space)) != observed:
        return env
    return VecTransposeImage(env)


def lacks_statistics(model: Any, vec_normalize: VecNormalize | None) -> bool:
    """
    Return whether observations are not normalised for a model, although ``VecNormalize`` normalised them in training.

    :param model: a model, or an exported policy, which holds its statistics itself
    :param vec_normalize: ``VecNormalize`` of its environment, if there is one
    :return: whether the statistics of training are missing
    """
    return getattr(model, "trained_normalized", False) and not (vec_normalize is not None and vec_normalize.norm_obs)


def observation_statistics(normalize: VecNormalize) -> dict[str, Any]:
    """
    Read the statistics of observations.

    :param normalize: the ``VecNormalize``
    :return: mean and variance by the name of the entry, which is ``"observation"`` for a Box space
    """
    return normalize.obs_rms if isinstance(normalize.obs_rms, dict) else {OBSERVATION: normalize.obs_rms}


def has_seen_observations(normalize: VecNormalize) -> bool:
    """
    Return whether the statistics of observations include any, or are as initialised.

    :param normalize: the ``VecNormalize``
    :return: whether each entry has been seen once at least
    """
    return all(statistics.count >= 1.0 for statistics in observation_statistics(normalize).values())


def normalize_entries(vec_normalize: VecNormalize, entries: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """
    Normalise observations, whether ``VecNormalize`` is inside the skill wrapper or around it.

    :param vec_normalize: the ``VecNormalize``
    :param entries: entries of observations, without a skill
    :return: the entries as a model sees them
    """
    return entries_of(vec_normalize.normalize_obs(_in_layout_of(vec_normalize, entries)))


def unnormalize_entries(vec_normalize: VecNormalize, entries: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """
    Undo :func:`normalize_entries`.

    :param vec_normalize: the ``VecNormalize``
    :param entries: entries of observations as a model sees them, without a skill
    :return: the entries as environments return them
    """
    return entries_of(vec_normalize.unnormalize_obs(_in_layout_of(vec_normalize, entries)))


def _in_layout_of(vec_normalize: VecNormalize, entries: dict[str, np.ndarray]) -> Observation:
    """Convert entries to the form that ``VecNormalize`` takes: always dictionaries if it is around the skill wrapper."""
    return entries if isinstance(vec_normalize.observation_space, spaces.Dict) else plain_form(entries)  # type: ignore[return-value]


def _shapes(shapes: dict[str, tuple[int, ...] | None]) -> str:
    return str(shapes[OBSERVATION]) if list(shapes) == [OBSERVATION] else str(shapes)
