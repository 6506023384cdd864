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
    :param factory: class or function; one with ``**kwargs`` takes any names
    :param kwargs: its arguments, as the user passed them
    :param given: more of its arguments, which the user can't choose
    :param others: further names that the group may hold
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
    Check that arrays have the same number of rows.

    :param arrays: arrays by the name under which the user knows them
    :raises ValueError: if they are of different lengths
    """
    lengths = {name: len(values) for name, values in arrays.items()}
    if len(set(lengths.values())) > 1:
        listed = " and ".join(f"{name} has {length}" for name, length in lengths.items())
        raise ValueError(f"Numbers of rows differ, {listed}: pass arrays with the same number of rows.")


def first_not_finite(values: np.ndarray) -> tuple[int, str] | None:
    """
    Find the first row that holds NaN or infinity.

    :param values: one row for each environment, shape ``(n_envs, ...)``
    :return: its index, and its entries that are not finite, for a message; ``None`` if all rows are finite
    """
    if np.isfinite(values).all():
        return None
    idx = int(np.nonzero(~np.isfinite(values).reshape(len(values), -1).all(axis=1))[0][0])
    row = np.atleast_1d(values[idx]).ravel()
    entries = np.nonzero(~np.isfinite(row))[0]
    return idx, ", ".join(f"[{entry}] = {row[entry]}" for entry in entries[:8]) + (", ..." if len(entries) > 8 else "")


def build(group: str, factory: Callable[..., T], kwargs: Mapping[str, Any], given: Mapping[str, Any] | None = None) -> T:
    """
    Call ``factory(**kwargs, **given)`` with a readable error for a misspelt argument.

    :param group: name of the argument that holds the kwargs, e.g. ``"entropy_kwargs"``
    :param factory: class or function
    :param kwargs: its arguments, as the user passed them
    :param given: more of its arguments, which the user can't choose
    :return: what the factory returns
    :raises ValueError: if there is no such argument
    """
    given = {} if given is None else given
    check_names(group, factory, kwargs, given)
    return factory(**kwargs, **given)


@contextmanager
def explain_unknown_env(env_id: object) -> Iterator[None]:
    """
    Add the remedy to Gymnasium's error about an id that is not registered.

    :param env_id: id of the environment that is made within the context; anything else is an environment already
    :raises ValueError: if there is no environment with this id, or it does not take its arguments
    """
    module, colon, _ = env_id.partition(":") if isinstance(env_id, str) else ("", "", "")
    if colon and not all(part.isidentifier() for part in module.split(".")):
        raise ValueError(
            f"There is no environment {env_id!r} ({module!r} is not a module): check its spelling, or leave the colon out."
        )
    try:
        yield
    except (gym.error.Error, ImportError) as error:
        # Gymnasium raises another error from that of an id's module
        missing = getattr(error.__cause__ or error, "name", None)
        unknown_module = bool(missing) and f"{module}.".startswith(f"{missing}.")
        missing_dependency = isinstance(error, gym.error.DependencyNotInstalled | ImportError) and not unknown_module
        if missing_dependency or not isinstance(env_id, str):
            raise
        raise ValueError(
            f"There is no environment {env_id!r} ({str(error).rstrip('.')}): check its spelling, or name the module that "
            f"registers it, as in 'my_module:{env_id.split(':')[-1]}'."
        ) from error


@contextmanager
def explain_arguments(group: str, kwargs: Mapping[str, Any]) -> Iterator[None]:
    """
    Add the remedy to the error of a class of another package about arguments that the user chose.

    :param group: name of the argument that holds the kwargs
    :param kwargs: the arguments, as the user passed them; without any, the error is left as it is
    :raises ValueError: if the class rejects the arguments
    """
    try:
        yield
    except (AssertionError, AttributeError, TypeError, ValueError) as error:
        if not kwargs:
            raise
        raise ValueError(f"{group}={shown(kwargs)} was rejected ({error}): change or leave out what that names.") from error
