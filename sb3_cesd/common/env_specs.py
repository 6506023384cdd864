"""How environments were made, as Gymnasium records it."""

from collections.abc import Mapping
from typing import Any

from gymnasium.envs.registration import EnvSpec
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv


def env_spec(env: VecEnv) -> EnvSpec | None:
    """
    Tell how environments were made.

    :param env: vectorized environments, made in one way
    :return: id, arguments and wrappers of the first; ``None`` if they were not made by an id
    """
    return env.get_attr("spec", indices=0)[0] if env.has_attr("spec") else None


def env_name(env: VecEnv) -> str:
    """
    Name environments, for a message or a title.

    :param env: vectorized environments, made in one way
    :return: their id, or the class of one of them
    """
    spec = env_spec(env)
    if spec is not None:
        return spec.id
    unwrapped = env.unwrapped
    return type(unwrapped.envs[0].unwrapped if isinstance(unwrapped, DummyVecEnv) else unwrapped).__name__


def without_rendering(env_kwargs: Mapping[str, Any]) -> dict[str, Any]:
    """
    Drop ``render_mode`` from the arguments of an environment, to make one that renders nothing, or in another way.

    :param env_kwargs: arguments by name
    :return: the others
    """
    return {name: value for name, value in env_kwargs.items() if name != "render_mode"}
