"""Arguments within arguments, such as those in ``intrinsic_kwargs``, by the path that leads to them."""

from collections.abc import Iterator, Mapping
from typing import Any

Params = dict[str, Any]
Path = tuple[str, ...]


def walk(arguments: Params, start: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """
    Go through arguments, and through those within them.

    :param arguments: arguments by name
    :param start: path that leads to them
    :return: paths and values
    """
    for name, value in arguments.items():
        yield (*start, name), value
        if isinstance(value, Mapping):
            yield from walk(dict(value), (*start, name))


def has(arguments: Params, path: tuple[str, ...]) -> bool:
    """
    Tell whether there is an argument at a path.

    :param arguments: arguments by name
    :param path: names that lead to it
    :return: whether it is there
    """
    for name in path:
        if not isinstance(arguments, Mapping) or name not in arguments:
            return False
        arguments = arguments[name]
    return True


def look_up(arguments: Any, path: tuple[str, ...]) -> Any:
    """
    Look up an argument.

    :param arguments: arguments by name
    :param path: names that lead to it
    :return: its value
    """
    for name in path:
        arguments = arguments[name]
    return arguments
