"""What a study searches: not what is fixed, nothing too large, and less for a task."""

import optuna
import pytest

from sb3_cesd import METHODS, CeSD
from sb3_cesd.zoo.hyperparams import read_entry
from sb3_cesd.zoo.search import Corner, SearchSpace, SearchTrial, walk, width


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


def test_a_trial_keeps_its_arguments():
    trial = ask()
    drawn = SearchTrial(trial, space(given={"policy_kwargs": {"net_arch": [8], "optimizer_class": CeSD}})).draw()
    kept = trial.user_attrs["arguments"]
    # But for what JSON can't express
    assert kept == {name: value for name, value in drawn.items() if name != "policy_kwargs"} and kept
