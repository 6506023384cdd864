"""What callbacks have counted in a run."""

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from stable_baselines3.common.callbacks import (
    BaseCallback,
    CallbackList,
    EvalCallback,
    EveryNTimesteps,
    StopTrainingOnMaxEpisodes,
    StopTrainingOnNoModelImprovement,
)

#: SB3's callbacks with a state -> beginnings of the names of its attributes
COUNTED = {
    EvalCallback: ("evaluations_", "best_mean_reward", "last_mean_reward"),
    EveryNTimesteps: ("last_time_trigger",),
    StopTrainingOnMaxEpisodes: ("n_episodes",),
    StopTrainingOnNoModelImprovement: ("last_best_mean_reward", "no_improvement_evals"),
}


def get_callback_states(callback: BaseCallback) -> list[tuple[str, dict[str, Any], Any]]:
    """
    Read what SB3's callbacks have counted, and the state of those that have ``get_state()`` and ``set_state(state)``.

    :param callback: callback passed to ``learn``
    :return: class, attributes and state of all callbacks, also of those within others
    """
    states = []
    for each in _all_callbacks(callback):
        names = tuple(name for kind, names in COUNTED.items() if isinstance(each, kind) for name in names)
        counted = {name: value for name, value in vars(each).items() if name.startswith(("n_calls", *names))}
        states.append((type(each).__name__, counted, each.get_state() if hasattr(each, "get_state") else None))
    return states


def set_callback_states(callback: BaseCallback, states: Sequence[tuple[str, dict[str, Any], Any]]) -> None:
    """
    Continue callbacks from those of another run. Callbacks of the same class are matched by their order.

    :param callback: callback passed to ``learn``
    :param states: what :func:`get_callback_states` returned
    """
    waiting = list(states)
    for each in _all_callbacks(callback):
        found = [idx for idx, (name, _, _) in enumerate(waiting) if name == type(each).__name__]
        if not found:
            continue
        _, counted, state = waiting.pop(found[0])
        vars(each).update(counted)
        if state is not None:
            each.set_state(state)
        folder = getattr(each, "best_model_save_path", None)
        if folder is not None and not (Path(folder) / "best_model.zip").is_file():
            each.best_mean_reward = -np.inf  # a resumed run in another folder has no best model yet


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
