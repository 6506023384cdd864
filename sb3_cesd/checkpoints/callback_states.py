"""What callbacks have gathered in a run, of those that tell."""

from collections import defaultdict, deque
from collections.abc import Iterator
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback, CallbackList, EventCallback

from sb3_cesd.checkpoints.environments import offers_state


def get_callback_states(callback: BaseCallback) -> list[tuple[str, Any]]:
    """
    Ask callbacks that offer ``get_state()`` and ``set_state(state)`` for their state.

    :param callback: what was passed to ``learn``
    :return: what :func:`set_callback_states` takes: names of their classes and their states
    """
    return [(type(each).__name__, each.get_state()) for each in _offering(callback)]


def set_callback_states(callback: BaseCallback, states: list[tuple[str, Any]]) -> None:
    """
    Let callbacks go on from what those of another run have gathered. Several of the same class go by their order; one that the
    other run did not have starts anew.

    :param callback: what was passed to ``learn``
    :param states: what :func:`get_callback_states` returned
    """
    waiting: dict[str, deque[Any]] = defaultdict(deque)
    for name, state in states:
        waiting[name].append(state)
    for each in _offering(callback):
        if waiting[type(each).__name__]:
            each.set_state(waiting[type(each).__name__].popleft())


def _offering(callback: BaseCallback) -> Iterator[Any]:
    """List the callbacks that tell their state, also within others."""
    if offers_state(callback):
        yield callback
    if isinstance(callback, CallbackList):
        children = callback.callbacks
    else:
        children = [callback.callback] if isinstance(callback, EventCallback) and callback.callback is not None else []
    for child in children:
        yield from _offering(child)
