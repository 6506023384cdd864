"""The trials of benchmarks/faults.py in small."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def counts(text):
    """Outcomes by the name of the trial."""
    rows = re.findall(r"^\| ([^|]+) \| +(\d+) \| ([^|]+) \|$", text, re.MULTILINE)
    return {trial: (int(tries), outcome) for trial, tries, outcome in rows}


@pytest.mark.slow
@pytest.mark.skipif(os.name != "posix", reason="kill -9 and small disks")
def test_nothing_is_lost_and_nothing_wrong_loads(tmp_path):
    sizes = ["--kills", "5", "--flips", "10", "--full", "3", "--seed", "1"]
    subprocess.run(
        [sys.executable, str(ROOT / "benchmarks" / "faults.py"), *sizes, "--output", str(tmp_path)],
        check=True,
        timeout=300,
        env={**os.environ, "OMP_NUM_THREADS": "1"},
    )
    found = counts((tmp_path / "README.md").read_text())
    tries, outcome = found.pop("kill -9 while overwriting")
    assert tries == 5 and "5 whole" in outcome and "damaged" not in outcome
    tries, outcome = found.pop("kill -9 while writing checkpoints")
    assert tries == 5 and "5 resumed" in outcome
    assert found.pop("full disk") == (9, "9 kept and named")
    assert found.pop("one bit of a replay buffer") == (10, "10 refused")
    assert found.pop("one bit of an exported policy") == (10, "10 refused")
    tries, outcome = found.pop("one bit of a model")
    assert tries == 10 and re.fullmatch(r"(\d+ loaded the same, )?\d+ refused", outcome)
    assert not found


def test_the_figures_that_are_committed_hold():
    found = counts((ROOT / "benchmarks" / "results" / "faults" / "README.md").read_text())
    assert found["kill -9 while overwriting"][0] == 200 and "200 whole" in found["kill -9 while overwriting"][1]
    assert found["kill -9 while writing checkpoints"][0] == 200
    assert "200 resumed" in found["kill -9 while writing checkpoints"][1]
    assert all(tries == 200 and outcome == "200 refused" for trial, (tries, outcome) in found.items() if "one bit" in trial)
