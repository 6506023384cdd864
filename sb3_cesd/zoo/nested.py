"""Arguments within arguments, such as those in ``intrinsic_kwargs``, by the path that leads to them."""

import json
from collections.abc import Iterator, Mapping
from typing import Any

from stable_baselines3.common.utils import ConstantSchedule

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


def plain_number(value: Any) -> Any:
    """
    Undo what RL Zoo makes of a learning rate.

    :param value: any argument
    :return: the number of a constant schedule; anything else as it is
    """
    return value.val if isinstance(value, ConstantSchedule) else value


def only_json(arguments: Mapping[str, Any]) -> Params:
    """
    Take what JSON can express.

    :param arguments: arguments by name
    :return: those of them, and of the arguments within them
    """
    items = {
        name: only_json(value) if isinstance(value, Mapping) else plain_number(value) for name, value in arguments.items()
    }
    return {name: value for name, value in items.items() if _is_json(value)}


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True
