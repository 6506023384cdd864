"""Robots: skills, tasks learned from them, and goals by choosing among them."""

import json
from functools import partial
from pathlib import Path

import numpy as np
import pytest
from runs import read_rows
from urlb_methods import DOMAINS, METHODS, RELEASED

from sb3_cesd import CeSD, preset
from sb3_cesd.metrics import draw_goals, play_and_score, policy_coverage, zero_shot_goals

RESULTS = Path(__file__).parents[2] / "benchmarks" / "results"


def arguments_of(output, *arguments):
    return [
        "--seeds", 1, "--jobs", 1, "--pretrain-steps", 2176, "--finetune-steps", 2008, "--tasks", "WalkerRun-v0",
        "--eval-freq", 1004, "--n-eval-episodes", 2, "--output", output, *arguments,
    ]  # fmt: skip


@pytest.fixture
def short(monkeypatch):
    """Measure skills briefly."""
    import urlb_run

    monkeypatch.setattr(urlb_run, "N_ROLLOUTS", 2)
    monkeypatch.setattr(urlb_run, "N_STEPS", 60)
    monkeypatch.setattr(urlb_run, "play_and_score", partial(play_and_score, n_episodes=16, n_steps=20))
    monkeypatch.setattr(urlb_run, "policy_coverage", partial(policy_coverage, n_steps=20))
    monkeypatch.setattr(urlb_run, "draw_goals", partial(draw_goals, n_goals=4))
    monkeypatch.setattr(urlb_run, "zero_shot_goals", partial(zero_shot_goals, n_steps=20))
    return urlb_run


@pytest.mark.slow
def test_whole_benchmark_in_small(call, short, tmp_path):
    methods = ["cesd", "apt", "scratch", "random"]
    arguments = arguments_of(tmp_path, "--methods", *methods, "--save-at", 2056, "--from-steps", 2056, "--env-threads", 2)
    assert call("urlb", *arguments).code == 0
    skills = read_rows(tmp_path / "pretraining.csv").set_index("method")
    assert set(skills.index) == {"cesd", "apt"} and (skills.n_updates == 16).all() and (skills.n_envs == 8).all()
    assert 0 <= skills.on_cluster_share["cesd"] <= 1 and (skills.queue_coverage <= skills.total_coverage).all()
    assert (skills.skill_score <= skills.coarse_coverage).all() and (skills.training_entropy > 0).all()
    assert [np.mean(json.loads(moves)) for moves in skills.moves] == skills.moving_share.tolist()
    assert skills[[f"best_skill_{task}" for task in ("stand", "walk", "run", "flip")]].gt(0).all(axis=None)
    assert all(len(json.loads(returns)) == 8 for returns in skills.walk_returns)
    assert json.loads(skills.arguments["cesd"])["n_skills"] == 8
    for steps in (2056, 2176):
        assert CeSD.load(tmp_path / f"models/cesd_Walker-v0_laptop_0_{steps}.zip").num_timesteps == steps

    tasks = read_rows(tmp_path / "runs.csv").set_index("method")
    learned = tasks.drop("random")
    assert list(tasks.index) == methods and (learned.n_updates == 4).all() and set(learned.device) == {"cpu"}
    assert tasks.pretrain_steps.to_dict() == {"cesd": 2056, "apt": 2056, "scratch": 0, "random": 0}
    for method, row in tasks.iterrows():
        (file,) = tmp_path.glob(f"evaluations/{method}_*/evaluations.npz")
        evaluations = np.load(file)
        assert (
            json.loads(row.steps) == evaluations["timesteps"].tolist() == ([0, 2008] if method == "random" else [1004, 2008])
        )
        assert json.loads(row.returns) == pytest.approx(evaluations["results"].mean(axis=1), abs=1e-3)
        assert row.final_return == pytest.approx(evaluations["results"][-1].mean())
    assert not list(tmp_path.rglob("*checkpoints*"))

    # Another way from the same model to the task is another run
    other = [
        "--methods",
        "cesd",
        "--save-at",
        2056,
        "--from-steps",
        2056,
        "--skill",
        "best",
        "--warm-up",
        "skills",
        "--transfer",
        "actor",
    ]
    again = call("urlb", *arguments_of(tmp_path, *other))
    assert "1 runs, 1 of them done already" in again.out and "1 runs, 0 of them done already" in again.out
    rows = read_rows(tmp_path / "runs.csv").set_index("skill_choice")
    assert rows.transfer["best"] == "actor"
    report = call("report", tmp_path, "--output", tmp_path / "report").out
    assert "| scratch | 1 |" in report and "## Walker-v0" in report and "| random | 1 |" in report


@pytest.mark.slow
def test_a_stopped_run_goes_on_from_its_checkpoint(short, tmp_path, monkeypatch):
    monkeypatch.setattr(short, "SAVE_FREQ", 2080)
    run = {"method": "apt", "domain": "Walker-v0", "scale": "laptop", "seed": 0, "pretrain_steps": 2240, "n_envs": 8}
    pretrain = partial(short.pretrain, run, n_task_episodes=2)
    whole = pretrain(models=tmp_path / "whole")
    on_step, killed = short.Training._on_step, []

    def kill_once(self):
        if self.num_timesteps >= 2160 and not killed:
            killed.append(self.num_timesteps)
            raise KeyboardInterrupt
        return on_step(self)

    monkeypatch.setattr(short.Training, "_on_step", kill_once)
    with pytest.raises(KeyboardInterrupt):
        pretrain(models=tmp_path / "stopped")
    resumed = pretrain(models=tmp_path / "stopped")
    assert killed and {**resumed, "seconds": 0, "particle_entropy": 0} == {**whole, "seconds": 0, "particle_entropy": 0}


@pytest.mark.slow
def test_metras_robots_and_goals(call, short, tmp_path):
    where = ["--seeds", 1, "--jobs", 1, "--output", tmp_path]
    assert call("urlb", "--methods", "metra", "--domains", "SkillAnt-v0", "--pretrain-steps", 304, *where).code == 0
    (row,) = read_rows(tmp_path / "pretraining.csv").to_dict("records")
    assert all(0 <= row[f"goal_{kind}_{radius}"] <= 1 for kind in ("hit", "end", "stay") for radius in (3, 1))
    assert row["policy_coverage_48"] >= 1 and not [name for name in row if name.startswith("best_skill")]
    small = ["--pretrain-steps", 304, "--steps", 6400, "--eval-freq", 6400, "--n-eval-episodes", 1, *where]
    assert call("hierarchical", "--methods", "metra", "scratch", "random", *small).code == 0
    assert call("hierarchical", "--methods", "metra", "--controller", "dqn", *small).code == 0
    rows = read_rows(tmp_path / "hierarchical.csv")
    assert rows.method.tolist() == ["metra", "scratch", "random", "metra"] and rows.n_skills.tolist() == [8, 0, 0, 8]
    assert [json.loads(steps) for steps in rows.steps] == [[6400], [6400], [0, 6400], [6400]], "steps of the environment"
    (file,) = tmp_path.glob("hierarchical_evaluations/metra_*_ppo_*/evaluations.npz")
    assert np.load(file)["ep_lengths"].tolist() == [[8]], "8 choices of 25 steps"

    text = call("report", tmp_path, "--output", tmp_path).out
    assert "## SkillAnt-v0" in text and "### AntMultiGoal" in text and (tmp_path / "goals.png").stat().st_size > 5000


@pytest.mark.parametrize(
    ("script", "arguments", "remedy"),
    [
        ("urlb", ["--tasks", "QuadrupedRun-v0"], "choose some of WalkerStand-v0"),
        ("urlb", ["--from-steps", 7], "pass --save-at 7"),
        ("urlb", ["--transfer", "head"], "critic_trunk"),
        ("urlb", ["--skill", "first"], "pass random, best or the index"),
        ("urlb", ["--seeds", 1, 2, 3], "pass the number of seeds"),
        ("urlb", ["--eval-freq", 3000], "pass a divisor of 50000"),
        ("urlb", ["--jobs", 0], "pass 1 or more"),
        ("urlb", ["--task-params", "n_skills:4"], "leave it out"),
        ("hierarchical", ["--controller", "dqn", "--methods", "scratch"], "pass --controller ppo"),
        ("hierarchical", ["--steps", 300, "--eval-freq", 30], "pass a multiple"),
    ],
)
def test_misuse_names_the_remedy_before_anything_is_learned(call, tmp_path, script, arguments, remedy):
    result = call(script, *arguments, "--output", tmp_path / "results")
    assert result.code == 2 and remedy in " ".join(result.err.split()) and not list(tmp_path.iterdir())


OF_THE_TABLE = "--domains Quadruped-v0 --methods cesd apt --seeds 1 --warm-up skills"


@pytest.mark.parametrize(
    ("folder", "arguments", "done"),
    [
        ("one_robot", "--pretrain-steps 200000 --methods cesd scratch random", ["3 runs, 0", "36 runs, 24"]),
        ("one_robot", "--methods scratch random --eval-freq 5000", ["24 runs, 12"]),
        ("one_robot", "--methods scratch random --finetune-steps 20000", ["24 runs, 0"]),
        (".", f"{OF_THE_TABLE} --skill best", ["2 runs, 2", "8 runs, 8"]),
        (".", f"{OF_THE_TABLE} --skill best --transfer critic_trunk actor actor", ["2 runs, 2", "8 runs, 8"]),
        (".", OF_THE_TABLE, ["2 runs, 2", "8 runs, 0"]),
    ],
)
def test_rows_that_ship_keep_their_meaning_and_others_are_other_runs(call, monkeypatch, folder, arguments, done):
    monkeypatch.setattr("urlb.seconds_of", lambda run: 0.0)
    out = call("urlb", *arguments.split(), "--dry-run", "--output", RESULTS / "urlb" / folder).out
    assert all(f"{each} of them done already" in out for each in done)


def test_methods_are_what_their_names_say():
    env_ids = [env_id for domain, tasks in DOMAINS.items() for env_id in (domain, *tasks)]
    for scale in ("laptop", "published"):
        assert all(METHODS["released"].arguments(scale, env_id)["batch_size"] > 0 for env_id in env_ids)
        assert all(method.arguments(scale, "Walker-v0")["n_skills"] > 0 for method in METHODS.values() if method.algo)

    def named(overrides, entry):
        return {key: named(value, entry[key]) if isinstance(value, dict) else entry[key] for key, value in overrides.items()}

    released = preset("published", "Walker-v0", "cesd_released")
    assert named(RELEASED, released) == RELEASED
    assert METHODS["released"].arguments("laptop", "WalkerRun-v0")["policy_kwargs"]["task_ensemble_size"] is None
    assert METHODS["start=0"].arguments("laptop", "Walker-v0")["intrinsic_kwargs"]["constraint_kwargs"]["start"] == 0.0
    assert METHODS["cesd"].n_envs("laptop", "Walker-v0") == 8 and METHODS["scratch"].n_envs("laptop", "Walker-v0") == 1
