import subprocess
import sys
from pathlib import Path

import pandas as pd
import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "robot.py"


@pytest.mark.slow
def test_whole_benchmark_in_small(tmp_path):
    command = [
        sys.executable, str(SCRIPT), "--methods", "cesd", "released", "apt", "--seeds", "1", "--jobs", "1", "--steps", "2010",
        "--output", str(tmp_path),
    ]  # fmt: skip
    first = subprocess.run(command, capture_output=True, text=True, timeout=500)
    assert first.returncode == 0, first.stderr
    rows = pd.read_csv(tmp_path / "runs.csv").set_index("method")
    assert set(rows.index) == {"cesd", "released", "apt"} and (rows.n_updates == 5).all()
    assert rows.on_cluster_share[["cesd", "released"]].between(0, 1).all() and pd.isna(rows.on_cluster_share["apt"])
    assert (rows.coverage >= 1).all() and (rows.training_coverage >= 1).all() and (rows.training_entropy > 0).all()
    again = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert "3 runs, 3 of them done already" in again.stdout


def test_released_is_what_the_file_of_the_released_setting_says(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    import yaml
    from robot import RELEASED

    from sb3_cesd import zoo

    entry = yaml.safe_load((zoo.hyperparams_folder() / "cesd_released.yml").read_text())["Walker-v0"]
    entry["policy_kwargs"] = eval(entry["policy_kwargs"])
    for group, values in RELEASED.items():
        assert values == {name: entry[group][name] for name in values}
