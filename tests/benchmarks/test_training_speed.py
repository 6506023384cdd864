import json
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "training_speed.py"


@pytest.mark.slow
def test_all_learn_alike_and_are_compared(tmp_path, monkeypatch):
    command = [sys.executable, str(SCRIPT), "--repeats", "2", "--steps", "20", "--json", str(tmp_path / "speed.json")]
    result = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stderr
    figures = json.loads((tmp_path / "speed.json").read_text())
    names = {"CeSD, exploring", "CeSD, constrained", "CeSD", "TD3", "TQC"}
    assert set(figures["steps_per_second"]) == names and figures["times_td3"]["TD3"] == 1.0
    mixed = 0.8 * figures["times_td3"]["CeSD, exploring"] + 0.2 * figures["times_td3"]["CeSD, constrained"]
    assert figures["times_td3"]["CeSD"] == pytest.approx(mixed)


def test_updates_batches_and_networks_are_equal(monkeypatch):
    monkeypatch.syspath_prepend(str(SCRIPT.parent))
    from training_speed import make_models

    models = make_models("Walker-v0", 500)
    for model in models.values():
        model.learn(320, log_interval=10**9)
    assert {model._n_updates for model in models.values()} == {10} and {model.batch_size for model in models.values()} == {256}
    widths = {name: model.actor.state_dict() for name, model in models.items()}
    for name, state in widths.items():
        assert [weight.shape[0] for weight in state.values() if weight.ndim == 2][-3:-1] == [256, 256] or name == "TQC"
    on = {name: model.intrinsic.constraint.is_on(0.5) for name, model in models.items() if name.startswith("CeSD")}
    assert on == {"CeSD, exploring": False, "CeSD, constrained": True}
