"""State of callbacks in a run."""

from collections import defaultdict, deque
from collections.abc import Iterator
from pathlib import Path
from typing import Any

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
from sb3_cesd.common.evaluations import check_same_number

#: SB3's callbacks with a state -> prefixes of the names of its attributes
GATHERED = {
    EvalCallback: ("evaluations_", "best_mean_reward", "last_mean_reward"),
    EveryNTimesteps: ("last_time_trigger",),
    StopTrainingOnMaxEpisodes: ("n_episodes",),
    StopTrainingOnNoModelImprovement: ("last_best_mean_reward", "no_improvement_evals"),
}


def get_callback_states(callback: BaseCallback) -> list[tuple[str, Any]]:
    """
    Read the state of SB3's callbacks, and of those that have ``get_state()`` and ``set_state(state)``.

    :param callback: callback passed to ``learn``
    :return: names of their classes and their states, for :func:`set_callback_states`
    """
    return [(type(each).__name__, _state_of(each)) for each in _offering(callback)]


def set_callback_states(callback: BaseCallback, states: list[tuple[str, Any]]) -> None:
    """
    Continue callbacks from the states of those of another run. Callbacks of the same class are matched by their order; one
    that the other run did not have starts anew.

    :param callback: callback passed to ``learn``
    :param states: states that :func:`get_callback_states` returned
    """
    waiting: dict[str, deque[Any]] = defaultdict(deque)
    for name, state in states:
        waiting[name].append(state)
    for each in _offering(callback):
        if waiting[type(each).__name__]:
            _set_state(each, waiting[type(each).__name__].popleft())


def _offering(callback: BaseCallback) -> Iterator[Any]:
    """List the callbacks with a state, also within others."""
    if offers_state(callback) or isinstance(callback, tuple(GATHERED)):
        yield callback
    if isinstance(callback, CallbackList):
        children = callback.callbacks
    else:
        children = [callback.callback] if isinstance(callback, EventCallback) and callback.callback is not None else []
    for child in children:
        yield from _offering(child)


def _state_of(callback: Any) -> Any:
    if offers_state(callback):
        return callback.get_state()
    beginnings = tuple(name for kind, names in GATHERED.items() if isinstance(callback, kind) for name in names)
    return {name: value for name, value in vars(callback).items() if name.startswith(beginnings)}


def _set_state(callback: Any, state: Any) -> None:
    if offers_state(callback):
        callback.set_state(state)
        return
    if isinstance(callback, EvalCallback):
        n_episodes = getattr(callback, "n_evaluated", lambda: callback.n_eval_episodes)()
        check_same_number(state.get("evaluations_results", []), n_episodes)
    vars(callback).update(state)
    folder = getattr(callback, "best_model_save_path", None)
    if folder is not None and not (Path(folder) / "best_model.zip").is_file():
        # A resumed run in another folder has no best model yet
        callback.best_mean_reward = -np.inf
