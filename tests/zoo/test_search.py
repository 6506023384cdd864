"""What a study searches: not what is fixed, nothing too large, and less for a task."""

import inspect

import numpy as np
import optuna
import pytest
import torch as th
from rl_zoo3.utils import SimpleLinearSchedule
from stable_baselines3.common.noise import NormalActionNoise
from stable_baselines3.common.utils import ConstantSchedule

from sb3_cesd import METHODS, CeSD
from sb3_cesd.skill_ddpg.search_space import NET_ARCHS
from sb3_cesd.zoo.defaults import build_reward
from sb3_cesd.zoo.hyperparams import read_entry
from sb3_cesd.zoo.nested import walk
from sb3_cesd.zoo.search import OF_ENTRY, Corner, SearchSpace, SearchTrial, width


def ask():
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()


def space(method="cesd", env_id="Walker-v0", config=None, given=None, **kwargs):
    given = given or {}
    return SearchSpace(METHODS[method], {**read_entry(config or f"{method}_laptop", env_id), **given}, given, **kwargs)


@pytest.mark.parametrize("name", METHODS)
def test_laptop_scale_stays_at_laptop_scale(name):
    for largest in (True, False):
        arguments = space(name).draw(Corner(largest))
        assert arguments["n_skills"] <= 16 and arguments["batch_size"] <= 512
        for path, value in walk(arguments):
            assert path[-1] != "net_arch" or width(value) <= 512
        METHODS[name]("MlpPolicy", "Pendulum-v1", buffer_size=100, device="cpu", **arguments)


def test_published_scale_is_searched_as_a_whole():
    arguments = space(config="cesd").draw(Corner(largest=True))
    assert (arguments["n_skills"], arguments["batch_size"]) == (32, 1024)
    assert arguments["policy_kwargs"]["net_arch"]["pi"] == [1024, 1024]


def test_skills_of_a_maze_keep_to_the_whole_episode():
    trial = ask()
    arguments = space(env_id="MazeSquareA-v0", config="cesd").draw(trial)
    assert arguments["skill_duration"] is None and "skill_duration" not in trial.params
    assert width(arguments["policy_kwargs"]["net_arch"]) <= 256 and arguments["n_skills"] <= 20


@pytest.mark.parametrize(
    "given, not_drawn",
    [
        ({"n_skills": 10}, {"n_skills"}),
        ({"gamma": 0.9, "learning_rate": 0.1}, {"gamma", "learning_rate"}),
        ({"policy_kwargs": {"net_arch": [7, 7]}}, {"net_arch"}),
        ({"intrinsic_kwargs": {"encoder": "fourier", "alpha": 3.0}}, {"encoder", "alpha"}),
        ({"intrinsic_kwargs": {"entropy_kwargs": {"k": 9}}}, {"k"}),
        # Arguments that no trial draws, one of them of the name of another
        ({"train_freq": 7, "intrinsic_kwargs": {"encoder_kwargs": {"features_dim": 3}}}, set()),
    ],
    ids=lambda value: str(value) if isinstance(value, dict) else "",
)
def test_what_the_user_fixes_is_not_drawn(given, not_drawn):
    everything = ask()
    space().draw(everything)
    trial = ask()
    searched = space(given=given)
    arguments = searched.draw(trial)
    assert set(everything.params) - set(trial.params) == not_drawn
    merged = dict(walk({**given, **arguments}))
    for path, value in walk(given):
        assert merged[path] == value or isinstance(value, dict)
    # Networks of the reward follow those of the actor
    if "policy_kwargs" in given:
        assert all(value == [7, 7] for path, value in walk(arguments) if path[-1] == "net_arch")


def test_a_task_is_searched_for_what_matters_there():
    trial = ask()
    arguments = space(env_id="WalkerRun-v0", is_task=True).draw(trial)
    learning = {"learning_rate", "batch_size", "gamma", "tau", "n_steps", "exploration_noise", "noise_correlation"}
    assert set(trial.params) == {*learning, "net_arch"} and set(arguments) == {*learning, "policy_kwargs"}
    # A pre-trained model has its networks
    trial = ask()
    arguments = space(env_id="WalkerRun-v0", given={"tau": 0.1}, is_task=True, is_pretrained=True).draw(trial)
    assert set(trial.params) == learning - {"tau"} and set(arguments) == learning and arguments["tau"] == 0.1


def test_all_trials_play_enough_for_the_most_skills():
    assert space().most_skills == 16 and space(given={"n_skills": 40}).most_skills == 40


def plain_settings(part, depth=2):
    """Numbers, words and shapes of a reward and of its parts."""
    settings = {}
    for name, value in {**vars(part), **getattr(part, "_parameters", {}), **getattr(part, "_modules", {})}.items():
        if isinstance(value, bool | int | float | str):
            settings[name] = value
        elif isinstance(value, th.Tensor):
            settings[name] = value.shape
        elif depth and hasattr(value, "__dict__") and not isinstance(value, type):
            settings[name] = plain_settings(value, depth - 1)
    return settings


@pytest.mark.parametrize("env_id", ["Walker-v0", "MazeTree-v0"])
@pytest.mark.parametrize("scale", ["", "_laptop"])
@pytest.mark.parametrize("name", METHODS)
def test_a_trial_that_draws_what_the_entry_says_trains_with_it(name, scale, env_id):
    method, entry = METHODS[name], read_entry(f"{name}{scale}", env_id)
    searched = space(name, env_id, f"{name}{scale}")
    draws = searched.entry_draws
    arguments = searched.draw(optuna.trial.FixedTrial(draws))
    everything = ask()
    searched.draw(everything)
    assert set(draws) == set(everything.params)
    defaults = {key: each.default for key, each in inspect.signature(method).parameters.items()}
    for key, value in arguments.items():
        if not key.endswith("_kwargs"):
            assert value == entry.get(key, defaults[key])
    net_arch = entry.get("policy_kwargs", {}).get("net_arch", NET_ARCHS["big"])
    assert arguments["policy_kwargs"] == {**entry.get("policy_kwargs", {}), "net_arch": net_arch}
    drawn, said = (build_reward(method, given) for given in ({**entry, **arguments}, entry))
    assert plain_settings(drawn) == plain_settings(said) != {}


def test_what_the_entry_says_beside_the_draws_stays():
    """Clusters in mazes have a learning rate of their own, which no trial draws."""
    searched = space(env_id="MazeTree-v0", config="cesd")
    trial = ask()
    assert searched.draw(trial)["intrinsic_kwargs"]["prototype_kwargs"]["learning_rate"] == 3e-4
    # But not the arguments of another encoder
    laptop = space(given={})
    other = laptop.draw(optuna.trial.FixedTrial({**laptop.entry_draws, "encoder": "fourier"}))
    assert other["intrinsic_kwargs"]["encoder_kwargs"] == {}
    assert other["intrinsic_kwargs"]["cluster_window"] == 50
    own = laptop.draw(optuna.trial.FixedTrial({**laptop.entry_draws, "alpha": 3.0}))["intrinsic_kwargs"]
    assert own["encoder_kwargs"] == {"net_arch": [256, 256]} and own["alpha"] == 3.0
    assert own["constraint_kwargs"]["freeze_clusters"] and own["prototype_kwargs"]["sinkhorn_iterations"] == 6


def test_draws_beside_what_the_entry_freezes_make_a_reward():
    """The laptop entry has distances of observations, and clusters that freeze when the constraint starts."""
    laptop = space(given={})
    for draws in ({"distance_encoder": "temporal"}, {"start": 0.0}, {"distance_encoder": "same", "start": 0.8}):
        own = laptop.draw(optuna.trial.FixedTrial({**laptop.entry_draws, **draws}))["intrinsic_kwargs"]
        reward = build_reward(CeSD, {"intrinsic_kwargs": own})
        assert reward.constraint.freeze_clusters == (draws.get("start") != 0.0) and reward.average_window == 50
        if draws.get("distance_encoder") == "temporal":
            assert own["distance_encoder_kwargs"] == {"net_arch": [256, 256]}, "not those of the published scale"


def test_ranges_contain_what_the_entry_says():
    given = {"learning_rate": 0.1, "n_skills": 11, "policy_kwargs": {"net_arch": [77, 77]}}
    entry = {**read_entry("cesd_laptop", "Walker-v0"), **given, "n_steps": 9}
    searched = SearchSpace(METHODS["cesd"], entry, given={})
    assert {"learning_rate": 0.1, "n_skills": 11, "net_arch": "entry", "n_steps": 9}.items() <= searched.entry_draws.items()
    trial = ask()
    searched.draw(trial)
    assert trial.distributions["learning_rate"].high == 0.1 and trial.distributions["n_steps"].high == 9
    assert trial.distributions["n_skills"].choices == (4, 8, 11, 16)
    # Sorted by size, of which a limit is twice that of the entry
    assert trial.distributions["net_arch"].choices == ("small", "entry")


def test_what_rl_zoo_makes_of_numbers_is_a_number():
    entry = {**read_entry("cesd", "MazeTree-v0"), "learning_rate": ConstantSchedule(7e-4)}
    assert SearchSpace(METHODS["cesd"], entry, given={}).entry_draws["learning_rate"] == 7e-4


def test_a_linear_learning_rate_is_no_number():
    entry = {**read_entry("cesd", "MazeTree-v0"), "learning_rate": SimpleLinearSchedule(7e-4)}
    assert "learning_rate" not in SearchSpace(METHODS["cesd"], entry, given={}).entry_draws


def test_the_trial_of_the_entry_draws_nothing_else():
    study = optuna.create_study()
    searched = space(env_id="MazeTree-v0", config="cesd")
    study.enqueue_trial(searched.entry_draws, user_attrs={OF_ENTRY: True})
    first, second = SearchTrial(study.ask(), searched), SearchTrial(study.ask(), searched)
    assert first.draw() == {} == first.user_attrs["arguments"] and first.params == searched.entry_draws
    assert second.draw() and second.params != searched.entry_draws


def test_a_trial_keeps_its_arguments():
    trial = ask()
    drawn = SearchTrial(trial, space(given={"policy_kwargs": {"net_arch": [8], "optimizer_class": CeSD}})).draw()
    kept = trial.user_attrs["arguments"]
    # But for what JSON can't express
    assert kept == {**drawn, "policy_kwargs": {"net_arch": [8]}}


@pytest.mark.parametrize(
    "method, given, drawn",
    [("cesd", {}, True), ("metra", {}, False), ("cesd", {"ent_coef": "auto"}, False), ("metra", {"ent_coef": None}, True)],
)
@pytest.mark.parametrize("is_task", [False, True])
def test_noise_is_searched_where_it_matters(method, given, drawn, is_task):
    """A stochastic policy explores by itself."""
    trial = ask()
    arguments = space(method, given=given, is_task=is_task).draw(trial)
    noise = {"exploration_noise", "noise_correlation"}
    assert trial.params.keys() & noise == (noise if drawn else set())
    assert drawn or arguments["exploration_noise"] == 0.2, "that of the entry"


@pytest.mark.parametrize("is_task", [False, True])
def test_noise_of_the_user_replaces_that_of_the_method(is_task):
    trial = ask()
    space(given={"action_noise": NormalActionNoise(np.zeros(6), np.ones(6))}, is_task=is_task).draw(trial)
    assert not trial.params.keys() & {"exploration_noise", "noise_correlation"}
