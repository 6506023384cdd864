"""Skills from pictures beside those from positions: one run of each, rows, and the report."""

import pandas as pd
import pixels
import pytest
from runs import read_rows


@pytest.fixture
def rows():
    """Three seeds of both, whose coverage from pictures is .9 of that from positions."""
    found = []
    for seed in range(3):
        for observation, setting, share in (("pixels", ("critic", 1), 0.9), ("positions", ("-", "-"), 1.0)):
            row = dict(zip(pixels.SETTING, ("tree", "cesd", observation, *setting, 300), strict=True))
            measures = {
                "knn_accuracy": 0.5 + 0.1 * seed,
                "policy_coverage": 0.8 * share,
                "total_coverage": 0.9,
                "seconds": 5.0,
            }
            found.append({**row, "seed": seed, "n_updates": 10, "versions": "{}", **measures})
    return pd.DataFrame(found)


def test_report(rows):
    text = pixels.report(rows)
    assert "| tree | cesd | pixels | critic | 1 | 300 | 3 | 10 | 0.600 [0.500, 0.700] | 0.720 [0.720, 0.720] |" in text
    assert "| tree | cesd | positions | - | - | 300 | 3 | 10 |" in text
    line = next(line for line in text.splitlines() if line.startswith("| tree | cesd | 300 | critic | 1 | 1.00 ["))
    assert "| 0.90 [0.90, 0.90] | 1.00 [1.00, 1.00] | 1.00 [1.00, 1.00] |" in line


def test_runs(call, tmp_path):
    arguments = ["--methods", "diayn", "--mazes", "square_c", "--jobs", 1, "--output", tmp_path]
    listed = call("pixels", *arguments, "--seeds", 2, "--encoder-learns-from", "critic", "none", "--dry-run").out
    assert "6 runs" in listed and "observation=positions encoder_learns_from=- shift=- n_timesteps=36000 seed=1" in listed
    settings = ["--seeds", 1, "--steps", 1150, "--shift", 0]
    assert call("pixels", *arguments, *settings).out.count("| square_c | diayn |") == 3
    found = read_rows(tmp_path / "runs.csv").set_index("observation")
    assert set(found.index) == {"pixels", "positions"} and (found.n_updates == 40).all() and (found.seconds > 0).all()
    for name in ("knn_accuracy", "policy_coverage", "total_coverage"):
        assert found[name].between(0.001, 1).all()
    assert '"shift": 0' in found.arguments["pixels"] and "encoder" not in found.arguments["positions"]
    assert "2 of them done already" in call("pixels", *arguments, *settings).out
