"""Wrappers that are named in ``config.yml`` of a run."""

import importlib
from collections.abc import Callable
from typing import Any


def find_wrapper(wrappers: dict[str, Any], key: str, kind: type) -> Callable | None:
    """
    Find the wrapper that ``config.yml`` names, by RL Zoo's own function.

    :param wrappers: entries of the file
    :param key: name of the entry
    :param kind: required base class of the wrapper
    :return: function that wraps an environment; ``None`` if there is no such entry
    :raises ValueError: if there is no such wrapper
    """
    entry = wrappers.get(key)
    if not entry:
        return None
    from rl_zoo3.utils import get_wrapper_class  # takes a second to import

    for item in entry if isinstance(entry, list) else [entry]:
        name = next(iter(item)) if isinstance(item, dict) else item
        module, _, class_name = str(name).rpartition(".")
        try:
            wrapper = getattr(importlib.import_module(module), class_name)
        except (ImportError, AttributeError, ValueError) as error:
            raise ValueError(
                f"{key} of config.yml names {name}, which can't be imported ({error}): install its package."
            ) from error
        if not (isinstance(wrapper, type) and issubclass(wrapper, kind)):
            raise ValueError(
                f"{key} of config.yml names {name}, which is not a subclass of {kind.__name__}: show calls nothing else that "
                "a file names, so write the wrapper as a class."
            )
    return get_wrapper_class(wrappers, key)
