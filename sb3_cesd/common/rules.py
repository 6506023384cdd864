"""What an argument may be; every message ends in the remedy."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

#: Integers are below this
LARGEST = 1e300
#: Longest value that a message repeats
LONGEST = 80


@dataclass(frozen=True)
class Rule:
    """
    What an argument may be.

    :param must: what it must be, the end of a sentence; empty if the remedy says it
    :param remedy: what to do otherwise; may hold ``{name}``, the argument, and ``{example}``, an integer near it
    :param allows: tells whether a value is right
    :param before: another rule, to be met first
    :param or_none: whether ``None`` is right, too
    """

    must: str
    remedy: str
    allows: Callable[[Any], bool]
    before: "Rule | None" = None
    or_none: bool = False

    def accepts(self, value: Any) -> bool:
        """
        Tell whether a value is right.

        :param value: anything
        :return: whether an argument may have it
        """
        if self.or_none and value is None:
            return True
        return (self.before is None or self.before.accepts(value)) and bool(self.allows(value))

    def check(self, name: str, value: Any) -> None:
        """
        Check a value.

        :param name: the argument, as the user knows it
        :param value: anything
        :raises ValueError: if the argument may not have it
        """
        if self.or_none and value is None:
            return
        if self.before is not None:
            self.before.check(name, value)
        if not self.allows(value):
            remedy = self.remedy.format(name=name, example=_example(value))
            must = f" must be {self.must}" if self.must else ""
            or_none = " or None" if self.must and self.or_none else ""
            raise ValueError(f"{name}={shown(value)}{must}{or_none}: {remedy}.")


@dataclass(frozen=True)
class Choice:
    """
    One of a number of words.

    :param words: the words; ``None`` among them stands for itself
    """

    words: tuple[str | None, ...]

    def accepts(self, value: Any) -> bool:
        """
        Tell whether a value is one of the words.

        :param value: anything
        :return: whether an argument may have it
        """
        return (value is None or isinstance(value, str)) and value in self.words

    def check(self, name: str, value: Any) -> None:
        """
        Check a value.

        :param name: the argument, as the user knows it
        :param value: anything
        :raises ValueError: if it is none of the words
        """
        if not self.accepts(value):
            *others, last = map(repr, self.words)
            raise ValueError(f"Unknown {name} {shown(value)}: choose {', '.join(others)} or {last}.")


def optional(rule: Rule, remedy: str | None = None) -> Rule:
    """
    Allow ``None``, too.

    :param rule: a rule
    :param remedy: its remedy from now on; by default that of the rule "or None"
    :return: the same, or ``None``
    """
    return replace(rule, remedy=f"{rule.remedy} or None" if remedy is None else remedy, or_none=True)


def is_number(value: Any) -> bool:
    """
    Tell finite numbers from everything else; truth values are none.

    :param value: anything
    :return: whether it is a finite real number
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    # Integers that no float holds are too large, too
    return -LARGEST < int(value) < LARGEST if isinstance(value, Integral) else math.isfinite(value)


def is_integer(value: Any) -> bool:
    """
    Tell integers, of numpy too, from everything else; truth values are none.

    :param value: anything
    :return: whether it is an integer
    """
    return isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) < 2**63


def is_whole(value: Any) -> bool:
    """
    Tell whole numbers of whatever type from everything else.

    :param value: anything
    :return: whether it is a whole number of at most 64 bits
    """
    return is_number(value) and float(value).is_integer() and abs(int(value)) < 2**63


def is_array(value: Any, ndim: int | None = None, of_integers: bool = False) -> bool:
    """
    Tell arrays of finite numbers from everything else.

    :param value: anything
    :param ndim: number of axes; ``None`` for any
    :param of_integers: whether the numbers are to be integers
    :return: whether it is such an array, with at least one number
    """
    if not isinstance(value, np.ndarray) or value.size == 0 or (ndim is not None and value.ndim != ndim):
        return False
    return value.dtype.kind in ("iu" if of_integers else "iuf") and bool(np.isfinite(value).all())


def as_array(value: Any) -> np.ndarray:
    """
    Make an array of what a user passed.

    :param value: anything
    :return: an array of it; one of ``None``, which are no numbers, where that can't be done, as of rows of different lengths
    """
    try:
        return np.asarray(value)
    except (ValueError, TypeError, RuntimeError):
        return np.array(None)


def is_sizes(value: Any) -> bool:
    """
    Tell sizes of layers from everything else.

    :param value: anything
    :return: whether it is a list or tuple of positive integers, which may be empty
    """
    return isinstance(value, list | tuple) and all(is_integer(size) and size > 0 for size in value)


def instance(kinds: type | tuple[type, ...], must: str, remedy: str) -> Rule:
    """
    Make a rule of a class.

    :param kinds: class, or classes
    :param must: see :class:`Rule`
    :param remedy: see :class:`Rule`
    :return: the rule that a value is one of its objects
    """
    return Rule(must, remedy, lambda value: isinstance(value, kinds))


def subclass(kind: type, must: str, remedy: str) -> Rule:
    """
    Make a rule of a class of classes.

    :param kind: class
    :param must: see :class:`Rule`
    :param remedy: see :class:`Rule`
    :return: the rule that a value is a subclass
    """
    return Rule(must, remedy, lambda value: isinstance(value, type) and issubclass(value, kind))


def array(ndim: int, shape: str, of_integers: bool = False) -> Rule:
    """
    Make a rule of an array.

    :param ndim: number of axes
    :param shape: the shape as messages tell it
    :param of_integers: whether the numbers are to be integers
    :return: the rule that a value is an array of that many axes, with finite numbers
    """
    numbers = "integers" if of_integers else "finite numbers"
    return Rule(
        f"a numpy array of {numbers} of shape {shape}",
        f"pass an array of {numbers} of that shape, with at least one row",
        lambda value: is_array(value, ndim, of_integers),
    )


def shown(value: Any) -> str:
    """
    Show a value in a message: numbers of numpy as plain ones, and nothing at length.

    :param value: anything
    :return: what stands for it
    """
    if isinstance(value, np.ndarray):
        return f"array of shape {value.shape} and type {value.dtype}"
    text = repr(plain(value))
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 3]}..."


def plain(value: Any) -> Any:
    """
    Replace numbers of numpy by plain ones, also those in lists, tuples and dictionaries.

    :param value: anything
    :return: the same, or a copy with plain numbers
    """
    if isinstance(value, np.generic):
        return value.item()
    if type(value) in (list, tuple):
        return type(value)(map(plain, value))
    if type(value) is dict:
        return {plain(key): plain(entry) for key, entry in value.items()}
    return value


def _example(value: Any) -> int:
    return math.ceil(value) if is_number(value) and value > 0 else 1


POSITIVE = Rule("a positive number", "set {name} above 0", lambda value: is_number(value) and value > 0)
NOT_NEGATIVE = Rule("zero or a positive number", "pass 0 or more", lambda value: is_number(value) and value >= 0)
SHARE = Rule("a share", "pass a number from 0 to 1", lambda value: is_number(value) and 0 <= value <= 1)
POSITIVE_SHARE = Rule(
    "above 0 and at most 1", "set {name} above 0, up to 1", lambda value: is_number(value) and 0 < value <= 1
)
CORRELATION = Rule(
    "a correlation", "pass a number from 0 (white noise) to below 1", lambda value: is_number(value) and 0 <= value < 1
)
SHARE_OR_STEPS = Rule(
    "a share of the training budget or a number of environment steps",
    "pass a number from 0 to 1, or a whole number above 1",
    lambda value: is_number(value) and (0 <= value <= 1 or (value > 1 and value % 1 == 0)),
)
INTEGER = Rule("an integer", "pass a positive integer, e.g. {name}={example}", is_integer)
POSITIVE_INTEGER = Rule("a positive number", "set {name} above 0", lambda value: value > 0, INTEGER)
COUNT = Rule("", "pass at least 1", lambda value: value >= 1, INTEGER)
TWO_OR_MORE = Rule("an integer of at least two", "pass 2 or more", lambda value: is_integer(value) and value >= 2)
NOT_NEGATIVE_INTEGER = Rule(
    "an integer from zero on", "pass 0 or a positive integer", lambda value: is_integer(value) and value >= 0
)
N_SKILLS = Rule(
    "",
    "pass at most 65536, one for each value of two bytes",
    lambda value: value <= 65536,
    Rule(
        "",
        "telling skills apart needs at least two of them, pass n_skills >= 2",
        lambda value: value >= 2,
        Rule("a whole number", "pass an integer from 2 to 65536", is_whole),
    ),
)
POSITIVE_WHOLE = Rule("a positive integer", "pass a positive integer", lambda value: is_whole(value) and value >= 1)
WHOLE = Rule("a whole number from zero on", "pass 0 or a positive integer", lambda value: is_whole(value) and value >= 0)
SEED = Rule("an integer from 0 to 4294967295", "pass such a seed", lambda value: is_integer(value) and 0 <= value < 2**32)
BOOLEAN = Rule("True or False", "pass one of these", lambda value: isinstance(value, bool | np.bool_))
TEXT = Rule("a text", "pass a string of characters", lambda value: isinstance(value, str) and len(value) > 0)
ARGUMENTS = Rule(
    "a dictionary of arguments",
    "pass arguments by their names, e.g. {name}=dict(...)",
    lambda value: isinstance(value, Mapping) and all(isinstance(name, str) for name in value),
)
FUNCTION = Rule("a function", "pass something that can be called", callable)
SIZES = Rule("a list of sizes", "pass a list of positive integers, e.g. {name}=[256, 256]", is_sizes)


def check_by(rules: Mapping[str, "Rule | Choice"], values: Mapping[str, Any]) -> None:
    """
    Check arguments by their rules.

    :param rules: by name
    :param values: arguments by name; others are ignored
    :raises ValueError: if an argument is not what it may be
    """
    for name, rule in rules.items():
        if name in values:
            rule.check(name, values[name])
