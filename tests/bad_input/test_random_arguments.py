"""
Random values for every argument of everything that users call: each is refused clearly, or makes sense.

``BAD_INPUT_EXAMPLES=2000 pytest -s tests/bad_input/test_random_arguments.py`` tries more of them and counts the outcomes.
"""

import collections
import inspect
import os
import warnings

import numpy as np
import pytest
import torch as th
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from outcomes import outcome
from targets import TARGETS

N_EXAMPLES = int(os.environ.get("BAD_INPUT_EXAMPLES", "300"))
#: Not the user's to choose, or tested with the spaces of environments
NOT_TRIED = {
    "self",
    "cls",
    "kwargs",
    "observation_space",
    "action_space",
    "obs_dim",
    "action_dim",
    "lr_schedule",
    "_init_setup_model",
}
#: Looked at when they are used, as their owners say
NOT_TRIED |= {"_init_setup_model", "callback", "is_task", "model", "vec_normalize", "then", "position_fn"}
#: Arguments that the loaders stand for
OF_LOADERS = {"policy", "env", "device", "path"}

ARGUMENTS = sorted(
    (owner, name)
    for owner, (function, _) in TARGETS.items()
    for name in inspect.signature(function).parameters
    if name not in NOT_TRIED and not (owner.endswith("arguments of the constructor") and name in OF_LOADERS)
)
NONSENSE = [
    None, True, False, np.True_, float("nan"), float("inf"), float("-inf"), -1, 0, -0.5, 1.5, 1e300, 10**400, 1j, "", "3", "x",
    "nonsense", "None", b"3", [], [1], [0], ["a"], [[1], [2, 3]], (2, "days"), {}, {"x": 1}, {1: 2}, {2, 3}, object(), print,
    int, Ellipsis, range(3), np.int64(7), np.int64(-7), np.float32(0.5), np.float64("nan"), np.array([1, 2]), np.array(["a"]),
    np.array([np.nan, 1.0]), np.zeros((2, 0)), th.tensor(3), th.device("meta"),
]  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(NONSENSE),
    st.integers(-50, 50),
    st.floats(-20, 20),
    st.text(max_size=5),
    st.lists(st.one_of(st.integers(-5, 20), st.booleans(), st.text(max_size=2)), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
counts: collections.Counter = collections.Counter()


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Some nonsense is a path that may be written to."""
    monkeypatch.chdir(tmp_path)


@settings(
    max_examples=N_EXAMPLES,
    deadline=None,
    derandomize=True,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(argument=st.sampled_from(ARGUMENTS), value=VALUES)
def check(argument, value):
    owner, name = argument
    function, call = TARGETS[owner]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = outcome(function, call, name, value)
    counts[result.split(":")[0]] += 1
    assert result in ("clear", "sensible"), f"{owner}({name}={value!r}): {result}"


def test_every_value_is_refused_clearly_or_makes_sense():
    counts.clear()
    try:
        check()
    finally:
        print(f"\n{dict(counts)}")
    assert counts["clear"] > N_EXAMPLES / 4 and counts["sensible"] > 0


# In the long run every argument, which takes minutes; else one in sixty
@pytest.mark.parametrize(
    "argument",
    ARGUMENTS if "BAD_INPUT_EXAMPLES" in os.environ else ARGUMENTS[::60],
    ids=lambda argument: f"{argument[0]}-{argument[1]}",
)
def test_an_argument_with_all_values(argument):
    owner, name = argument
    function, call = TARGETS[owner]
    wrong = []
    for value in NONSENSE:
        result = outcome(function, call, name, value)
        if result not in ("clear", "sensible"):
            wrong.append(f"{owner}({name}={value!r}): {result}")
    assert not wrong, "\n".join(wrong)
