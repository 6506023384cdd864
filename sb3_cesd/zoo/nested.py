"""Arguments within arguments, such as those in ``intrinsic_kwargs``, by the path that leads to them."""

from collections.abc import Iterator, Mapping
from typing import Any

from sb3_cesd.skill_ddpg.search_space import Params

#: Names that lead to an argument
Path = tuple[str, ...]


def walk(arguments: Params, start: Path = ()) -> Iterator[tuple[Path, Any]]:
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


def has(arguments: Params, path: Path) -> bool:
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


def look_up(arguments: Any, path: Path) -> Any:
    """
    Look up an argument.

    :param arguments: arguments by name
    :param path: names that lead to it
    :return: its value
    """
    for name in path:
        arguments = arguments[name]
    return arguments
