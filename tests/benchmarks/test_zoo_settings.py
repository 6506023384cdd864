"""Runs of RL Zoo in a report: those that differ in a setting are no seeds of one method."""

import shutil
import warnings
from collections import OrderedDict

import numpy as np
import pandas as pd
import pytest
import yaml
from scripts import call
from torch import nn
from urlb_scores import read_runs

#: As in a yml file of the package, shortened
LAPTOP = {
    "batch_size": 256,
    "learning_rate": 0.0003,
    "n_timesteps": 50000.0,
    "policy": "MlpPolicy",
    "policy_kwargs": {"net_arch": {"pi": [256, 256], "qf": [128, 256]}},
}
PUBLISHED = {**LAPTOP, "batch_size": 1024, "learning_rate": 0.0001, "n_timesteps": 1e5}
#: Arguments of a run, and those of which nothing depends
ARGS = {
    "conf_file": "cesd_laptop.yml",
    "device": "auto",
    "env_kwargs": None,
    "eval_episodes": 5,
    "eval_freq": 25000,
    "log_folder": "logs",
    "n_timesteps": -1,
    "tensorboard_log": "",
    "trained_agent": "",
    "verbose": 1,
}


def zoo_run(root, name, returns=(1.0, 2.0), hyperparams=LAPTOP, algo="cesd", start=0, **args):
    """
    Write the folder of a run as RL Zoo does.

    :param root: folder in which RL Zoo was called
    :param name: task and number
    :param returns: mean returns of its evaluations
    :param hyperparams: what is in config.yml
    :param algo: name of the method
    :param start: steps before its first evaluation
    :param args: arguments of the command line; the seed is the number of the run unless told otherwise
    :return: the folder
    """
    args = {**ARGS, "seed": int(name.split("_")[1]), **args}
    folder = root / args["log_folder"] / algo / name
    files = folder / name.split("_")[0]
    files.mkdir(parents=True)
    results = np.array(returns, dtype=float)[:, None] + [-1.0, 1.0]
    np.savez(folder / "evaluations.npz", timesteps=start + 10 * np.arange(1, len(returns) + 1), results=results)
    for file, content in (("args", args), ("config", hyperparams)):
        (files / f"{file}.yml").write_text(yaml.dump(OrderedDict(sorted(content.items()))))
    return folder


def names(*paths):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        return read_runs(paths).method.tolist()


def test_a_task_from_skills_and_from_scratch_are_two_methods(tmp_path):
    zoo_run(tmp_path, "Walker-v0_1")
    for number, start in (1, "logs/cesd/Walker-v0_1/Walker-v0.zip"), (2, ""), (3, "elsewhere/model.zip"):
        zoo_run(tmp_path, f"WalkerRun-v0_{number}", trained_agent=start)
    runs = sorted((tmp_path / "logs/cesd").glob("WalkerRun-v0_*"))
    assert names(*runs[:2]) == [
        "cesd, pretrained=yes",
        "cesd, pretrained=no",
    ]
    assert len(set(names(*runs))) == 3, "a model of which nothing is known may be of any pre-training"


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({"conf_file": None, "hyperparams": PUBLISHED}, ("conf_file=cesd_laptop", "conf_file=default")),
        ({"hyperparams": {**LAPTOP, "learning_rate": 0.001}}, ("learning_rate=0.0003", "learning_rate=0.001")),
        ({"hyperparams": {**LAPTOP, "bc_coef": 1.0}}, ("bc_coef=default", "bc_coef=1")),
        ({"hyperparams": {**LAPTOP, "policy": "Mine"}}, ("policy=MlpPolicy", "policy=Mine")),
        (
            {"hyperparams": {**LAPTOP, "policy_kwargs": {"net_arch": {"pi": [256, 256], "qf": (64, 64)}}}},
            ("policy_kwargs.net_arch.qf=[128, 256]", "policy_kwargs.net_arch.qf=[64, 64]"),
        ),
        (
            {"hyperparams": {**LAPTOP, "callback": ["rl_zoo3.callbacks.ParallelTrainCallback"]}},
            ("callback=default", "callback=['rl_zoo3.callbacks.ParallelTrainCallback']"),
        ),
        ({"n_timesteps": 100_000}, ("n_timesteps=50000", "n_timesteps=100000")),
        ({"env_kwargs": {"friction": 2.0}}, ("env_kwargs.friction=default", "env_kwargs.friction=2")),
        ({"eval_freq": 5000}, ("eval_freq=25000", "eval_freq=5000")),
    ],
)
def test_what_differs_is_part_of_the_name(tmp_path, changed, expected):
    zoo_run(tmp_path, "WalkerRun-v0_1")
    zoo_run(tmp_path, "WalkerRun-v0_2", **changed)
    zoo_run(tmp_path, "WalkerRun-v0_3", **changed)
    first, second = (f"cesd, {text}" for text in expected)
    assert names(tmp_path / "logs") == [first, second, second]


OBSERVER = {"sb3_cesd.callbacks.SkillMetricsCallback": {"eval_freq": 10}}


@pytest.mark.parametrize(
    "changed",
    [
        {"seed": 7, "verbose": 0, "device": "cpu", "tensorboard_log": "/tmp/tb"},
        {"hyperparams": {**LAPTOP, "callback": "sb3_cesd.callbacks.ResumableCheckpoint"}},
        {"hyperparams": {**LAPTOP, "callback": [OBSERVER]}},
        {"hyperparams": {**LAPTOP, "n_timesteps": 7}, "n_timesteps": 50000},
        {"conf_file": "copies/mine.yml"},
        {"log_folder": "other/logs", "seed": 3},
    ],
)
def test_seeds_differ_in_nothing_that_matters(tmp_path, changed):
    zoo_run(tmp_path, "WalkerRun-v0_1", [1.0, 10.0])
    zoo_run(tmp_path, "WalkerRun-v0_2", [1.0, 20.0])
    zoo_run(tmp_path, "WalkerRun-v0_1" if "log_folder" in changed else "WalkerRun-v0_3", [1.0, 30.0], **changed)
    rows = read_runs([tmp_path])
    assert set(rows.method) == {"cesd"} and sorted(rows.seed) == [1, 2, changed.get("seed", 3)]
    assert sorted(rows.final_return) == [10, 20, 30]


def read(path):
    """Read runs, of which one counts in place of another with the same seed."""
    with pytest.warns(UserWarning, match=r"_\d repeats .*_\d with the same seed") as caught:
        rows = read_runs([path])
    assert len(caught) == 1
    return rows


def test_the_same_seed_counts_once(tmp_path):
    for number, seed, final in ((1, 7, 10), (2, 7, 20), (3, 8, 30), (10, 7, 40)):
        zoo_run(tmp_path, f"WalkerRun-v0_{number}", [1.0, final], seed=seed)
    zoo_run(tmp_path, "WalkerWalk-v0_1", seed=7)
    zoo_run(tmp_path, "WalkerRun-v0_1", algo="apt", seed=7)
    with pytest.warns(UserWarning) as caught:
        rows = read_runs([tmp_path])
    (message,) = (str(warning.message) for warning in caught)
    first, second, latest = (tmp_path / f"logs/cesd/WalkerRun-v0_{number}" for number in (1, 2, 10))
    assert message.startswith(f"{latest} repeats {first}, {second} with the same seed (7) and settings, so only the latest")
    assert message.endswith("pass another --seed to what is to count as well, and delete the folders of the others.")
    rows = rows[(rows.method == "cesd") & (rows.task == "WalkerRun-v0")]
    assert sorted(zip(rows.seed, rows.final_return, strict=True)) == [(7, 40), (8, 30)]


def test_the_same_seed_in_two_log_folders_counts_once(tmp_path):
    zoo_run(tmp_path, "WalkerRun-v0_1", [1.0, 10.0])
    zoo_run(tmp_path, "WalkerRun-v0_1", [1.0, 20.0], log_folder="other/logs")
    assert len(read(tmp_path)) == 1


def test_the_same_seed_with_other_settings_is_another_method(tmp_path):
    zoo_run(tmp_path, "WalkerRun-v0_1", seed=7)
    zoo_run(tmp_path, "WalkerRun-v0_2", seed=7, hyperparams={**LAPTOP, "tau": 0.5})
    assert names(tmp_path) == ["cesd, tau=default", "cesd, tau=0.5"]


@pytest.mark.parametrize("unknown", [-1, None])
def test_runs_of_unknown_seeds_have_the_numbers_of_their_folders(tmp_path, unknown):
    for number in (1, 2):
        zoo_run(tmp_path, f"WalkerRun-v0_{number}", seed=unknown)
    zoo_run(tmp_path, "WalkerRun-v0_3", seed=7)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_runs([tmp_path]).seed.tolist() == [1, 2, 7]


def test_a_run_that_ended_early_does_not_replace_one_of_its_seed(tmp_path):
    for number, returns, seed in ((1, [1.0, 10.0], 7), (2, [1.0], 7), (3, [1.0, 30.0], 8)):
        zoo_run(tmp_path, f"WalkerRun-v0_{number}", returns, seed=seed)
    with pytest.warns(UserWarning, match="WalkerRun-v0_2 has evaluations up to step 10") as caught:
        rows = read_runs([tmp_path])
    assert len(caught) == 1 and rows.seed.tolist() == [7, 8] and rows.final_return.tolist() == [10, 30]


def test_tasks_of_one_seed_from_pretrainings_of_other_seeds_all_count(tmp_path):
    for number, seed in ((1, 1), (2, 2), (3, 2)):
        zoo_run(tmp_path, f"Walker-v0_{number}", seed=seed)
        model = f"logs/cesd/Walker-v0_{number}/Walker-v0.zip"
        zoo_run(tmp_path / "tasks", f"WalkerRun-v0_{number}", [1.0, number], seed=0, trained_agent=str(tmp_path / model))
    rows = read(tmp_path / "tasks")
    assert rows.seed.tolist() == [1, 2] and rows.final_return.tolist() == [1, 3], "the last two pre-trainings are the same"


def test_tasks_of_one_seed_from_models_of_unknown_seeds_all_count(tmp_path):
    for number in (1, 2):
        zoo_run(tmp_path, f"WalkerRun-v0_{number}", seed=0, trained_agent=f"elsewhere/{number}.zip")
    assert names(tmp_path) == ["cesd", "cesd"]


def test_all_that_differs_beside_the_file_is_named(tmp_path):
    zoo_run(tmp_path, "WalkerRun-v0_1", hyperparams=PUBLISHED, conf_file=None)
    zoo_run(tmp_path, "WalkerRun-v0_2")
    zoo_run(tmp_path, "WalkerRun-v0_3", hyperparams={**LAPTOP, "tau": 0.5, "gamma": 0.9})
    assert names(tmp_path) == [
        "cesd, conf_file=default, gamma=default, tau=default",
        "cesd, conf_file=cesd_laptop, gamma=default, tau=default",
        "cesd, conf_file=cesd_laptop, gamma=0.9, tau=0.5",
    ]


def test_entries_of_robots_are_no_variants(tmp_path):
    zoo_run(tmp_path, "WalkerRun-v0_1")
    zoo_run(tmp_path, "WalkerWalk-v0_1")
    zoo_run(tmp_path, "JacoReachTopLeft-v0_1", hyperparams={**LAPTOP, "skill_duration": None})
    assert set(names(tmp_path)) == {"cesd"}


def test_tasks_of_other_pretrainings_are_other_methods(tmp_path):
    for number, steps in ((1, 300_000), (2, 300_000), (3, 1_000_000)):
        zoo_run(tmp_path, f"Walker-v0_{number}", n_timesteps=steps, seed=number)
        zoo_run(tmp_path, f"WalkerRun-v0_{number}", trained_agent=f"logs/cesd/Walker-v0_{number}/Walker-v0.zip")
    tasks = sorted((tmp_path / "logs/cesd").glob("WalkerRun-v0_*"))
    short, long = (f"cesd, pretraining.n_timesteps={steps}" for steps in (300_000, 1_000_000))
    assert names(*tasks) == [short, short, long]

    # Models that were saved on the way
    for number, model in (4, "checkpoints/steps_000001000000/model.zip"), (5, "rl_model_300000_steps.zip"):
        tasks.append(zoo_run(tmp_path, f"WalkerRun-v0_{number}", trained_agent=f"logs/cesd/Walker-v0_1/{model}"))
    assert names(*tasks) == [short, short, long, long, short]


@pytest.fixture
def continued(tmp_path):
    """Run 1 from a skill, run 2 of the same kind, which was stopped, and run 4 and 5 that continue it in turn."""
    zoo_run(tmp_path, "Walker-v0_1")
    of_skills = {"trained_agent": "logs/cesd/Walker-v0_1/Walker-v0.zip"}
    zoo_run(tmp_path, "WalkerRun-v0_1", [1, 2, 3, 4], **of_skills)
    zoo_run(tmp_path, "WalkerRun-v0_2", [1, 2], **of_skills)
    checkpoint = "logs/cesd/WalkerRun-v0_{}/checkpoints/steps_000000000020/model.zip"
    # RL Zoo writes the entry of the command, whatever the checkpoint says
    other = {"hyperparams": PUBLISHED, "conf_file": None, "n_timesteps": 50000}
    zoo_run(tmp_path, "WalkerRun-v0_4", [3], start=20, trained_agent=checkpoint.format(2), **other)
    zoo_run(tmp_path, "WalkerRun-v0_5", [5], start=30, trained_agent=checkpoint.format(4), **other)
    return sorted((tmp_path / "logs/cesd").glob("WalkerRun-v0_*"))


def test_a_continued_run_is_one_run_with_the_settings_of_its_start(continued, tmp_path):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        rows = read_runs(continued)
    assert rows.method.tolist() == ["cesd", "cesd"] and rows.final_return.tolist() == [4, 5] and rows.seed.tolist() == [1, 2]


def test_a_continued_run_whose_start_is_gone_is_of_unknown_settings(continued, tmp_path):
    shutil.rmtree(continued[1])
    expected = ["cesd, pretrained=yes", "cesd, pretrained=unknown"]
    named = names(*[folder for folder in continued if folder.exists()])
    assert [name.split(", conf_file")[0] for name in named] == expected


def test_runs_without_yml_files_are_not_mixed_with_others(tmp_path):
    for number in (1, 2):
        shutil.rmtree(zoo_run(tmp_path, f"WalkerRun-v0_{number}") / "WalkerRun-v0")
    assert names(tmp_path) == ["cesd", "cesd"]
    zoo_run(tmp_path, "WalkerRun-v0_3")
    assert [name.split(",")[1] for name in names(tmp_path)] == [" pretrained=unknown", " pretrained=unknown", " pretrained=no"]


def test_python_objects_in_yml_files_are_not_made(tmp_path):
    for number, activation in ((1, nn.ReLU), (2, nn.Tanh)):
        kwargs = {"activation_fn": activation, "optimizer_kwargs": OrderedDict(eps=np.float64(0.1))}
        zoo_run(tmp_path, f"WalkerRun-v0_{number}", hyperparams={**LAPTOP, "policy_kwargs": kwargs})
    folder = zoo_run(tmp_path, "WalkerRun-v0_3")
    code = f"tau: !!python/object/apply:os.mkdir [{tmp_path / 'made'}]\n"
    (folder / "WalkerRun-v0/config.yml").write_text(yaml.dump(LAPTOP) + code)
    named = names(tmp_path)
    assert len(set(named)) == 3 and not (tmp_path / "made").exists()
    assert "policy_kwargs.activation_fn=name:torch.nn.modules.activation.ReLU" in named[0] and "os.mkdir" in named[2]


def test_folders_of_uuid(tmp_path):
    """RL Zoo gives each of them the number 1."""
    ids = ["0b1a6e0e-3f0c-4d5e-9a43-0d6f2a1b7c11", "12345678-0f0c-4d5e-9a43-123456789012"]
    for each in ids:
        zoo_run(tmp_path, f"WalkerRun-v0_1_{each}", uuid=True, seed=-1)
    runs = read_runs([tmp_path])
    assert runs.task.tolist() == ["WalkerRun-v0"] * 2 and runs.method.unique().tolist() == ["cesd"]
    assert sorted(runs.seed) == [1, 2]


@pytest.mark.parametrize("content", ["a: [", "", "- 1", "!!python/object/apply:collections.OrderedDict [1]", "\x00"])
def test_damaged_files_are_named(tmp_path, content):
    zoo_run(tmp_path, "WalkerRun-v0_1")
    (tmp_path / "logs/cesd/WalkerRun-v0_1/WalkerRun-v0/args.yml").write_text(content)
    with pytest.raises(ValueError, match=r"args\.yml is not a yml file of RL Zoo, or is damaged: restore or remove it"):
        read_runs([tmp_path])


def test_a_pretraining_in_the_folder_is_left_out(tmp_path):
    """The command of the docstring of report.py, after a pre-training with evaluations."""
    for number in (1, 2):
        zoo_run(tmp_path, f"Walker-v0_{number}")
    zoo_run(tmp_path, "SkillAnt-v0_1", algo="apt")
    row = {"method": "apt", "task": "WalkerRun-v0", "seed": 0, "steps": "[10]", "returns": "[5]", "final_return": 5.0}
    pd.DataFrame([row]).to_csv(tmp_path / "runs.csv", index=False)
    output = tmp_path / "report"
    message = r"no expert return of SkillAnt-v0 \(1 run\), Walker-v0 \(2 runs\): left out\. .* pass the folders of tasks"
    with pytest.warns(UserWarning, match=message):
        assert read_runs([tmp_path / "logs", tmp_path / "runs.csv"]).method.tolist() == ["apt"]

    nothing = call("report", tmp_path / "logs", "--output", output)
    assert nothing.returncode == 2 and "There is no expert return of SkillAnt-v0, Walker-v0: leave them out" in nothing.stderr
    zoo_run(tmp_path, "WalkerRun-v0_1", [79.6])
    with pytest.warns(UserWarning, match=message):
        result = call("report", tmp_path / "logs", "--output", output)
    assert result.returncode == 0 and "| WalkerRun-v0 | 80 | 796 |" in (output / "report.md").read_text()

    # Rows of CSV files are chosen by hand
    pd.DataFrame([row, {**row, "task": "Walker-v0"}]).to_csv(tmp_path / "runs.csv", index=False)
    assert "no expert return of Walker-v0: leave" in call("report", tmp_path / "runs.csv", "--output", output).stderr


def test_variants_of_rl_zoo_stay_apart_from_rows_of_the_benchmark(tmp_path):
    zoo_run(tmp_path, "WalkerRun-v0_1")
    zoo_run(tmp_path, "WalkerRun-v0_2", hyperparams={**LAPTOP, "tau": 0.5})
    row = {"method": "cesd", "task": "WalkerRun-v0", "seed": 0, "steps": "[10]", "returns": "[5]", "final_return": 5.0}
    pd.DataFrame([row]).to_csv(tmp_path / "runs.csv", index=False)
    assert names(tmp_path / "logs", tmp_path / "runs.csv") == ["cesd, RL Zoo, tau=default", "cesd, RL Zoo, tau=0.5", "cesd"]
