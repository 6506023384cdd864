"""Many runs with one command: each is done once, whatever happens on the way."""

import json
import os
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from join import join
from runs import read_rows, run_missing, versions

FOLDER = Path(__file__).parents[2] / "benchmarks"
RUNS = [{"method": method, "seed": seed} for method in ("a", "b") for seed in (0, 1)]


def test_a_run_is_done_once_and_a_failed_one_again(tmp_path):
    path = tmp_path / "results" / "runs.csv"
    run_missing(RUNS[:3], lambda run: {"score": run["seed"] + 0.5}, path, n_jobs=1)
    done = []

    def fail_at_first(run):
        done.append(run)
        if len(done) == 1:
            raise OSError("the disk is full")
        return {"score": 7.0}

    more = [*RUNS, {"method": "c", "seed": 0}, {"method": "c", "seed": 0}]
    with pytest.raises(RuntimeError, match=r"(?s)1 of 2 runs failed.*the disk is full"):
        run_missing(more, fail_at_first, path, n_jobs=1)
    assert done == more[3:5] and read_rows(path).score.tolist() == [0.5, 1.5, 0.5, 7.0], "the others are done, once"
    rows = run_missing(more, lambda run: {"score": 9.0, "new": 1}, path, n_jobs=1)
    assert rows.score.tolist() == [0.5, 1.5, 0.5, 7.0, 9.0]
    assert rows.new.isna().tolist() == [True] * 4 + [False], "a new column is empty in old rows"
    assert {"torch", "commit", "processor", "python"} <= set(json.loads(rows.versions[0]))
    run_missing(more, pytest.fail, path, n_jobs=1)


def test_dry_run_lists_what_is_missing_and_how_long_it_takes(tmp_path, capsys):
    path = tmp_path / "runs.csv"
    run_missing(RUNS, pytest.fail, path, n_jobs=1, dry_run=True)
    assert "4 runs, 0 of them done already\n  method=a seed=0" in capsys.readouterr().out and not path.exists()
    run_missing(RUNS[:1], lambda run: {"score": 1.0}, path, n_jobs=1)
    run_missing(RUNS, pytest.fail, path, n_jobs=1, dry_run=True, seconds_of=lambda run: 1800.0 * (1 + run["seed"]))
    assert "about 2.5 hours" in capsys.readouterr().out


@pytest.mark.slow
def test_a_lost_worker_costs_its_run_alone(tmp_path, capsys):
    def do(run, folder=tmp_path):
        if run["seed"] == 2 and not (folder / "killed").exists():
            (folder / "killed").touch()
            os._exit(1)
        return {"score": 2.0 * run["seed"]}

    rows = run_missing([{"seed": seed} for seed in range(5)], do, tmp_path / "runs.csv", n_jobs=2)
    assert rows.set_index("seed").score.to_dict() == {seed: 2.0 * seed for seed in range(5)}
    assert "A worker was lost" in capsys.readouterr().out


def test_rows_of_several_machines_are_joined(call, tmp_path):
    row = {"method": "apt", "maze": "tree", "seed": 0, "n_timesteps": 36_000, "total_coverage": 0.5, "seconds": 1.0}
    folders = [tmp_path / name for name in ("a", "b")]
    for folder, seeds in zip(folders, [(0, 1), (1, 2)], strict=True):
        folder.mkdir()
        pd.DataFrame([{**row, "seed": seed} for seed in seeds]).to_csv(folder / "runs.csv", index=False)
    assert call("join", *folders, "--into", tmp_path / "c").code == 0
    assert read_rows(tmp_path / "c" / "runs.csv").seed.tolist() == [0, 1, 2]
    pd.DataFrame([{**row, "total_coverage": 0.6}]).to_csv(folders[1] / "runs.csv", index=False)
    result = call("join", *folders, "--into", tmp_path / "d")
    assert result.code == 2 and "apt tree 0 36000" in result.err and not (tmp_path / "d").exists()


@pytest.mark.parametrize("file", sorted(FOLDER.glob("results/**/*.csv")), ids=lambda file: "/".join(file.parts[-2:]))
def test_rows_that_ship_can_be_read_and_each_run_is_there_once(file):
    rows = read_rows(file)
    assert len(rows) and all(isinstance(json.loads(text), dict) for text in rows.get("versions", []) if text.startswith('{"'))
    if file.name in ("runs.csv", "mine.csv", "pretraining.csv", "hierarchical.csv"):
        assert len(join([file])) == len(rows)
    for name in rows.columns.intersection(["returns", "steps"]) if "method" in rows else ():
        assert all(np.isfinite(json.loads(text)).all() for text in rows[name])


def test_versions_name_what_results_depend_on():
    assert {"sb3_cesd", "stable_baselines3", "torch", "gymnasium", "numpy", "mujoco", "python"} <= set(versions())
