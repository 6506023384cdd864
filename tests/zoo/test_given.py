"""What ``-params`` adds to an entry, and what it may not change in a resumed run."""

import shutil
from functools import partial
from pathlib import Path
from types import SimpleNamespace

import optuna
import pytest
import torch as th
import yaml
from rl_zoo3.exp_manager import ExperimentManager
from rl_zoo3.utils import EnvironmentName

from sb3_cesd import DIAYN, METHODS, CeSD
from sb3_cesd.checkpoints import ResumableCheckpoint
from sb3_cesd.checkpoints.folders import checkpoints_in
from sb3_cesd.zoo.experiment import evaluate_in_same_env
from sb3_cesd.zoo.given import added
from sb3_cesd.zoo.hyperparams import make_module, read_entry
from sb3_cesd.zoo.same_run import check_same_run, keep_best_model, keep_config
from sb3_cesd.zoo.search import ARGUMENTS
from sb3_cesd.zoo.studies import space_of


def read_by_zoo(given, env_id="Walker-v0", config="cesd_laptop", **trial):
    """A manager that has read its hyperparameters."""
    manager = SimpleNamespace(
        algo="cesd", config=str(config) if isinstance(config, Path) else make_module(config),
        env_name=EnvironmentName(env_id), custom_hyperparams=given,
        env_kwargs={}, _is_atari=False, trained_agent="", normalize=False,
        **{"storage": None, "study_name": None, "trial_id": None, **trial},
    )  # fmt: skip
    manager.load_trial = partial(ExperimentManager.load_trial, manager)
    manager._hyperparams, _ = ExperimentManager.read_hyperparameters(manager)
    return manager


def test_nested_arguments_add_to_those_of_the_entry(capsys):
    given = {"n_skills": 4, "intrinsic_kwargs": {"alpha": 0.5}, "policy_kwargs": {"task_ensemble_size": 2}}
    manager, entry = read_by_zoo(given), read_entry("cesd_laptop", "Walker-v0")
    assert manager._hyperparams == {
        **entry,
        "n_skills": 4,
        "intrinsic_kwargs": {**entry["intrinsic_kwargs"], "alpha": 0.5},
        "policy_kwargs": {**entry["policy_kwargs"], "task_ensemble_size": 2},
    }
    assert capsys.readouterr().out.count("Loading hyperparameters from") == 1
    # Only what was given is not searched
    assert manager.custom_hyperparams is given and space_of(manager).given == given
    assert read_by_zoo(None)._hyperparams == entry


def test_nested_arguments_add_to_a_string_which_rl_zoo_evaluates(tmp_path):
    file, text = tmp_path / "own.yml", "dict(activation_fn=nn.ELU, net_arch=[8])"
    file.write_text(yaml.dump({"default": {"n_timesteps": 9, "policy_kwargs": text}}))
    read = [read_by_zoo(given, config=file)._hyperparams for given in ({"policy_kwargs": {"net_arch": [4]}}, {"n_skills": 2})]
    assert read[0]["policy_kwargs"] == {"activation_fn": th.nn.ELU, "net_arch": [4]}
    assert read[1]["policy_kwargs"] == text, "left to RL Zoo"


@pytest.mark.parametrize(
    ("kept", "given", "expected"),
    [
        ({"encoder_kwargs": {"net_arch": [8]}, "k": 1}, {"encoder": "contrastive"}, {"net_arch": [8]}),
        ({"encoder_kwargs": {"net_arch": [8]}, "k": 1}, {"encoder": "fourier"}, None),
        ({"encoder": "fourier", "encoder_kwargs": {"length_scale": 2}},
         {"encoder": "icm", "encoder_kwargs": {"net_arch": [4]}}, {"net_arch": [4]}),
        ({"encoder_kwargs": {"net_arch": [8], "features_dim": 2}}, {"encoder_kwargs": {"features_dim": 3}},
         {"net_arch": [8], "features_dim": 3}),
    ],
)  # fmt: skip
def test_another_encoder_takes_no_arguments_of_the_former(kept, given, expected):
    assert added(CeSD, kept, given).get("encoder_kwargs") == expected


def test_other_values_replace_those_of_the_entry():
    assert added(CeSD, "dict(net_arch=[8])", {"net_arch": [4]}) == {"net_arch": [4]}
    assert added(CeSD, None, {"net_arch": [4]}) == {"net_arch": [4]} and added(CeSD, {"net_arch": [8]}, None) is None
    assert all(added(method, {}, {"encoder": 1}) == {"encoder": 1} for method in METHODS.values())


def test_the_best_of_a_study_of_nothing_else_has_the_networks_of_the_entry(tmp_path):
    """Retaken, the trial of the entry has no arguments of its own."""
    storage = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(storage=storage, study_name="skills")
    for _ in range(2):
        trial = study.ask()
        trial.set_user_attr(ARGUMENTS, {"intrinsic_kwargs": {"alpha": 0.1, "encoder": "fourier"}})
        study.tell(trial, 1.0)
    given = {"policy_kwargs": {"layer_norm": False}, "intrinsic_kwargs": {"alpha": 0.5}}
    found, entry = (
        read_by_zoo(given, storage=storage, study_name="skills", trial_id=1)._hyperparams,
        read_by_zoo({})._hyperparams,
    )
    assert found["policy_kwargs"] == {**entry["policy_kwargs"], "layer_norm": False}
    assert found["intrinsic_kwargs"] == {"alpha": 0.5, "encoder": "fourier"}


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """A run of RL Zoo that was stopped after 60 steps of 80."""
    folder = tmp_path_factory.mktemp("logs") / "Pendulum-v1_1"
    settings = {"n_skills": 3, "batch_size": 16, "intrinsic_kwargs": {"net_arch": [8]}}
    settings["policy_kwargs"] = {"activation_fn": th.nn.ELU, "net_arch": [8]}
    callback = ResumableCheckpoint(folder / "checkpoints", save_freq=60)
    DIAYN("MlpPolicy", "Pendulum-v1", learning_starts=20, device="cpu", **settings).learn(80, callback)
    (folder / "Pendulum-v1").mkdir()
    config = {**settings, "learning_rate": "lin_1e-4", "train_freq": 2, "normalize": False, "callback": "mine.Callback"}
    config |= {"noise_type": "normal", "noise_std": 0.3}
    (folder / "Pendulum-v1/config.yml").write_text(yaml.dump(config))
    (folder / "Pendulum-v1/args.yml").write_text(yaml.dump({"env": "Pendulum-v1", "env_kwargs": {"g": 9.8}}))
    return folder


def resumed(folder, given=None, env_id="Pendulum-v1", env_kwargs=None):
    agent = str(checkpoints_in(folder / "checkpoints")[0] / "model.zip")
    check_same_run(
        SimpleNamespace(
            algo="diayn", trained_agent=agent, custom_hyperparams=given, env_name=EnvironmentName(env_id),
            env_kwargs={"g": 9.8} if env_kwargs is None else env_kwargs,
        )
    )  # fmt: skip


@pytest.mark.parametrize(
    ("given", "message"),
    [
        (
            {"learning_rate": "lin_1e-4", "train_freq": 2, "policy_kwargs": {"net_arch": (8,)}, "callback": "other.Callback"},
            None,
        ),
        ({"n_skills": 3, "skill_duration": 50, "n_timesteps": 200}, None),
        ({"learning_rate": 0.01}, r"learning_rate was 'lin_1e-4'"),
        ({"train_freq": 1}, "train_freq was 2"),
        ({"skill_duration": None}, "skill_duration was 50"),
        ({"policy_kwargs": {"net_arch": [16]}}, r"policy_kwargs\.net_arch was \[8\]"),
        ({"intrinsic_kwargs": {"scale": 2.0}}, r"intrinsic_kwargs\.scale was not given"),
        ({"normalize": True}, "normalize was False"),
        ({"policy_kwargs": {"activation_fn": th.nn.ELU, "net_arch": [8]}, "noise_std": 0.3}, None),
        ({"policy_kwargs": {"activation_fn": th.nn.ReLU}}, r"policy_kwargs\.activation_fn was <class .*ELU'>"),
        ({"noise_std": 0.1}, r"noise_std was 0\.3"),
    ],
)
def test_a_run_of_rl_zoo_is_resumed_with_what_its_config_says(run, given, message):
    if message is None:
        resumed(run, given)
        return
    with pytest.raises(ValueError, match=rf"A resumed run keeps its hyperparameters \({message}\): leave that out of -params"):
        resumed(run, given)


def test_a_run_that_was_resumed_without_params_is_resumed_with_them(run, tmp_path):
    """Earlier versions wrote the entry to the file of a resumed run."""
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "Pendulum-v1/config.yml").write_text(yaml.dump({"batch_size": 256, "learning_starts": 1000, "n_skills": 8}))
    resumed(copy, {"batch_size": 16, "learning_starts": 20, "n_skills": 3})
    with pytest.raises(ValueError, match=r"\(batch_size was 16\)"):
        resumed(copy, {"batch_size": 256})


def test_a_resumed_run_keeps_its_best_model_and_its_config(run, tmp_path, capsys):
    saved = []
    manager = SimpleNamespace(algo="diayn", resumed_run=run / "Pendulum-v1")
    save = keep_config(lambda self, saved_hyperparams: saved.append(saved_hyperparams))
    entry = {"n_timesteps": 200, "batch_size": 256, "n_skills": 8, "gamma": 0.9, "callback": "other.Callback"}
    save(manager, entry)
    of_run = yaml.unsafe_load((run / "Pendulum-v1/config.yml").read_text())
    assert of_run["batch_size"] == 16 and of_run["n_skills"] == 3 and of_run["learning_rate"] == "lin_1e-4"
    assert saved[0] == {**of_run, "n_timesteps": 200, "callback": "other.Callback"}, "nothing that is not used"
    unused = "batch_size=256, n_skills=8, gamma=0.9"
    told = f"The run goes on with its own hyperparameters, instead of these of the yml file: {unused}\n"
    assert capsys.readouterr().out == told
    save(manager, {**of_run, "intrinsic_kwargs": {"net_arch": (8,)}})
    assert capsys.readouterr().out == "", "the same"
    del saved[1]
    del manager.resumed_run
    save(manager, entry)
    assert saved[1] is entry

    copy = shutil.copytree(run, tmp_path / "copy")
    (tmp_path / "next").mkdir()
    keep_best_model(copy / "Pendulum-v1", str(tmp_path / "next"))
    assert not list((tmp_path / "next").iterdir())
    (copy / "best_model.zip").write_bytes(b"the best")
    keep_best_model(copy / "Pendulum-v1", str(tmp_path / "next"))
    assert (tmp_path / "next/best_model.zip").read_bytes() == b"the best"


def test_a_run_of_rl_zoo_is_resumed_in_its_environment(run, tmp_path):
    for changed in ({"env_kwargs": {}}, {"env_kwargs": {"g": 1.6}}, {"env_id": "MountainCarContinuous-v0"}):
        with pytest.raises(ValueError, match=r"of --env Pendulum-v1 with --env-kwargs g:9\.8: resume it with the same, or"):
            resumed(run, **changed)
    # RL Zoo stores them in config.yml where they come from a yml file
    copy = shutil.copytree(run, tmp_path / "copy")
    (copy / "Pendulum-v1/args.yml").write_text(yaml.dump({"env": "Pendulum-v1", "env_kwargs": None}))
    resumed(copy, env_kwargs={})
    with pytest.raises(ValueError, match="without --env-kwargs: resume it with the same"):
        resumed(copy)
    (copy / "Pendulum-v1/config.yml").write_text(yaml.dump({"env_kwargs": {"g": 9.8}}))
    resumed(copy)


@pytest.mark.parametrize(("given", "expected"), [(None, {"g": 1.6}), ({"g": 5.0}, {"g": 5.0})])
def test_evaluations_have_the_arguments_of_the_environment_that_an_entry_sets(given, expected):
    def preprocess(manager, hyperparams):
        manager.env_kwargs = hyperparams.pop("env_kwargs")

    manager = SimpleNamespace(algo="cesd", env_kwargs={}, eval_env_kwargs=given or {}, _eval_env_kwargs_args=given)
    evaluate_in_same_env(preprocess)(manager, {"env_kwargs": {"g": 1.6}})
    assert manager.eval_env_kwargs == expected and manager.env_kwargs == {"g": 1.6}
