"""Speed: forms of an update that are compared compute the same, and each part writes its figures."""

from pathlib import Path
from types import SimpleNamespace

import pandas as pd
import pytest
import torch as th
from dense_reference import DenseCeSD
from speed import FORMS, PARTS, RandomWalk, make_model, markdown
from stable_baselines3.common.env_checker import check_env

ROWS = Path(__file__).parents[2] / "benchmarks" / "results" / "speed" / "speed.csv"
SIZE = (3, 32, 16)


def test_routed_and_dense_form_learn_the_same(monkeypatch):
    monkeypatch.setattr("speed.N_TRANSITIONS", 200)
    weights = []
    for form in ("routed", "dense"):
        th.manual_seed(0)
        model = make_model(FORMS[form], "walker", "cpu", SIZE)
        assert isinstance(model, DenseCeSD) == (form == "dense")
        th.manual_seed(1)
        model.train(gradient_steps=3, batch_size=32)
        weights.append(th.cat([value.flatten() for value in model.critic.state_dict().values()]))
    assert th.allclose(*weights, atol=1e-5)


def test_rows_that_ship_are_tabulated():
    text = markdown(pd.read_csv(ROWS))
    assert "## A whole update, cpu" in text and "## Where the time of an update goes, cuda" in text
    assert "| quadruped, published | 1 | routed | 520 ms | 8.87 times dense |" in text


@pytest.mark.slow
def test_every_part_in_small(call, monkeypatch, tmp_path):
    monkeypatch.setattr("speed.N_TRANSITIONS", 200)
    monkeypatch.setattr("speed.HORIZONS", {"Walker-v0": 1000})
    monkeypatch.setattr("speed.PICTURES", ((36, 16),))
    monkeypatch.setattr("speed.WARM_UP", 20)
    arguments = [
        "--robot", "walker", "--sizes", "3x32x16", "--threads", 1, "--repeats", 1, "--env-steps", 16, "--training-steps", 4,
        "--n-envs", 2, "--methods", "cesd", "diayn", "--trainings", "cesd/laptop/MazeSquareA-v0", "--output", tmp_path,
    ]  # fmt: skip
    peak = call("speed", "--peak", "routed", "3x32x16", "--robot", "walker").out
    # Each in this process instead of its own, whose peak may lie behind it
    assert float(peak) >= 0
    monkeypatch.setattr("speed.subprocess.run", lambda *args, **kwargs: SimpleNamespace(stdout="1e6"))
    assert call("speed", *arguments).code == 0
    rows = pd.read_csv(tmp_path / "speed.csv")
    assert set(rows.part) == set(PARTS) and (rows.value >= 0).all() and (tmp_path / "speed.md").stat().st_size > 500
    assert call("speed", *arguments, "--parts", "envs").code == 0
    assert len(pd.read_csv(tmp_path / "speed.csv")) == len(rows), "figures of a part are replaced"


def test_random_walks_are_environments():
    check_env(RandomWalk("walker"))


@pytest.mark.slow
def test_baselines_of_metrics(call):
    out = call("metric_baselines", "MazeSquareA-v0", "--seeds", 1).out
    assert "| | random | none | constant | untrained | untrained, with noise |" in out and "| `knn_accuracy` | " in out
