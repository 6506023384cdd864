"""Reports: aggregates, intervals over whole seeds, and what counts as a seed."""

import json
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from estimates import AGGREGATES, cell, estimate, improvement, interval, iqm, mean, ratio
from report import robot_tables
from scipy import stats
from scores import expert_returns, of_last, published, read_runs, until

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"
ROW = {"method": "cesd", "task": "WalkerRun-v0", "domain": "Walker-v0", "seed": 0, "steps": "[10, 20]", "returns": "[5, 79.6]"}


def write(path, *rows):
    """Write rows that differ from :data:`ROW`, with their final returns."""
    rows = [{**ROW, **row} for row in rows]
    pd.DataFrame([{**row, "final_return": json.loads(row["returns"])[-1]} for row in rows]).to_csv(path, index=False)
    return path


def zoo_folder(logs, method, task, number, returns):
    folder = logs / method / f"{task}_{number}"
    folder.mkdir(parents=True)
    results = np.array(returns, dtype=float)[:, None] + [-1.0, 1.0]
    np.savez(folder / "evaluations.npz", timesteps=np.arange(1, len(returns) + 1) * 10, results=results, ep_lengths=results)


def test_aggregates_by_hand():
    scores = np.array([[0.0, 0.8, 0.1], [0.2, 1.0, 0.1], [0.4, 1.2, 0.1], [0.6, 1.4, 0.1]])  # (n_seeds, n_tasks)
    values = {name: statistic(scores) for name, statistic in AGGREGATES.items()}
    # Sorted: 0 .1 .1 .1 .1 .2 .4 .6 .8 1 1.2 1.4; the middle six
    expected = {"IQM": (0.1 + 0.1 + 0.2 + 0.4 + 0.6 + 0.8) / 6, "mean": 0.5, "median": 0.3, "optimality gap": 1.65 / 3}
    assert values == pytest.approx(expected)
    lacking = np.where(np.arange(12).reshape(4, 3) == 0, np.nan, scores)
    assert mean(lacking) == pytest.approx((0.4 + 1.1 + 0.1) / 3) and np.isnan(estimate(iqm, lacking).low), "no interval"


def test_intervals_resample_whole_seeds():
    """Tasks of one model are not independent: copies of a task make no interval narrower."""
    scores = np.random.default_rng(0).normal(size=(20, 1))
    one, four = estimate(mean, scores), estimate(mean, np.repeat(scores, 4, axis=1))
    assert one == pytest.approx(four)
    error = scores.std() / np.sqrt(20)
    assert (one.low, one.high) == pytest.approx((one.value - 1.96 * error, one.value + 1.96 * error), abs=0.15 * error)
    assert estimate(mean, np.array([[0.2, 0.8]] * 5)) == pytest.approx((0.5, 0.5, 0.5)), "tasks are not exchanged"
    assert estimate(mean, scores[:1]).text() == f"{scores[0, 0]:.2f}" and one._replace(value=0.5).text().startswith("0.50 [")


def test_probability_of_improvement_is_that_of_mann_and_whitney():
    rng = np.random.default_rng(0)
    ours, theirs = (rng.integers(0, 6, size=(n, 3)).astype(float) for n in (5, 7))
    expected = np.mean([stats.mannwhitneyu(x, y).statistic / (5 * 7) for x, y in zip(ours.T, theirs.T, strict=True)])
    value, low, high = estimate(improvement, ours, theirs)
    assert value == pytest.approx(expected) and low < value < high
    assert estimate(improvement, theirs, ours).value == pytest.approx(1 - expected)


def test_t_intervals_and_ratios():
    assert interval([1.0, 2.0, 3.0]) == pytest.approx((2.0, 4.303 / np.sqrt(3)), rel=1e-3) and np.isnan(interval([1.0])[1])
    assert cell(pd.Series([1.0, 2.0, 3.0, np.nan]), 1) == "2.0 ± 2.5" and cell(pd.Series([np.nan]), 1) == "-"
    times = ratio(pd.Series([8.0, 12.0, 10.0]), pd.Series([1.0, 1.1, 0.9]))
    assert times.value == pytest.approx(9.9, abs=0.2) and times.low < times.value < times.high
    assert ratio(pd.Series([4.0]), pd.Series([2.0, 2.0])).text() == "2.00"


def test_published_columns_give_the_published_aggregates():
    """The paper's come from single runs, these from the means of tasks: 75.18 % and 91.05 % there."""
    rows = published()
    scores = {method: (group.return_mean / group.expert_return).to_numpy()[None] for method, group in rows.groupby("method")}
    assert iqm(scores["CIC"]) == pytest.approx(0.753, abs=5e-4) and iqm(scores["CeSD"]) == pytest.approx(0.912, abs=5e-4)
    assert len(expert_returns()) == 24 and {"WalkerRun-v0", "JacoReachTopLeftPixels-v0"} < set(expert_returns())


def test_report_of_rl_zoo_and_of_the_benchmark(call, tmp_path):
    for number, final in ((1, 398.0), (2, 796.0)):
        zoo_folder(tmp_path / "logs", "cesd", "WalkerRun-v0", number, [10, final])
    zoo_folder(tmp_path / "logs", "cesd", "Walker-v0", 1, [10])  # pre-training
    runs = write(tmp_path / "runs.csv", {"method": "scratch"}, {"method": "scratch", "seed": 1})
    result = call("report", tmp_path / "logs", runs, "--output", tmp_path / "report")
    text = (tmp_path / "report/report.md").read_text()
    # Published: DDPG 325 and CeSD 337, of an expert's 796
    assert "| WalkerRun-v0 | 80 ± 0 | 597 ± 281 | 796 | 325 ± 25 |" in text and "337 ± " in text
    assert "| scratch | 2 | 0.10 [0.10, 0.10] | 0.10 [0.10, 0.10] |" in text
    assert f"| cesd, {tmp_path / 'logs'} | 2 | 0.75 [0.50, 1.00] |" in text and "Walker-v0_1 is of no task" in result.out
    assert len(pd.read_csv(tmp_path / "report/aggregates.csv")) == 8
    assert all((tmp_path / f"report/{name}.png").stat().st_size > 5000 for name in ("aggregates", "curves"))


def test_runs_of_other_settings_are_no_seeds(tmp_path):
    def names(*rows):
        return read_runs([write(tmp_path / "runs.csv", *rows)]).method.tolist()

    choices = [{"skill_choice": choice} for choice in ("random", "best")]
    expected = ["cesd, skill_choice=random", "cesd, skill_choice=best", "scratch"]
    assert names(*choices, {"method": "scratch", "skill_choice": "0"}) == expected
    arm = {"domain": "Jaco-v0", "task": "JacoReachTopLeft-v0", "pretrain_steps": 20}
    walker = {"pretrain_steps": 10}
    assert names(walker, arm) == ["cesd", "cesd"], "steps of robots come from their entries"
    assert names(walker, arm, {"pretrain_steps": 20}) == [f"cesd, pretrain_steps={n}" for n in (10, 20, 20)]
    assert names({**walker, "warm_up": "random"}, {**arm, "warm_up": "skills"})[0] == "cesd, warm_up=random"


def test_repeats_of_a_task_count_once_and_twins_are_refused(tmp_path):
    repeats = [{"repeat": n, "returns": json.dumps([0, value])} for n, value in enumerate((10, 30))]
    (run,) = read_runs([write(tmp_path / "runs.csv", *repeats)]).to_dict("records")
    assert run["final_return"] == 20 and run["returns"].tolist() == [0, 20]
    with pytest.raises(ValueError, match="twice"):
        read_runs([write(tmp_path / "runs.csv", {}, {"returns": "[5, 6]"})])


def test_scores_on_the_way_and_of_the_last_evaluations(tmp_path):
    rows = read_runs([write(tmp_path / "runs.csv", {}, {"method": "random", "returns": "[7, 7]", "steps": "[0, 20]"})])
    assert until(rows, 10).final_return.tolist() == [5, 7] and of_last(rows, 2).final_return.tolist() == [42.3, 7]
    with pytest.raises(ValueError, match="--at"):
        until(rows, 5)
    with pytest.raises(ValueError, match="--last"):
        of_last(rows, 3)


@pytest.mark.parametrize(
    ("arguments", "remedy"),
    [
        (["--methods", "cic"], "choose from cesd, scratch"),
        (["--where", "warm_up=no"], "choose from skills"),
        (["--where", "warmup=skills"], "choose from domain"),
        (["--where", "warm_up"], "warm_up=policy"),
        (["nowhere.csv"], "exist"),
    ],
)
def test_misuse_names_the_remedy(call, tmp_path, arguments, remedy):
    runs = write(tmp_path / "runs.csv", {"warm_up": "skills"}, {"method": "scratch"})
    paths = [runs, *arguments] if arguments[0].startswith("--") else arguments
    result = call("report", *paths, "--output", tmp_path / "report")
    assert result.code == 2 and remedy in " ".join(result.err.split()) and not (tmp_path / "report").exists()


def test_the_tables_of_a_robot():
    runs = pd.read_csv(RESULTS / "urlb" / "runs.csv")
    walked = runs[(runs.task == "WalkerWalk-v0") & (runs.method == "cesd")].final_return
    text = robot_tables(RESULTS / "urlb", "Walker-v0")
    assert f"| CeSD | {len(walked)} |" in text and f"{walked.mean():.0f} ± {walked.std():.0f}" in text
    seeds, methods = text.split("\n\n")
    n_seeds = runs[runs.domain == "Walker-v0"].groupby("method").seed.nunique().sum()
    assert seeds.count("\n") == n_seeds + 1 and "| expert |" in methods and "CeSD, published" in methods
    with pytest.raises(ValueError, match="does not show"):
        robot_tables(RESULTS / "urlb" / "one_robot", "Walker-v0")


def test_the_report_of_skills_that_ship(call, tmp_path):
    text = call("report", RESULTS / "locomotion", "--methods", "metra", "diayn", "--output", tmp_path).out
    rows = pd.read_csv(RESULTS / "locomotion" / "pretraining.csv")
    rows = rows[(rows.domain == "SkillAnt-v0") & (rows.method == "metra")].groupby("seed").total_coverage.mean()
    assert "## SkillAnt-v0" in text and f"| metra | {len(rows)} |" in text and f"| {rows.mean():.0f} ± " in text
    assert "Times the coverage of diayn" in text and "### AntMultiGoal" in text and "| cic |" not in text
    assert all((tmp_path / name).stat().st_size > 5000 for name in ("coverage.png", "goals.png"))


def test_the_paper_beside_our_rows(call, tmp_path):
    where = ("--output", tmp_path, "--report-only")
    text = call("paper", "--table", "lsd_csd_metra", *where).out
    stood = pd.read_csv(RESULTS / "urlb" / "runs.csv").query("task == 'WalkerStand-v0' and method == 'cesd'").final_return
    assert f"| WalkerStand | 837 ± 3 / - | 942 ± 8 / - | 943 ± 13 / - | 960 ± 3 / {stood.mean():.0f} ± " in text
    assert "| 339 ± 48 / 390 ± 52 | 341 ± 16 / - |" in call("paper", "--table", "moe", *where).out
    for figure in ("urlb", "entropy", "maze"):
        call("paper", "--figure", figure, *where)
        assert (tmp_path / f"{figure}.png").stat().st_size > 5000
