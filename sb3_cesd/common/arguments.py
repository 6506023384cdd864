"""Arguments, checked by the ranges and choices in the signature of what takes them, and defaults of constructors."""

import difflib
import inspect
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from dataclasses import dataclass
from functools import cache, wraps
from typing import Annotated, Any, Literal, TypeVar, get_args, get_origin

import numpy as np

T = TypeVar("T")
F = TypeVar("F", bound=Callable[..., Any])

#: Arguments of a constructor that belong to a run, not to a model
OF_THE_RUN = ("self", "policy", "env", "reward", "tensorboard_log", "verbose", "seed", "device", "_init_setup_model")


@dataclass(frozen=True)
class Range:
    """Range of a number, within ``Annotated``; ``without`` is the one of its bounds that is not allowed itself."""

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


def checked(function: F) -> F:
    """
    Check the arguments of a function before each call: numbers by the ``Range`` in ``Annotated``, words by ``Literal``.

    Numbers of NumPy become Python's, which JSON can hold.
    """
    signature = inspect.signature(function)

    @wraps(function)
    def with_checks(*args: Any, **kwargs: Any) -> Any:
        args = tuple(map(plain, args))
        kwargs = {name: plain(value) for name, value in kwargs.items()}
        with suppress(TypeError):  # which the call raises with the name of the function
            check_values(function, signature.bind(*args, **kwargs).arguments)
        return function(*args, **kwargs)

    return with_checks  # type: ignore[return-value]


def plain(value: Any) -> Any:
    """Make a number of NumPy one of Python."""
    return value.item() if isinstance(value, np.generic) else value


def check_values(function: Callable[..., Any], arguments: Mapping[str, Any]) -> None:
    """Check some arguments of a function as :func:`checked` does, for instance before they replace those of a saved model."""
    allowed = _allowed(getattr(function, "__wrapped__", function))
    for name, value in arguments.items():
        if name in allowed:
            check_value(name, value, *allowed[name])


def check_value(name: str, value: Any, allowed: Range | tuple[Any, ...], or_none: bool = False) -> None:
    """Check that an argument is in a range, or one of some words (or ``None``)."""
    if or_none and value is None:
        return
    if isinstance(allowed, Range):
        if value not in allowed:
            raise ValueError(f"{name}={value!r} is out of range: pass a number of {allowed}{' or None' if or_none else ''}.")
    elif not any(type(value) is type(word) and value == word for word in allowed):
        raise ValueError(f"There is no {name}={value!r}: {instead_of(value, [str(word) for word in allowed])}")


@cache
def _allowed(function: Callable[..., Any]) -> dict[str, tuple[Range | tuple[Any, ...], bool]]:
    """Range or choices of each argument, and whether it may be ``None``; unions with other types are not checked."""
    found: dict[str, tuple[Range | tuple[Any, ...], bool]] = {}
    # As they stand: types of SB3 refer to names of its modules
    for name, hint in inspect.get_annotations(function).items():
        # An Annotated may be a union within
        or_none = get_origin(hint) is not Annotated and type(None) in get_args(hint)
        members = [each for each in get_args(hint) if each is not type(None)] if or_none else [hint]
        if len(members) != 1:
            continue
        if get_origin(members[0]) is Literal:
            found[name] = get_args(members[0]), or_none
        elif get_origin(members[0]) is Annotated:
            found.update((name, (each, or_none)) for each in members[0].__metadata__ if isinstance(each, Range))
    return found


def check_names(group: str, names: Collection[str], known: Collection[str], parts: Mapping[str, type] | None = None) -> None:
    """Check the keys of a dictionary of arguments; ``group`` is the argument that holds them, e.g. ``"entropy_kwargs"``."""
    for name in names:
        if name not in known:
            raise ValueError(f"{group} has no {name!r}: {instead_of(name, known, parts)}")


def constructor_names(owner: type) -> list[str]:
    """List the arguments of a constructor, also those that it passes on to those above as ``**kwargs``."""
    ours = [each for each in owner.__mro__ if each.__module__.split(".")[0] != "stable_baselines3"]
    inits = [each.__init__ for each in ours]  # type: ignore[misc]
    names = dict.fromkeys(name for init in inits for name in inspect.signature(init).parameters)
    return [name for name in names if name not in ("args", "kwargs")]


def place_of(name: str, parts: Mapping[str, type]) -> str | None:
    """Find the dictionary of arguments that an argument belongs in, as it is written in a call."""
    for group, part in parts.items():
        inner = f"{name}=..." if name in constructor_names(part) else place_of(name, parts_of(part))
        if inner:
            return f"{group}=dict({inner})"
    return None


def parts_of(owner: Callable[..., Any]) -> dict[str, type]:
    """Classes by the arguments that hold theirs, as ``Annotated[dict, its class]`` says."""
    inits = [each.__init__ for each in getattr(owner, "__mro__", ())]  # a function has none
    hints = {name: hint for init in inits for name, hint in inspect.get_annotations(init).items()}
    return {
        name: hint.__metadata__[0]
        for name, hint in hints.items()
        if name.endswith("_kwargs") and hasattr(hint, "__metadata__")
    }


def instead_of(name: Any, known: Collection[str], parts: Mapping[str, type] | None = None) -> str:
    """Name what may have been meant, as the end of a message: where it belongs, a similar name, or all that exist."""
    if parts and name in ("skill", "transfer"):
        return "pass it to from_pretrained (in RL Zoo, with -i), or skill to predict."
    if place := place_of(str(name), parts or {}):
        return f"pass {place}."
    known = sorted(known)
    similar = difflib.get_close_matches(str(name), known, n=1)
    if similar:
        return f"did you mean {similar[0]!r}?"
    return f"choose from {', '.join(known)}." if known else "leave it out."


def build(group: str, factory: Callable[..., T], kwargs: Mapping[str, Any] | None, *args: Any, **given: Any) -> T:
    """Call ``factory(*args, **kwargs, **given)``, with an error for a misspelt name in ``kwargs``, the argument ``group``."""
    kwargs = dict(kwargs or {})
    parameters = inspect.signature(factory).parameters.values()
    if all(each.kind is not each.VAR_KEYWORD for each in parameters):
        known = {each.name for each in parameters if each.kind is not each.VAR_POSITIONAL}
        check_names(group, kwargs, known - given.keys(), parts_of(factory))
    return factory(*args, **kwargs, **given)


def merge(arguments: Mapping[str, Any], overrides: Mapping[str, Any]) -> dict[str, Any]:
    """Override arguments by name; dictionaries are merged at any depth."""
    merged = dict(arguments)
    for name, value in overrides.items():
        if isinstance(value, Mapping):
            current = merged.get(name)
            value = merge(current if isinstance(current, Mapping) else {}, value)
        merged[name] = value
    return merged


def with_defaults(init: Any, defaults: dict[str, Any]) -> Any:
    """Wrap a constructor, with other defaults, which its signature shows, and an error that helps with unknown arguments."""
    signature = inspect.signature(init)
    parameters = [each.replace(default=defaults.get(each.name, each.default)) for each in signature.parameters.values()]

    @wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        known = constructor_names(type(self))
        for name in kwargs:
            if name not in known:
                hint = instead_of(name, known, parts_of_model(type(self)))
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected argument {name!r}: {hint}")
        given = signature.bind_partial(self, *args, **kwargs).arguments
        init(self, *args, **{**{name: value for name, value in defaults.items() if name not in given}, **kwargs})

    __init__.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return __init__


def parts_of_model(model_class: Any) -> dict[str, type]:
    """Classes of the parts of a model, by the arguments that hold theirs."""
    return {
        "policy_kwargs": model_class.policy_aliases["MlpPolicy"],
        "intrinsic_kwargs": getattr(model_class, "reward_class", object),
    }


def constructor_arguments(model: Any) -> dict[str, Any]:
    """Collect the arguments that make another model like this one, except those of the run (environment, seed, logs, ...)."""
    names = [name for name in constructor_names(type(model)) if name not in OF_THE_RUN]
    arguments = {name: getattr(model, name if hasattr(model, name) else f"_{name}") for name in names}
    if model.updates_follow_steps:
        arguments["gradient_steps"] = None
    return arguments


def check_changes(model_class: Any, function: str, arguments: dict[str, Any]) -> None:
    """Check names and ranges of arguments that change a saved model, which SB3 would set without a check."""
    known = [name for name in constructor_names(model_class) if name not in ("self", "policy", "env")]
    check_names(function, arguments, known, parts_of_model(model_class))
    check_values(model_class.__init__, arguments)


def finite_actions(actions: Any, shape: tuple[int, ...]) -> np.ndarray:
    """Convert the actions that an environment gets to float64, and check that they are finite."""
    actions = np.asarray(actions, dtype=np.float64).reshape(shape)
    if not np.isfinite(actions).all():
        raise ValueError(
            f"The action is not finite: {actions}. If it is of a policy, its training has diverged: lower the learning rate."
        )
    return actions
