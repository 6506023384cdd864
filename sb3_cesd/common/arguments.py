"""Checks of arguments by the ranges and choices in the signature of what takes them. Types are left to Python."""

import difflib
import inspect
from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from functools import cache, wraps
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import numpy as np

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])


@dataclass(frozen=True)
class Range:
    """
    Range of a number, within ``Annotated``.

    :param low: smallest value
    :param high: largest value
    :param without: one of the two that is not allowed itself
    """

    low: float = float("-inf")
    high: float = float("inf")
    without: float | None = None

    def __contains__(self, value: Any) -> bool:
        try:
            return bool(self.low <= value <= self.high) and value != self.without
        except TypeError:
            return False

    def __str__(self) -> str:
        above = f"{'above' if self.low == self.without else 'at least'} {self.low:g}"
        if self.high == float("inf"):
            return above
        return f"{above} and {'below' if self.high == self.without else 'at most'} {self.high:g}"


PositiveInt = Annotated[int, Range(1)]
NonNegativeInt = Annotated[int, Range(0)]
Positive = Annotated[float, Range(0, without=0)]
NonNegative = Annotated[float, Range(0)]
#: From 0 to 1
Share = Annotated[float, Range(0, 1)]
#: Up to 1 a fraction of the training budget, above 1 a number of environment steps
ShareOrSteps = NonNegative


def checked(function: F) -> F:
    """
    Check the arguments of a function before each call: numbers by the ``Range`` in ``Annotated``, words by ``Literal``.

    :param function: a function with annotations, often ``__init__``
    :return: the function with checks
    """
    signature = inspect.signature(function)

    @wraps(function)
    def with_checks(*args: Any, **kwargs: Any) -> Any:
        check_values(function, signature.bind(*args, **kwargs).arguments)
        return function(*args, **kwargs)

    return with_checks  # type: ignore[return-value]


def check_values(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Check some arguments of a function as :func:`checked` does, for instance before they replace those of a saved model."""
    for name, value in arguments.items():
        for allowed, or_none in _allowed(getattr(function, "__wrapped__", function)).get(name, ()):
            check_value(name, value, allowed, or_none)


def check_value(name: str, value: Any, allowed: Range | tuple[Any, ...], or_none: bool = False) -> None:
    """
    Check one argument.

    :param name: its name, for the message
    :param value: its value
    :param allowed: a range, or the words that it may be
    :param or_none: whether ``None`` is allowed, too
    :raises ValueError: if it is anything else
    """
    if or_none and value is None:
        return
    if isinstance(allowed, Range):
        if value not in allowed:
            raise ValueError(f"{name}={value!r} is out of range: pass a number of {allowed}{' or None' if or_none else ''}.")
    elif not any(type(value) is type(word) and value == word for word in allowed):
        raise ValueError(f"There is no {name}={value!r}: {instead_of(value, [str(word) for word in allowed])}")


@cache
def _allowed(function: Callable[..., Any]) -> dict[str, list[tuple[Range | tuple[Any, ...], bool]]]:
    """Ranges and choices of each argument, and whether it may be ``None``; unions with other types are not checked."""
    found: dict[str, list[tuple[Range | tuple[Any, ...], bool]]] = {}
    # As they stand: types of SB3 refer to names of its modules
    for name, hint in inspect.get_annotations(function).items():
        members = [member for member in (get_args(hint) if _is_union(hint) else (hint,)) if member is not type(None)]
        or_none = _is_union(hint) and type(None) in get_args(hint)
        if len(members) == 1:
            member = members[0]
            if get_origin(member) is Literal:
                found[name] = [(get_args(member), or_none)]
            elif get_origin(member) is Annotated:
                found[name] = [(each, or_none) for each in member.__metadata__ if isinstance(each, Range)]
    return found


def _is_union(hint: Any) -> bool:
    # Not of an Annotated, whose type may be one
    return get_origin(hint) is not Annotated and type(None) in get_args(hint)


def check_names(group: str, names: Collection[str], known: Collection[str]) -> None:
    """
    Check the keys of a dictionary of arguments.

    :param group: name of the argument that holds them, e.g. ``"entropy_kwargs"``
    :param names: names that the user passed
    :param known: names that exist
    :raises ValueError: if one does not exist
    """
    for name in names:
        if name not in known:
            raise ValueError(f"{group} has no {name!r}: {instead_of(name, known)}")


def instead_of(name: Any, known: Collection[str]) -> str:
    """
    Name what may have been meant, as the end of a message.

    :param name: what the user passed
    :param known: what exists
    :return: a similar name, or all of them
    """
    known = sorted(known)
    similar = difflib.get_close_matches(str(name), known, n=1)
    if similar:
        return f"did you mean {similar[0]!r}?"
    return f"choose from {', '.join(known)}." if known else "leave it out."


def build(group: str, factory: Callable[..., T], kwargs: Mapping[str, Any] | None, **given: Any) -> T:
    """
    Call ``factory(**kwargs, **given)``, with an error for a misspelt argument that says what may have been meant.

    :param group: name of the argument that holds the kwargs, e.g. ``"entropy_kwargs"``
    :param factory: class or function
    :param kwargs: its arguments, as the user passed them
    :param given: more of its arguments, which the user can't choose
    :return: what the factory returns
    :raises ValueError: if there is no such argument
    """
    kwargs = dict(kwargs or {})
    parameters = inspect.signature(factory).parameters
    if all(parameter.kind is not inspect.Parameter.VAR_KEYWORD for parameter in parameters.values()):
        check_names(group, kwargs, parameters.keys() - given.keys() - {"self"})
    return factory(**kwargs, **given)


def merge(arguments: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Override arguments by name; dictionaries are merged at any depth."""
    merged = dict(arguments)
    for name, value in overrides.items():
        if isinstance(value, Mapping):
            current = merged.get(name)
            value = merge(current if isinstance(current, Mapping) else {}, value)
        merged[name] = value
    return merged


def finite_actions(actions: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Convert the actions that an environment gets to float64, and check that they are finite."""
    actions = np.asarray(actions, dtype=np.float64).reshape(shape)
    if not np.isfinite(actions).all():
        raise ValueError(
            f"The action is not finite: {actions}. If it is of a policy, its training has diverged: lower the learning rate."
        )
    return actions
