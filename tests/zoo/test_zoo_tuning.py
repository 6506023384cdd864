"""RL Zoo's tuning: what is drawn, and what a study prints."""

import os
import subprocess
import sys

import optuna
import pytest
import torch as th
from rl_zoo import run, run_all
from rl_zoo3.hyperparams_opt import HYPERPARAMS_CONVERTER, HYPERPARAMS_SAMPLER

from sb3_cesd import METHODS, CeSD
from sb3_cesd.zoo.first_trial import begin_with_entry
from sb3_cesd.zoo.hyperparams import entries, read_entry
from sb3_cesd.zoo.search import OF_ENTRY, SearchSpace


@pytest.mark.slow
def test_tuning_in_two_processes_with_one_storage(tmp_path):
    arguments = [
        "--algo", "cesd", "--env", "Pendulum-v1", "-n", "200", "-optimize", "--n-trials", "2", "--n-evaluations", "1",
        "--eval-episodes", "1", "--storage", "study.log", "--study-name", "skills", "--sampler", "random", "--no-optim-plots",
        "--n-startup-trials", "0", "--conf-file", "cesd_laptop",
        "-params", "n_skills:4", "learning_starts:100", "buffer_size:2000",
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "rl_zoo3.train", *arguments, "--seed", str(seed)],
            cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for seed in (0, 1)
    ]  # fmt: skip
    outputs = [process.communicate(timeout=400)[0] for process in processes]
    for process, output in zip(processes, outputs, strict=True):
        assert process.returncode == 0, output[-3000:]

    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "study.log"))
    study = optuna.load_study(study_name="skills", storage=optuna.storages.JournalStorage(backend))
    assert len(study.trials) == 4
    assert {trial.state for trial in study.trials} <= {optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED}
    # All play as many episodes, and keep what they were trained with
    assert all({"skill_score", "knn_accuracy", "mean_reward"} <= set(trial.user_attrs) for trial in study.trials)
    # The first one has the hyperparameters as they are, so the study ends with nothing worse
    of_entry = [trial for trial in study.trials if trial.user_attrs.get(OF_ENTRY)]
    given = {"n_skills": 4, "learning_starts": 100, "buffer_size": 2000}
    assert study.trials[0] in of_entry and all(trial.user_attrs["arguments"] == given for trial in of_entry)
    assert study.best_value >= max(trial.value for trial in of_entry)
    # A trial can be trained by its number, with what was fixed in the study
    drawn = next(trial for trial in study.trials if trial not in of_entry)
    output = run(
        tmp_path, "--algo", "cesd", "--env", "Pendulum-v1", "-n", 20, "--eval-freq", -1,
        "--storage", "study.log", "--study-name", "skills", "--trial-id", drawn.number, "-f", "trial",
    )  # fmt: skip
    assert "Loading from Optuna study" in output
    model = CeSD.load(tmp_path / "trial/cesd/Pendulum-v1_1/Pendulum-v1.zip")
    expected = drawn.user_attrs["arguments"]
    assert "n_skills" not in drawn.params and expected["n_skills"] == 4
    assert model.learning_rate(1) == expected.pop("learning_rate")
    assert {name: getattr(model, name) for name in expected} == {**expected, "policy_kwargs": model.policy_kwargs}
    assert model.policy_kwargs["net_arch"] == expected["policy_kwargs"]["net_arch"]


#: An entry with what a study can't write down as it is
OWN_ENTRY = """
default:
  n_timesteps: 150
  policy: MlpPolicy
  n_skills: 4
  batch_size: 32
  buffer_size: 2000
  learning_starts: 100
  policy_kwargs: "dict(net_arch=[16, 16], activation_fn=nn.Tanh)"
  callback:
    - sb3_cesd.callbacks.ResumableCheckpoint:
        save_freq: 50
"""


def test_a_study_of_an_own_entry_and_a_training_of_its_trial(tmp_path):
    (tmp_path / "own.yml").write_text(OWN_ENTRY)
    common = ["rl_zoo3.train", "--algo", "cesd", "--env", "Pendulum-v1", "--conf-file", "own.yml", "--eval-freq", -1]
    study = ["--storage", "sqlite:///study.db", "--study-name", "skills"]
    search = ["--n-trials", 2, "--n-evaluations", 1, "--eval-episodes", 1, "--pruner", "none", "--no-optim-plots"]
    run_all(
        tmp_path,
        [*common, *study, "-optimize", *search, "-params", "learning_rate:'lin_3e-4'"],
        [*common, *study, "--trial-id", 1, "-f", "trial"],
    )
    trials = optuna.load_study(study_name="skills", storage=f"sqlite:///{tmp_path}/study.db").trials
    assert [trial.state for trial in trials] == [optuna.trial.TrialState.COMPLETE] * 2
    folder = tmp_path / "trial/cesd/Pendulum-v1_1"
    model = CeSD.load(folder / "Pendulum-v1.zip")
    assert model.policy_kwargs["activation_fn"] is th.nn.Tanh
    assert model.policy_kwargs["net_arch"] == trials[1].user_attrs["arguments"]["policy_kwargs"]["net_arch"]
    assert model.learning_rate(0.5) == 1.5e-4
    assert list((folder / "checkpoints").iterdir()), "left out of trials alone"


def test_a_new_study_begins_with_the_entry():
    space = SearchSpace(CeSD, read_entry("cesd", "MazeTree-v0"), given={})
    begin = begin_with_entry(optuna.create_study, space)
    storage = optuna.storages.InMemoryStorage()
    first = begin(storage=storage, study_name="skills").ask()
    assert first.user_attrs == {OF_ENTRY: True} and space.draw(first) and first.params == space.entry_draws
    # One that goes on has had it
    assert not begin(storage=storage, study_name="skills", load_if_exists=True).ask().user_attrs


@pytest.mark.parametrize("name", METHODS)
def test_sampler_and_converter_agree_and_every_draw_makes_a_model(name):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    seen = set()
    for _ in range(12):
        trial = study.ask()
        params = HYPERPARAMS_SAMPLER[name](trial, 1, 1, {})
        assert params == HYPERPARAMS_CONVERTER[name](trial.params)
        if params["policy_kwargs"]["net_arch"]["pi"] != [1024, 1024]:
            METHODS[name]("MlpPolicy", "Pendulum-v1", buffer_size=100, **params)
        seen.add((params["batch_size"], params["n_skills"], params["skill_duration"]))
    assert len(seen) > 4


def test_draws_of_cesd_differ_in_what_is_its_own():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    draws = [CeSD.draw_hyperparams(study.ask()) for _ in range(12)]
    assert len({(draw["encoder"], draw["critic"]) for draw in draws}) > 4


@pytest.mark.parametrize("scale", ["", "_laptop"])
@pytest.mark.parametrize("name", METHODS)
def test_tuning_loses_nothing_of_our_files(name, scale):
    """A trial replaces ``*_kwargs`` as a whole, so it has to draw all that the files set in them."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    draws = [HYPERPARAMS_SAMPLER[name](study.ask(), 1, 1, {}) for _ in range(10)]
    for env_id, entry in entries(name + scale).items():
        # Mazes have settings of their own, of which some are not searched
        if env_id.startswith("Maze"):
            continue
        own = entry.get("intrinsic_kwargs", {})
        for draw in draws:
            drawn = draw["intrinsic_kwargs"]
            assert set(own) <= set(drawn)
            for kwargs in ("prototype_kwargs", "entropy_kwargs", "constraint_kwargs", "relabel_kwargs"):
                assert set(own.get(kwargs, {})) <= set(drawn.get(kwargs, {}))


def test_bad_draw_is_pruned(tmp_path):
    """A learning rate that diverges ends the trial, not the study."""
    code = (
        "import sys; sys.argv[1:] = ['--algo', 'cesd', '--env', 'Pendulum-v1', '-n', '200', '-optimize', '--n-trials', '1',"
        " '--n-evaluations', '1', '--eval-episodes', '1', '--no-optim-plots', '--conf-file', 'cesd_laptop', '-params',"
        " 'n_skills:4', 'learning_starts:100', 'buffer_size:2000']\n"
        "import rl_zoo3.train\n"
        "from rl_zoo3.hyperparams_opt import HYPERPARAMS_SAMPLER\n"
        "sample = HYPERPARAMS_SAMPLER['cesd']\n"
        "def bad(*args): return {**sample(*args), 'learning_rate': 1e30}\n"
        "HYPERPARAMS_SAMPLER['cesd'] = bad\n"
        "try: rl_zoo3.train.train()\n"
        "except ValueError as error: assert 'No trials are completed' in str(error), error\n"
    )
    output = run(tmp_path, sys.executable, "-c", code, module=None)
    assert "pruned" in output and "training has diverged" in output
