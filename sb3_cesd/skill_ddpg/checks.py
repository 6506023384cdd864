"""Checks of spaces, and of whether what environments return and models learn is finite."""

from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.common.observations import SKILL, check_plain_space, plain_space
from sb3_cesd.common.vec_env import env_name


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
    is_box = isinstance(action_space, spaces.Box) and 0 not in action_space.shape
    if not is_box or not action_space.is_bounded() or (action_space.low >= action_space.high).any():  # type: ignore
        raise ValueError(
            f"The action space is {action_space}, but skills need continuous actions with finite bounds, low below high: use "
            "an environment with such a Box, or gymnasium.wrappers.TransformAction."
        )
    has_skill = isinstance(observation_space, spaces.Dict) and SKILL in observation_space.spaces
    check_plain_space(plain_space(observation_space) if has_skill else observation_space)  # type: ignore[arg-type]


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
