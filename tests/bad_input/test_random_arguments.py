"""
Random values for every argument of everything that users call: each is refused clearly, or makes sense.

``BAD_INPUT_EXAMPLES=2000 BAD_INPUT_SEED=1 pytest -s tests/bad_input/test_random_arguments.py -k makes_sense`` tries more of
them, of a seed, and counts the outcomes.
"""

import collections
import os
import warnings

import numpy as np
import pytest
import torch as th
from command_lines import COMMANDS, outcome_of_command
from hypothesis import HealthCheck, assume, given, seed, settings
from hypothesis import strategies as st
from outcomes import outcome
from targets import ARGUMENTS, TARGETS

N_EXAMPLES = int(os.environ.get("BAD_INPUT_EXAMPLES", "300"))
NONSENSE = [
    None, True, False, np.True_, float("nan"), float("inf"), float("-inf"), -1, 0, -0.5, 1.5, 1e300, 10**400, 1j, "", "3", "x",
    "nonsense", "None", b"3", [], [1], [0], ["a"], [[1], [2, 3]], (2, "days"), {}, {"x": 1}, {1: 2}, {2, 3}, object(), print,
    int, Ellipsis, range(3), np.int64(7), np.int64(-7), np.float32(0.5), np.float64("nan"), np.array([1, 2]), np.array(["a"]),
    np.array([np.nan, 1.0]), np.zeros((2, 0)), th.tensor(3), th.device("meta"), [1.0, 0.0], np.array([0.0, -1.0]), [3.0, 4.0],
    (0.6, 0.8), [[1.0, 0.0], [0.0, 1.0]], [np.nan, 1.0],
]  # fmt: skip
VALUES = st.one_of(
    st.sampled_from(NONSENSE),
    st.integers(-50, 50),
    st.floats(-20, 20),
    st.text(max_size=5),
    st.lists(st.one_of(st.integers(-5, 20), st.booleans(), st.text(max_size=2)), max_size=3),
    st.dictionaries(st.text(max_size=3), st.integers(), max_size=2),
)
SEED = int(os.environ["BAD_INPUT_SEED"]) if "BAD_INPUT_SEED" in os.environ else None
counts: collections.Counter = collections.Counter()


@pytest.fixture(autouse=True)
def empty_folder(tmp_path, monkeypatch):
    """Some nonsense is a path that may be written to."""
    monkeypatch.chdir(tmp_path)


def hypothesis_settings(test):
    """The same examples at every call, or those of the seed."""
    return chosen(test) if SEED is None else seed(SEED)(chosen(test))


chosen = settings(
    max_examples=N_EXAMPLES,
    deadline=None,
    derandomize=SEED is None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


@hypothesis_settings
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


#: What users may type that is no value, and some that are
TEXTS = [
    "", "x", "nonsense", "-1", "0", "1", "2", "3", "1.5", "nan", "inf", "1e3", "9" * 20, "a_file", "a_file/x", "new/folder",
    "/proc/x", "a" * 300, "None", "True", "cpu", "cuda", "meta", "auto", "cesd", "walker", "-x", "random", "best", " ", "[1]",
    "x=1", "Walker-v0", "Pendulum-v1", "/dev/null",
]  # fmt: skip
OPTIONS = [(name, option) for name, command in COMMANDS.items() for option in command.options]


@hypothesis_settings
@given(
    option=st.sampled_from(OPTIONS),
    text=st.one_of(st.sampled_from(TEXTS), st.integers(-50, 50).map(str), st.text(st.characters(codec="ascii"), max_size=5)),
)
def check_command_line(option, text):
    assume("\0" not in text and text != "--")
    result = outcome_of_command(*option, text)
    counts[result.split(":")[0]] += 1
    assert result in ("clear", "sensible"), f"{option} {text!r}: {result}"


def test_every_text_on_a_command_line_is_refused_clearly_or_makes_sense():
    counts.clear()
    try:
        check_command_line()
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
