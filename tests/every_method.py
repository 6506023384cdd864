"""Parametrisations of tests of what all methods share."""

import itertools

import pytest

from sb3_cesd.registry import METHODS

#: Methods that differ in what the rest of the package sees of them: an ensemble of critics; discrete skills; continuous ones;
#: a critic and a task of its own; single steps and several optimizers
REPRESENTATIVES = ("cesd", "diayn", "dads", "aps", "metra")
OTHERS = tuple(name for name in METHODS if name not in REPRESENTATIVES)

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def every_method_with(**choices):
    """
    Parametrise with methods, and with choices that matter to code that methods share.

    The representatives meet every combination of choices, each other method one of them, in turn.

    :param choices: values of each argument, by its name
    """
    combinations = list(itertools.product(*choices.values()))
    met = [(name, each) for name in REPRESENTATIVES for each in combinations]
    met += zip(OTHERS, itertools.cycle(combinations), strict=False)
    values = [pytest.param(METHODS[name], *each, id="-".join([name, *map(_shown, each)])) for name, each in met]
    return pytest.mark.parametrize(("method", *choices), values)


def _shown(value):
    return getattr(value, "__name__", str(value))
