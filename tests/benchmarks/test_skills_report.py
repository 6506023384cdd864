"""Tables of coverage and goals, from rows made by hand."""

import json
import sys
import warnings

import numpy as np
import pandas as pd
import pytest
from scipy import stats

VERSIONS = json.dumps({"torch": "2.13.0", "python": "3.11", "processor": "A"})
COVERED = {"metra": [400.0, 500.0, 450.0], "diayn": [40.0, 50.0, 45.0], "apt": [90.0]}


def pretraining(method, seed, coverage, **others):
    goals = {f"goal_{kind}_{radius}": 0.25 for kind in ("hit", "end", "stay") for radius in (3, 1)}
    return {
        "method": method, "domain": "SkillAnt-v0", "scale": "laptop", "seed": seed, "pretrain_steps": 2000, "seconds": 1800.0,
        "policy_coverage": 3.0, "policy_coverage_48": coverage, "queue_coverage": 2 * coverage, "total_coverage": 4 * coverage,
        "knn_accuracy": 0.5, "moving_share": 1.0, "skill_score": 12.0, **goals, "goal_distance": 30.0,
        "versions": VERSIONS, **others,
    }  # fmt: skip


def of_goals(method, seed, final, **others):
    return {
        "method": method, "domain": "SkillAnt-v0", "task": "AntMultiGoal", "scale": "laptop", "seed": seed,
        "pretrain_steps": 2000, "controller": "ppo", "n_timesteps": 400, "eval_freq": 200, "n_eval_episodes": 2,
        "seconds": 60.0, "steps": "[200, 400]", "returns": f"[1.0, {final}]", "final_return": final, "versions": VERSIONS,
        **others,
    }  # fmt: skip


def write(folder, rows, name="pretraining.csv"):
    folder.mkdir(exist_ok=True)
    pd.DataFrame(rows).to_csv(folder / name, index=False)
    return folder


def report(arguments, monkeypatch, capsys):
    monkeypatch.setattr(sys, "argv", ["skills_report", *map(str, arguments)])
    __import__("skills_report").main()
    return capsys.readouterr().out


def test_ratio_has_welchs_interval():
    from intervals import ratio

    value, low, high = ratio([400.0, 500.0, 450.0], [40.0, 50.0, 45.0])
    assert value == pytest.approx(10)
    logs = np.log([400.0, 500.0, 450.0])
    # Equal variances and sizes: 4 degrees of freedom
    half = stats.t.ppf(0.975, 4) * np.sqrt(2 * logs.var(ddof=1) / 3)
    assert (low, high) == pytest.approx((10 * np.exp(-half), 10 * np.exp(half)))
    other_way = ratio([40.0, 50.0, 45.0], [400.0, 500.0, 450.0])
    assert other_way == pytest.approx((1 / value, 1 / high, 1 / low))
    assert np.isnan(ratio([4.0], [1.0, 2.0]).low) and ratio([4.0], [1.0, 4.0]).value == pytest.approx(2)
    assert ratio([4.0, 4.0], [2.0, 2.0]) == pytest.approx((2, 2, 2))
    # Equal values of one method alone: Student's interval of the other, without a warning
    logs = np.log([92.0, 85.0, 86.0]) - np.log(2.0)
    half = stats.t.ppf(0.975, 2) * logs.std(ddof=1) / np.sqrt(3)
    expected = np.exp([logs.mean(), logs.mean() - half, logs.mean() + half])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ratio([92.0, 85.0, 86.0], [2.0, 2.0, 2.0]) == pytest.approx(tuple(expected))


def test_interval_is_that_of_student():
    from intervals import cell, interval

    mean, half = interval(pd.Series([1.0, 2.0, 3.0, 4.0, 5.0]))
    assert mean == 3.0 and half == pytest.approx(2.776 * np.sqrt(2.5 / 5), rel=1e-3)
    assert np.isnan(interval(pd.Series([1.0]))[1])
    assert cell(pd.Series([1.0, 2.0, 3.0, 4.0, 5.0, np.nan]), 1) == "3.0 ± 2.0"
    assert cell(pd.Series([1.0, np.nan]), 2) == "1.00" and cell(pd.Series([np.nan]), 2) == "-"


def test_tables_of_several_folders(tmp_path, monkeypatch, capsys):
    rows = [pretraining(method, seed, value) for method, values in COVERED.items() for seed, value in enumerate(values)]
    folders = [write(tmp_path / "a", rows[:4]), write(tmp_path / "b", rows[2:])]
    write(folders[0], [of_goals("metra", seed, final) for seed, final in enumerate((80.0, 100.0, 90.0))], "hierarchical.csv")
    write(folders[1], [of_goals("random", 0, 10.0, controller="0", pretrain_steps=0)], "hierarchical.csv")
    text = report([*folders, "--output", tmp_path / "report"], monkeypatch, capsys)
    assert (tmp_path / "report/skills.md").read_text() in text
    # Of three seeds 450 ± 4.303 * 50 / sqrt(3)
    assert "| metra | 3 | 450 ± 124 | 900 ± 248 | 1800 ± 497 | 0.50 ± 0.00 | 1.00 ± 0.00 | 12 ± 0 |" in text
    assert "| apt | 1 | 90 | 180 | 360 | 0.50 | 1.00 | 12 |" in text
    assert "| metra | 10.00 [7.76, 12.88] | 10.00 [7.76, 12.88] | 10.00 [7.76, 12.88] |" in text and "| apt | 2.01 |" in text
    assert "| metra | 3 | 0.25 ± 0.00 | 0.25 ± 0.00 |" in text and "| 30.0 ± 0.0 |" in text
    assert "3.5 hours of pre-training in all: one thread of A, torch 2.13.0, python 3.11." in text
    assert "### AntMultiGoal" in text and "| metra | 3 | 90.0 ± 24.8 |" in text and "| random | 1 | 10.0 |" in text
    assert (tmp_path / "report/goals.png").stat().st_size > 5000
    assert not (tmp_path / "report/coverage.png").exists(), "no row tells coverage over steps"

    arguments = ["--methods", "apt", "metra", "--reference", "apt", "--output", tmp_path / "report"]
    text = report([*folders, *arguments], monkeypatch, capsys)
    assert (
        "diayn" not in text and "Times the coverage of apt" in text and text.index("| apt | 1 |") < text.index("| metra | 3 |")
    )


def test_curves_are_drawn_of_the_rows_that_tell_them(tmp_path, monkeypatch, capsys):
    curves = {"coverage_steps": "[1000, 2000]", "total_coverage_curve": "[3, 9]", "queue_coverage_curve": "[3, 5]"}
    rows = [pretraining("metra", 0, 5.0, **curves), pretraining("metra", 1, 5.0, **curves), pretraining("diayn", 0, 5.0)]
    report([write(tmp_path / "a", rows), "--output", tmp_path], monkeypatch, capsys)
    assert (tmp_path / "coverage.png").stat().st_size > 5000 and not (tmp_path / "goals.png").exists()


def test_a_band_is_the_interval_over_seeds():
    from bands import draw_band
    from matplotlib.figure import Figure

    axes = Figure().subplots()
    line = draw_band(axes, [10, 20, 30], [[1.0, 2.0, 3.0], [3.0, 4.0]], "red")
    assert line.get_xydata().tolist() == [[10, 2], [20, 3]]
    corners = axes.collections[0].get_paths()[0].vertices[:, 1]
    assert corners.max() == pytest.approx(3 + 12.706, abs=1e-2) and corners.min() == pytest.approx(2 - 12.706, abs=1e-2)


def test_other_settings_are_no_seeds_and_robots_without_goals_have_no_goals(tmp_path, monkeypatch, capsys):
    walker = {"domain": "Walker-v0", "policy_coverage_48": None, "goal_distance": None}
    rows = [pretraining("apt", 0, 5.0, **walker), pretraining("apt", 1, 5.0, **walker, pretrain_steps=4000)]
    text = report([write(tmp_path / "a", rows), "--output", tmp_path], monkeypatch, capsys)
    assert "2,000 or 4,000 steps" in text and "| apt, pretrain_steps=4000 | 1 | 3 | 10 | 20 |" in text
    assert "end distance" not in text


def test_numbers_of_environments_are_no_seeds(tmp_path, monkeypatch, capsys):
    def curves(last):
        return {"coverage_steps": "[1000, 2000]", "total_coverage_curve": f"[3, {last}]", "queue_coverage_curve": "[3, 5]"}

    rows = [
        pretraining("apt", 0, 4.0, **curves(9)),  # from before the column
        pretraining("apt", 0, 8.0, n_envs=8, **curves(11)),
        pretraining("apt", 1, 6.0, n_envs=8, **curves(20)),
        pretraining("diayn", 0, 6.0, n_envs=8),
    ]
    drawn = []
    monkeypatch.setattr("skills_report.draw_band", lambda axes, steps, values, *_: drawn.append(values) or axes.plot([])[0])
    text = report([write(tmp_path / "a", rows), "--output", tmp_path], monkeypatch, capsys)
    assert "in 1 or 8 environments (pooled)" in text and "2.0 hours of pre-training in all" in text
    assert "| apt | 2 | 6 ± 0 | 12 ± 0 | 24 ± 0 | 0.50 ± 0.00 |" in text and "| diayn | 1 | 6 | 12 |" in text
    assert drawn == [[[3, 10], [3, 20]], [[3, 5], [3, 5]]]


def test_goals_of_other_evaluations_are_no_seeds(tmp_path, monkeypatch, capsys):
    rows = [of_goals("metra", seed, 10.0, eval_freq=freq, n_eval_episodes=20) for freq in (500, 1000) for seed in (0, 1)]
    text = report([write(tmp_path / "a", rows, "hierarchical.csv"), "--output", tmp_path], monkeypatch, capsys)
    assert "| metra, eval_freq=500 | 2 |" in text and "| metra, eval_freq=1000 | 2 |" in text


def test_misuse_names_the_remedy(tmp_path, monkeypatch, capsys):
    folder = write(tmp_path / "a", [pretraining("apt", 0, 5.0)])
    walker = write(tmp_path / "walker", [pretraining("cic", 0, 5.0, domain="Walker-v0")])
    for arguments, message in (
        ([folder, "--domains", "Walker-v0"], "There are no runs of Walker-v0: choose from SkillAnt-v0."),
        ([folder, "--methods", "apt", "cic"], "There are no runs of cic: choose from apt."),
        ([folder, "--reference", "metra"], "There are no runs of metra: choose from apt."),
        ([tmp_path], f"No file has rows in {tmp_path}: pass folders with pretraining.csv or hierarchical.csv."),
        ([folder, walker, "--methods", "cic", "--domains", "SkillAnt-v0"], "pass other --domains or --methods."),
        ([folder, write(tmp_path / "b", [pretraining("apt", 0, 6.0)])], "it was done twice. Delete one of them."),
    ):
        with pytest.raises(SystemExit):
            report([*arguments, "--output", tmp_path / "report"], monkeypatch, capsys)
        assert message in " ".join(capsys.readouterr().err.split())


def test_versions_and_processors_of_all_rows_are_told():
    from made_with import made_with

    other = json.dumps({"torch": "2.14.0", "python": "3.11", "processor": "B"})
    rows = pd.DataFrame({"versions": [VERSIONS, other, VERSIONS, None]})
    assert made_with(rows) == "one thread of A or B, torch 2.13.0 or 2.14.0, python 3.11"
    on_gpu = rows.assign(device=["cpu", "NVIDIA H200", None, None])
    assert made_with(on_gpu).startswith("one thread of A or B with an NVIDIA H200, torch")


def test_ratios_are_of_what_is_known():
    from skills_report import ratios

    rows = pd.DataFrame(
        {"method": ["metra", "metra", "cesd", "cesd", "apt"], "total_coverage": [4.0, 8.0, 2.0, np.nan, np.nan]}
    )
    text = "\n".join(ratios(rows, "metra"))
    assert "nan" not in text.split("| apt |")[1] and "| apt | - |" in text and "| cesd | " in text
    assert ratios(rows.assign(total_coverage=np.nan), "metra") == []


def test_numbers_of_environments_that_are_pooled_are_told(tmp_path, monkeypatch, capsys):
    rows = [pretraining("apt", seed, 5.0, n_envs=n_envs) for seed, n_envs in ((0, None), (1, 8))]
    text = report([write(tmp_path / "a", rows), "--output", tmp_path], monkeypatch, capsys)
    assert "2,000 steps of pre-training, in 1 or 8 environments (pooled)." in text
