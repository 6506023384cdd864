import json
import subprocess
import sys
from functools import partial
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scripts import call
from settings import RELEASED, settings_of

from sb3_cesd import CeSD, registry

FOLDER = Path(__file__).parents[2] / "benchmarks"


def arguments_of(output, *arguments):
    return [
        "--seeds", "1", "--jobs", "1", "--pretrain-steps", "2176", "--finetune-steps", "2008", "--tasks", "WalkerRun-v0",
        "--eval-freq", "1004", "--n-eval-episodes", "2", "--output", str(output), *arguments,
    ]  # fmt: skip


def run(output, *arguments):
    command = [sys.executable, str(FOLDER / "urlb.py"), *arguments_of(output, *arguments)]
    return subprocess.run(command, capture_output=True, text=True, timeout=500)


@pytest.mark.slow
def test_whole_benchmark_in_small(tmp_path, monkeypatch):
    import urlb_run

    monkeypatch.setattr(urlb_run, "N_ROLLOUTS", 2)
    monkeypatch.setattr(urlb_run, "N_STEPS", 60)
    monkeypatch.setattr(urlb_run, "play_and_score", partial(urlb_run.play_and_score, n_episodes=8, n_steps=60))
    methods = ["cesd", "apt", "scratch"]
    from_earlier = ["--save-at", "2056", "--from-steps", "2056"]
    first = call("urlb", *arguments_of(tmp_path, "--methods", *methods, *from_earlier, "--env-threads", "2"))
    assert first.returncode == 0, first.stderr
    skills = pd.read_csv(tmp_path / "pretraining.csv").set_index("method")
    assert set(skills.index) == {"cesd", "apt"} and (skills.n_updates == 16).all() and (skills.n_envs == 8).all()
    assert 0 <= skills.on_cluster_share["cesd"] <= 1 and pd.isna(skills.on_cluster_share["apt"])
    assert (skills.policy_coverage >= 1).all() and (skills.total_coverage >= 1).all() and (skills.training_entropy > 0).all()
    assert (skills.queue_coverage <= skills.total_coverage).all() and skills.moving_share.between(0, 1).all()
    assert (skills.skill_score <= skills.coarse_coverage).all() and (skills.coarse_coverage >= 1).all()
    assert all(set(json.loads(speeds)) == {"torso", "joints"} for speeds in skills.random_speeds)
    assert [np.mean(json.loads(moves)) for moves in skills.moves] == skills.moving_share.tolist()
    assert skills[[f"best_skill_{task}" for task in ("stand", "walk", "run", "flip")]].gt(0).all(axis=None)
    assert (skills.best_skill_episodes == 2).all()
    for returns, best in zip(skills.walk_returns.map(json.loads), skills.best_skill_walk, strict=True):
        assert len(returns) == 8 and min(returns) > 0 and best * 971 <= 2 * max(returns) + 0.1
    for steps in (2056, 2176):
        assert CeSD.load(tmp_path / f"models/cesd_Walker-v0_laptop_0_{steps}.zip").num_timesteps == steps

    tasks = pd.read_csv(tmp_path / "runs.csv").set_index("method")
    assert set(tasks.index) == set(methods) and (tasks.n_updates == 4).all() and {*skills.device, *tasks.device} == {"cpu"}
    assert tasks.pretrain_steps["cesd"] == 2056 and tasks.pretrain_steps["scratch"] == 0
    for method, row in tasks.iterrows():
        (file,) = tmp_path.glob(f"evaluations/{method}_*/evaluations.npz")
        evaluations = np.load(file)
        assert json.loads(row.steps) == evaluations["timesteps"].tolist() == [1004, 2008]
        assert json.loads(row.returns) == pytest.approx(evaluations["results"].mean(axis=1), abs=1e-3)
        assert row.final_return == pytest.approx(evaluations["results"][-1].mean())

    # A run that is missing is done again, and no other
    (tmp_path / "runs.csv").write_text("\n".join((tmp_path / "runs.csv").read_text().splitlines()[:-1]) + "\n")
    again = call("urlb", *arguments_of(tmp_path, "--methods", *methods, *from_earlier))
    assert "2 runs, 2 of them done already" in again.stdout and "3 runs, 2 of them done already" in again.stdout
    assert len(pd.read_csv(tmp_path / "runs.csv")) == 3

    # Steps spent on the choice of a skill are told, and not counted among those of the task
    best = call("urlb", *arguments_of(tmp_path, "--methods", "cesd", *from_earlier, "--skill", "best"))
    assert best.returncode == 0, best.stderr
    rows = pd.read_csv(tmp_path / "runs.csv").set_index("skill_choice")
    assert rows.zero_shot_steps["best"] == 8 * 1000 and pd.isna(rows.zero_shot_steps["random"]).all()
    assert json.loads(rows.steps["best"]) == [1004, 2008]

    # Another way from the same model to the task
    another_way = ["--warm-up", "policy", "--transfer", "actor"]
    other = call("urlb", *arguments_of(tmp_path, "--methods", "cesd", *from_earlier, *another_way))
    assert other.returncode == 0, other.stderr
    rows = pd.read_csv(tmp_path / "runs.csv").query("method == 'cesd' and skill_choice == 'random'").set_index("warm_up")
    assert rows.transfer.to_dict() == {"random": "actor+critic_trunk", "policy": "actor"}
    assert rows.final_return["policy"] != rows.final_return["random"]


@pytest.mark.slow
def test_tasks_have_arguments_of_their_own(tmp_path):
    arguments = ["--methods", "scratch", "--task-params"]
    result = run(tmp_path, *arguments, "learning_starts:2002", "train_freq:1")
    assert result.returncode == 0, result.stderr
    assert "1 runs, 0 of them done already" in run(tmp_path, *arguments, "train_freq:3", "--dry-run").stdout
    (row,) = pd.read_csv(tmp_path / "runs.csv").to_dict("records")
    assert json.loads(row["task_params"]) == {"learning_starts": 2002, "train_freq": 1} and row["n_updates"] == 6


def test_dry_run_lists_and_estimates(tmp_path):
    listed = call("urlb", *arguments_of(tmp_path, "--methods", "cesd", "scratch", "--dry-run")).stdout
    assert listed.count("method=") == 3 and "task=WalkerRun-v0" in listed and "hours for 1 jobs" in listed
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--tasks", "QuadrupedRun-v0"], "unknown tasks QuadrupedRun-v0: choose some of WalkerStand-v0"),
        (["--from-steps", "7"], "pass --save-at 7 as well"),
        (["--transfer", "head"], "'actor', 'critic_trunk'"),
        (["--skill", "first"], "pass random, best or the index of a skill"),
        (["--seeds", "1", "2", "3"], "pass the number of seeds, or the first"),
        (["--task-params", "tau"], "write it like learning_starts:4000"),
        (["--task-params", "tau:fast"], "write it like learning_starts:4000"),
    ],
)
def test_misuse_names_the_remedy(tmp_path, arguments, message):
    result = call("urlb", *arguments_of(tmp_path, *arguments))
    assert result.returncode == 2 and message in result.stderr


def test_a_model_that_is_gone_is_missed_before_anything_is_learned(tmp_path):
    done = {"method": "apt", "domain": "Walker-v0", "scale": "laptop", "seed": 0, "pretrain_steps": 2176, "n_envs": 8}
    pd.DataFrame([done]).to_csv(tmp_path / "pretraining.csv", index=False)
    arguments = arguments_of(tmp_path, "--methods", "scratch", "apt")
    result = call("urlb", *arguments)
    assert result.returncode == 2 and not (tmp_path / "runs.csv").exists()
    assert "apt_Walker-v0_laptop_0_2176.zip is done, but the model is not there: delete its row" in result.stderr
    assert call("urlb", *arguments, "--dry-run").returncode == 0


def test_a_pretraining_that_fails_stops_its_own_tasks_alone(tmp_path, monkeypatch):
    import urlb

    def pretrain(run, **others):
        raise OSError("the disk is full")

    monkeypatch.setattr(urlb, "pretrain", pretrain)
    monkeypatch.setattr(urlb, "learn_task", lambda run, **others: {"final_return": 1.0})
    monkeypatch.setattr(sys, "argv", ["urlb", *arguments_of(tmp_path, "--methods", "apt", "scratch")])
    with pytest.raises(RuntimeError, match=r"(?s)1 of 1 runs failed.*the disk is full"):
        urlb.main()
    assert pd.read_csv(tmp_path / "runs.csv").method.tolist() == ["scratch"]


def test_no_model_is_missed_that_comes_or_is_not_needed(tmp_path):
    from urlb import first_lost_model

    skills = {"method": "apt", "domain": "Walker-v0", "scale": "laptop", "seed": 0, "pretrain_steps": 2176, "n_envs": 8}
    task = {name: skills[name] for name in ("method", "domain", "scale", "seed", "pretrain_steps")} | {"task": "WalkerRun-v0"}
    scratch = {**task, "method": "scratch", "pretrain_steps": 0}
    assert first_lost_model([skills], [scratch, task], tmp_path) is None, "it comes"
    pd.DataFrame([skills]).to_csv(tmp_path / "pretraining.csv", index=False)
    file = tmp_path / "models" / "apt_Walker-v0_laptop_0_2176.zip"
    assert first_lost_model([skills], [scratch, task], tmp_path) == file
    other = {**skills, "seed": 1}
    assert first_lost_model([skills, other], [scratch, {**task, "seed": 1}], tmp_path) is None
    pd.DataFrame([task]).to_csv(tmp_path / "runs.csv", index=False)
    assert first_lost_model([skills], [scratch, task], tmp_path) is None, "its task is done"
    (tmp_path / "runs.csv").unlink()
    file.parent.mkdir()
    file.touch()
    assert first_lost_model([skills], [scratch, task], tmp_path) is None, "it is there"


def test_estimate_follows_finished_runs():
    from urlb import estimate

    task = {"method": "apt", "scale": "laptop", "finetune_steps": 1000}
    assert estimate(task, pd.DataFrame(), "finetune_steps", 50.0) == 20.0
    # the third machine slept
    finished = {"method": ["apt", "apt", "apt", "cesd"], "scale": "laptop", "seconds": [10.0, 30.0, 9000.0, 64.0]}
    rows = pd.DataFrame({**finished, "finetune_steps": [1000, 1000, 1000, 500]})
    assert estimate(task, rows, "finetune_steps", 50.0) == 30.0
    assert estimate({**task, "method": "cic"}, rows, "finetune_steps", 50.0) == 79.0
    assert estimate({**task, "finetune_steps": 100}, rows, "finetune_steps", 50.0) == 3.0


@pytest.mark.parametrize("steps", ["finetune_steps", "n_timesteps"])
def test_estimates_keep_random_actions_apart(steps):
    """They take seconds, and say nothing about learning; nor does learning about them."""
    from urlb import RANDOM_SECONDS, estimate

    run = {"method": "cesd", "scale": "laptop", steps: 1000}
    random = {**run, "method": "random"}
    of_random = pd.DataFrame([{**random, "seconds": 3.0}, {**random, "seconds": 5.0}, {**random, "seconds": 4.0}])
    of_scratch = pd.DataFrame([{**run, "method": "scratch", "seconds": 30.0}])
    rows = pd.concat([of_random, of_scratch])
    assert estimate(run, of_random, steps, 50.0) == 20.0
    assert estimate(run, rows, steps, 50.0) == 30.0
    assert estimate(random, rows, steps, 50.0) == estimate({**random, steps: 10}, rows, steps, 50.0) == 4.0
    assert estimate(random, of_scratch, steps, 50.0) == estimate(random, pd.DataFrame(), steps, 50.0) == RANDOM_SECONDS


def test_arguments_of_tasks_in_rows_that_ship_are_not_refused():
    from runs import read_rows
    from urlb import task_params_refused

    params = set()
    for file in FOLDER.glob("results/**/runs.csv"):
        rows = read_rows(file)
        if "task_params" in rows:
            params |= {pair for pair in zip(rows.method, rows.task_params, strict=True) if str(pair[1]).startswith("{")}
    assert len(params) > 5
    for method, text in params:
        assert task_params_refused(json.loads(text), [method]) is None


def test_arguments_that_a_model_keeps_are_no_arguments_of_tasks():
    from urlb import task_params_refused
    from urlb_run import FIXED

    from sb3_cesd import registry

    for name, method in registry.METHODS.items():
        assert set(method.fixed_by_save) <= set(FIXED)
        assert task_params_refused(["tau", "skill_duration"], ["scratch", name]).startswith(
            "--task-params skill_duration: tasks of"
        )
    assert task_params_refused(FIXED, ["scratch", "random"]) is None


def test_random_actions_are_reported_beside(tmp_path):
    result = run(tmp_path, "--methods", "random")
    assert result.returncode == 0, result.stderr
    (row,) = pd.read_csv(tmp_path / "runs.csv").to_dict("records")
    (file,) = tmp_path.glob("evaluations/random_*/evaluations.npz")
    evaluations = np.load(file)
    assert evaluations["timesteps"].tolist() == [0, 2008] and evaluations["results"].shape == (2, 2)
    assert row["final_return"] == pytest.approx(evaluations["results"][0].mean()) and 5 < row["final_return"] < 100
    assert not list(tmp_path.glob("models/*"))

    # Repeated: the same row, and others beside it. Rows from before tasks were repeated are of the first time
    pd.DataFrame([row]).drop(columns="repeat").to_csv(tmp_path / "runs.csv", index=False)
    repeated = run(tmp_path, "--methods", "random", "--repeats", "3")
    assert "3 runs, 1 of them done already" in repeated.stdout, repeated.stderr
    rows = pd.read_csv(tmp_path / "runs.csv")
    assert rows.repeat.tolist()[1:] == [1, 2] and rows.final_return.nunique() == 3


@pytest.mark.parametrize("scale", ["laptop", "published"])
def test_every_method_has_an_entry_at_every_scale(scale):
    from urlb_methods import DOMAINS, METHODS

    for method in (method for method in METHODS.values() if method.algo):
        for domain, tasks in DOMAINS.items():
            for env_id in (domain, *tasks):
                entry = method.arguments(scale, env_id)
                assert entry["n_timesteps"] > 0 and isinstance(entry.get("policy_kwargs", {}), dict)


def test_two_processes_do_not_write_one_file(tmp_path):
    from runs import only_one, read_rows, run_missing

    path = tmp_path / "runs.csv"
    with only_one(path), pytest.raises(RuntimeError, match="wait for it, or pass another --output"):
        run_missing([{"seed": 0}], lambda run: {"score": 1.0}, path, n_jobs=1)
    with only_one(path):
        run_missing([{"seed": 0}], lambda run: {"score": 1.0}, path, n_jobs=1, dry_run=True)
    assert not list(tmp_path.iterdir())
    run_missing([{"seed": 0}], lambda run: {"score": 1.0}, path, n_jobs=1)
    assert read_rows(path).score.tolist() == [1.0] and [file.name for file in tmp_path.iterdir()] == ["runs.csv"]


@pytest.mark.slow
def test_a_run_that_always_kills_its_worker_ends_after_some_attempts(tmp_path, monkeypatch):
    import runs
    from joblib.externals.loky.process_executor import TerminatedWorkerError

    monkeypatch.setattr(runs, "DELAY", 0.0)

    def do(run):
        import os

        if run["seed"] == 0:
            os._exit(1)
        return {"score": 1.0}

    with pytest.raises(TerminatedWorkerError):
        runs.run_missing([{"seed": 0}, {"seed": 1}], do, tmp_path / "runs.csv", n_jobs=2)
    assert runs.read_rows(tmp_path / "runs.csv").empty or set(runs.read_rows(tmp_path / "runs.csv").seed) == {1}


@pytest.mark.slow
def test_what_a_killed_worker_did_is_done_again(tmp_path, capsys):
    from runs import run_missing

    def do(run, folder=tmp_path):
        import os

        (folder / f"started_{run['seed']}_{os.getpid()}").touch()
        if run["seed"] == 2 and not (folder / "killed").exists():
            (folder / "killed").touch()
            os._exit(1)
        return {"score": 2.0 * run["seed"]}

    rows = run_missing([{"seed": seed} for seed in range(5)], do, tmp_path / "runs.csv", n_jobs=2)
    assert len(rows) == 5 and rows.set_index("seed").score.to_dict() == {seed: 2.0 * seed for seed in range(5)}
    assert "A worker was lost (TerminatedWorkerError): going on with" in capsys.readouterr().out
    assert len(list(tmp_path.glob("started_2_*"))) == 2


def test_what_a_killed_driver_left_is_kept_and_twins_are_dropped(tmp_path):
    from runs import Finished, read_rows, run_missing

    path = tmp_path / "runs.csv"
    Finished(path).add({"seed": 0}, {"score": 5.0}, "")
    run_missing([{"seed": 0}, {"seed": 1}], lambda run: {"score": 7.0}, path, n_jobs=1)
    assert read_rows(path).score.tolist() == [5.0, 7.0]
    finished = Finished(path)
    for score in (1.0, 2.0):
        finished.add({"seed": 2}, {"score": score}, "")
    finished.add({"seed": 3}, {"score": 3.0}, "")
    assert finished.collect([{"seed": 2}]) == [({"seed": 2}, "")] and read_rows(path).score.tolist() == [5.0, 7.0, 1.0]
    finished.remove()
    assert [file.name for file in tmp_path.iterdir()] == ["runs.csv"]


def named(overrides, entry):
    """Take of an entry what overrides name."""
    return {name: named(value, entry[name]) if isinstance(value, dict) else entry[name] for name, value in overrides.items()}


def test_released_is_what_the_file_of_the_released_setting_says():
    from entries import read_entry
    from urlb_methods import METHODS, RELEASED

    entry = read_entry("cesd_released", "Walker-v0")
    assert named(RELEASED, entry) == RELEASED
    heads = METHODS["released"].arguments("published", "WalkerRun-v0")["policy_kwargs"]["task_ensemble_size"]
    assert heads == entry["policy_kwargs"]["task_ensemble_size"] == 16
    assert METHODS["released"].arguments("laptop", "WalkerRun-v0")["policy_kwargs"]["task_ensemble_size"] == 8


@pytest.mark.parametrize("env_id", ["SkillAnt-v0", "SkillHalfCheetah-v0"])
def test_names_of_rows_of_metras_robots_keep_meaning_the_same_settings(env_id):
    from random_walk import RandomWalk
    from urlb_methods import METHODS

    def make(name):
        entry = METHODS[name].arguments("laptop", env_id)
        entry.pop("n_timesteps")
        entry.pop("n_envs")
        model = CeSD(env=RandomWalk("walker"), seed=0, device="cpu", **entry)
        return {**settings_of(model), "ent_coef": entry.get("ent_coef"), "layer_norm": model.policy.layer_norm}

    settings = {name: make(name) for name in ("cesd", "distance=contrastive", "objective=released")}
    contrastive = {
        "skill_duration": 50,
        "ent_coef": None,
        "layer_norm": True,
        "encoder": "ContrastiveEncoder",
        "encoder.objective": "infonce",
        "distance_encoder": None,
        "constraint.start": 0.8,
    }
    assert settings["distance=contrastive"].items() >= contrastive.items()
    assert settings["objective=released"] == {**settings["distance=contrastive"], "encoder.objective": "released"}
    temporal = {"skill_duration": None, "ent_coef": "auto_0.01", "layer_norm": False}
    temporal |= {"distance_encoder": "TemporalEncoder", "constraint.start": 0.0}
    assert settings["cesd"] == {**settings["distance=contrastive"], **temporal}


#: Clusters as the released code has them
OF_STATES = {"average_window": 1, "distance_encoder": None, "skill_duration": 50, "constraint.freeze_clusters": False}


@pytest.mark.parametrize(
    ("name", "different"),
    [
        ("released", {**RELEASED, **OF_STATES}),
        ("log1p=True", {"entropy.log1p": True}),
        ("entropy=released", {"entropy.log1p": True, "entropy.scale": "variance"}),
        ("shared_value=False", {"shared_value": False}),
        ("start=0", {"constraint.start": 0.0, "constraint.freeze_clusters": False}),
    ],
)
def test_names_of_rows_keep_meaning_the_same_settings(name, different):
    from random_walk import RandomWalk
    from urlb_methods import METHODS

    def make(method):
        entry = method.arguments("laptop", "Walker-v0")
        entry.pop("n_timesteps")
        assert entry.pop("n_envs") == method.n_envs("laptop", "Walker-v0") == 8
        return CeSD(env=RandomWalk("walker"), seed=0, device="cpu", **entry)

    default = settings_of(make(METHODS["cesd"]))
    expected = {
        "n_skills": 8,
        "batch_size": 256,
        "learning_rate": 3e-4,
        "actor_arch": [256, 256],
        "critic_arch": [128, 256],
        "ensemble_size": None,
        "shared_value": True,
        "encoder": "ContrastiveEncoder",
        "encoder.objective": "infonce",
        "distance_encoder": "IdentityEncoder",
        "average_window": 50,
        "skill_duration": 200,
        "train_freq": 16,
        "entropy.k": 8,
        "entropy.scale": "std",
        "entropy.log1p": False,
        "alpha": 1.0,
        "prototypes.sinkhorn_iterations": 6,
        "constraint.start": 0.5,
        "constraint.freeze_clusters": True,
    }
    assert default.items() >= expected.items()
    assert settings_of(make(METHODS[name])) == {**default, **different}


IN_ICM = {"distance_encoder": "ICMEncoder"}
OF_APT = {"entropy.log1p": True, "entropy.scale": "mean", "entropy.clip": 0.0}


@pytest.mark.parametrize(
    ("name", "different"),
    [
        ("distance=same,start=1", {"constraint.start": 1.0}),
        ("distance=same,train_freq=2", {"train_freq": 2}),
        ("distance=same,train_freq=8", {"train_freq": 8}),
        ("distance=identity", {"distance_encoder": "IdentityEncoder"}),
        ("distance=identity,start=200k", {"distance_encoder": "IdentityEncoder", "constraint.start": 200_000}),
        (
            "distance=identity,start=200k,skill_duration=200",
            {"distance_encoder": "IdentityEncoder", "constraint.start": 200_000, "skill_duration": 200},
        ),
        ("distance=icm", IN_ICM),
        ("distance=icm,start=1", {**IN_ICM, "constraint.start": 1.0}),
        ("distance=icm,entropy=apt", {**IN_ICM, **OF_APT}),
        ("distance=icm,start=1,entropy=apt", {**IN_ICM, "constraint.start": 1.0, **OF_APT}),
        ("distance=icm,frozen", {**IN_ICM, "constraint.freeze_clusters": True}),
        ("distance=icm,kappa=0.5", {**IN_ICM, "relabelling.kappa": 0.5}),
        ("distance=icm,train_freq=8", {**IN_ICM, "train_freq": 8}),
        ("distance=icm,skill_duration=None", {**IN_ICM, "skill_duration": None}),
        ("distance=icm,train_freq=8,skill_duration=None", {**IN_ICM, "train_freq": 8, "skill_duration": None}),
        ("encoder=icm", {"encoder": "ICMEncoder", "features_dim": 256}),
        ("encoder=icm,kappa=0.3", {"encoder": "ICMEncoder", "features_dim": 256, "relabelling.kappa": 0.3}),
    ],
)
def test_names_of_arms_mean_what_they_say(name, different):
    from random_walk import RandomWalk
    from urlb_methods import METHODS

    def make(method):
        entry = method.arguments("laptop", "Quadruped-v0")
        entry.pop("n_timesteps")
        entry.pop("n_envs")
        return CeSD(env=RandomWalk("quadruped"), seed=0, device="cpu", **entry)

    default, model = settings_of(make(METHODS["distance=same"])), make(METHODS[name])
    settings = settings_of(model)
    settings.pop("encoder.objective", None)
    default = {key: value for key, value in default.items() if key in settings}
    assert settings == {**default, **different}
    if "icm" in name:
        features = model.intrinsic.encoder if name.startswith("encoder") else model.intrinsic.distance_encoder
        assert features.features_dim == 256


def test_arms_learn_tasks_as_the_entry_does():
    """Their ratio of updates and the time for which they keep a skill are of pre-training."""
    from urlb_arms import ARMS
    from urlb_methods import METHODS

    def without_reward(name, env_id):
        return {key: value for key, value in METHODS[name].arguments("laptop", env_id).items() if key != "intrinsic_kwargs"}

    for name, arm in ARMS.items():
        assert without_reward(name, "QuadrupedWalk-v0") == without_reward("cesd", "QuadrupedWalk-v0")
        assert without_reward(name, "Quadruped-v0") == {**without_reward("cesd", "Quadruped-v0"), **arm.of_pretraining}


def test_an_arm_with_clusters_of_states_has_them_on_a_walker_too():
    from urlb_methods import METHODS

    def window(name):
        return METHODS[name].arguments("laptop", "Walker-v0")["intrinsic_kwargs"]["cluster_window"]

    assert window("distance=identity,start=200k,skill_duration=200") == 1
    assert window("cesd") == 50


@pytest.mark.parametrize(("large", "method"), [("large", "cesd"), ("apt,large", "apt")])
def test_large_is_of_published_size(large, method):
    """The number of skills and what distances are taken of are those of the laptop entry."""
    from entries import of_constructor
    from urlb_methods import METHODS

    def sizes(name, scale, **others):
        entry = {**of_constructor(METHODS[name].arguments(scale, "Quadruped-v0")), "n_skills": 8, **others}
        model = registry.METHODS[method](env="Quadruped-v0", device="cpu", seed=0, **entry)
        shapes = {key: value.shape for part in (model.policy, model.intrinsic) for key, value in part.state_dict().items()}
        return shapes, model.batch_size, model.intrinsic.entropy.k

    of_laptop = {"intrinsic_kwargs": {"distance_encoder": "icm"}} if method == "cesd" else {}
    assert sizes(large, "laptop") == sizes(method, "published", **of_laptop)
    assert sizes(large, "laptop") != sizes(method, "laptop")
