"""Parametrisations of tests of what all methods share."""

import pytest

from sb3_cesd.registry import METHODS

#: Methods that differ in what the rest of the package sees of them: an ensemble of critics and discrete skills; a critic and a
#: task of its own; continuous skills, single steps, several optimizers and a stochastic policy
REPRESENTATIVES = ("cesd", "aps", "metra")
OTHERS = tuple(name for name in METHODS if name not in REPRESENTATIVES)

every_method = pytest.mark.parametrize("method", METHODS.values(), ids=METHODS)
each_kind = pytest.mark.parametrize("method", [METHODS[name] for name in REPRESENTATIVES], ids=REPRESENTATIVES)
