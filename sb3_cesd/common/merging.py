"""Arguments that override others."""

from collections.abc import Mapping
from typing import Any


def merge(arguments: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """
    Override arguments. Dictionaries are merged at any depth.

    :param arguments: arguments by name
    :param overrides: arguments to override
    :return: new arguments
    """
    merged = dict(arguments)
    for name, value in overrides.items():
        if isinstance(value, Mapping):
            current = merged.get(name)
            value = merge(current if isinstance(current, Mapping) else {}, value)
        merged[name] = value
    return merged
