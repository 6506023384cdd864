"""What RL Zoo's studies are extended by, without a study."""

import os
import socket
import subprocess
import sys
from types import SimpleNamespace

import optuna
import pytest
import torch as th
from huggingface_sb3 import EnvironmentName
from optuna.trial import TrialState
from rl_zoo3.utils import SimpleLinearSchedule
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import ConstantSchedule, set_random_seed

from sb3_cesd import CeSD
from sb3_cesd.callbacks import ResumableCheckpoint
from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.zoo.first_trial import begin_with_entry
from sb3_cesd.zoo.same_space import SEARCH_SPACE
from sb3_cesd.zoo.search import OF_ENTRY, PROCESS, SearchTrial
from sb3_cesd.zoo.studies import N_UPDATES, describe, in_trials, make_loader, run_of, space_of, start_study, trial_time
from sb3_cesd.zoo.trained_again import load_arguments

ENTRY = {"policy": "MlpPolicy", "n_skills": 2, "policy_kwargs": {"net_arch": [8]}, "batch_size": 64, "learning_starts": 100}


def manager_of(entry, given):
    """What is asked of RL Zoo's ExperimentManager."""
    return SimpleNamespace(
        algo="cesd", _hyperparams={**entry, **given}, custom_hyperparams=given, trained_agent="", device="cpu", n_envs=1,
        n_timesteps=1000, create_envs=lambda n_envs, no_log: make_vec_env("Pendulum-v1", n_envs),
        env_name=EnvironmentName("Pendulum-v1"), env_kwargs={}, settings_of_env={"n_envs": 1, "normalize": None},
        eval_env_kwargs={}, n_eval_episodes=5, n_evaluations=1, normalize=False, normalize_kwargs={}, storage=None, seed=0,
    )  # fmt: skip


def test_the_estimate_leaves_the_seed_of_a_study_alone(capsys):
    drawn = []
    for seed in (1, 2):
        set_random_seed(seed)
        manager = manager_of(ENTRY, {"batch_size": 64})
        describe(manager, space_of(manager), CeSD)
        drawn.append(th.rand(3))
        set_random_seed(seed)
        assert th.equal(drawn[-1], th.rand(3)), "as without the estimate"
    assert not th.equal(*drawn) and "Estimated time of a trial" in capsys.readouterr().out


def test_the_estimate_learns_nothing_in_long_rollouts_and_looks_for_no_best_skill():
    made, skills = [], []

    def make(skill, **kwargs):
        skills.append(skill)
        made.append(CeSD(**kwargs))
        return made[-1]

    manager = manager_of({**ENTRY, "skill": "best", "train_freq": 50, "learning_starts": 10}, {})
    vars(manager).update(n_envs=8, create_envs=lambda n_envs, no_log: make_vec_env("Pendulum-v1", n_envs))
    assert trial_time(manager, make, {}) > 0
    assert skills == ["random"] and made[0]._n_updates == 1 + N_UPDATES


@pytest.fixture()
def storage(tmp_path):
    return f"sqlite:///{tmp_path}/study.db"


def begin(storage, entry, given, **run):
    """Begin a study, or go on with it, as RL Zoo does."""
    manager = manager_of(entry, given)
    vars(manager).update(run)
    create = begin_with_entry(optuna.create_study, space_of(manager), run_of(manager))
    return create(storage=storage, study_name="skills", load_if_exists=True, direction="maximize")


def test_a_study_goes_on_with_the_settings_that_it_began_with(storage):
    given = {
        "train_freq": (8, "step"),
        "learning_rate": ConstantSchedule(1e-3),
        "policy_kwargs": {"activation_fn": th.nn.ReLU},
    }
    begin(storage, ENTRY, given).ask()
    begin(storage, ENTRY, {**given, "learning_rate": ConstantSchedule(1e-3)}).ask()
    for entry, others, names in (
        ({**ENTRY, "batch_size": 128}, given, "batch_size"),
        (ENTRY, {**given, "learning_rate": ConstantSchedule(1e-2)}, "learning_rate"),
        (ENTRY, {**given, "policy_kwargs": {"activation_fn": th.nn.Tanh}}, "policy_kwargs.activation_fn"),
        (ENTRY, {**given, "intrinsic_kwargs": {"entropy_kwargs": {"k": 4}}}, "intrinsic_kwargs.entropy_kwargs.k, k"),
        ({**ENTRY, "reward": "extrinsic"}, given, "n_skills, reward, skill_duration, task"),
    ):
        remedy = r"begin another one with --study-name, or go on with the same --env, .* -i, and the same evaluations\.$"
        with pytest.raises(ValueError, match=rf"^The study 'skills' began with other settings \({names}\): {remedy}"):
            begin(storage, entry, others)


def test_a_study_goes_on_in_the_same_environment_from_the_same_model(storage, tmp_path):
    agent = tmp_path / "model.zip"
    model = make_small(CeSD)
    model.save(agent)
    run = {"trained_agent": str(agent), "env_kwargs": {"g": 9.8}}
    begin(storage, ENTRY, {}, **run).ask()
    moved = agent.rename(tmp_path / "moved.zip")
    run["trained_agent"] = str(moved)
    begin(storage, ENTRY, {}, **run).ask()
    for changed, name in (
        ({"env_name": EnvironmentName("MazeSquareA-v0")}, "env"),
        ({"env_kwargs": {"g": 1.6}}, r"env_kwargs\.g"),
        ({"n_timesteps": 999}, "n_timesteps"),
        ({"settings_of_env": {"n_envs": 4, "normalize": None}}, "n_envs"),
        ({"settings_of_env": {"n_envs": 1, "normalize": True}}, "normalize"),
        ({"n_eval_episodes": 500, "n_evaluations": 3}, "n_eval_episodes, n_evaluations"),
        ({"eval_env_kwargs": {"g": 1.6}}, r"eval_env_kwargs\.g"),
    ):
        with pytest.raises(ValueError, match=rf"other settings \({name}\): begin another one .*the same --env, -n, "):
            begin(storage, ENTRY, {}, **{**run, **changed})
    make_small(CeSD, seed=1).save(moved)
    with pytest.raises(ValueError, match=r"other settings \(trained_agent\): .*-params and -i, and the same evaluations\.$"):
        begin(storage, ENTRY, {}, **run)


def test_a_study_that_something_else_began_is_refused(storage):
    optuna.create_study(storage=storage, study_name="skills").ask()
    with pytest.raises(ValueError, match=r"'skills' has trials of another algorithm or program: begin another .*--study-name"):
        begin(storage, ENTRY, {})


def test_what_a_study_notes(storage):
    given = {"learning_rate": SimpleLinearSchedule(3e-4), "replay_buffer_class": SkillReplayBuffer}
    noted = begin(storage, ENTRY, given).user_attrs[SEARCH_SPACE]
    assert noted["given"] == {"learning_rate": "lin_0.0003"} and noted["run"]["env"] == "Pendulum-v1"
    assert noted["classes"] == {"replay_buffer_class": "sb3_cesd.common.buffers.SkillReplayBuffer"}


def test_the_trial_of_the_entry_that_was_stopped_is_taken_again(storage):
    states = [TrialState.FAIL, TrialState.FAIL, TrialState.COMPLETE]
    for state in states:
        study = begin(storage, ENTRY, {})
        # Another process that starts now adds none
        waiting = begin(storage, ENTRY, {}).get_trials(states=[TrialState.WAITING])
        assert [trial.user_attrs for trial in waiting] == [{OF_ENTRY: True}]
        trial = study.ask()
        assert trial.user_attrs[OF_ENTRY] and not begin(storage, ENTRY, {}).get_trials(states=[TrialState.WAITING])
        study.tell(trial, 1.0 if state == TrialState.COMPLETE else None, state)
    assert [trial.state for trial in begin(storage, ENTRY, {}).trials] == states


@pytest.mark.parametrize("state", [TrialState.PRUNED, TrialState.RUNNING])
def test_the_trial_of_the_entry_is_taken_once(storage, state):
    study = begin(storage, ENTRY, {})
    trial = study.ask()
    SearchTrial(trial, space_of(manager_of(ENTRY, {}))).draw()
    if state == TrialState.PRUNED:
        trial.report(0.5, 1)
        study.tell(trial, state=state)
    assert [each.state for each in begin(storage, ENTRY, {}).trials] == [state]


def test_the_trial_of_the_entry_that_failed_is_taken_again(storage):
    """RL Zoo prunes a trial that ends with an error."""
    study = begin(storage, ENTRY, {})
    study.tell(study.ask(), state=TrialState.PRUNED)
    assert [each.state for each in begin(storage, ENTRY, {}).trials] == [TrialState.PRUNED, TrialState.WAITING]


@pytest.mark.skipif(os.name != "posix", reason="looking for a process would end it")
def test_the_trial_of_the_entry_that_was_killed_is_taken_again(storage):
    trial = begin(storage, ENTRY, {}).ask()
    SearchTrial(trial, space_of(manager_of(ENTRY, {}))).draw()
    assert trial.user_attrs[PROCESS] == [socket.gethostname(), os.getpid()]
    ended = subprocess.Popen([sys.executable, "-c", ""])
    ended.wait()
    for process, n_waiting in (([f"not {socket.gethostname()}", ended.pid], 0), ([socket.gethostname(), ended.pid], 1)):
        trial.set_user_attr(PROCESS, process)
        assert len(begin(storage, ENTRY, {}).get_trials(states=[TrialState.WAITING])) == n_waiting


@pytest.mark.parametrize("has_buffer", [False, True])
def test_a_trial_from_a_model_learns_as_a_training_from_it(tmp_path, has_buffer):
    """It counts on from the steps of the model, so that a constrained model does not explore again."""
    agent = tmp_path / "model.zip"
    pretrained = make_small(CeSD).learn(100)
    assert pretrained.intrinsic.is_constrained
    pretrained.save(agent)
    if has_buffer:
        pretrained.save_replay_buffer(tmp_path / "replay_buffer.pkl")
    make = in_trials(make_loader(CeSD, agent, {}), agent)
    models = []
    for trial in (make(env="Pendulum-v1", learning_starts=20), make(env="Pendulum-v1", learning_starts=20)):
        model = trial.learn(60, callback=None)
        models.append(model)
        assert model.num_timesteps == 160 and model.intrinsic.is_constrained
        assert model.replay_buffer.size() == (160 if has_buffer else 60)
        # An update per two steps: at once with the transitions of the model
        assert model._n_updates - pretrained._n_updates == (30 if has_buffer else 20)
    assert models[0] is not models[1]


def test_a_buffer_of_other_environments_can_be_moved_away(tmp_path):
    agent = tmp_path / "model.zip"
    model = make_small(CeSD).learn(60)
    model.save(agent)
    model.save_replay_buffer(tmp_path / "replay_buffer.pkl")
    make = in_trials(make_loader(CeSD, agent, {}), agent)
    with pytest.raises(
        ValueError, match=r"its n_envs is 1, the model's is 2\. .* without this buffer \(in RL Zoo: move the file away\)\.$"
    ):
        make(env=make_vec_env("Pendulum-v1", 2))


def test_a_storage_that_is_none_is_refused_at_once(monkeypatch):
    manager = manager_of(ENTRY, {})
    for storage in ("study.db", "sqlite://study.db"):
        manager.storage = storage
        with pytest.raises(
            ValueError, match=rf"--storage {storage} is neither a file \.\.\.\.log nor a URL .*: correct it\.$"
        ):
            start_study({"cesd": None})(None)(manager)


@pytest.mark.parametrize(
    ("normalize", "given", "is_searched"),
    [
        (False, {}, True),
        (True, {}, False),
        ({"norm_obs": False}, {}, True),
        (True, {"intrinsic_kwargs": {"constraint_kwargs": {"freeze_clusters": True}}}, False),
    ],
)
def test_clusters_do_not_freeze_while_statistics_go_on(normalize, given, is_searched):
    manager = manager_of(ENTRY, given)
    manager.normalize, manager.normalize_kwargs = bool(normalize), normalize if isinstance(normalize, dict) else {}
    searched = space_of(manager)
    trial = optuna.create_study().ask()
    drawn = searched.draw(trial)["intrinsic_kwargs"]["constraint_kwargs"]["freeze_clusters"]
    assert ("freeze_clusters" in trial.params) == is_searched
    assert is_searched or drawn == bool(given)


def test_only_what_is_drawn_is_fixed_by_normalisation():
    manager = manager_of(ENTRY, {})
    manager.algo, manager.normalize = "apt", True
    assert space_of(manager).fixed.keys() & {"freeze_clusters"} == set()


def test_a_task_from_a_model_begins_at_0(tmp_path):
    make_small(CeSD).learn(100).save(tmp_path / "model.zip")
    make = in_trials(make_loader(CeSD, tmp_path / "model.zip", {}), tmp_path / "model.zip")
    assert make(env="Pendulum-v1", reward="extrinsic").learn(60).num_timesteps == 60


def test_what_a_method_does_not_take_is_named():
    for given, name in (({"intrinsic_kwargs": {"encoderr": "icm"}}, "encoderr"), ({"policy_kwargs": {"nets": [8]}}, "nets")):
        with pytest.raises(ValueError, match=f"has no '{name}': use some of"):
            start_study({"cesd": CeSD})(None)(manager_of(ENTRY, given))


@pytest.mark.parametrize(
    "callbacks, kept",
    [
        ([], []),
        ("sb3_cesd.callbacks.ResumableCheckpoint", []),
        ({"sb3_cesd.checkpoints.ResumableCheckpoint": {"path": "checkpoints"}}, []),
        (ResumableCheckpoint(), []),
        ([{"sb3_cesd.callbacks.ResumableCheckpoint": {}}, "sb3_cesd.callbacks.SkillMetricsCallback"], None),
    ],
    ids=["none", "name", "with a path", "made", "one of two"],
)
def test_trials_do_without_checkpoints(callbacks, kept):
    manager = manager_of(ENTRY, {"batch_size": 64})
    manager.specified_callbacks = callbacks
    seen = []
    start_study({"cesd": CeSD})(lambda self: seen.append(self.specified_callbacks))(manager)
    assert seen == [["sb3_cesd.callbacks.SkillMetricsCallback"] if kept is None else kept]


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


def kept_and_loaded(storage, entry, given, now=None):
    """Draw a trial that is not of the entry, and load its arguments; ``now`` is what -params gives then."""
    study = begin(storage, entry, given)
    study.ask()
    trial = study.ask()
    SearchTrial(trial, space_of(manager_of(entry, given))).draw()
    manager = manager_of(entry, now or {})
    loaded = load_arguments(None)(manager, storage, "skills", trial.number)
    return {**loaded, **manager.custom_hyperparams}


def test_a_trial_trains_again_with_classes_and_linear_schedules(storage):
    entry = {**ENTRY, "policy_kwargs": {"net_arch": [8], "activation_fn": th.nn.Tanh}}
    given = {"learning_rate": SimpleLinearSchedule(3e-4), "policy": th.nn.Identity, "replay_buffer_class": CeSD}
    loaded = kept_and_loaded(storage, entry, given)
    assert loaded["learning_rate"] == "lin_0.0003"
    assert loaded["policy_kwargs"].keys() == {"net_arch", "activation_fn"}
    assert loaded["policy_kwargs"]["activation_fn"] is th.nn.Tanh
    assert loaded["replay_buffer_class"] is CeSD
    assert loaded["policy"] == "torch.nn.modules.linear.Identity", "as RL Zoo takes it"


def test_what_a_study_can_not_keep_is_to_be_said_again(storage):
    entry = {**ENTRY, "policy_kwargs": {"net_arch": [8], "activation_fn": lambda: th.nn.LeakyReLU(0.2)}}
    with pytest.raises(ValueError, match=r"^Trial 1 .* with policy_kwargs\.activation_fn, .*: pass it again with -params\.$"):
        kept_and_loaded(storage, entry, {})
    loaded = kept_and_loaded(storage, entry, {}, now={"policy_kwargs": {"activation_fn": th.nn.ELU}})
    assert loaded["policy_kwargs"]["activation_fn"] is th.nn.ELU and "net_arch" in loaded["policy_kwargs"]


def test_a_trial_whose_arguments_are_plain_trains_again(storage):
    study = begin(storage, ENTRY, {})
    study.ask()
    trial = study.ask()
    trial.set_user_attr("arguments", {"policy_kwargs": {"net_arch": [8]}})
    loaded = load_arguments(None)(manager_of(ENTRY, {}), storage, "skills", trial.number)
    assert loaded == {"policy_kwargs": {"net_arch": [8]}}
