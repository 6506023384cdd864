"""Nested arguments, such as those in ``intrinsic_kwargs``, by their path."""

import json
from collections.abc import Iterator, Mapping
from pydoc import locate
from typing import Any

from stable_baselines3.common.utils import ConstantSchedule

from sb3_cesd.skill_ddpg.search_space import Params

#: Names that lead to an argument
Path = tuple[str, ...]
#: Prefix of a linear schedule in a yml file
LINEAR = "lin_"


def walk(arguments: Params, start: Path = ()) -> Iterator[tuple[Path, Any]]:
    """
    Iterate over arguments and nested arguments.

    :param arguments: arguments by name
    :param start: path that leads to them
    :return: paths and values
    """
    for name, value in arguments.items():
        yield (*start, name), value
        if isinstance(value, Mapping):
            yield from walk(dict(value), (*start, name))


def leaves(arguments: Params) -> dict[Path, Any]:
    """
    Return the arguments that contain no others.

    :param arguments: arguments by name
    :return: values by path
    """
    return {path: value for path, value in walk(arguments) if not isinstance(value, Mapping)}


def has(arguments: Params, path: Path) -> bool:
    """
    Check whether there is an argument at a path.

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
    Convert a constant schedule, which RL Zoo makes of a learning rate, back to a number.

    :param value: any argument
    :return: the number of a constant schedule; anything else unchanged
    """
    return value.val if isinstance(value, ConstantSchedule) else value


def as_in_yml(value: Any) -> Any:
    """
    Convert a schedule, which RL Zoo makes of a learning rate, back to its form in a yml file.

    :param value: any argument
    :return: the number of a constant schedule, ``lin_`` and the first number of a linear one; anything else unchanged
    """
    from rl_zoo3.utils import SimpleLinearSchedule  # takes a second to import

    return f"{LINEAR}{value.initial_value}" if isinstance(value, SimpleLinearSchedule) else plain_number(value)


def only_json(arguments: Mapping[str, Any]) -> Params:
    """
    Select arguments that JSON can express, with schedules as in a yml file.

    :param arguments: arguments by name
    :return: the selected arguments, also among nested ones
    """
    items = {name: only_json(value) if isinstance(value, Mapping) else as_in_yml(value) for name, value in arguments.items()}
    return {name: value for name, value in items.items() if _is_json(value)}


def only_names(arguments: Mapping[str, Any]) -> Params:
    """
    Select classes and functions, as names that :func:`import_names` can import.

    :param arguments: arguments by name
    :return: the selected arguments, also among nested ones
    """
    items = {
        name: only_names(value) if isinstance(value, Mapping) else import_name(value) for name, value in arguments.items()
    }
    return {name: value for name, value in items.items() if value}


def import_names(names: Mapping[str, Any]) -> Params:
    """
    Import classes and functions.

    :param names: names that :func:`only_names` returned; those that no longer exist are left out
    :return: arguments by name
    """
    items = {name: import_names(value) if isinstance(value, Mapping) else locate(str(value)) for name, value in names.items()}
    return {name: value for name, value in items.items() if value is not None}


def import_name(value: Any) -> str | None:
    """
    Return the name of a class or function.

    :param value: any argument
    :return: module and name; ``None`` if it can't be imported by them
    """
    if not hasattr(value, "__qualname__"):
        return None
    name = f"{value.__module__}.{value.__qualname__}"
    return name if locate(name) is value else None


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True
