"""Runs of RL Zoo that go on from a checkpoint."""

import os
import shutil
import signal
import subprocess
import sys
import time
from types import SimpleNamespace

import pytest
from learned import differences
from rl_zoo import SMALL, run
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv

from sb3_cesd import DIAYN, CeSD
from sb3_cesd.checkpoints import ResumableCheckpoint, resume
from sb3_cesd.checkpoints.folders import checkpoints_in
from sb3_cesd.zoo.experiment import go_on, going_on, is_resumed, resume_checkpoint
from sb3_cesd.zoo.same_run import check_same_run, folder_of_run, keep_best_model

OPTIONS = ["--algo", "cesd", "--env", "MazeSquareA-v0", "--seed", 1, "--eval-freq", -1]
CALLBACK = "callback:[{'sb3_cesd.callbacks.ResumableCheckpoint':{'save_freq':150,'keep':3}}]"
RUN_FOLDER = "cesd/MazeSquareA-v0_1"


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("zoo")
    run(folder, *OPTIONS, "-n", 400, *SMALL, CALLBACK)
    return folder


def final_model(folder):
    return CeSD.load(folder / RUN_FOLDER / "MazeSquareA-v0.zip", device="cpu")


def test_checkpoints_are_beside_the_model(trained):
    found = checkpoints_in(trained / "logs" / RUN_FOLDER / "checkpoints")
    assert [path.name for path in found] == ["steps_000000000200", "steps_000000000300", "steps_000000000400"]


@pytest.mark.slow
@pytest.mark.parametrize(("module", "file"), [("rl_zoo3.train", "model.zip"), ("sb3_cesd.train", "")], ids=["model", "folder"])
def test_resumed_run_ends_as_the_uninterrupted_one(trained, tmp_path, module, file):
    checkpoint = trained / "logs" / RUN_FOLDER / "checkpoints/steps_000000000200" / file
    output = run(tmp_path, *OPTIONS, "-i", checkpoint, "-n", 400, *SMALL, CALLBACK, module=module)
    assert "Resuming the run of the checkpoint" in output
    whole, resumed = final_model(trained / "logs"), final_model(tmp_path / "logs")
    assert resumed.num_timesteps == whole.num_timesteps == 400
    assert not differences(whole, resumed)
    assert resumed.learning_starts == whole.learning_starts


@pytest.mark.slow
def test_saved_model_counts_on(trained, tmp_path):
    """It does not go back to exploring: it learns at once from the transitions it has, else after it has collected some."""
    agent = trained / "logs" / RUN_FOLDER / "MazeSquareA-v0.zip"
    run(tmp_path, *OPTIONS, "-i", agent, "-n", 200, *SMALL)
    before, after = CeSD.load(agent), final_model(tmp_path / "logs")
    assert after.num_timesteps == 600 and after.learning_starts == 100
    # 300 steps with updates, then 100
    assert 3 * (after._n_updates - before._n_updates) == before._n_updates > 0
    assert after._current_progress_remaining < 1 / 3


@pytest.mark.slow
@pytest.mark.parametrize(("number", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 0)])
def test_a_signal_ends_the_run_with_a_checkpoint_to_go_on_from(tmp_path, number, code):
    """RL Zoo takes Ctrl-C for the wish to save the model and to end, with exit code 0."""
    checkpoints = tmp_path / "logs" / RUN_FOLDER / "checkpoints"
    command = [sys.executable, "-m", "rl_zoo3.train", *map(str, OPTIONS), "-n", str(10**8), *SMALL, CALLBACK]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    with subprocess.Popen(command, cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT) as process:
        end = time.monotonic() + 120
        while not checkpoints_in(checkpoints) and process.poll() is None and time.monotonic() < end:
            time.sleep(0.05)
        process.send_signal(number)
        output = process.communicate(timeout=120)[0].decode()
    assert process.returncode == code, output[-3000:]
    latest = checkpoints_in(checkpoints)[-1]
    n_timesteps = CeSD.load(latest / "model.zip", device="cpu").num_timesteps
    assert n_timesteps % 100 == 0 and latest.name == f"steps_{n_timesteps:012d}"
    if number == signal.SIGINT:
        assert final_model(tmp_path / "logs").num_timesteps == n_timesteps, "stopped between two checkpoints"
    folder = tmp_path / "next"
    folder.mkdir()
    output = run(folder, *OPTIONS, "-i", checkpoints, "-n", n_timesteps + 200, *SMALL, CALLBACK, module="sb3_cesd.train")
    assert "Resuming the run of the checkpoint" in output
    assert final_model(folder / "logs").num_timesteps == n_timesteps + 200


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory):
    """A checkpoint of a small DIAYN model that was trained for 60 steps of 80."""
    folder = tmp_path_factory.mktemp("run") / "checkpoints"
    settings = {"n_skills": 3, "batch_size": 16, "policy_kwargs": {"net_arch": [8]}, "intrinsic_kwargs": {"net_arch": [8]}}
    callback = ResumableCheckpoint(folder, save_freq=60)
    DIAYN("MlpPolicy", "Pendulum-v1", learning_starts=20, device="cpu", **settings).learn(80, callback)
    return checkpoints_in(folder)[0]


def test_a_checkpoint_of_another_method_is_refused(checkpoint):
    manager = SimpleNamespace(algo="cesd", custom_hyperparams=None, trained_agent=str(checkpoint / "model.zip"))
    with pytest.raises(ValueError, match=r"is a checkpoint of DIAYN, not of CeSD: pass its name in lower case to --algo"):
        check_same_run(manager)


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"tau": 0.5}, "tau was 0.01"),
        ({"n_skills": 3, "policy_kwargs": {"net_arch": [8]}}, None),
        ({"skill": "best", "learning_rate": "lin_1e-3", "gradient_steps": None, "callback": "mine.Callback"}, None),
        ({"intrinsic_kwargs": {"scale": 2.0}, "reward": "extrinsic"}, "reward was 'intrinsic'"),
    ],
)
def test_a_resumed_run_takes_no_other_hyperparameters(checkpoint, given, message):
    manager = SimpleNamespace(algo="diayn", custom_hyperparams=given, trained_agent=str(checkpoint / "model.zip"))
    if message is None:
        check_same_run(manager)
        return
    with pytest.raises(
        ValueError, match=rf"A resumed run keeps its hyperparameters \(.*{message}\): leave that out of -params"
    ):
        check_same_run(manager)


def test_a_task_starts_from_the_checkpoint_of_a_pretraining(checkpoint):
    manager = SimpleNamespace(trained_agent=str(checkpoint / "model.zip"))
    assert is_resumed(manager, {}) and is_resumed(manager, {"reward": "intrinsic"})
    assert not is_resumed(manager, {"reward": "extrinsic"})
    assert not is_resumed(SimpleNamespace(trained_agent=str(checkpoint / "other" / "model.zip")), {})


def manager_of(n_timesteps, of_command=-1, given=None):
    """What is asked of RL Zoo's ExperimentManager when a run goes on."""
    args = SimpleNamespace(n_timesteps=of_command)
    return SimpleNamespace(
        algo="diayn", callbacks=[], n_timesteps=n_timesteps, save_path="", args=args, custom_hyperparams=given
    )


def test_a_run_that_was_continued_is_resumed_to_its_own_end(checkpoint):
    """It counts from where it was continued, not from the steps of the model it went on with."""
    model = resume(checkpoint, "Pendulum-v1", device="cpu")
    assert model.num_timesteps == 60
    model._num_timesteps_at_start = 40
    manager = manager_of(n_timesteps=40, of_command=40)
    learned = []
    go_on(lambda self, stand_in: learned.append(self.n_timesteps))(manager, model)
    assert learned == [20]


@pytest.mark.parametrize(
    ("given", "learned", "said"), [(-1, 30, ""), (90, 30, ""), (200, 140, "With this -n, it ends at step 200")]
)
def test_without_another_n_a_run_ends_where_it_would_have_ended(checkpoint, capsys, given, learned, said):
    """Whatever the entry says: another --conf-file may have other steps."""
    model = resume(checkpoint, "Pendulum-v1", device="cpu")
    model._total_timesteps = 90
    manager = manager_of(given if given > 0 else 2_000_000, given)
    go_on(lambda self, stand_in: None)(manager, model)
    assert manager.n_timesteps == learned
    printed = capsys.readouterr().out
    assert said in printed if said else not printed


def test_a_number_of_steps_among_the_params_is_that_of_the_run(checkpoint, capsys):
    model = resume(checkpoint, "Pendulum-v1", device="cpu")
    model._total_timesteps = 90
    manager = manager_of(200, given={"n_timesteps": 200})
    go_on(lambda self, stand_in: None)(manager, model)
    assert manager.n_timesteps == 140 and "it ends at step 200" in capsys.readouterr().out


def test_a_refused_run_leaves_no_best_model(checkpoint, tmp_path):
    """Its folder would look like that of a run."""
    logs, save_path = tmp_path / "DIAYN_1", tmp_path / "DIAYN_2"
    (logs / "Pendulum-v1").mkdir(parents=True), save_path.mkdir()
    shutil.copytree(checkpoint, logs / "checkpoints" / checkpoint.name)
    (logs / "best_model.zip").write_text("best")
    (logs / "Pendulum-v1/args.yml").write_text("env: Pendulum-v1")
    manager = manager_of(100)
    vars(manager).update(
        trained_agent=str(logs / "checkpoints" / checkpoint.name / "model.zip"), env_kwargs={},
        env_name=SimpleNamespace(gym_id="Pendulum-v1"), save_path=str(save_path), device="cpu", tensorboard_log=None,
        verbose=0,
    )  # fmt: skip
    load = resume_checkpoint({})(None)
    with pytest.raises(ValueError, match="is of 1 environments, not of 2"):
        load(manager, {}, make_vec_env("Pendulum-v1", 2))
    assert not list(save_path.iterdir())
    load(manager, {}, make_vec_env("Pendulum-v1"))
    assert (save_path / "best_model.zip").read_text() == "best"


def test_other_environments_than_those_of_the_run_are_refused_with_the_remedy_of_rl_zoo(checkpoint):
    model = resume(checkpoint, make_vec_env("Pendulum-v1", vec_env_cls=SubprocVecEnv), device="cpu")
    try:
        with pytest.raises(
            ValueError, match=r"SubprocVecEnv: pass as many .* \(in RL Zoo, with the --vec-env of the run\)\.$"
        ):
            model.learn(10, reset_num_timesteps=False)
    finally:
        model.env.close()


def test_curves_of_a_run_that_goes_on_are_not_added_to_those_of_another(checkpoint, tmp_path):
    logs = tmp_path / "logs"
    for _ in range(2):
        make_small(DIAYN, tensorboard_log=str(logs)).learn(20)
    model = resume(checkpoint, "Pendulum-v1", device="cpu", tensorboard_log=str(logs))
    before = {path: path.stat().st_size for path in logs.glob("*/*")}
    going_on(model).learn(10)
    assert sorted(path.name for path in logs.iterdir()) == ["DIAYN_1", "DIAYN_2", "DIAYN_3"]
    assert all(path.stat().st_size == size for path, size in before.items())


def test_a_checkpoint_is_found_from_its_own_folder(checkpoint, monkeypatch):
    run_folder = checkpoint.parent.parent / "Pendulum-v1"
    run_folder.mkdir(exist_ok=True)
    (run_folder / "args.yml").touch()
    try:
        for folder, agent in ((checkpoint, "model.zip"), (checkpoint.parent, f"{checkpoint.name}/model.zip")):
            monkeypatch.chdir(folder)
            assert folder_of_run(agent) == run_folder
    finally:
        (run_folder / "args.yml").unlink()


def test_the_best_model_of_a_run_keeps_its_statistics(tmp_path):
    run_folder, resumed = tmp_path / "one" / "Pendulum-v1", tmp_path / "two"
    run_folder.mkdir(parents=True), resumed.mkdir()
    (run_folder.parent / "best_model.zip").write_text("best")
    keep_best_model(run_folder, str(resumed))
    assert not (resumed / "Pendulum-v1").exists()
    (run_folder / "vecnormalize.pkl").write_text("statistics")
    keep_best_model(run_folder, str(resumed))
    assert (resumed / "best_model.zip").read_text() == "best"
    assert (resumed / "Pendulum-v1/vecnormalize.pkl").read_text() == "statistics"


def test_a_run_that_is_over_says_so(checkpoint, capsys):
    model = resume(checkpoint, "Pendulum-v1", device="cpu")
    manager = manager_of(n_timesteps=50, of_command=50)
    learned = []
    go_on(lambda self, stand_in: learned.append(self.n_timesteps))(manager, model)
    assert learned == [0] and "has already ended, after 60 steps: pass a larger -n" in capsys.readouterr().out
