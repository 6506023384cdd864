"""Positions of environments that have a ``position``."""

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.common.rules import as_array
from sb3_cesd.common.vec_normalize import frozen_statistics

#: Shapes of a valid ``position``: (x, y) or (x, y, z)
SHAPES = ((2,), (3,))
REMEDY = "let it be (x, y) or (x, y, z) in metres"
REMEDY_OR_RENAME = f"{REMEDY}, or rename it"


def has_places(env: VecEnv) -> bool:
    """
    Check whether environments have a valid ``position``. Warns if it is something else.

    :param env: environments that have been reset, since some only have a ``position`` then
    :return: whether :func:`env_positions` can be used
    """
    if not env.has_attr("position"):
        return False
    flaw = _flaw_of_position(env)
    if flaw is None:
        return True
    warnings.warn(f"The position of the environment {flaw}, so it is ignored: {REMEDY_OR_RENAME}.", stacklevel=2)
    return False


def why_no_places(env: VecEnv, what: str, otherwise: str) -> str:
    """
    Explain why places can't be used.

    :param env: environments
    :param what: what needs places
    :param otherwise: the explanation if nothing is wrong with their ``position``
    :return: the explanation, with the remedy
    """
    flaw = _flaw_of_position(env)
    if flaw is None:
        return otherwise
    return f"The position of the environment {flaw}, so that it is no place for {what}: {REMEDY}."


def why_no_reach(env: VecEnv) -> str:
    """
    Explain why it can't be measured how far skills go.

    :param env: environments
    :return: the explanation, see :func:`why_no_places`
    """
    what = "n_trajectories and goal_range"
    return why_no_places(env, what, f"{what} are for robots with a position: leave them out.")


def _flaw_of_position(env: VecEnv) -> str | None:
    """Say what is wrong with the ``position`` of environments; ``None`` if nothing is, or there is no such attribute."""
    return _flaw(env.get_attr("position", indices=0)[0]) if env.has_attr("position") else None


def _flaw(position: Any) -> str | None:
    """Say what is wrong with a position; ``None`` if nothing is."""
    if position is None:
        return "is None"
    return None if np.shape(position) in SHAPES else f"has shape {np.shape(position)}"


def has_places_to_play(env: VecEnv) -> bool:
    """
    Check whether environments to play in have a valid ``position``. Those without one, or where it is ``None``, are reset
    first, since some only have a ``position`` after a reset.

    :param env: environments whose episodes may be interrupted
    :return: see :func:`has_places`
    """
    if not env.has_attr("position") or env.get_attr("position", indices=0)[0] is None:
        with frozen_statistics(env):
            env.reset()
    return has_places(env)


def check_places_to_play(env: VecEnv, what: str) -> None:
    """
    Check that environments to play in have a valid ``position``, see :func:`has_places_to_play`.

    :param env: environments whose episodes may be interrupted
    :param what: what needs positions
    :raises ValueError: if they have none
    """
    if not has_places_to_play(env):
        remedy = "give them a property position (x, y, z)."
        raise ValueError(why_no_places(env, what, f"The environments have no position to measure {what} by: {remedy}"))


def env_positions(env: VecEnv) -> np.ndarray:
    """
    Return the positions of environments, such as the mazes and robots of this package (torso; jaco: hand).

    :param env: environments with a ``position``
    :return: positions, shape ``(n_envs, 3)``, or ``(n_envs, 2)`` for environments in the plane
    :raises ValueError: if a position is ``None``, or has another shape
    """
    positions = env.get_attr("position")
    for flaw in map(_flaw, positions):
        if flaw is not None:
            raise ValueError(f"The position of the environment {flaw}: {REMEDY_OR_RENAME}.")
    return np.stack(positions)


def end_positions(dones: np.ndarray, infos: Sequence[dict[str, Any]], dim: int) -> tuple[np.ndarray, np.ndarray]:
    """
    Return where episodes ended. The environments, which have been reset since, say so in ``info["position"]``.

    :param dones: whether an episode ended, shape ``(n_envs,)``
    :param infos: information of each environment after the step
    :param dim: number of coordinates of a position
    :return: indices of the environments that say so, shape ``(n,)``, and their positions, shape ``(n, dim)``
    """
    told = {idx: as_array(infos[idx].get("position")) for idx in np.flatnonzero(dones).tolist()}
    # Info of other environments may hold anything by this name
    ends = {idx: end for idx, end in told.items() if end.shape == (dim,) and end.dtype.kind in "iuf"}
    return np.array(list(ends), dtype=np.int64), np.array(list(ends.values()), dtype=np.float64).reshape(len(ends), dim)
