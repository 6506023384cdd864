"""Checks of arguments; every message ends in the remedy."""

import inspect
import math
from collections.abc import Callable, Mapping
from numbers import Integral, Real
from typing import Any, TypeVar

T = TypeVar("T")


def check_positive(**values: float) -> None:
    """
    Check that numbers are positive.

    :param values: numbers by the name under which the user knows them
    :raises ValueError: if one is not a finite number above zero
    """
    for name, value in values.items():
        if not (isinstance(value, Real) and math.isfinite(value) and value > 0):
            raise ValueError(f"{name}={value!r} must be a positive number: set {name} above 0.")


def check_positive_integer(**values: int) -> None:
    """
    Check that numbers are positive integers.

    :param values: numbers by the name under which the user knows them
    :raises ValueError: if one is not an integer above zero
    """
    check_positive(**values)
    for name, value in values.items():
        if isinstance(value, bool) or not isinstance(value, Integral):
            raise ValueError(f"{name}={value!r} must be an integer: pass a positive integer, e.g. {name}={math.ceil(value)}.")


def check_not_negative(**values: float) -> None:
    """
    Check that numbers are zero or above.

    :param values: numbers by the name under which the user knows them
    :raises ValueError: if one is not a finite number, zero or above
    """
    for name, value in values.items():
        if not (isinstance(value, Real) and math.isfinite(value) and value >= 0):
            raise ValueError(f"{name}={value!r} must be zero or a positive number: pass 0 or more.")


def check_share(**values: float) -> None:
    """
    Check that numbers are from 0 to 1.

    :param values: numbers by the name under which the user knows them
    :raises ValueError: if one is not a number from 0 to 1
    """
    for name, value in values.items():
        if not (isinstance(value, Real) and 0 <= value <= 1):
            raise ValueError(f"{name}={value!r} must be a share: pass a number from 0 to 1.")


def check_correlation(**values: float) -> None:
    """
    Check that numbers are from 0 to below 1.

    :param values: numbers by the name under which the user knows them
    :raises ValueError: if one is not a number from 0 to below 1
    """
    for name, value in values.items():
        if not (isinstance(value, Real) and 0 <= value < 1):
            raise ValueError(f"{name}={value!r} must be a correlation: pass a number from 0 (white noise) to below 1.")


def check_share_or_steps(**values: float) -> None:
    """
    Check that numbers are shares of the training budget, or numbers of environment steps.

    :param values: shares of the training budget (up to 1) or numbers of environment steps (above it), by the name under
        which the user knows them
    :raises ValueError: if one is neither
    """
    for name, value in values.items():
        if not (isinstance(value, Real) and (0 <= value <= 1 or (value > 1 and value % 1 == 0))):
            raise ValueError(
                f"{name}={value!r} must be a share of the training budget or a number of environment steps: "
                "pass a number from 0 to 1, or a whole number above 1."
            )


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
    known = set(inspect.signature(factory).parameters) - set(given)
    unknown = sorted(set(kwargs) - known)
    if unknown:
        raise ValueError(f"{group} has no {', '.join(map(repr, unknown))}: use some of {', '.join(sorted(known))}.")
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
    if choice not in options:
        raise ValueError(f"Unknown {name} {choice!r}: choose one of {', '.join(map(repr, options))}.")
    return build(f"{name}_kwargs", options[choice], kwargs, given)
