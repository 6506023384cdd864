"""Mazes: the methods that are compared, one run, and the report of the rows."""

import json
import shutil
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from maze_methods import ABLATIONS, BASE, MAIN, METHODS, NUMBERS, PAPER, WHITE_NOISE
from maze_report import comparison, in_order, summary
from runs import read_rows

from sb3_cesd import registry

ROWS = Path(__file__).parents[2] / "benchmarks" / "results" / "maze"


@pytest.mark.slow
def test_whole_benchmark_in_small(call, tmp_path):
    arguments = [
        "--methods", "cesd", "diayn", "alpha=2", "--mazes", "square_c", "--seeds", 2, "--jobs", 1, "--steps", 1200,
        "--mine", "--mine-iterations", 20, "--output", tmp_path,
    ]  # fmt: skip
    first = call("maze", *arguments)
    rows = read_rows(tmp_path / "runs.csv")
    names = [(name, seed) for name in ("alpha=2", "cesd", "diayn") for seed in (0, 1)]
    assert sorted(zip(rows.method, rows.seed, strict=True)) == names, first.err
    assert (rows.n_timesteps == 1200).all() and (rows.n_updates == (1200 - 1000) / 5).all()
    assert rows.arguments.str.contains('"alpha": 2').tolist().count(True) == 2, "rows tell all arguments"
    for column in ("total_coverage", "total_coverage_coarse", "policy_coverage", "knn_accuracy", "on_cluster_share"):
        assert rows[column].between(0.001, 1).all()
    entropies = np.array([json.loads(text) for text in rows.skill_entropies])  # (n_runs, n_points, n_skills)
    assert entropies.shape == (6, 20, 10) and (entropies >= 0).all() and entropies.max() < np.log(17 * 16)
    assert (rows.total_coverage < rows.total_coverage_coarse).all() and rows.mi_late.between(0, np.log(10)).all()
    pictures = ("skills_square_c.png", "ranking.png")
    assert all((tmp_path / name).stat().st_size > 100 for name in ("table.md", "ablations.md", "summary.md", *pictures))
    again = call("maze", *arguments)
    assert again.out.count("6 runs, 6 of them done already") == 2, "trainings and MINE"
    assert "| MI by MINE [nats] | the same, skills shuffled |" in again.out


def test_the_report_of_the_rows_that_ship(call, tmp_path):
    for name in ("runs.csv", "mine.csv"):
        shutil.copy(ROWS / name, tmp_path)
    out = call("maze", "--report-only", "--output", tmp_path).out
    rows = read_rows(ROWS / "runs.csv")
    rows = rows[(rows.n_timesteps == 36_000) & (rows.maze == "tree") & (rows.method == "cesd")]
    means = [f"{rows[name].mean():.3f} ± " for name in ("total_coverage_coarse", "total_coverage", "policy_coverage")]
    line = next(line for line in out.split("### tree")[1].splitlines() if line.startswith("| cesd |"))
    assert all(mean in line for mean in means) and f"| cesd | {len(rows)} |" in line
    assert "There are no runs of 900 steps" in call("maze", "--report-only", "--steps", 900, "--output", tmp_path).out


def test_rows_that_ship_are_not_done_again(call):
    def n_done(*arguments):
        return call("maze", "--methods", "cesd", *arguments, "--dry-run", "--output", ROWS).out.count(" 15 of them done")

    assert n_done() == 1 and n_done("--steps", 800) == 0 and n_done("--mine", "--mine-iterations", 10) == 1


def test_all_methods_have_the_same_budget_nets_and_batches():
    """They differ in their reward (and CeSD in its critic and exploration noise) alone."""
    assert set(MAIN) == {*registry.METHODS, "released"}
    arguments = {name: method.arguments() for name, method in METHODS.items()}
    for name in (*MAIN, *ABLATIONS, *PAPER):
        for same in ("n_skills", "skill_duration", "n_envs", "learning_rate", "batch_size", "train_freq", "learning_starts"):
            assert arguments[name][same] == arguments["cesd"][same], (name, same)
        assert arguments[name]["policy_kwargs"]["net_arch"] == arguments["cesd"]["policy_kwargs"]["net_arch"]
    assert {**arguments["cesd"], **WHITE_NOISE} == arguments[BASE]
    assert arguments["ensemble_size=5"]["policy_kwargs"] == {**arguments[BASE]["policy_kwargs"], "ensemble_size": 5}
    assert arguments["alpha=10"]["intrinsic_kwargs"] == {**arguments[BASE]["intrinsic_kwargs"], "alpha": 10.0}
    assert arguments["n_envs=1"] == {**arguments["cesd"], "n_envs": 1} and set(NUMBERS) > {"n_envs=32", "n_skills=40"}


def test_comparison_needs_seeds_and_tells_methods_apart():
    values = {"cesd": [0.91, 0.92, 0.93, 0.94, 0.95], "apt": [0.81, 0.82, 0.83, 0.84, 0.85], "dads": [0.1, 0.2, 0.3]}
    rows = pd.DataFrame(
        [
            {"maze": "tree", "method": method, "seed": seed, "total_coverage": value, "mi_late": 1.0}
            for method, of_method in values.items()
            for seed, value in enumerate(of_method)
        ]
    )
    lines = comparison(rows, list(values))
    assert "| tree | apt | 5, 5 | 0.0079 | 1 |" in lines  # 2 / (10 choose 5), and no difference at all
    assert not any("dads" in line for line in lines) and comparison(rows[rows.seed < 3], list(values)) == []


def test_the_summary_orders_methods_and_marks_the_best():
    rows = pd.DataFrame(
        {
            "method": ["cesd", "apt", "apt", "released", "diayn"],
            "maze": "tree",
            "seed": [0, 0, 1, 0, 0],
            "policy_coverage": [0.5, 0.8, 0.9, 0.1, 0.9],
            "knn_accuracy": [0.7, 0.3, 0.3, 0.6, 0.5],
        }
    )
    methods = in_order(rows, ["released", "apt", "diayn", "cesd"])
    assert methods == ["cesd", "diayn", "apt", "released"]
    text = summary(rows, methods)
    assert "| CeSD | 0.50 | **0.70** |" in text and "| DIAYN | **0.90** | 0.50 |" in text and "(APT: 2)" in text
