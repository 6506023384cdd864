"""Rows of several folders become one file, each run once."""

import shutil
import sys
from pathlib import Path

import pandas as pd
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"
RESULTS = FOLDER / "results"


def write(folder, rows, name="runs.csv"):
    folder.mkdir(exist_ok=True)
    pd.DataFrame(rows).to_csv(folder / name, index=False)
    return folder


def in_maze(seed, **others):
    return {"method": "apt", "maze": "tree", "seed": seed, "n_timesteps": 36_000, "total_coverage": 0.1 + seed, **others}


def main_of(script, arguments, monkeypatch):
    monkeypatch.setattr(sys, "argv", [script, *map(str, arguments)])
    __import__(script).main()


def test_each_run_is_joined_once(tmp_path, monkeypatch, capsys):
    target = write(tmp_path / "all", [in_maze(0), in_maze(1)])
    twice = in_maze(1, total_coverage=1.1 + 1e-15, seconds=7.0, versions="{}")
    sources = [write(tmp_path / "a", [twice, in_maze(2)]), write(tmp_path / "b", [in_maze(3, on_cluster_share=0.5)])]
    main_of("join", sources, monkeypatch)
    assert "runs.csv: 3 runs from 2 of" in capsys.readouterr().out and len(pd.read_csv(target / "runs.csv")) == 2
    main_of("join", [*sources, "--into", target], monkeypatch)
    rows = pd.read_csv(target / "runs.csv")
    assert rows.seed.tolist() == [0, 1, 2, 3] and rows.seed.dtype.kind == "i"
    assert rows.total_coverage.tolist() == pytest.approx([0.1, 1.1, 2.1, 3.1])
    assert rows.on_cluster_share.isna().tolist() == [True, True, True, False]
    before = (target / "runs.csv").read_bytes()
    main_of("join", [*sources, target, "--into", target], monkeypatch)
    assert (target / "runs.csv").read_bytes() == before, "nothing is joined twice"
    assert sorted(file.name for file in target.iterdir()) == ["runs.csv"]


def test_rows_that_contradict_each_other_are_refused_and_nothing_is_written(tmp_path, monkeypatch, capsys):
    pretraining = {"method": "metra", "domain": "SkillAnt-v0", "scale": "laptop", "seed": 0, "pretrain_steps": 10}
    target = write(tmp_path / "all", [{**pretraining, "total_coverage": 7}], "pretraining.csv")
    source = write(tmp_path / "a", [{**pretraining, "total_coverage": 8}], "pretraining.csv")
    write(source, [in_maze(0)])
    before = (target / "pretraining.csv").read_bytes()
    with pytest.raises(SystemExit) as end:
        main_of("join", [source, "--into", target], monkeypatch)
    message = " ".join(capsys.readouterr().err.split())
    assert end.value.code == 2 and "total_coverage 7 and 8): it was done twice. Delete one of them." in message
    assert "method=metra domain=SkillAnt-v0 scale=laptop seed=0 pretrain_steps=10 n_envs=1" in message
    assert (target / "pretraining.csv").read_bytes() == before and [file.name for file in target.iterdir()] == [
        "pretraining.csv"
    ]


def test_misuse_names_the_remedy(tmp_path, monkeypatch, capsys):
    from runs import only_one

    (tmp_path / "b").mkdir()
    for source, message in (
        (write(tmp_path / "a", [{"method": "apt", "score": 1.0}]), "has no rows of maze.py, urlb.py or hierarchical.py"),
        (tmp_path / "b", "pass folders with runs.csv"),
    ):
        with pytest.raises(SystemExit):
            main_of("join", [source], monkeypatch)
        assert message in " ".join(capsys.readouterr().err.split())
    source, target = write(tmp_path / "c", [in_maze(0)]), tmp_path / "all"
    with pytest.raises(SystemExit):
        main_of("join", [source, "--into", source], monkeypatch)
    assert f"{source} is the folder to join into: pass the folders" in " ".join(capsys.readouterr().err.split())
    with only_one(target / "runs.csv"), pytest.raises(SystemExit):
        main_of("join", [source, "--into", target], monkeypatch)
    assert "Another process writes" in capsys.readouterr().err


@pytest.mark.parametrize(("folder", "name"), [("maze", "runs.csv"), ("maze", "mine.csv"), ("urlb", "runs.csv")])
def test_files_that_ship_stay_as_they_are(tmp_path, monkeypatch, folder, name):
    """One row joined into all the others: the same rows, to the digit."""
    target, source = tmp_path / "all", tmp_path / "one"
    target.mkdir()
    shutil.copy(RESULTS / folder / name, target / name)
    rows = pd.read_csv(target / name)
    write(source, rows.tail(1), name)
    main_of("join", [source, "--into", target], monkeypatch)
    assert pd.read_csv(target / name).equals(rows)


@pytest.mark.parametrize(
    ("script", "arguments"),
    [
        ("maze", "--methods cesd --seeds 1 --mazes tree --mine"),
        ("urlb", "--methods cesd --seeds 1 --tasks WalkerRun-v0"),
        ("hierarchical", "--methods random --seeds 1"),
    ],
)
def test_what_identifies_runs_is_what_the_benchmarks_say(script, arguments, monkeypatch, capsys, tmp_path):
    from identities import IDENTITIES

    main_of(script, [*arguments.split(), "--dry-run", "--output", tmp_path], monkeypatch)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if line.startswith("  method=")]
    identities = {tuple(word.partition("=")[0] for word in line) for line in lines}
    assert identities and {frozenset(names) for names in identities} <= {frozenset(names) for names in IDENTITIES}
