"""CSV files and those of finished runs that were not written to their end."""

import os
from importlib.metadata import PackageNotFoundError

import numpy as np
import pandas as pd
import pytest

RUNS = [{"method": method, "seed": seed} for method in ("a", "b") for seed in range(3)]


def read_rows(path):
    import runs

    return runs.read_rows(path)


def add(path, added=RUNS):
    import runs

    for run in added:
        runs.append_row(path, {**run, "score": 0.25, "versions": '{"python": "3.11, or so"}'})


def measured(path):
    """Which runs are done when they are asked for."""
    from runs import run_missing

    done = []

    def do(run):
        done.append((run["method"], run["seed"]))
        return {"score": 0.5}

    run_missing(RUNS, do, path, n_jobs=1)
    return done


@pytest.mark.parametrize("n_lost", [1, 5, 30, 36])
def test_a_half_written_line_is_done_again_and_no_other(tmp_path, n_lost):
    path = tmp_path / "runs.csv"
    add(path)
    content = path.read_bytes()
    assert n_lost < len(content.splitlines()[-1])
    path.write_bytes(content[:-n_lost])
    with pytest.warns(UserWarning, match="1 of 6 lines are not whole, their runs are done again"):
        rows = read_rows(path)
    assert rows.seed.tolist() == [0, 1, 2, 0, 1] and rows.seed.dtype.kind == "i"
    with pytest.warns(UserWarning, match="not whole"):
        assert measured(path) == [("b", 2)]
    assert read_rows(path).seed.tolist() == [0, 1, 2, 0, 1, 2]


def test_a_line_without_a_seed_does_not_make_others_run(tmp_path):
    path = tmp_path / "runs.csv"
    add(path, RUNS[:-1])
    rows = pd.concat([read_rows(path), pd.DataFrame([{"method": "other", "score": 1.0}])])
    rows.to_csv(path, index=False)
    assert read_rows(path).seed.dtype.kind == "f", "a gap makes floats of seeds"
    assert measured(path) == [("b", 2)]


def test_a_write_that_fails_leaves_the_rows(tmp_path, monkeypatch):
    from runs import append_row

    path = tmp_path / "runs.csv"
    add(path)
    before = path.read_bytes()

    def full(descriptor):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", full)
    with pytest.raises(OSError, match="untouched: free some space"):
        append_row(path, {"method": "c", "seed": 0})
    assert path.read_bytes() == before and os.listdir(tmp_path) == ["runs.csv"]


def test_files_that_are_no_tables(tmp_path):
    from runs import run_missing

    path = tmp_path / "runs.csv"
    path.write_bytes(np.arange(200, dtype=np.uint8).tobytes())
    with pytest.raises(ValueError, match=r"runs\.csv is damaged .*pass another --output"):
        read_rows(path)
    path.write_text("method,score\na,1.0\n")
    with pytest.raises(ValueError, match=r"has no column 'seed'.*pass another --output"):
        run_missing(RUNS, pytest.fail, path, n_jobs=1)
    path.write_text("")
    assert read_rows(path).empty


@pytest.mark.parametrize("content", ["", '[{"method": "a", "se', "[1, 2]", "7"])
def test_a_damaged_finished_file_costs_its_run_alone(tmp_path, content):
    from runs import Finished

    finished = Finished(tmp_path / "runs.csv")
    finished.add(RUNS[0], {"score": 1.0}, "")
    finished.add(RUNS[1], {"score": 2.0}, "")
    (file, *_) = sorted(finished.folder.glob("*.json"))
    file.write_text(content)
    with pytest.warns(UserWarning, match="is damaged: it was removed, and its run is done again"):
        assert finished.collect(RUNS) == [(RUNS[1], "")]
    assert read_rows(tmp_path / "runs.csv").seed.tolist() == [1]
    assert not list(finished.folder.iterdir())


def test_a_run_stays_known_when_others_turn_its_column_into_text(tmp_path):
    from runs import append_row, keys_of

    path, names, defaults = tmp_path / "runs.csv", ("seed", "task_params"), {"task_params": 0}
    append_row(path, {"seed": 0})  # older than the column
    append_row(path, {"seed": 1, "task_params": 0})
    assert keys_of(read_rows(path), names, defaults) == {("0", "0"), ("1", "0")}
    append_row(path, {"seed": 2, "task_params": '{"tau": 0.1}'})
    append_row(path, {"seed": 3, "task_params": 0})
    expected = {("0", "0"), ("1", "0"), ("2", '{"tau": 0.1}'), ("3", "0")}
    assert keys_of(read_rows(path), names, defaults) == expected


def test_runs_whose_results_are_lost_are_told(tmp_path, monkeypatch):
    """A worker that leaves damaged results every time raises no error of its own."""
    import runs

    def add(self, run, *_):
        self.folder.mkdir(exist_ok=True)
        (self.folder / "damaged.json").write_text("{")

    monkeypatch.setattr(runs, "DELAY", 0)
    monkeypatch.setattr(runs.Finished, "add", add)
    remedy = pytest.raises(RuntimeError, match=r"its results are not in .*: see that nothing else works there")
    with pytest.warns(UserWarning, match="is damaged: it was removed"), remedy:
        runs.run_missing(RUNS[:1], lambda run: {"score": 1.0}, tmp_path / "runs.csv", 1)


def test_a_package_that_is_not_installed_shows_before_the_run(tmp_path, monkeypatch):
    import runs

    def not_found(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr(runs, "version", not_found)
    with pytest.raises(RuntimeError, match=r"sb3_cesd is not installed: pip install -e \.\[benchmarks\]"):
        runs.run_missing(RUNS, pytest.fail, tmp_path / "runs.csv", n_jobs=1)


def test_mazes_run_without_dm_control(monkeypatch):
    import runs

    def lacking(name):
        if name == "dm_control":
            raise PackageNotFoundError(name)
        return "1.2"

    monkeypatch.setattr(runs, "version", lacking)
    assert set(runs.versions()) == {
        "sb3_cesd",
        "stable_baselines3",
        "torch",
        "gymnasium",
        "numpy",
        "mujoco",
        "commit",
        "python",
        "processor",
    }
