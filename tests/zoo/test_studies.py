"""What RL Zoo's studies are extended by, without a study."""

from types import SimpleNamespace

import optuna
import pytest
import torch as th
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import ConstantSchedule, set_random_seed

from sb3_cesd import CeSD
from sb3_cesd.zoo.same_space import SEARCH_SPACE
from sb3_cesd.zoo.search import OF_ENTRY, SearchTrial
from sb3_cesd.zoo.studies import begin_with_entry, describe, load_arguments, space_of

ENTRY = {"policy": "MlpPolicy", "n_skills": 2, "policy_kwargs": {"net_arch": [8]}, "batch_size": 64}


def manager_of(entry, given):
    """What is asked of RL Zoo's ExperimentManager."""
    return SimpleNamespace(
        algo="cesd", _hyperparams={**entry, **given}, custom_hyperparams=given, trained_agent="", device="cpu", n_envs=1,
        n_timesteps=1000, create_envs=lambda n_envs, no_log: make_vec_env("Pendulum-v1", n_envs),
    )  # fmt: skip


def test_the_estimate_leaves_the_seed_of_a_study_alone(capsys):
    drawn = []
    for seed in (1, 2):
        set_random_seed(seed)
        describe(manager_of(ENTRY, {"batch_size": 64}), CeSD)
        drawn.append(th.rand(3))
        set_random_seed(seed)
        assert th.equal(drawn[-1], th.rand(3)), "as without the estimate"
    assert not th.equal(*drawn) and "Estimated time of a trial" in capsys.readouterr().out


@pytest.fixture()
def storage(tmp_path):
    return f"sqlite:///{tmp_path}/study.db"


def begin(storage, entry, given):
    """Begin a study, or go on with it, as RL Zoo does."""
    create = begin_with_entry(optuna.create_study, space_of(manager_of(entry, given)))
    return create(storage=storage, study_name="skills", load_if_exists=True, direction="maximize")


def test_a_study_goes_on_with_the_settings_that_it_began_with(storage):
    given = {"train_freq": (8, "step"), "learning_rate": ConstantSchedule(1e-3)}
    begin(storage, ENTRY, given).ask()
    begin(storage, ENTRY, {**given, "learning_rate": ConstantSchedule(1e-3)}).ask()
    for entry, others, names in (
        ({**ENTRY, "batch_size": 128}, given, "batch_size"),
        (ENTRY, {**given, "learning_rate": ConstantSchedule(1e-2)}, "learning_rate"),
        (ENTRY, {**given, "intrinsic_kwargs": {"entropy_kwargs": {"k": 4}}}, "intrinsic_kwargs.entropy_kwargs.k, k"),
        ({**ENTRY, "reward": "extrinsic"}, given, "n_skills, reward, skill_duration, task"),
    ):
        remedy = r"begin another one with --study-name, or go on with the same --conf-file, -params and -i\.$"
        with pytest.raises(ValueError, match=rf"^The study 'skills' began with other settings \({names}\): {remedy}"):
            begin(storage, entry, others)


def test_a_study_of_an_earlier_version_goes_on(storage):
    optuna.create_study(storage=storage, study_name="skills").ask()
    assert SEARCH_SPACE not in begin(storage, ENTRY, {}).user_attrs


def test_a_trial_trains_again_with_what_params_gave_in_its_study(storage):
    given = {"train_freq": (8, "step"), "learning_rate": ConstantSchedule(1e-3)}
    manager = manager_of(ENTRY, given)
    study = begin(storage, ENTRY, given)
    trials = [study.ask(), study.ask()]
    drawn = [SearchTrial(trial, space_of(manager)).draw() for trial in trials]
    load = load_arguments(None)
    again = [load(manager_of(ENTRY, {}), storage, "skills", trial.number) for trial in trials]
    assert trials[0].user_attrs[OF_ENTRY] and again[0] == {"train_freq": [8, "step"], "learning_rate": 1e-3}
    assert again[1] == {**drawn[1], **again[0]} and "batch_size" in again[1]
