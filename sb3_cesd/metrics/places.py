"""Positions of environments that have a ``position``."""

import warnings

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

#: Shapes of a valid ``position``: (x, y) or (x, y, z)
SHAPES = ((2,), (3,))
REMEDY = "let it be (x, y) or (x, y, z) in metres, or rename it."


def has_places(env: VecEnv) -> bool:
    """
    Check whether environments have a valid ``position``. Warns if it has another shape.

    :param env: any environments; some only have a ``position`` after a reset
    :return: whether :func:`env_positions` can be used
    """
    if not env.has_attr("position"):
        return False
    position = env.get_attr("position", indices=0)[0]
    # None: unknown before the first reset
    if position is None or np.shape(position) in SHAPES:
        return True
    warnings.warn(
        f"The position of the environment has shape {np.shape(position)}, so it is ignored: {REMEDY}",
        stacklevel=2,
    )
    return False


def has_places_to_play(env: VecEnv) -> bool:
    """
    Check whether environments to play in have a valid ``position``. Those without one are reset first, since some only have a
    ``position`` after a reset.

    :param env: environments whose episodes may be interrupted
    :return: see :func:`has_places`
    """
    if not env.has_attr("position"):
        env.reset()
    return has_places(env)


def env_positions(env: VecEnv) -> np.ndarray:
    """
    Return the positions of environments, such as the mazes and robots of this package (torso; jaco: hand).

    :param env: environments with a ``position``
    :return: positions, shape ``(n_envs, 3)``, or ``(n_envs, 2)`` for environments in the plane
    :raises ValueError: if a position has another shape
    """
    positions = env.get_attr("position")
    for position in positions:
        if np.shape(position) not in SHAPES:
            raise ValueError(f"The position of the environment has shape {np.shape(position)}: {REMEDY}")
    return np.stack(positions)
