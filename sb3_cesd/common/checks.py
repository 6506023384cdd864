"""Checks of arguments; every message ends in the remedy."""

import inspect
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import gymnasium as gym
import numpy as np

from sb3_cesd.common.rules import shown

T = TypeVar("T")


def check_names(
    group: str,
    factory: Callable[..., Any],
    kwargs: Mapping[str, Any],
    given: Collection[str] = (),
    others: Collection[str] = (),
) -> None:
    """
    Check that a class or function has arguments of these names.

    :param group: name of the argument that holds the kwargs, e.g. ``"entropy_kwargs"``
    :param factory: class or function; one with ``**kwargs`` takes any
    :param kwargs: its arguments, by the user
    :param given: more of its arguments, which are not the user's to choose
    :param others: what the group holds besides its arguments
    :raises ValueError: if there is no such argument
    """
    parameters = inspect.signature(factory).parameters
    if any(parameter.kind is inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        return
    known = {*parameters, *others} - {*given, "self"}
    unknown = sorted(set(kwargs) - known)
    if unknown:
        instead = f"use some of {', '.join(sorted(known))}" if known else "leave it out"
        raise ValueError(f"{group} has no {', '.join(map(repr, unknown))}: {instead}.")


def check_lengths(**arrays: np.ndarray) -> None:
    """
    Check that arrays have a row for each other's.

    :param arrays: arrays by the name under which the user knows them
    :raises ValueError: if they are of different lengths
    """
    lengths = {name: len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        listed = " and ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"Numbers of rows differ, {listed}: pass arrays with a row for each other's.")


def build(group: str, factory: Callable[..., T], kwargs: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> T:
    """
    Call ``factory(**kwargs, **given)`` with a readable error for a misspelt argument.

    :param group: name of the argument that holds the kwargs, e.g. ``"entropy_kwargs"``
    :param factory: class or function
    :param kwargs: its arguments, by the user
    :param given: more of its arguments, which are not the user's to choose
    :return: what the factory returns
    :raises ValueError: if there is no such argument
    """
    given = {} if given is None else given
    check_names(group, factory, kwargs, given)
    return factory(**kwargs, **given)


def choose(
    name: str,
    choice: str,
    options: Mapping[str, Callable[..., T]],
    kwargs: Mapping[str, Any],
    given: Mapping[str, Any] | None = None,
) -> T:
    """
    Build one of several named options.

    :param name: name of the argument that chooses, whose arguments are in ``<name>_kwargs``
    :param choice: the chosen option
    :param options: factories by name
    :param kwargs: arguments of the chosen factory, by the user
    :param given: more of its arguments, which are not the user's to choose
    :return: what the factory returns
    :raises ValueError: if there is no such option or argument
    """
    if not isinstance(choice, str) or choice not in options:
        raise ValueError(f"Unknown {name} {shown(choice)}: choose one of {', '.join(map(repr, options))}.")
    return build(f"{name}_kwargs", options[choice], kwargs, given)


@contextmanager
def explain_unknown_env(env_id: object) -> Iterator[None]:
    """
    End the error of Gymnasium about an id that is not registered with the remedy.

    :param env_id: id of the environment that is made within; anything else is made already
    :raises ValueError: if there is none of this id, or it does not take its arguments
    """
    module, colon, _ = env_id.partition(":") if isinstance(env_id, str) else ("", "", "")
    if colon and not all(part.isidentifier() for part in module.split(".")):
        raise ValueError(
            f"There is no environment {env_id!r} ({module!r} is no module): check its spelling, or leave the colon out."
        )
    try:
        yield
    except (gym.error.Error, ImportError) as error:
        missing_dependency = isinstance(error, gym.error.DependencyNotInstalled | ImportError) and ":" not in str(env_id)
        if missing_dependency or not isinstance(env_id, str):
            raise
        raise ValueError(
            f"There is no environment {env_id!r} ({str(error).rstrip('.')}): check its spelling, or name the module that "
            f"registers it, as in 'my_module:{env_id.split(':')[-1]}'."
        ) from error


@contextmanager
def explain_arguments(group: str, kwargs: Mapping[str, Any]) -> Iterator[None]:
    """
    End the error of a class that is not ours, about arguments the user chose for it, with the remedy.

    :param group: name of the argument that holds the kwargs
    :param kwargs: its arguments, by the user; without any, the error is left as it is
    :raises ValueError: if the arguments are refused
    """
    try:
        yield
    except (AssertionError, AttributeError, TypeError, ValueError) as error:
        if not kwargs:
            raise
        raise ValueError(f"{group}={shown(kwargs)} is refused ({error}): change or leave out what it names.") from error
