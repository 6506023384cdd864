"""RL Zoo's tuning: what a study searches, its trials, and training with one of them."""

import inspect
from types import SimpleNamespace

import optuna
import pytest
import torch as th
from huggingface_sb3 import EnvironmentName
from rl_zoo import MAZE, run, train
from stable_baselines3.common.noise import NormalActionNoise

from sb3_cesd import METHODS, CeSD, preset
from sb3_cesd.zoo.manager import SkillExperimentManager
from sb3_cesd.zoo.tuning import SearchSpace, build_reward, leaves, width


def ask():
    return optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()


def space(method="cesd", env_id="Walker-v0", scale="laptop", given=None, **kwargs):
    given = given or {}
    return SearchSpace(METHODS[method], {**preset(scale, env_id, method), **given}, given, **kwargs)


def draw(searched, **values):
    """Draw the values of the entry but for some."""
    return searched.draw(optuna.trial.FixedTrial({**searched.start, **values}))


@pytest.mark.parametrize("name", METHODS)
def test_laptop_scale_stays_at_laptop_scale(name):
    searched = space(name)
    assert max(searched.searched.get("n_skills", [0])) <= 16 and max(searched.searched["batch_size"]) <= 512
    arguments = searched.arguments({**draws_of(searched), "net_arch": searched.searched["net_arch"][-1]})
    for path, value in leaves(arguments):
        assert path[-1] != "net_arch" or width(value) <= 512
    METHODS[name]("MlpPolicy", "Pendulum-v1", buffer_size=100, device="cpu", **arguments)


def test_images_are_not_averaged():
    assert "cluster_window" in space().searched or space().fixed["cluster_window"] == 50
    searched = space(given={"policy": "CnnPolicy"})
    assert searched.fixed["cluster_window"] == 1 and "cluster_window" not in searched.searched


def draws_of(searched, trial=None):
    """Any draws."""
    trial = trial or ask()
    searched.draw(trial)
    return trial.params


def plain_settings(part, depth=3):
    """The plain attributes of a reward and its parts."""
    settings = {}
    for name, value in {**vars(part), **dict(getattr(part, "named_children", dict)())}.items():
        if isinstance(value, bool | int | float | str):
            settings[name] = value
        elif isinstance(value, th.Tensor):
            settings[name] = value.shape
        elif depth and hasattr(value, "__dict__") and not isinstance(value, type):
            settings[name] = plain_settings(value, depth - 1)
    return settings


@pytest.mark.parametrize("env_id", ["Walker-v0", "MazeTree-v0"])
@pytest.mark.parametrize("scale", ["published", "laptop"])
@pytest.mark.parametrize("name", METHODS)
def test_the_first_trial_trains_with_the_entry(name, scale, env_id):
    method, entry = METHODS[name], preset(scale, env_id, name)
    searched = space(name, env_id, scale)
    assert searched.start.keys() == draws_of(searched).keys()
    arguments = draw(searched)
    defaults = {key: each.default for key, each in inspect.signature(method).parameters.items()}
    for key, value in arguments.items():
        if not key.endswith("_kwargs"):
            assert value == entry.get(key, defaults[key])
    assert arguments.get("policy_kwargs", entry.get("policy_kwargs")) == entry.get("policy_kwargs")
    drawn, said = (build_reward(method, given) for given in ({**entry, **arguments}, entry))
    assert plain_settings(drawn) == plain_settings(said) != {}


@pytest.mark.parametrize("net_arch", [[], [7, 9], {"pi": [8], "qf": []}, None])
def test_sizes_of_an_entry_stay_those_of_the_first_trial(net_arch):
    entry = {"policy_kwargs": {"net_arch": net_arch}, "intrinsic_kwargs": {"net_arch": [3]}}
    for given in ({}, {"policy_kwargs": entry["policy_kwargs"]}):
        arguments = draw(SearchSpace(METHODS["diayn"], entry, given))
        assert arguments.get("policy_kwargs", entry["policy_kwargs"]) == entry["policy_kwargs"]
        assert arguments["intrinsic_kwargs"]["net_arch"] == [3]


@pytest.fixture(params=["sqlite", "journal"])
def begin(request, tmp_path):
    """Begin or continue a study in a storage, as a worker does."""
    storage = f"sqlite:///{tmp_path}/study.db"
    if request.param == "journal":
        path = str(tmp_path / "study.log")
        storage = optuna.storages.JournalStorage(optuna.storages.journal.JournalFileBackend(path))
    names = {"algo": "cesd", "env_name": EnvironmentName(MAZE), "reward": "intrinsic", "pretrained": {}, "_hyperparams": {}}
    worker = SimpleNamespace(**names, search_space=space())
    return lambda: SkillExperimentManager._begin(
        worker, optuna.create_study(storage=storage, study_name="s", load_if_exists=True)
    )


def test_the_entry_is_trained_once_though_its_first_worker_was_killed(begin):
    begin().ask()
    first, second = (draws_of(space(), begin().ask()) for _ in range(2))
    assert first == space().start != second


def test_draws_are_merged_with_the_entry():
    maze = space(env_id="MazeTree-v0")
    assert draw(maze, alpha=3.0)["intrinsic_kwargs"]["prototype_kwargs"]["learning_rate"] == 3e-4
    published = space(scale="published")
    own = draw(published, alpha=3.0)["intrinsic_kwargs"]
    assert own["encoder_kwargs"] == {"net_arch": [1024, 1024]} and own["alpha"] == 3.0 and own["cluster_window"] == 50
    # Of another encoder, of the size of the entry; clusters learn before they freeze
    other = draw(space(), encoder="fourier", distance_encoder="temporal", start=0.0)["intrinsic_kwargs"]
    assert other["encoder_kwargs"] == {} and other["distance_encoder_kwargs"] == {"net_arch": [256, 256]}
    assert not build_reward(CeSD, {"intrinsic_kwargs": other}).constraint.freeze_clusters


@pytest.mark.parametrize(
    ("given", "not_searched"),
    [
        ({"n_skills": 10}, {"n_skills"}),
        ({"gamma": 0.9, "learning_rate": 0.1}, {"gamma", "learning_rate"}),
        ({"policy_kwargs": {"net_arch": [7, 7]}}, {"net_arch"}),
        ({"intrinsic_kwargs": {"encoder": "fourier", "alpha": 3.0}}, {"encoder", "alpha"}),
        ({"intrinsic_kwargs": {"entropy_kwargs": {"k": 9}}}, {"k"}),
        ({"normalize": True}, {"freeze_clusters"}),
        ({"ent_coef": 0.1}, {"exploration_noise", "noise_correlation"}),
        ({"action_noise": NormalActionNoise([0.0], [0.1])}, {"exploration_noise", "noise_correlation"}),
    ],
)
def test_what_is_given_is_not_searched(given, not_searched):
    searched = space(env_id="Pendulum-v1", given=given)
    assert space(env_id="Pendulum-v1").searched.keys() - searched.searched.keys() == not_searched
    arguments = searched.arguments(draws_of(searched))
    for path, value in leaves({name: value for name, value in given.items() if name.endswith("_kwargs")}):
        found = arguments
        for name in path:
            found = found[name]
        assert found == value
    kwargs = {name: value for name, value in {**given, **arguments}.items() if name != "normalize"}
    CeSD("MlpPolicy", "Pendulum-v1", device="cpu", **{**kwargs, "buffer_size": 100})


@pytest.mark.parametrize(
    ("name", "given", "searches"),
    [
        ("metra", {}, set()),
        ("metra", {"ent_coef": None}, {"exploration_noise", "noise_correlation"}),
        ("csd", {}, {"n_skills"}),
        ("dads", {}, {"exploration_noise", "noise_correlation"}),
        ("dads", {"skill_type": "discrete"}, {"exploration_noise", "noise_correlation", "n_skills"}),
    ],
)
def test_what_has_no_effect_on_training_is_not_searched(name, given, searches):
    """Noise of stochastic policies, and the number of continuous skills that evaluations play."""
    searched = space(name, "Pendulum-v1", given=given).searched
    assert searched.keys() & {"exploration_noise", "noise_correlation", "n_skills"} == searches


def test_a_task_is_searched_for_what_matters_there():
    from_scratch = space(env_id="WalkerRun-v0", is_task=True)
    expected = {"learning_rate", "batch_size", "gamma", "tau", "n_steps", "exploration_noise", "noise_correlation"}
    assert from_scratch.searched.keys() == expected | {"net_arch"}
    assert space(env_id="WalkerRun-v0", is_task=True, is_pretrained=True).searched.keys() == expected
    assert "intrinsic_kwargs" not in draw(from_scratch)


STUDY = ["-n", 120, "-optimize", "--n-startup-trials", 1, "--n-evaluations", 1, "--eval-episodes", 2, "--no-optim-plots"]


def load(folder, name="study"):
    return optuna.load_study(study_name=name, storage=f"sqlite:///{folder}/study.db")


@pytest.fixture(scope="module")
def skills(tmp_path_factory):
    """A study of skills that was continued, and a model."""
    folder = tmp_path_factory.mktemp("study")
    params = ["learning_starts:40", "batch_size:32", "n_envs:1", "intrinsic_kwargs:dict(alpha=0.5)"]
    params += ["callback:'sb3_cesd.callbacks.ResumableCheckpoint'"]
    storage = ["--storage", "sqlite:///study.db", "--study-name", "study"]
    output = [run(folder, *STUDY, *storage, "--n-trials", n, "-params", *params) for n in (2, 1)]
    run(folder, *storage, "--trial-id", 2, "-n", 50, "--eval-freq", -1, "-params", *params[:-1])
    train(folder, "-n", 150, "-f", "pretrained")
    return folder, output


@pytest.mark.slow
def test_a_study_of_skills_is_judged_by_them_and_continued(skills):
    folder, output = skills
    trials = load(folder).trials
    assert len(trials) == 3 and "skill_score" in output[0] and "Searched: n_skills" in output[0]
    for trial in trials:
        assert trial.value == trial.user_attrs["skill_score"] and "alpha" not in trial.params
    assert trials[0].params["n_skills"] == 10 and trials[0].params["encoder"] == "fourier", "the entry"
    assert len(list((folder / "logs/cesd").glob("report_*.csv"))) >= 1


@pytest.mark.slow
def test_a_trial_is_trained_again(skills):
    folder, _ = skills
    (path,) = folder.glob(f"logs/cesd/*/{MAZE}.zip")
    params, model = load(folder).trials[2].params, CeSD.load(path, device="cpu")
    assert (model.n_skills, model.n_steps, model.tau) == (params["n_skills"], params["n_steps"], params["tau"])
    own = model.intrinsic_kwargs
    assert (own["alpha"], own["encoder"], own["entropy_kwargs"]["k"]) == (0.5, params["encoder"], params["k"])
    assert own["prototype_kwargs"]["learning_rate"] == 3e-4 and model.batch_size == 32


@pytest.mark.slow
def test_a_study_of_something_else_is_not_continued(skills):
    storage = ["--storage", "sqlite:///study.db", "--study-name", "study"]
    with pytest.raises(ValueError, match="--study-name"):
        run(skills[0], *STUDY, *storage, "--n-trials", 1, algo="diayn")


@pytest.mark.slow
def test_a_study_fine_tunes_one_skill(skills):
    folder, _ = skills
    agent = folder / f"pretrained/cesd/{MAZE}_1/{MAZE}.zip"
    params = ["reward:'extrinsic'", "learning_starts:40", "n_envs:1", "batch_size:32"]
    storage = ["--storage", "study.log", "--study-name", "task"]
    for _ in range(2):
        output = run(folder, *STUDY, *storage, "--n-trials", 1, "-i", agent, "-params", *params)
    assert "All trials fine-tune skill" in output and "reward of the task" in output
    file = optuna.storages.journal.JournalFileBackend(str(folder / "study.log"))
    trials = optuna.load_study(study_name="task", storage=optuna.storages.JournalStorage(file)).trials
    (skill,) = {trial.params["skill"] for trial in trials}
    assert len(trials) == 2 and all(trial.value is not None for trial in trials)
    options = ["-f", "tuned", "-n", 60, "--eval-freq", -1, "--trial-id", 1, "-i", agent]
    run(folder, *storage, *options, "-params", *params)
    assert CeSD.load(folder / f"tuned/cesd/{MAZE}_1/{MAZE}.zip").skill == skill


def test_trials_that_learn_nothing_are_warned_of(tmp_path):
    with pytest.warns(UserWarning, match="learn nothing"):
        run(tmp_path, *STUDY, "--n-trials", 1, "-params", "n_envs:1")
