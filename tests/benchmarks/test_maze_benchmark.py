import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scripts import call
from settings import CESD_IN_MAZES, OF_CESD, RELEASED, WHITE, settings_of

from sb3_cesd import registry
from sb3_cesd.envs.mazes.ids import MAZES
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_a_run_is_done_once_and_a_failed_one_again(tmp_path):
    from runs import read_rows, run_missing

    path = tmp_path / "results" / "runs.csv"
    runs = [{"method": method, "seed": seed} for method in ("a", "b") for seed in (0, 1)]
    run_missing(runs[:3], lambda run: {"score": run["seed"] + 0.5}, path, n_jobs=1)
    done = []

    def fail_at_first(run):
        done.append(run)
        if len(done) == 1:
            raise OSError("the disk is full")
        return {"score": 7.0}

    more = [*runs, {"method": "c", "seed": 0}]
    with pytest.raises(RuntimeError, match=r"(?s)1 of 2 runs failed.*OSError: the disk is full"):
        run_missing(more, fail_at_first, path, n_jobs=1)
    assert done == more[3:] and read_rows(path).score.tolist() == [0.5, 1.5, 0.5, 7.0], "the others are done, once"

    rows = run_missing(more, lambda run: {"score": 9.0, "new": 1}, path, n_jobs=1)
    assert rows.score.tolist() == [0.5, 1.5, 0.5, 7.0, 9.0]
    assert rows.new.isna().tolist() == [True] * 4 + [False], "a new column is empty in old rows"
    assert "torch" in rows.versions[0]


def test_the_shortest_run_has_a_curve(tmp_path):
    result = call(
        "maze", "--methods", "diayn", "--mazes", "square_c", "--seeds", 1, "--jobs", 1, "--steps", 20, "--output", tmp_path
    )
    assert "| diayn | 1 |" in result.stdout, result.stderr


def test_a_run_that_is_named_twice_is_done_once(tmp_path):
    from runs import run_missing

    done = []
    run_missing([{"method": "a", "seed": 0}] * 2, lambda run: done.append(run) or {}, tmp_path / "runs.csv", n_jobs=1)
    assert done == [{"method": "a", "seed": 0}]


def test_dry_run_does_nothing(tmp_path, capsys):
    from runs import run_missing

    run_missing([{"method": "a", "seed": 0}], pytest.fail, tmp_path / "runs.csv", n_jobs=1, dry_run=True)
    assert "1 runs, 0 of them done already\n  method=a seed=0" in capsys.readouterr().out
    assert not (tmp_path / "runs.csv").exists()


@pytest.mark.slow
def test_whole_benchmark_in_small(tmp_path):
    command = [
        sys.executable, str(FOLDER / "maze.py"), "--methods", "cesd", "diayn", "alpha=2", "--mazes", "square_c",
        "--seeds", "2", "--jobs", "1", "--steps", "1200", "--mine", "--mine-iterations", "20", "--output", str(tmp_path),
    ]  # fmt: skip
    first = subprocess.run(command, capture_output=True, text=True, timeout=300)
    assert first.returncode == 0, first.stderr
    rows = pd.read_csv(tmp_path / "runs.csv")
    assert sorted(zip(rows.method, rows.seed, strict=True)) == [
        (method, seed) for method in ("alpha=2", "cesd", "diayn") for seed in (0, 1)
    ]
    assert (rows.n_timesteps == 1200).all() and (rows.n_updates == (1200 - 1000) / 5).all()
    for column in ("total_coverage", "total_coverage_coarse", "policy_coverage", "knn_accuracy", "on_cluster_share"):
        assert rows[column].between(0.001, 1).all()
    assert (rows.total_coverage < rows.total_coverage_coarse).all()
    assert rows.mi_late.between(0, np.log(10)).all()
    for name in ("table.md", "ablations.md", "skills_square_c.png", "coverage.png", "trade_off.png"):
        assert (tmp_path / name).stat().st_size > 500
    assert "| cesd | 2 |" in (tmp_path / "table.md").read_text()

    from maze_report import write

    # As if two files had been appended
    table = (tmp_path / "table.md").read_text()
    for name in ("runs.csv", "mine.csv"):
        (tmp_path / name).write_text((tmp_path / name).read_text() + (tmp_path / name).read_text().split("\n", 1)[1])
    write(tmp_path, 1200)
    assert (tmp_path / "table.md").read_text() == table, "a row that is there twice is no other seed"

    again = subprocess.run(command, capture_output=True, text=True, timeout=100)
    assert again.stdout.count("6 runs, 6 of them done already") == 2, "trainings and MINE"
    assert "| MI by MINE [nats] | the same, skills shuffled |" in again.stdout


def test_rollouts_that_are_not_there_are_named(tmp_path):
    from maze_run import mine_one

    run = {"method": "cesd", "maze": "square_c", "seed": 0, "n_timesteps": 1200, "n_iterations": 10}
    with pytest.raises(FileNotFoundError, match=r"cesd_square_c_0_1200.npz is not there: copy it there, or delete the row of"):
        mine_one(run, tmp_path)


def test_comparison_needs_seeds_and_tells_methods_apart():
    from maze_report import comparison

    values = {"cesd": [0.91, 0.92, 0.93, 0.94, 0.95], "apt": [0.81, 0.82, 0.83, 0.84, 0.85], "dads": [0.1, 0.2, 0.3]}
    rows = pd.DataFrame(
        [
            {"maze": "tree", "method": method, "seed": seed, "total_coverage_coarse": value, "mi_late": 1.0}
            for method, of_method in values.items()
            for seed, value in enumerate(of_method)
        ]
    )
    lines = comparison(rows, list(values))
    assert "| tree | apt | 5, 5 | 0.0079 | 1 |" in lines  # 2 / (10 choose 5), and no difference at all
    assert not any("dads" in line for line in lines)
    assert comparison(rows[rows.seed < 3], list(values)) == []


def test_mazes_of_the_paper_are_the_default(tmp_path):
    output = call("maze", "--dry-run", "--seeds", "1", "--output", tmp_path).stdout
    assert all(f"method=cesd maze={maze} seed=0" in output for maze in ("square_a", "square_b", "tree"))
    n_methods = len(registry.METHODS) + 1  # CeSD as released, too
    assert f"{3 * n_methods} runs, 0 of them done already" in output


def test_all_methods_have_the_same_budget_nets_and_batches():
    """They differ in their reward (and CeSD in its critic and exploration noise) alone."""
    from maze_methods import ABLATIONS, BASE, ENVIRONMENTS, MAIN

    same = {
        "n_timesteps",
        "n_skills",
        "skill_duration",
        "n_envs",
        "learning_rate",
        "batch_size",
        "train_freq",
    }
    arguments = {name: method.arguments() for name, method in (MAIN | ABLATIONS).items()}
    for name in [*same, "learning_starts"]:
        assert len({str(each[name]) for each in arguments.values()}) == 1, name
    assert len({str(each["policy_kwargs"]["net_arch"]) for each in arguments.values()}) == 1
    rewards = {name: arguments[name]["intrinsic_kwargs"] for name in ("cesd", "kappa=0.5")}
    assert rewards["kappa=0.5"]["relabel_kwargs"] == {**rewards["cesd"].get("relabel_kwargs", {}), "kappa": 0.5}
    assert all(rewards["kappa=0.5"][name] == rewards["cesd"][name] for name in rewards["cesd"] if name != "relabel_kwargs")
    assert arguments["ensemble_size=5"]["policy_kwargs"] == {**arguments["cesd"]["policy_kwargs"], "ensemble_size": 5}
    noise = {name: [each.get(part) for part in ("exploration_noise", "noise_correlation")] for name, each in arguments.items()}
    assert noise.pop("cesd") == noise.pop("apt, noise=cesd") == [0.3, 0.85]
    assert all(noise[name] in ([0.2, 0.0], [None, None] if name in MAIN else []) for name in noise)
    assert {**arguments["cesd"], "exploration_noise": 0.2, "noise_correlation": 0.0} == arguments[BASE]
    for name, method in ENVIRONMENTS.items():
        assert method.arguments() == {**arguments["cesd"], "n_envs": int(name.removeprefix("n_envs="))}


def make(name):
    """Make the model of a method, as its run does."""
    from maze_methods import METHODS

    method = METHODS[name]
    arguments = method.arguments()
    arguments.pop("n_timesteps")
    env = MazeVecEnv("square_a", arguments.pop("n_envs"), max_episode_steps=50)
    return registry.METHODS[method.algo](env=env, seed=0, device="cpu", **arguments)


@pytest.mark.parametrize(
    ("name", "different"),
    [
        ("cesd", {}),
        (
            "released",
            {
                **WHITE,
                **RELEASED,
                "ensemble_size": 10,  # one for each skill
                "encoder": "ContrastiveEncoder",
                "features_dim": 16,
                "prototype_learning_rate": None,
            },
        ),
        ("noise=white", WHITE),
        ("alpha=0.1", {**WHITE, "alpha": 0.1}),
        ("alpha=10", {**WHITE, "alpha": 10.0}),
        ("ensemble_size=1", {**WHITE, "ensemble_size": 1}),
        ("ensemble_size=2", {**WHITE, "ensemble_size": 2}),
        ("kappa=0.25", {**WHITE, "relabelling.kappa": 0.25}),
        ("kappa=1", {**WHITE, "relabelling.kappa": 1.0}),
        ("log1p=True", {**WHITE, "entropy.log1p": True}),
        ("entropy=released", {**WHITE, "entropy.log1p": True, "entropy.scale": "variance"}),
        ("shared_value=False", {**WHITE, "shared_value": False}),
        ("start=0", {**WHITE, "constraint.start": 0.0}),
        ("n_envs=1", {"n_envs": 1, "gradient_steps": 1}),
        ("n_envs=32", {"n_envs": 32, "gradient_steps": 32}),
    ],
)
def test_names_of_rows_keep_meaning_the_same_settings(name, different):
    assert settings_of(make(name)) == {**CESD_IN_MAZES, **different}


@pytest.mark.parametrize(
    ("name", "different"),
    [
        ("apt", {**WHITE, "entropy.log1p": True, "entropy.clip": 0.0}),
        ("apt, noise=cesd", {"entropy.log1p": True, "entropy.clip": 0.0}),
        ("cic", {**WHITE, "entropy.log1p": True, "encoder": "ContrastiveEncoder", "encoder.objective": "released"}),
        ("diayn", WHITE),
        ("dads", WHITE),
    ],
)
def test_names_of_rows_of_other_methods_do_so_too(name, different):
    other = {key: value for key, value in CESD_IN_MAZES.items() if not key.startswith(OF_CESD)}
    if name in ("diayn", "dads"):
        other = {key: value for key, value in other.items() if not key.startswith(("encoder", "features_dim", "entropy"))}
    assert settings_of(make(name)) == {**other, **different}


def test_continuous_skills_are_a_variant():
    from maze_methods import CONTINUOUS

    assert set(CONTINUOUS) >= {"cic, skills=unit_cube", "dads, skills=cube", "metra, skills=sphere"}
    assert make("cic, skills=unit_cube").skill_space.vectors.shape == (10, 64)
    assert make("dads, skills=cube").skill_space.vectors.shape == (10, 16)
    assert make("dads").skill_space.vectors.tolist() == np.eye(10).tolist()


@pytest.mark.parametrize("config", [*registry.METHODS, "cesd_released"])
def test_mazes_have_one_entry(config):
    from entries import read_entry

    entries = [read_entry(config, env_id) for env_id in MAZES]
    assert len(entries) == 7 and all(entry == entries[0] for entry in entries)


def test_overrides_change_what_they_name_and_nothing_else():
    from entries import read_entry

    entry = read_entry("cesd", "MazeTree-v0")
    overrides = {"intrinsic_kwargs": {"entropy_kwargs": {"log1p": True}}, "policy_kwargs": {"n_critics": 1}, "tau": 0.1}
    changed = read_entry("cesd", "MazeTree-v0", overrides)
    assert changed["intrinsic_kwargs"].pop("entropy_kwargs") == {"k": 4, "log1p": True}
    assert entry["intrinsic_kwargs"].pop("entropy_kwargs") == {"k": 4}
    assert changed == {**entry, "policy_kwargs": {**entry["policy_kwargs"], "n_critics": 1}, "tau": 0.1}
    assert overrides["intrinsic_kwargs"] == {"entropy_kwargs": {"log1p": True}}, "overrides stay as they are"
