"""Figures of the methods in mazes: taken from the rows of the benchmark, wherever they are shown."""

import re

import pandas as pd
import pytest
from blocks import DOCS, ROOT

from sb3_cesd import METHODS


@pytest.fixture
def measured(monkeypatch):
    monkeypatch.syspath_prepend(str(DOCS / "_ext"))
    import measured

    return measured


def shown_means(text, name):
    """Means in the line of a method, the bold ones too."""
    [line] = re.findall(rf"^\| {re.escape(name)} \|(.*)\|$", text, re.M)
    return [float(cell.strip(" *").split(" ±")[0]) for cell in line.split("|")]


def test_readme_shows_the_rows_as_they_are_now(measured):
    text = (ROOT / "README.md").read_text()
    assert measured.with_table(text) == text, "run make docs, which brings README.md up to date"
    rows = pd.read_csv(measured.RUNS)
    rows = rows[(rows.method == "cesd") & (rows.maze == "square_a") & (rows.n_timesteps == 36_000)]
    expected = [rows[name].mean() for name in ("policy_coverage", "knn_accuracy")]
    [line] = re.findall(r"^\| CeSD \|(.*)\|$", text, re.M)
    cells = [cell.strip() for cell in line.split("|")]
    assert [float(cell) for cell in cells[:2]] == pytest.approx(expected, abs=0.005)
    assert cells[2] == "0.88 / 0.51"  # quadruped: mean of four tasks


def test_pages_of_robots_show_the_rows_as_they_are_now(measured):
    for folder in measured.WITH_TASKS:
        text = (folder / "README.md").read_text()
        assert measured.with_robots(text, folder) == text, "run make docs, which brings the page up to date"
        runs = pd.read_csv(folder / "runs.csv")
        walked = runs[(runs.task == "QuadrupedWalk-v0") & (runs.method == "cesd")].final_return
        spread = f" ± {walked.std():.0f}" if len(walked) > 1 else ""
        assert f"| {walked.mean():.0f}{spread} |" in text


def test_pages_show_what_was_measured(measured, monkeypatch):
    from method_pages import page

    rows = measured.read_runs()
    monkeypatch.setattr(measured, "read_runs", lambda: rows)
    for key, method in METHODS.items():
        text = page(key, method)
        has_rows = key in set(rows.method)
        assert text.count("## Results\n") == 1 and text.count("## How to replicate the results\n") == has_rows
        assert text.count("None measured with this package yet.") == (not has_rows)
        if has_rows:
            of_method = rows[(rows.method == key) & (rows.maze == "tree")]
            assert shown_means(text, method.__name__)[-1] == pytest.approx(of_method.knn_accuracy.mean(), abs=0.005)
