import numpy as np
import pandas as pd
import pytest


@pytest.fixture
def lines(tmp_path):
    """Lines of the tables of a walker: CeSD with two seeds, of which one lacks a task, and from scratch with one seed."""
    from robot_table import robot_tables
    from urlb_methods import DOMAINS

    skills = {"method": "cesd", "domain": "Walker-v0", "scale": "laptop", "pretrain_steps": 10, "versions": "{}"}
    measures = {"knn_accuracy": 0.5, "moving_share": 1.0, "torso_speed": 1.25, "hand_speed": np.nan, "best_skill_run": 0.125}
    pd.DataFrame([{**skills, **measures, "seed": seed} for seed in (0, 1)]).to_csv(tmp_path / "pretraining.csv", index=False)
    run = {**skills, "finetune_steps": 20, "steps": "[20]"}
    rows = [
        {**run, "method": method, "task": task, "seed": seed, "returns": f"[{value}]", "final_return": value}
        for method, seed, value in (("scratch", 0, 99.0), ("cesd", 1, 300.0), ("cesd", 0, 100.0))
        for task in DOMAINS["Walker-v0"]
        if (seed, task) != (1, "WalkerFlip-v0")
    ]
    pd.DataFrame(rows).to_csv(tmp_path / "runs.csv", index=False)
    return robot_tables(tmp_path, "Walker-v0").splitlines()


def cells(line):
    return [cell.strip() for cell in line.strip("|").split("|")]


def test_a_line_per_seed(lines):
    header, _, first, second, scratch, *_ = map(cells, lines)
    best = "best skill as it is, of an expert: stand, walk, run, flip"
    assert header == ["", "seed", "k-NN", "moving share", "torso [m/s]", best, "stand", "walk", "run", "flip"], "no hand"
    assert first == ["CeSD", "0", ".50", "1", "1.25", ".12", "100", "100", "100", "100"]
    assert second == ["", "1", ".50", "1", "1.25", ".12", "300", "300", "300", ""]
    assert scratch == ["scratch", "0", "", "", "", "", "99", "99", "99", "99"], "without skills"


def test_a_line_per_method_beside_what_was_published(lines):
    table = {line[0]: line for line in map(cells, lines[lines.index("") + 3 :])}
    assert table["CeSD"][1:6] == ["1 to 2", "200 ± 141", "200 ± 141", "200 ± 141", "100"]
    assert table["scratch"][1:6] == ["1", "99", "99", "99", "99"]
    assert table["scratch"][-1].startswith("1.00"), "each run of CeSD has more"
    assert table["expert"][2:6] == ["984", "971", "796", "799"]
    assert table["APT, published: 2M + 100k steps"][2] == "921 ± 15"


def test_without_rows_of_cesd_nothing_is_compared_with_it(lines, tmp_path):
    from robot_table import robot_tables

    runs = pd.read_csv(tmp_path / "runs.csv")
    runs[runs.method == "scratch"].to_csv(tmp_path / "runs.csv", index=False)
    [scratch] = [line for line in map(cells, robot_tables(tmp_path, "Walker-v0").splitlines()) if line[:2] == ["scratch", "1"]]
    assert scratch[-1] == ""


def test_another_model_of_a_seed_does_not_pass_for_it(lines, tmp_path):
    from robot_table import robot_tables

    skills = pd.read_csv(tmp_path / "pretraining.csv")
    pd.concat([skills, skills[:1].assign(pretrain_steps=5)]).to_csv(tmp_path / "pretraining.csv", index=False)
    with pytest.raises(ValueError, match=r"rows of Walker-v0 that differ in a setting .*: keep them in another folder"):
        robot_tables(tmp_path, "Walker-v0")


def test_another_way_to_the_tasks_does_not_pass_for_it(lines, tmp_path):
    from robot_table import robot_tables

    runs = pd.read_csv(tmp_path / "runs.csv")
    pd.concat([runs, runs[:4].assign(finetune_steps=30)]).to_csv(tmp_path / "runs.csv", index=False)
    with pytest.raises(ValueError, match="scratch, finetune_steps=20; scratch, finetune_steps=30"):
        robot_tables(tmp_path, "Walker-v0")
