"""Specs of environments: how they were made, as Gymnasium records it. All environments of a vector are made alike."""

from collections.abc import Mapping
from typing import Any

import gymnasium as gym
from gymnasium.envs.registration import EnvSpec
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv


def env_spec(env: VecEnv) -> EnvSpec | None:
    """Get id, arguments and wrappers of the first environment; ``None`` if it was not made by an id."""
    return env.get_attr("spec", indices=0)[0] if env.has_attr("spec") else None


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
    """
    Collect the arguments that make another environment like a given one.

    :param spec: spec of that environment
    :return: arguments by name, without ``render_mode``; with ``max_episode_steps`` if that is not what is registered
    """
    arguments = without_rendering(spec.kwargs)
    registered = gym.registry.get(spec.id)
    if registered is not None and registered.max_episode_steps != spec.max_episode_steps:
        # Gymnasium takes None for what is registered
        arguments["max_episode_steps"] = -1 if spec.max_episode_steps is None else spec.max_episode_steps
    return arguments


def without_rendering(env_kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """Remove ``render_mode`` from the arguments of an environment."""
    return {name: value for name, value in env_kwargs.items() if name != "render_mode"}
