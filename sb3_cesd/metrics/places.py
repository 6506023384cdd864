"""Where environments are, for those that say so."""

import warnings

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

#: What a ``position`` has to be: (x, y) or (x, y, z)
SHAPES = ((2,), (3,))
REMEDY = "let it be (x, y) or (x, y, z) in metres, or name it otherwise."


def has_places(env: VecEnv) -> bool:
    """
    Tell whether environments have a ``position`` that is a place. Warns if it is something else.

    :param env: any environments; some have a ``position`` only once they have been reset
    :return: whether :func:`env_positions` locates them
    """
    if not env.has_attr("position"):
        return False
    position = env.get_attr("position", indices=0)[0]
    # None: to be known after the first reset
    if position is None or np.shape(position) in SHAPES:
        return True
    warnings.warn(
        f"The position of the environment has shape {np.shape(position)}, so it is not taken for a place: {REMEDY}",
        stacklevel=2,
    )
    return False


def has_places_to_play(env: VecEnv) -> bool:
    """
    Tell whether environments that are about to be played in have a ``position`` that is a place. Those without a
    ``position`` are reset, which may bring one.

    :param env: environments whose episodes may be cut
    :return: see :func:`has_places`
    """
    if not env.has_attr("position"):
        env.reset()
    return has_places(env)


def env_positions(env: VecEnv) -> np.ndarray:
    """
    Locate environments that have a ``position``, such as the mazes and robots of this package (torso; jaco: hand).

    :param env: the environments
    :return: shape ``(n_envs, 3)``, or ``(n_envs, 2)`` of environments in the plane
    :raises ValueError: if a position is no place
    """
    positions = env.get_attr("position")
    for position in positions:
        if np.shape(position) not in SHAPES:
            raise ValueError(f"The position of the environment has shape {np.shape(position)}: {REMEDY}")
    return np.stack(positions)
