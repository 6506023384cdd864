from collections.abc import Mapping
from typing import Any


def merge(arguments: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Override arguments by name; dictionaries are merged at any depth."""
    merged = dict(arguments)
    for name, value in overrides.items():
        if isinstance(value, Mapping):
            current = merged.get(name)
            value = merge(current if isinstance(current, Mapping) else {}, value)
        merged[name] = value
    return merged
