"""Parametrisations of tests of what all methods share."""

import itertools

import pytest

from sb3_cesd.registry import METHODS

#: Methods that differ in what the rest of the package sees of them: an ensemble of critics and discrete skills; a critic and a
#: task of its own; continuous skills, single steps, several optimizers and a stochastic policy
REPRESENTATIVES = ("cesd", "aps", "metra")
OTHERS = tuple(name for name in METHODS if name not in REPRESENTATIVES)

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)


def every_method_with(**choices):
    """
    Parametrise with combinations of choices that matter to code that methods share: all of them for the representatives, one
    for each other method, in turn.

    :param choices: values of each argument, by its name
    """
    combinations = list(itertools.product(*choices.values()))
    met = [*itertools.product(REPRESENTATIVES, combinations), *zip(OTHERS, itertools.cycle(combinations), strict=False)]
    values = [pytest.param(METHODS[name], *each, id="-".join([name, *map(_shown, each)])) for name, each in met]
    return pytest.mark.parametrize(("method", *choices), values)


def _shown(value):
    return getattr(value, "__name__", str(value))
