import dataclasses
import inspect
from collections.abc import Callable, Iterator
from multiprocessing.reduction import ForkingPickler
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces
from gymnasium.envs.registration import EnvSpec
from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EvalCallback
from stable_baselines3.common.vec_env import (
    DummyVecEnv,
    SubprocVecEnv,
    VecEnv,
    VecEnvWrapper,
    VecFrameStack,
    VecNormalize,
    unwrap_vec_normalize,
    unwrap_vec_wrapper,
)
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from sb3_cesd.common.arguments import PositiveInt, checked
from sb3_cesd.common.observations import OBSERVATION, SKILL, add_skill, arrays_of, skill_observation_space
from sb3_cesd.common.skill_clock import SkillClock, SkillOrder
from sb3_cesd.common.skills import DiscreteSkills, SkillName, SkillSpace


class VecSkillObservation(VecEnvWrapper):
    """
    Add the skill to follow to the observations: ``Dict(observation, skill)``, as HER adds goals.

    A new skill is drawn for an environment when its episode ends and after every ``skill_duration`` steps.
    The observation returned by a step already contains the skill to follow from there; ``terminal_observation`` keeps the
    skill of the episode that ended. ``infos[i]["followed_skill"]`` is the skill that was followed during the step: its index,
    or the vector of a continuous one.

    :param venv: the vectorized environment to wrap, with Box observations or a Dict of Boxes (which keeps its keys)
    :param skill_space: space of the skills, or the number of discrete ones
    :param skill_duration: steps after which a new skill is drawn; ``None`` keeps a skill to the end of the episode
    :param skill: always follow this skill; a model that learns here lets its own skills act, see
        :meth:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG.set_skill`
    :param order: ``"random"``, or ``"cycle"`` to go through the skills in turn (for evaluation)
    """

    @checked
    def __init__(
        self,
        venv: VecEnv,
        skill_space: SkillSpace | int,
        skill_duration: PositiveInt | None = 50,
        skill: SkillName | None = None,
        order: SkillOrder = "random",
    ) -> None:
        self.skill_space = skill_space if isinstance(skill_space, SkillSpace) else DiscreteSkills(skill_space)
        self.clock = SkillClock(venv.num_envs, self.skill_space, skill_duration, skill, order)
        super().__init__(venv, observation_space=skill_observation_space(venv.observation_space, self.skill_space))

    def __setattr__(self, name: str, value: Any) -> None:
        # As they are read through the wrapper: model.get_env().training = False stops the statistics
        normalize = unwrap_vec_normalize(self.venv) if name in ("training", "norm_obs", "norm_reward") else None
        object.__setattr__(normalize or self, name, value)

    def __getstate__(self) -> dict[str, Any]:
        # A mappingproxy, which can't be copied; VecNormalize leaves it out, too
        return {name: value for name, value in self.__dict__.items() if name != "class_attributes"}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.class_attributes = dict(inspect.getmembers(type(self)))

    @property
    def skills(self) -> np.ndarray:
        """The skill each environment is to follow in its next step: its index, shape ``(n_envs,)``, or its vector."""
        return self.clock.skills.copy()

    def set_skill(self, skill: SkillName | None) -> None:
        """Follow a skill, its index or vector, from the next observation on; ``None`` draws skills again."""
        self.clock.set_skill(skill)

    def seed(self, seed: int | None = None) -> list[int | None]:  # type: ignore[override]
        self.clock.seed(seed)
        return self.venv.seed(seed)  # type: ignore[return-value]

    def reset(self) -> dict[str, np.ndarray]:  # type: ignore[override]
        self.clock.n_moves += 1
        observations = self.venv.reset()
        self.clock.reset()
        return add_skill(arrays_of(observations), self.clock.vectors)  # type: ignore[arg-type]

    def step_async(self, actions: np.ndarray) -> None:
        self.clock.n_moves += 1
        self.venv.step_async(actions)

    def step_wait(self) -> VecEnvStepReturn:
        observations, rewards, dones, infos = as_arrays(*self.venv.step_wait())
        vectors, skills = self.clock.vectors, self.clock.skills
        # Skills are compared by the rewards of the environment itself
        normalize = unwrap_vec_normalize(self.venv)
        self.clock.tick(dones, rewards if normalize is None else normalize.get_original_reward())
        for idx, info in enumerate(infos):
            info["followed_skill"] = int(skills[idx]) if self.skill_space.discrete else skills[idx]
            if info.get("terminal_observation") is not None:
                info["terminal_observation"] = add_skill(arrays_of(info["terminal_observation"]), vectors[idx])
        return add_skill(observations, self.clock.vectors), rewards, dones, infos  # type: ignore[arg-type, return-value]


def add_skill_observation(
    env: VecEnv, skill_space: SkillSpace, skill_duration: int | None, skill: SkillName | None = None
) -> VecEnv:
    """Wrap a vectorized environment with :class:`VecSkillObservation`, unless it is wrapped already."""
    wrapper = unwrap_vec_wrapper(env, VecSkillObservation)
    if wrapper is None:
        return VecSkillObservation(env, skill_space, skill_duration, skill)
    if wrapper.skill_space != skill_space:
        raise ValueError(
            f"The environment is wrapped for other skills ({wrapper.skill_space}) than those of the model ({skill_space}): "
            "pass it without VecSkillObservation, which the model adds."
        )
    outer: Any = env
    while outer is not wrapper:
        if isinstance(outer, VecNormalize) and outer.norm_obs and SKILL in (outer.norm_obs_keys or [SKILL]):
            raise ValueError(
                "VecNormalize around VecSkillObservation would normalise the skill: pass VecNormalize(env) alone (the model "
                f"adds the skill), or norm_obs_keys=[{OBSERVATION!r}] to VecNormalize."
            )
        outer = outer.venv
    return env


def as_arrays(observations: Any, rewards: Any, dones: Any, infos: Any) -> tuple[dict, np.ndarray, np.ndarray, list[dict]]:
    """
    Convert what a step of environments returned, whatever its types, to arrays: entries of the observations without the skill,
    rewards, float32, dones, bool, shape ``(n_envs,)``; and copy its infos.
    """
    # Environments may share one dictionary, or keep theirs
    infos = [{**info, "TimeLimit.truncated": bool(np.any(info.get("TimeLimit.truncated", False)))} for info in infos]
    return arrays_of(observations), np.ravel(rewards).astype(np.float32), np.ravel(dones).astype(bool), infos


def last_observations(
    entries: dict[str, np.ndarray], dones: np.ndarray, infos: list[dict], convert: Callable[[Any], dict] = arrays_of
) -> dict[str, np.ndarray]:
    """Replace the first observation of a new episode by the last one of the episode before, where ``infos`` hold it."""
    if dones.any():
        entries = {name: values.copy() for name, values in entries.items()}
    for idx in np.flatnonzero(dones).tolist():
        if infos[idx].get("terminal_observation") is not None:
            for name, value in convert(infos[idx]["terminal_observation"]).items():
                entries[name][idx] = np.rint(value) if entries[name].dtype.kind in "iu" else value
    return entries


class Sendable:
    """Asks in a process of ``SubprocVecEnv`` whether an attribute can be sent: the process would die of another."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.answer: bool | None = None

    def __instancecheck__(self, env: Any) -> bool:
        if self.answer is None:  # the outermost wrapper is asked first
            try:
                self.answer = bool(ForkingPickler.dumps(env.get_wrapper_attr(self.name)))
            except Exception:  # properties and pickles raise anything
                self.answer = False
        return self.answer


def attributes(env: VecEnv, name: str, indices: VecEnvIndices = None) -> list[Any]:
    """Get an attribute of environments; empty if they have none, or can't be asked for whatever reason."""
    try:
        if isinstance(env.unwrapped, SubprocVecEnv) and not all(env.env_is_wrapped(Sendable(name), indices)):  # type: ignore
            # An environment without any wrapper can't be asked beforehand
            if any(env.env_is_wrapped(gym.Wrapper, indices)) or not env.has_attr(name):
                return []
        return list(env.get_attr(name, indices))
    except Exception:  # VecEnvs raise anything
        return []


def attribute(env: VecEnv, name: str) -> Any:
    """Get an attribute of the first environment; ``None`` if it has none, see :func:`attributes`."""
    return next(iter(attributes(env, name, 0)), None)


def env_spec(env: VecEnv) -> EnvSpec | None:
    """Get id, arguments and wrappers of the first environment; ``None`` if it was not made by an id, or does not tell."""
    spec = attribute(env, "spec")
    return spec if isinstance(spec, EnvSpec) else None


def env_as_json(env: VecEnv) -> str | None:
    """Describe by Gymnasium's ``EnvSpec`` how the first environment was made; ``None`` if that can't be told."""
    try:
        spec: Any = env_spec(env)
        creator = spec.entry_point
        name = creator if isinstance(creator, str) else f"{creator.__module__}:{creator.__qualname__}"
        return dataclasses.replace(spec, entry_point=name, vector_entry_point=None).to_json()
    except Exception:  # it has none, or its arguments are no JSON
        return None


def episode_length(env: VecEnv) -> int | None:
    """Get the number of steps after which environments truncate their episodes; ``None`` if they do not."""
    spec = env_spec(env)
    return None if spec is None else spec.max_episode_steps


def env_name(env: VecEnv) -> str:
    """Get the id of environments, or the class of one of them, for a message or a title."""
    spec = env_spec(env)
    if spec is not None:
        return spec.id
    unwrapped = env.unwrapped
    return type(unwrapped.envs[0].unwrapped if isinstance(unwrapped, DummyVecEnv) else unwrapped).__name__


def arguments_of(spec: EnvSpec) -> dict[str, Any]:
    """Collect the arguments that make another environment like a given one, with its time limit, without ``render_mode``."""
    arguments = {name: value for name, value in spec.kwargs.items() if name != "render_mode"}
    registered = gym.registry.get(spec.id)
    if registered is not None and registered.max_episode_steps != spec.max_episode_steps:
        # Gymnasium takes None for what is registered
        arguments["max_episode_steps"] = -1 if spec.max_episode_steps is None else spec.max_episode_steps
    return arguments


def all_callbacks(callback: Any) -> Iterator[Any]:
    """List callbacks, also those within others, without the lists that hold them."""
    children = callback.callbacks if isinstance(callback, CallbackList) else callback
    if not isinstance(children, list):
        yield callback
        children = [getattr(callback, name, None) for name in ("callback", "callback_on_new_best")]
    for child in children:
        if isinstance(child, BaseCallback):
            yield from all_callbacks(child)


def check_not_training(eval_env: VecEnv, training_env: VecEnv) -> None:
    """Check that an evaluation moves other environments than training does."""
    evaluated, trained = (
        {id(each.unwrapped) for each in getattr(env.unwrapped, "envs", [env])} for env in (eval_env, training_env)
    )
    if not evaluated.isdisjoint(trained):
        raise ValueError("eval_env is the training environment, whose episode must not be interrupted: pass another one.")


def prepare_evaluation(callback: Any, env: VecEnv, skill_space: SkillSpace, skill: SkillName | None) -> None:
    """Let evaluations go through the skills in turn (or follow one), one per episode, in environments without skills."""
    for each in all_callbacks(callback):
        if isinstance(each, EvalCallback):
            check_not_training(each.eval_env, env)
            if unwrap_vec_wrapper(each.eval_env, VecSkillObservation) is None:
                each.eval_env = VecSkillObservation(each.eval_env, skill_space, None, skill, order="cycle")


def n_stacked(env: VecEnv) -> int:
    """Count the frames in an observation of environments; 1 without ``VecFrameStack``, and where it stacks dictionaries."""
    wrapper = unwrap_vec_wrapper(env, VecFrameStack)
    return wrapper.stacked_obs.n_stack if wrapper is not None and isinstance(wrapper.observation_space, spaces.Box) else 1
