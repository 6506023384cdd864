"""Checks of what users pass and environments return, and constructors with other defaults for a method."""

import inspect
from collections.abc import Iterator, Mapping
from functools import wraps
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.common.arguments import check_names, check_values, constructor_names, instead_of
from sb3_cesd.common.observations import SKILL, check_plain_space, plain_space
from sb3_cesd.common.vec_env import env_name

#: Arguments of a constructor that belong to a run, not to a model
OF_THE_RUN = ("self", "policy", "env", "reward", "tensorboard_log", "verbose", "seed", "device", "_init_setup_model")


class TrainingDiverged(ValueError):
    """Raised when something that is learned, or follows from it, is not finite."""


def not_finite(state: Any, name: str) -> Iterator[str]:
    """Find tensors that hold NaN or infinity in dictionaries and lists, as ``state_dict`` returns them, by their paths."""
    if isinstance(state, th.Tensor):
        if not state.isfinite().all():
            yield name
    elif isinstance(state, Mapping):
        for key, value in state.items():
            yield from not_finite(value, f"{name}.{key}")
    elif isinstance(state, list | tuple):
        for idx, value in enumerate(state):
            yield from not_finite(value, f"{name}[{idx}]")


def check_env_spaces(observation_space: spaces.Space, action_space: spaces.Space) -> None:
    """Check that a method can learn in an environment, whose observations may contain the skill."""
    has_skill = isinstance(observation_space, spaces.Dict) and SKILL in observation_space.spaces
    check_plain_space(plain_space(observation_space) if has_skill else observation_space)  # type: ignore[arg-type]
    is_box = isinstance(action_space, spaces.Box) and 0 not in action_space.shape
    if not is_box or not action_space.is_bounded() or (action_space.low >= action_space.high).any():  # type: ignore
        raise ValueError(
            f"The action space is {action_space}, but skills need continuous actions with finite bounds, low below high: use "
            "an environment with such a Box, or gymnasium.wrappers.TransformAction."
        )


def check_observation(observation: Any, what: str = "observation") -> None:
    """Check that observations are finite; the policy checks their shape."""
    if isinstance(observation, tuple):
        return  # what reset() returns: SB3 explains it
    for value in observation.values() if isinstance(observation, dict) else [observation]:
        if not np.isfinite(value).all():
            raise ValueError(f"The {what} must be finite numbers: pass what the environment returned.")


def check_finite(env: VecEnv, kind: str, values: np.ndarray | dict[str, np.ndarray], step: int) -> None:
    """Check that environments returned finite numbers, shape ``(n_envs, ...)``; ``kind`` is e.g. "observation"."""
    for entry in values.values() if isinstance(values, dict) else [values]:
        if not np.isfinite(entry).all():
            env_idx = int(np.argwhere(~np.isfinite(entry))[0, 0])
            raise ValueError(f"{env_name(env)}, environment {env_idx}, time step {step}: the {kind} is not finite, clip it.")


def with_defaults(init: Any, defaults: dict[str, Any]) -> Any:
    """Wrap a constructor, with other defaults, which its signature shows, and an error that helps with unknown arguments."""
    signature = inspect.signature(init)
    parameters = [each.replace(default=defaults.get(each.name, each.default)) for each in signature.parameters.values()]

    @wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        known = constructor_names(type(self))
        for name in kwargs:
            if name not in known:
                hint = instead_of(name, known, parts_of_model(type(self)))
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected argument {name!r}: {hint}")
        given = signature.bind_partial(self, *args, **kwargs).arguments
        init(self, *args, **{**{name: value for name, value in defaults.items() if name not in given}, **kwargs})

    __init__.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return __init__


def parts_of_model(model_class: Any) -> dict[str, type]:
    """Classes of the parts of a model, by the arguments that hold theirs."""
    return {
        "policy_kwargs": model_class.policy_aliases["MlpPolicy"],
        "intrinsic_kwargs": getattr(model_class, "reward_class", object),
    }


def constructor_arguments(model: Any) -> dict[str, Any]:
    """Collect the arguments that make another model like this one, except those of the run (environment, seed, logs, ...)."""
    names = [name for name in constructor_names(type(model)) if name not in OF_THE_RUN]
    arguments = {name: getattr(model, name if hasattr(model, name) else f"_{name}") for name in names}
    if model.updates_follow_steps:
        arguments["gradient_steps"] = None
    return arguments


def check_changes(model_class: Any, function: str, arguments: dict[str, Any]) -> None:
    """Check names and ranges of arguments that change a saved model, which SB3 would set without a check."""
    known = [name for name in constructor_names(model_class) if name not in ("self", "policy", "env")]
    check_names(function, arguments, known, parts_of_model(model_class))
    check_values(model_class.__init__, arguments)
