"""The state of environments in the midst of their episodes, with that of all wrappers around them."""

import io
import pickle
from typing import Any

import gymnasium as gym
from gymnasium.utils import EzPickle
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecEnvWrapper

#: Attributes that tell how an environment was made or what it is connected with, not how it goes on
NO_STATE = ("env", "venv", "envs", "spec", "_cached_spec", "class_attributes", "results_writer")


def get_env_state(venv: VecEnv) -> tuple[bytes, bool]:
    """
    Read all that determines how environments go on.

    What offers ``get_state()`` and ``set_state(state)`` is asked for it; of other wrappers and environments, the attributes
    are taken. Of a wrapper, those that can't be pickled are left out (videos, files); an environment that can't be pickled as
    a whole has no state that could be read.

    :param venv: vectorized environment
    :return: what :func:`set_env_state` takes, and whether the environments are part of it or only the wrappers of all of them
    """
    wrappers, others = _layers(venv)
    try:
        return _dump([*wrappers, *others]), True
    except Exception:  # each object that can't be pickled fails in its own way
        return _dump(wrappers), False


def set_env_state(venv: VecEnv, state: bytes, whole: bool) -> None:
    """
    Let environments go on where others were.

    :param venv: vectorized environment, made as the other
    :param state: what :func:`get_env_state` returned
    :param whole: whether the environments are part of it
    :raises ValueError: if the environments are others, or another number of them
    """
    wrappers, others = _layers(venv)
    layers = [*wrappers, *others] if whole else wrappers
    names, states = _StateUnpickler(io.BytesIO(state), layers).load()
    ours = [type(layer).__name__ for layer, _ in layers]
    if names != ours:
        raise ValueError(
            f"The checkpoint is one of {', '.join(names)}, the environment is made of {', '.join(ours)}: pass as many "
            "environments as were trained with, in the same wrappers."
        )
    for (layer, _), saved in zip(layers, states, strict=True):
        if offers_state(layer):
            layer.set_state(saved)
        else:
            vars(layer).update(saved)


def _layers(venv: VecEnv) -> tuple[list[tuple[Any, bool]], list[tuple[Any, bool]]]:
    """
    List wrappers and environments from the outermost to the innermost.

    :param venv: vectorized environment
    :return: the wrappers of all environments, and the rest; each with whether attributes of it may be left out
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
    Tell whether an object can be asked for its state.

    :param obj: any object
    :return: whether its class has ``get_state()`` and ``set_state(state)``
    """
    # Of the class, as a wrapper may pass on attributes of what it wraps
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
        state = {name: value for name, value in vars(layer).items() if name not in NO_STATE}
        if may_lack:
            state = {name: value for name, value in state.items() if _can_be_pickled(value, layers)}
        states.append(state)
    return _pickled(([type(layer).__name__ for layer, _ in layers], states), layers)


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
    Pickle references to layers as their place among them.

    :param file: where to write
    :param layers: see :func:`_layers`
    """

    def __init__(self, file: io.BytesIO, layers: list[tuple[Any, bool]]) -> None:
        super().__init__(file, protocol=pickle.HIGHEST_PROTOCOL)
        self._places = {id(layer): place for place, (layer, _) in enumerate(layers)}

    def persistent_id(self, obj: Any) -> int | None:
        """Name the layers."""
        place = self._places.get(id(obj))
        if place is None and isinstance(obj, gym.Env | VecEnv | EzPickle):
            raise pickle.PicklingError(f"The state of a {type(obj).__name__} is not known: it starts anew when it is pickled.")
        return place


class _StateUnpickler(pickle.Unpickler):
    """
    Read what :class:`_StatePickler` wrote.

    :param file: where to read
    :param layers: see :func:`_layers`
    """

    def __init__(self, file: io.BytesIO, layers: list[tuple[Any, bool]]) -> None:
        super().__init__(file)
        self._layers = layers

    def persistent_load(self, pid: int) -> Any:
        """Find a layer by its place."""
        return self._layers[pid][0]
