"""State of callbacks in a run."""

from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.callbacks import (
    BaseCallback,
    CallbackList,
    EvalCallback,
    EventCallback,
    EveryNTimesteps,
    StopTrainingOnMaxEpisodes,
    StopTrainingOnNoModelImprovement,
)

from sb3_cesd.checkpoints.environments import offers_state

#: SB3's callbacks with a state -> prefixes of the names of its attributes
GATHERED = {
    EvalCallback: ("evaluations_", "best_mean_reward", "last_mean_reward"),
    EveryNTimesteps: ("last_time_trigger",),
    StopTrainingOnMaxEpisodes: ("n_episodes",),
    StopTrainingOnNoModelImprovement: ("last_best_mean_reward", "no_improvement_evals"),
}


class CallbackState(NamedTuple):
    """
    State of a callback in a run.

    :param name: name of its class
    :param n_calls: how often it was called, on which the frequency of SB3's callbacks depends
    :param state: what else it has counted; ``None`` for nothing
    """

    name: str
    n_calls: int
    state: Any


def get_callback_states(callback: BaseCallback) -> list[CallbackState]:
    """
    Read the state of SB3's callbacks, and of those that have ``get_state()`` and ``set_state(state)``.

    :param callback: callback passed to ``learn``
    :return: states of all callbacks, also of those within others, for :func:`set_callback_states`
    """
    return [CallbackState(type(each).__name__, each.n_calls, _state_of(each)) for each in _all_callbacks(callback)]


def set_callback_states(callback: BaseCallback, states: list[CallbackState], n_calls: int) -> None:
    """
    Continue callbacks from the states of those of another run. Callbacks of the same class are matched by their order; one
    that the other run did not have starts anew, but counts steps as if it had been there.

    :param callback: callback passed to ``learn``
    :param states: states that :func:`get_callback_states` returned
    :param n_calls: number of steps of the other run
    """
    waiting: dict[str, deque[CallbackState]] = defaultdict(deque)
    for each in states:
        waiting[each.name].append(each)
    for own in _all_callbacks(callback):
        if waiting[type(own).__name__]:
            _, own.n_calls, state = waiting[type(own).__name__].popleft()
            if state is not None:
                _set_state(own, state)
        elif not isinstance(own.parent, EventCallback):
            own.n_calls = n_calls


def _all_callbacks(callback: BaseCallback) -> Iterator[Any]:
    """List callbacks, also those within others, without the lists that hold them."""
    children: list[Any]
    if isinstance(callback, CallbackList):
        children = callback.callbacks
    else:
        yield callback
        children = [vars(callback).get(name) for name in ("callback", "callback_on_new_best")]
    for child in children:
        if isinstance(child, BaseCallback):
            yield from _all_callbacks(child)


def _state_of(callback: Any) -> Any:
    if offers_state(callback):
        return callback.get_state()
    if not isinstance(callback, tuple(GATHERED)):
        return None
    beginnings = tuple(name for kind, names in GATHERED.items() if isinstance(callback, kind) for name in names)
    return {name: value for name, value in vars(callback).items() if name.startswith(beginnings)}


def _set_state(callback: Any, state: Any) -> None:
    if offers_state(callback):
        callback.set_state(state)
        return
    vars(callback).update(state)
    folder = getattr(callback, "best_model_save_path", None)
    if folder is not None and not (Path(folder) / "best_model.zip").is_file():
        # A resumed run in another folder has no best model yet
        callback.best_mean_reward = -np.inf
