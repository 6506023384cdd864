"""Checks of what users pass and environments return; every message ends in the remedy."""

import inspect
import math
import warnings
from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
from gymnasium import spaces
from stable_baselines3.common.base_class import maybe_make_env
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_wrapper

from sb3_cesd.common import allowed
from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.checks import check_names, explain_unknown_env, first_not_finite
from sb3_cesd.common.env_specs import env_name
from sb3_cesd.common.gradient_steps import TrainingDiverged, not_finite
from sb3_cesd.common.observations import SKILL, check_plain_space, plain_space, short
from sb3_cesd.common.rules import as_array, shown
from sb3_cesd.common.skills import SkillName, SkillSpace, name_in_task
from sb3_cesd.common.vec_env import VecSkillObservation


def check_model(model: Any) -> None:
    """
    Check the arguments that a model was made with.

    :param model: a model, with its arguments as attributes
    :raises ValueError: if one is out of its range
    """
    allowed.check_arguments("SkillDDPG", vars(model))
    if model.reward == "intrinsic" and not hasattr(model, "reward_class"):
        raise ValueError(
            f"{type(model).__name__} has no intrinsic reward: use a method that has one, such as CeSD, or pass "
            "reward='extrinsic'."
        )
    if model.reward == "intrinsic" and model.bc_coef > 0:
        raise ValueError(
            f"bc_coef={model.bc_coef}, but there is no pre-trained skill to clone while skills are discovered: leave it out, "
            "and pass it to from_pretrained(path, env, bc_coef=...) for a task."
        )


def check_reference(model: Any) -> None:
    """
    Check that a model that clones its pre-trained skill has it.

    :param model: a model that is about to learn
    :raises ValueError: if it has none
    """
    if model.bc_coef > 0 and model.reference_actor is None:
        raise ValueError(
            f"bc_coef={model.bc_coef}, but this model has no pre-trained skill to clone: start from a pre-trained model, "
            "from_pretrained(path, env, bc_coef=...), or leave bc_coef out."
        )


#: Arguments of a constructor that loaders do not change: they have another argument for it, or the saved model keeps it
NOT_TO_CHANGE = ("self", "policy", "env", "device", "_init_setup_model")
#: Arguments of a policy or a replay buffer that the algorithm sets
OF_THE_POLICY = ("observation_space", "action_space", "lr_schedule", "skill_space", "is_task", "skill", "ent_coef")
OF_THE_BUFFER = (
    "buffer_size",
    "observation_space",
    "action_space",
    "device",
    "n_envs",
    "optimize_memory_usage",
    "skill_space",
    "n_steps",
    "gamma",
    "one_step",
    "average_window",
    "reward",
)


def check_constructor_arguments(model_class: Any, values: Mapping[str, Any]) -> None:
    """
    Check all or some arguments of a constructor, before they are used.

    :param model_class: class of an algorithm
    :param values: arguments by name
    :raises ValueError: if one is not allowed, or a dictionary among them has unknown keys
    """
    allowed.check_arguments("SkillDDPG", values)
    policy = values.get("policy", "MlpPolicy")
    aliases = model_class.policy_aliases
    if isinstance(policy, str) and policy not in aliases:
        also = ", also for dictionaries and images" if policy in ("MultiInputPolicy", "CnnPolicy") else ""
        raise ValueError(f"Policy {policy} unknown: choose {' or '.join(map(repr, aliases))}{also}.")
    _check_group("policy_kwargs", aliases.get(policy, policy) if isinstance(policy, str) else policy, values, OF_THE_POLICY)
    if hasattr(model_class, "reward_class"):
        _check_group("intrinsic_kwargs", model_class.reward_class, values, ("obs_dim", "action_dim", "skill_space"))
    buffer_class = values.get("replay_buffer_class") or SkillReplayBuffer
    if issubclass(buffer_class, SkillReplayBuffer):
        _check_group("replay_buffer_kwargs", buffer_class, values, OF_THE_BUFFER)


def _check_group(group: str, factory: type, values: Mapping[str, Any], given: Collection[str]) -> None:
    kwargs = values.get(group) or {}
    check_names(group, factory, kwargs, given)
    # A class of the user may take other values, or have the name of one of ours
    redefined: set[str] = set()
    for ancestor in factory.__mro__:
        if ancestor.__module__.startswith("sb3_cesd.") and ancestor.__name__ in allowed.ALLOWED:
            known = {name: value for name, value in kwargs.items() if name not in redefined}
            allowed.check_arguments(ancestor.__name__, known)
            break
        if "__init__" in vars(ancestor):
            redefined |= set(inspect.signature(vars(ancestor)["__init__"]).parameters)


def check_changes(model_class: Any, loader: str, values: Mapping[str, Any], others: Collection[str]) -> None:
    """
    Check arguments that change a saved model.

    :param model_class: class of an algorithm
    :param loader: name of the method that loads, for the message
    :param values: arguments by name
    :param others: known names that are not arguments of the constructor
    :raises ValueError: if an argument is unknown or not allowed
    """
    names = [name for name in inspect.signature(model_class.__init__).parameters if name not in NOT_TO_CHANGE]
    known = sorted({*names, *others})
    unknown = sorted(set(values) - set(known))
    if unknown:
        raise ValueError(f"{loader}() has no {', '.join(map(repr, unknown))}: use some of {', '.join(known)}.")
    check_constructor_arguments(model_class, values)


def check_buffer_class(buffer_class: type[ReplayBuffer], cuda_graph: bool) -> None:
    """
    Check that training can use a class of replay buffers.

    :param buffer_class: class of the replay buffer
    :param cuda_graph: whether updates are to be captured
    :raises ValueError: if it does not store skills, or overrides a method that training does not call
    """
    if not issubclass(buffer_class, SkillReplayBuffer):
        raise ValueError(
            f"{buffer_class.__name__} does not store skills: leave replay_buffer_class out, or subclass SkillReplayBuffer."
        )
    if buffer_class._get_samples is not SkillReplayBuffer._get_samples:
        raise ValueError(
            f"{buffer_class.__name__} overrides _get_samples(), which is never called: override sample(), or draw() and "
            "gather()."
        )
    if cuda_graph and buffer_class.sample is not SkillReplayBuffer.sample:
        raise ValueError(
            f"{buffer_class.__name__} overrides sample(), which can't be captured in a CUDA graph: override draw() and "
            "gather(), or leave cuda_graph out."
        )


def check_env_spaces(observation_space: spaces.Space, action_space: spaces.Space) -> None:
    """
    Check that a method can learn in an environment.

    :param observation_space: of the environment, with or without the skill
    :param action_space: of the environment
    :raises ValueError: unless observations are arrays (or a dictionary of them) and actions continuous, with low < high
    """
    has_skill = isinstance(observation_space, spaces.Dict) and SKILL in observation_space.spaces
    check_plain_space(plain_space(observation_space) if has_skill else observation_space)  # type: ignore[arg-type]
    if not isinstance(action_space, spaces.Box):
        raise ValueError(
            f"This algorithm needs continuous actions, but the action space is {short(action_space)}: "
            "use an environment with a Box action space."
        )
    if not action_space.is_bounded():
        raise ValueError(
            f"The action space {short(action_space)} has no finite bounds, within which to explore: give it some, for "
            "instance with gymnasium.wrappers.TransformAction."
        )
    if 0 in action_space.shape:
        raise ValueError(
            f"The action space {short(action_space)} has no entries to choose: give it some, for instance with "
            "gymnasium.wrappers.TransformAction."
        )
    fixed = np.flatnonzero(action_space.low >= action_space.high).tolist()
    if fixed:
        raise ValueError(
            f"Entries {fixed} of the action have no range, as low is not below high: leave them out of the action space, for "
            "instance with gymnasium.wrappers.TransformAction."
        )


def check_task_skill(skill: SkillName | None, own: SkillName | None) -> None:
    """
    Check that the skill that learned a task is to be followed.

    :param skill: the skill to follow, as stored in the model
    :param own: the skill of the task
    :raises ValueError: if it is another one
    """
    if skill != own:
        name = name_in_task(own)
        raise ValueError(
            f"{name[0].upper()}{name[1:]} learns the task, the others do not: for another one, fine-tune the pre-trained "
            "model again with from_pretrained(path, env, skill=...)."
        )


def warn_of_untrained_skill(
    skill_space: SkillSpace, followed: SkillName, own: SkillName, batch_shape: tuple[int, ...]
) -> None:
    """
    Warn if another skill is followed than that which learned the task.

    :param skill_space: space of the skills
    :param followed: skill to follow, one for all observations or one each
    :param own: the skill of the task
    :param batch_shape: shape of the batch of observations
    """
    if (skill_space.encode(followed, batch_shape) != skill_space.encode(own)).any():
        warnings.warn(f"Skill {shown(own)} learned the task, the others did not: leave skill out to follow that one.")


def check_wrapper(env: VecEnv, skill: SkillName | None, skill_duration: int | None) -> None:
    """
    Check that environments which came with skill observations follow the skills that a model learns.

    :param env: environments with skill observations
    :param skill: the skill that the model follows, as stored in the model; ``None`` for all of them
    :param skill_duration: steps for which the model follows a skill
    :raises ValueError: if another skill was fixed in the environments
    """
    wrapper = unwrap_vec_wrapper(env, VecSkillObservation)
    if wrapper is None:
        return
    own = wrapper.own_skill
    if own is not None and own != skill:
        follows = "all skills" if skill is None else f"skill {skill}"
        raise ValueError(
            f"VecSkillObservation was told to follow skill {own}, the model follows {follows}: leave the skill out there, and "
            f"call model.set_skill({own}) to follow that one alone."
        )
    if wrapper.clock.follows_model and wrapper.clock.duration != skill_duration:
        warnings.warn(
            f"VecSkillObservation draws skills with skill_duration={wrapper.clock.duration}, so that skill_duration="
            f"{skill_duration} of the model has no effect: pass the same to both, or the environment without "
            "VecSkillObservation (the model adds it).",
            stacklevel=4,
        )


def make_training_env(env: Any, verbose: int = 0) -> Any:
    """
    Make an environment from its id.

    :param env: an environment, or the id of one
    :param verbose: verbosity level
    :return: the environment
    :raises ValueError: if there is no environment with this id
    """
    with explain_unknown_env(env):
        return maybe_make_env(env, verbose)


def check_observation(observation: Any, what: str = "observation") -> None:
    """
    Check that observations consist of finite numbers; the policy checks their shape.

    :param observation: one or several observations, with or without a skill
    :param what: name of the argument, for messages
    :raises ValueError: if they contain anything else
    """
    entries = observation.items() if isinstance(observation, dict) else [("observation", observation)]
    for name, value in entries:
        values = as_array(value)
        is_of_reset = isinstance(value, tuple) and len(value) == 2 and isinstance(value[1], dict)
        if is_of_reset and what == "observation":
            continue  # SB3 explains it
        # Booleans pass as numbers in an array, which an environment made, but not in a list
        kinds = "iufb" if isinstance(value, np.ndarray) else "iuf"
        if values.dtype.kind not in kinds or not np.isfinite(values).all():
            which = f"The {what} {'are' if what.endswith('s') else 'is'}"
            if name != "observation":
                which = f"Entry {name!r} of the {what} is"
            remedy = "the first part of what reset() returned" if is_of_reset else "what the environment returned"
            raise ValueError(f"{which} not an array of finite numbers ({shown(value)}): pass {remedy}.")


def check_finite(env: VecEnv, kind: str, values: np.ndarray | dict[str, np.ndarray], step: int) -> None:
    """
    Check that an environment returned finite numbers.

    :param env: the environments
    :param kind: what the values are, e.g. "observation"
    :param values: one row for each environment, shape ``(n_envs, ...)``, or a dictionary of such arrays
    :param step: time step of the training
    :raises ValueError: if there is NaN or infinity
    """
    if isinstance(values, dict):
        for name, entry in values.items():
            check_finite(env, kind if len(values) == 1 else f"{kind} {name!r}", entry, step)
        return
    found = first_not_finite(values)
    if found is None:
        return
    env_idx, listed = found
    raise ValueError(
        f"{env_name(env)}, environment {env_idx}, time step {step}: the {kind} is not finite ({listed}). It was not stored. "
        f"Make the environment return finite values, e.g. clip the {kind} or end the episode before it diverges."
    )


def check_finite_action(actions: np.ndarray, step: int) -> None:
    """
    Check that a policy returned finite numbers.

    :param actions: any shape
    :param step: time step of the training
    :raises TrainingDiverged: if there is NaN or infinity
    """
    if not np.isfinite(actions).all():
        raise TrainingDiverged(
            f"The policy returned actions that are not finite at time step {step}: training has diverged. "
            "Lower learning_rate, or normalise the observations with VecNormalize."
        )


def check_learning_rate(learning_rate: float, step: int) -> None:
    """
    Check the learning rate that a schedule returned.

    :param learning_rate: learning rate of the next updates
    :param step: time step of the training
    :raises ValueError: unless it is a finite number, zero or above
    """
    if not (math.isfinite(learning_rate) and learning_rate >= 0):
        raise ValueError(
            f"learning_rate is {learning_rate} at time step {step}: pass zero or a positive number, or a function that "
            "returns one for every remaining progress from 1 to 0."
        )


def check_finite_model(model: Any) -> None:
    """
    Check that everything a model has learned is finite.

    :param model: a model
    :raises TrainingDiverged: if a weight, running statistic or optimizer state is not
    """
    found = list(not_finite(model.get_parameters(), "parameters"))
    if found:
        listed = ", ".join(found[:4]) + (", ..." if len(found) > 4 else "")
        raise TrainingDiverged(
            f"{len(found)} tensors of the model are not finite at time step {model.num_timesteps}: {listed}. It was not "
            "saved; a file that was saved before is untouched. Load that, and lower learning_rate or normalise observations "
            "and rewards with VecNormalize."
        )
