import inspect
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import (
    VecEnv,
    VecEnvWrapper,
    VecNormalize,
    unwrap_vec_normalize,
    unwrap_vec_wrapper,
)
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.choices import SkillOrder
from sb3_cesd.common.observations import (
    OBSERVATION,
    SKILL,
    add_skill,
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
        :raises ValueError: if there is no such skill
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
    if shapes_of(env.observation_space) != shapes_of(wrapper.observation_space):
        raise ValueError(
            "A wrapper around VecSkillObservation changes the observation space to "
            f"{short(env.observation_space)}: apply it before VecSkillObservation, or pass the environment without "
            "VecSkillObservation (the model adds it)."
        )
    return env
