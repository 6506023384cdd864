"""Parametrisations of tests of what all methods share."""

import itertools

import pytest

from sb3_cesd.registry import METHODS

#: Methods that differ in what the rest of the package sees of them: an ensemble of critics; discrete skills; continuous ones;
#: a critic and a task of its own; single steps and several optimizers
REPRESENTATIVES = ("cesd", "diayn", "dads", "aps", "metra")
OTHERS = tuple(name for name in METHODS if name not in REPRESENTATIVES)

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def in_turn(choices):
    """Pairs of a method's name and a choice: all choices for the representatives, one for each other method, in turn."""
    return [*itertools.product(REPRESENTATIVES, choices), *zip(OTHERS, itertools.cycle(choices), strict=False)]


def every_method_with(**choices):
    """
    Parametrise with methods, and with combinations of choices that matter to code that methods share, by :func:`in_turn`.

    :param choices: values of each argument, by its name
    """
    met = in_turn(list(itertools.product(*choices.values())))
    values = [pytest.param(METHODS[name], *each, id="-".join([name, *map(_shown, each)])) for name, each in met]
    return pytest.mark.parametrize(("method", *choices), values)


def _shown(value):
    return getattr(value, "__name__", str(value))
