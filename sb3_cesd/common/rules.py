"""Rules of what an argument may be; every message ends in the remedy."""

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from numbers import Integral, Real
from typing import Any

import numpy as np

#: Integers must be below this
LARGEST = 1e300
#: Maximum length of a value in a message
LONGEST = 80


@dataclass(frozen=True)
class Rule:
    """
    Rule of what an argument may be.

    :param must: what it must be, as the end of a sentence; empty if the remedy says it
    :param remedy: what to do otherwise; may contain ``{name}``, the argument, and ``{example}``, an integer near its value
    :param allows: function that returns whether a value is allowed
    :param before: another rule to check first
    :param or_none: whether ``None`` is allowed, too
    """

    must: str
    remedy: str
    allows: Callable[[Any], bool]
    before: "Rule | None" = None
    or_none: bool = False

    def accepts(self, value: Any) -> bool:
        """
        Return whether a value is allowed.

        :param value: anything
        :return: whether an argument may have it
        """
        if self.or_none and value is None:
            return True
        return (self.before is None or self.before.accepts(value)) and bool(self.allows(value))

    def check(self, name: str, value: Any) -> None:
        """
        Check a value.

        :param name: name of the argument, for messages
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
        Return whether a value is one of the words.

        :param value: anything
        :return: whether an argument may have it
        """
        return (value is None or isinstance(value, str)) and value in self.words

    def check(self, name: str, value: Any) -> None:
        """
        Check a value.

        :param name: name of the argument, for messages
        :param value: anything
        :raises ValueError: if it is not one of the words
        """
        if not self.accepts(value):
            *others, last = map(repr, self.words)
            raise ValueError(f"Unknown {name} {shown(value)}: choose {', '.join(others)} or {last}.")


def optional(rule: Rule, remedy: str | None = None) -> Rule:
    """
    Allow ``None``, too.

    :param rule: a rule
    :param remedy: the new remedy; by default that of the rule with "or None"
    :return: the rule that also accepts ``None``
    """
    return replace(rule, remedy=f"{rule.remedy} or None" if remedy is None else remedy, or_none=True)


def is_number(value: Any) -> bool:
    """
    Return whether a value is a finite number; booleans are not.

    :param value: anything
    :return: whether it is a finite real number
    """
    if not isinstance(value, Real) or isinstance(value, bool):
        return False
    # Integers beyond the range of floats are too large
    return -LARGEST < int(value) < LARGEST if isinstance(value, Integral) else math.isfinite(value)


def is_integer(value: Any) -> bool:
    """
    Return whether a value is an integer, of Python or numpy; booleans are not.

    :param value: anything
    :return: whether it is an integer
    """
    return isinstance(value, Integral) and not isinstance(value, bool) and abs(int(value)) < 2**63


def is_whole(value: Any) -> bool:
    """
    Return whether a value is a whole number, of any type.

    :param value: anything
    :return: whether it is a whole number of at most 64 bits
    """
    return is_number(value) and float(value).is_integer() and abs(int(value)) < 2**63


def is_array(value: Any, ndim: int | None = None, of_integers: bool = False) -> bool:
    """
    Return whether a value is an array of finite numbers.

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
    Convert what a user passed to an array.

    :param value: anything
    :return: the array; if the value can't be converted, such as rows of different lengths, ``array(None)``
    """
    try:
        return np.asarray(value)
    except (ValueError, TypeError, RuntimeError):
        return np.array(None)


def is_sizes(value: Any) -> bool:
    """
    Return whether a value holds sizes of layers.

    :param value: anything
    :return: whether it is a list or tuple of positive integers, which may be empty
    """
    return isinstance(value, list | tuple) and all(is_integer(size) and size > 0 for size in value)


def instance(kinds: type | tuple[type, ...], must: str, remedy: str) -> Rule:
    """
    Make a rule that requires an instance of a class.

    :param kinds: class, or classes
    :param must: see :class:`Rule`
    :param remedy: see :class:`Rule`
    :return: the rule that a value is an instance of one of them
    """
    return Rule(must, remedy, lambda value: isinstance(value, kinds))


def subclass(kind: type, must: str, remedy: str) -> Rule:
    """
    Make a rule that requires a subclass of a class.

    :param kind: class
    :param must: see :class:`Rule`
    :param remedy: see :class:`Rule`
    :return: the rule that a value is a subclass
    """
    return Rule(must, remedy, lambda value: isinstance(value, type) and issubclass(value, kind))


def array(ndim: int, shape: str, of_integers: bool = False) -> Rule:
    """
    Make a rule that requires an array.

    :param ndim: number of axes
    :param shape: the shape in messages
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
    Format a value for a message: numbers of numpy as plain ones, and long values shortened.

    :param value: anything
    :return: the text that stands for it
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
SHARE = Rule("a number from 0 to 1", "pass such a number", lambda value: is_number(value) and 0 <= value <= 1)
POSITIVE_SHARE = Rule(
    "above 0 and at most 1", "set {name} above 0, up to 1", lambda value: is_number(value) and 0 < value <= 1
)
CORRELATION = Rule(
    "a correlation", "pass a number from 0 (white noise) to below 1", lambda value: is_number(value) and 0 <= value < 1
)
SHARE_OR_STEPS = Rule(
    "a fraction of the training budget or a number of environment steps",
    "pass a number from 0 to 1, or a whole number above 1",
    lambda value: is_number(value) and (0 <= value <= 1 or (value > 1 and value % 1 == 0)),
)
INTEGER = Rule("an integer", "pass a positive integer, e.g. {name}={example}", is_integer)
POSITIVE_INTEGER = Rule("a positive number", "set {name} above 0", lambda value: value > 0, INTEGER)
COUNT = Rule("", "pass at least 1", lambda value: value >= 1, INTEGER)
TWO_OR_MORE = Rule("an integer of at least 2", "pass 2 or more", lambda value: is_integer(value) and value >= 2)
NOT_NEGATIVE_INTEGER = Rule(
    "an integer of at least 0", "pass 0 or a positive integer", lambda value: is_integer(value) and value >= 0
)
N_SKILLS = Rule(
    "",
    "pass at most 65536",
    lambda value: value <= 65536,
    Rule(
        "",
        "at least two skills are needed, pass n_skills >= 2",
        lambda value: value >= 2,
        Rule("a whole number", "pass an integer from 2 to 65536", is_whole),
    ),
)
POSITIVE_WHOLE = Rule("a positive integer", "pass a positive integer", lambda value: is_whole(value) and value >= 1)
WHOLE = Rule("a whole number of at least 0", "pass 0 or a positive integer", lambda value: is_whole(value) and value >= 0)
SEED = Rule("an integer from 0 to 4294967295", "pass such a seed", lambda value: is_integer(value) and 0 <= value < 2**32)
BOOLEAN = Rule("True or False", "pass one of these", lambda value: isinstance(value, bool | np.bool_))
TEXT = Rule("a string", "pass one that is not empty", lambda value: isinstance(value, str) and len(value) > 0)
ARGUMENTS = Rule(
    "a dictionary of arguments",
    "pass arguments by their names, e.g. {name}=dict(...)",
    lambda value: isinstance(value, Mapping) and all(isinstance(name, str) for name in value),
)
FUNCTION = Rule("a function", "pass a callable", callable)
SIZES = Rule("a list of sizes", "pass a list of positive integers, e.g. {name}=[256, 256]", is_sizes)


def check_by(rules: Mapping[str, "Rule | Choice"], values: Mapping[str, Any]) -> None:
    """
    Check arguments by their rules.

    :param rules: by name
    :param values: arguments by name; others are ignored
    :raises ValueError: if an argument is not allowed
    """
    for name, rule in rules.items():
        if name in values:
            rule.check(name, values[name])
