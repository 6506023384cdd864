"""Training with the arguments of a trial."""

from types import SimpleNamespace

import optuna
import pytest

from sb3_cesd import CeSD
from sb3_cesd.zoo.given import add_to_entry
from sb3_cesd.zoo.same_space import SEARCH_SPACE, description
from sb3_cesd.zoo.search import ARGUMENTS, SearchSpace
from sb3_cesd.zoo.trained_again import compare_settings, find_study, find_trial, load_arguments

ENTRY = {"batch_size": 64, "train_freq": 16, "buffer_size": 3000, "policy_kwargs": {"net_arch": [16]}}
OF_ENV = {"n_envs": 8, "normalize": None}


@pytest.fixture
def storage(tmp_path):
    """A study with a trial."""
    path = f"sqlite:///{tmp_path}/study.db"
    study = optuna.create_study(storage=path, study_name="skills")
    space = SearchSpace(CeSD, ENTRY, given={})
    study.set_user_attr(SEARCH_SPACE, description(space, {**OF_ENV, "env": "Walker-v0", "env_kwargs": {}, "n_timesteps": 300}))
    for _ in range(2):
        trial = study.ask()
        trial.set_user_attr(ARGUMENTS, {"batch_size": 32, "policy_kwargs": {"net_arch": [8]}})
        study.tell(trial, 1.0)
    return path


def settings_of_training(storage, entry, of_env, given=None, agent=""):
    """Load the trial, and read an entry of a yml file, as RL Zoo does."""
    manager = SimpleNamespace(
        algo="cesd",
        custom_hyperparams=given,
        settings_of_env=of_env,
        env_kwargs={},
        trained_agent=agent,
        env_name=SimpleNamespace(gym_id="Walker-v0"),
    )
    arguments = load_arguments(None)(manager, storage, "skills", 1)
    preprocess = compare_settings(lambda self, hyperparams: (hyperparams, None, [], None))
    return preprocess(manager, {**entry, **arguments, **(given or {})})[0]


def test_other_settings_than_those_of_the_study_are_named(storage):
    found = r"other settings \(buffer_size: 3000, now 9000, n_envs: 8, now None, train_freq: 16, now 2\): .* as in its study"
    with pytest.warns(UserWarning, match=found):
        settings = settings_of_training(storage, {**ENTRY, "train_freq": 2, "buffer_size": 9000}, {"n_envs": None})
    assert settings["batch_size"] == 32 and settings["train_freq"] == 2


@pytest.mark.filterwarnings("error")
def test_the_same_settings_and_those_of_the_user_are_not(storage):
    settings_of_training(storage, ENTRY, OF_ENV)
    settings_of_training(storage, ENTRY, OF_ENV, given={"buffer_size": 100})
    # With a model to start from, that of the model is used
    settings_of_training(storage, {**ENTRY, "ent_coef": "auto"}, OF_ENV, agent="skills.zip")


def test_unknown_studies_and_trials_are_refused(storage, tmp_path):
    study = find_study("skills", storage)
    assert find_trial(study, 1).number == 1
    with pytest.raises(ValueError, match=r"has 2 trials, counted from 0, but --trial-id is 17: choose one of them\."):
        find_trial(study, 17)
    with pytest.raises(ValueError, match=r"has no study 'skill', but skills: correct --study-name\."):
        find_study("skill", storage)
    with pytest.raises(ValueError, match=r"There is no .*study\.log: pass the --storage of the study\."):
        find_study("skills", f"{tmp_path}/study.log")
    with pytest.raises(ValueError, match=r"neither a file \.\.\.\.log nor a URL of a database: correct it\."):
        find_study("skills", "study.lg")


def test_a_study_of_another_method_is_refused(storage):
    for algo, remedy in (("apt", r"^The study 'skills' is of CeSD, not of APT: pass --algo cesd\.$"), ("cesd", None)):
        manager = SimpleNamespace(algo=algo, custom_hyperparams=None)
        if remedy is None:
            assert load_arguments(None)(manager, storage, "skills", 1)["batch_size"] == 32
            continue
        with pytest.raises(ValueError, match=remedy):
            load_arguments(None)(manager, storage, "skills", 1)


def test_trial_0_is_refused():
    manager = SimpleNamespace(algo="cesd", storage="study.log", study_name="skills", trial_id=0, custom_hyperparams=None)
    with pytest.raises(ValueError, match=r"RL Zoo ignores --trial-id 0.*: leave --trial-id out, and pass the -params of"):
        add_to_entry(lambda self: None)(manager)


@pytest.mark.filterwarnings("error")
def test_noise_of_the_entry_is_the_same(storage):
    settings_of_training(storage, {**ENTRY, "noise_type": "normal", "noise_std": 0.1}, OF_ENV)
