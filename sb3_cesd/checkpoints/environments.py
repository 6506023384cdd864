"""State of environments during an episode, including that of all their wrappers."""

import io
import pickle
from typing import Any

import gymnasium as gym
from gymnasium.utils import EzPickle
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper, unwrap_vec_normalize

#: Attributes that describe how an environment was created or what it is connected with, not its state
NO_STATE = ("spec", "_cached_spec", "class_attributes", "results_writer")
#: Attributes of a ``VecNormalize`` that say how it normalises; the others are of an episode, or for training alone
OF_STATISTICS = ("norm_obs", "norm_obs_keys", "obs_rms", "clip_obs", "epsilon", "ret_rms")


def get_env_state(venv: VecEnv) -> tuple[bytes, bool]:
    """
    Read the state from which environments can continue.

    Wrappers and environments with ``get_state()`` and ``set_state(state)`` provide their state; otherwise it consists of their
    attributes. Attributes of wrappers that can't be pickled (videos, files) are left out, but the state of an environment that
    can't be pickled as a whole can't be read.

    :param venv: vectorized environment
    :return: state for :func:`set_env_state`, and whether it contains the environments, or only the wrappers of the vectorized
        environment
    """
    wrappers, others = _layers(venv)
    try:
        return _dump([*wrappers, *others]), True
    except Exception:  # each object that can't be pickled fails in its own way
        return _dump(wrappers), False


def unreadable_state(venv: VecEnv) -> str:
    """
    Name what keeps the state of environments from being read.

    :param venv: vectorized environment whose state can't be read
    :return: classes with the attributes that can't be pickled, e.g. ``"Maze (viewer, lock)"``; that of the vectorized
        environment, if it does not run in this process
    """
    _, others = _layers(venv)
    found = {}
    for layer, may_lack in others:
        if offers_state(layer):
            if not _can_be_pickled(layer.get_state(), others):
                found[type(layer).__name__] = " (get_state())"
        elif not may_lack and not isinstance(layer, VecEnv):
            lacking = [name for name, value in _state_of(layer).items() if not _can_be_pickled(value, others)]
            if lacking:
                found[type(layer).__name__] = f" ({', '.join(lacking)})"
    return ", ".join(f"{name}{attributes}" for name, attributes in found.items()) or type(venv.unwrapped).__name__


def set_env_state(venv: VecEnv, state: bytes, whole: bool) -> None:
    """
    Continue from the state of other environments.

    :param venv: vectorized environment, created like the other
    :param state: state that :func:`get_env_state` returned
    :param whole: whether it contains the environments
    :raises ValueError: if the environments, their wrappers or their number differ
    """
    layers, names, states = _load(venv, state, whole)
    ours = [type(layer).__name__ for layer in layers]
    if names != ours:
        raise ValueError(
            f"The checkpoint contains {', '.join(names)}, but the given environment {', '.join(ours)}: pass as many "
            "environments as were trained with, in the same wrappers (in RL Zoo, with the --vec-env of the run)."
        )
    for layer, saved in zip(layers, states, strict=True):
        if offers_state(layer):
            layer.set_state(saved)
        else:
            vars(layer).update(saved)


def set_env_statistics(venv: VecEnv, state: bytes, whole: bool) -> None:
    """
    Normalise observations like other environments, which are left where they are in their episodes.

    :param venv: vectorized environment; without ``VecNormalize`` where the other has one, nothing changes
    :param state: state that :func:`get_env_state` returned
    :param whole: whether it contains the environments
    """
    normalize = unwrap_vec_normalize(venv)
    if normalize is None:
        return
    for layer, name, saved in zip(*_load(venv, state, whole), strict=False):
        if layer is normalize and name == type(normalize).__name__ and not offers_state(normalize):
            vars(normalize).update({key: saved[key] for key in OF_STATISTICS if key in saved})


def _load(venv: VecEnv, state: bytes, whole: bool) -> tuple[list[Any], list[str], list[Any]]:
    """
    Read the states of layers.

    :param venv: vectorized environment
    :param state: state that :func:`get_env_state` returned
    :param whole: whether it contains the environments
    :return: its own layers, and the names of the classes and the states of those that were saved
    """
    wrappers, others = _layers(venv)
    layers = [layer for layer, _ in (*wrappers, *(others if whole else ()))]
    names, states = _StateUnpickler(io.BytesIO(state), layers).load()
    return layers, names, states


def _layers(venv: VecEnv) -> tuple[list[tuple[Any, bool]], list[tuple[Any, bool]]]:
    """
    List wrappers and environments from the outermost to the innermost.

    :param venv: vectorized environment
    :return: the wrappers of the vectorized environment, and the rest; each with whether its attributes may be left out
    """
    wrappers: list[tuple[Any, bool]] = []
    while isinstance(venv, VecEnvWrapper):
        wrappers.append((venv, True))
        venv = venv.venv
    if not isinstance(venv, DummyVecEnv):
        return wrappers, [(venv, False)]
    others: list[tuple[Any, bool]] = [(venv, True)]
    for env in venv.envs:
        while isinstance(env, gym.Wrapper):
            others.append((env, True))
            env = env.env
        others.append((env, False))
    return wrappers, others


def offers_state(obj: Any) -> bool:
    """
    Check whether an object provides its state.

    :param obj: any object
    :return: whether its class has ``get_state()`` and ``set_state(state)``
    """
    # Look at the class, as a wrapper may forward attributes of what it wraps
    return hasattr(type(obj), "get_state") and hasattr(type(obj), "set_state")


def _dump(layers: list[tuple[Any, bool]]) -> bytes:
    """
    Pickle the states of layers together, so that what they share stays shared.

    :param layers: see :func:`_layers`
    :return: names of their classes and their states
    """
    states = []
    for layer, may_lack in layers:
        if offers_state(layer):
            states.append(layer.get_state())
            continue
        state = _state_of(layer)
        if may_lack:
            state = {name: value for name, value in state.items() if _can_be_pickled(value, layers)}
        states.append(state)
    return _pickled(([type(layer).__name__ for layer, _ in layers], states), layers)


def _state_of(layer: Any) -> dict[str, Any]:
    return {name: value for name, value in vars(layer).items() if name not in NO_STATE}


def _can_be_pickled(value: Any, layers: list[tuple[Any, bool]]) -> bool:
    try:
        _pickled(value, layers)
    except Exception:  # as above
        return False
    return True


def _pickled(value: Any, layers: list[tuple[Any, bool]]) -> bytes:
    file = io.BytesIO()
    _StatePickler(file, layers).dump(value)
    return file.getvalue()


class _StatePickler(pickle.Pickler):
    """
    Pickle references to layers as their index.

    :param file: where to write
    :param layers: see :func:`_layers`
    """

    def __init__(self, file: io.BytesIO, layers: list[tuple[Any, bool]]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._places = {id(layer): place for place, (layer, _) in enumerate(layers)}

    def persistent_id(self, obj: Any) -> int | None:
        """Return the index of a layer."""
        place = self._places.get(id(obj))
        if place is None and isinstance(obj, gym.Env | VecEnv | EzPickle):
            raise pickle.PicklingError(f"The state of a {type(obj).__name__} is unknown: a pickled copy starts anew.")
        return place


class _StateUnpickler(pickle.Unpickler):
    """
    Read what :class:`_StatePickler` wrote.

    :param file: where to read
    :param layers: the layers that take the place of those that were saved
    """

    def __init__(self, file: io.BytesIO, layers: list[Any]) -> None:
        super().__init__(file)
        self._layers = layers

    def persistent_load(self, pid: int) -> Any:
        """Return a layer by its index, or ``None`` if there are fewer layers."""
        return self._layers[pid] if pid < len(self._layers) else None
