"""RL Zoo's training: from scratch, from models, from checkpoints."""

import os
import shutil
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
import yaml
from learned import differences
from rl_zoo import CHECKPOINTS, MAZE, SMALL, folder_of, model_of, run, train
from rl_zoo3.exp_manager import ExperimentManager
from stable_baselines3.common.save_util import load_from_pkl

from sb3_cesd import METHODS, CeSD
from sb3_cesd.checkpoints import checkpoints_in
from sb3_cesd.zoo.manager import SkillExperimentManager

ROOT = Path(__file__).parents[2]


@pytest.fixture
def agent(zoo_run):
    return folder_of(zoo_run[0]) / f"{MAZE}.zip"


def test_train_writes_what_rl_zoo_writes(zoo_run):
    folder, output = zoo_run
    files = {path.name for path in folder_of(folder).iterdir()}
    assert {"best_model.zip", "evaluations.npz", "0.monitor.csv", "replay_buffer.pkl", "rl_model_200_steps.zip"} <= files
    assert {"config.yml", "args.yml", "vecnormalize.pkl"} <= {path.name for path in (folder_of(folder) / MAZE).iterdir()}
    with np.load(folder_of(folder) / "evaluations.npz") as written:
        assert written["timesteps"].tolist() == [200, 400] and "skill_score" in written
    assert f"hyperparams{os.sep}cesd.yml\n" in output and "Using one thread" in output and "New best skill score!" in output
    model = model_of(folder)
    assert (model.num_timesteps, model.n_skills, model.skill_duration) == (400, 4, None)
    assert model.intrinsic_kwargs["prototype_kwargs"] == {"learning_rate": 3e-4}, "-params leaves the rest of the entry"
    names = [path.name for path in checkpoints_in(folder_of(folder) / "checkpoints")]
    assert len(names) == 2 and names[-1] == "steps_000000000400"


def test_runs_that_begin_together_have_folders_of_their_own(tmp_path):
    first, second = (
        SimpleNamespace(
            log_path=tmp_path, env_name=MAZE, save_path=f"{tmp_path}/{MAZE}_1", params_path=f"{tmp_path}/{MAZE}_1/{MAZE}"
        )
        for _ in range(2)
    )
    for each in (first, second):
        SkillExperimentManager.create_log_folder(each)
    assert [Path(each.save_path).name for each in (first, second)] == [f"{MAZE}_1", f"{MAZE}_2"]
    assert Path(second.params_path) == tmp_path / f"{MAZE}_2" / MAZE


def test_a_model_goes_on_where_it_was(zoo_run, agent, tmp_path):
    """Counts go on, so that CeSD does not explore again; optimisers, buffer and statistics, too."""
    params = ["buffer_size:2000", "batch_size:32", "learning_starts:100", "n_envs:1"]
    output = run(tmp_path, "-n", 100, "--eval-freq", -1, "-i", agent, "-params", *params)
    assert "n_skills=4" in output and "Loading replay buffer" in output
    before, after = model_of(zoo_run[0]), model_of(tmp_path)
    assert after.num_timesteps == 500 and after.n_skills == 4
    first, second = (model.get_parameters()["actor.optimizer"]["state"][0]["step"] for model in (before, after))
    assert second == first + 100 // 5
    counts = [load_from_pkl(folder_of(each) / MAZE / "vecnormalize.pkl").obs_rms.count for each in (zoo_run[0], tmp_path)]
    assert counts[1] == pytest.approx(counts[0] + 100, abs=2)
    assert yaml.unsafe_load((folder_of(tmp_path) / MAZE / "config.yml").read_text())["normalize"] is True


def test_without_its_transitions_a_model_first_collects_others(tmp_path):
    """As many, too, if it was saved while another run went on in this way."""
    train(tmp_path, "-n", 120)
    params = ["batch_size:32", "buffer_size:2000", "n_envs:1"]
    agents = [folder_of(tmp_path) / f"{MAZE}.zip", folder_of(tmp_path, 2) / "rl_model_230_steps.zip"]
    for number, agent in enumerate(agents, 2):
        run(tmp_path, "-n", 120, "--eval-freq", -1, "--save-freq", 110, "-i", agent, "-params", *params)
        before, after = CeSD.load(agent, device="cpu"), model_of(tmp_path, number)
        assert before.learning_starts == after.learning_starts == 100
        assert after._n_updates - before._n_updates == 20 // after.train_freq.frequency


@pytest.mark.parametrize(
    ("params", "skill"), [(["skill:2"], 2), (["skill:'best'", "transfer:['actor']", "learning_starts:40"], None)]
)
def test_a_task_starts_from_skills(agent, tmp_path, params, skill):
    """With the statistics of the pre-training, though neither entry nor user normalises."""
    options = ["-n", 120, "--eval-freq", 60, "--eval-episodes", 1, "-i", agent]
    output = run(tmp_path, *options, "-params", "reward:'extrinsic'", "n_envs:1", "batch_size:32", *params)
    assert f"skill {'2' if skill else 'that does best'}".split()[-1] in output and "New best mean reward!" in output
    model = model_of(tmp_path)
    assert model.reward == "extrinsic" and model.num_timesteps == 120 and (skill is None or model.skill == skill)
    assert (folder_of(tmp_path) / MAZE / "vecnormalize.pkl").is_file() and model.get_vec_normalize_env() is None
    enjoyed = run(tmp_path, "-n", 10, "-f", "logs", "--no-render", module="rl_zoo3.enjoy")
    assert "Loading running average" in enjoyed and f"Skill {model.skill}, which learned the task, acts" in enjoyed


def test_a_task_without_an_entry_is_warned_of(agent, tmp_path):
    moved = tmp_path / "Other-v0_1" / "model.zip"
    (moved.parent / "Other-v0").mkdir(parents=True)
    shutil.copy(agent, moved)
    (moved.parent / "Other-v0/args.yml").touch()
    with pytest.warns(UserWarning, match="does not use its reward"):
        train(tmp_path, "-n", 20, "-i", moved)


@pytest.mark.parametrize("params", [["n_skills:16"], ["intrinsic_kwargs:dict(encoder='fourier')"]])
def test_what_a_model_keeps_can_not_be_changed(agent, tmp_path, params):
    with pytest.raises(ValueError, match=r"n_skills|encoder"):
        run(tmp_path, "-n", 20, "-i", agent, "-params", "n_envs:1", *params)


def test_a_run_is_resumed(zoo_run, tmp_path):
    """It ends as the uninterrupted one, in RL Zoo from the model of a checkpoint, here also from their folder."""
    folder = folder_of(zoo_run[0]) / "checkpoints"
    first = checkpoints_in(folder)[0]
    shutil.copytree(first, tmp_path / "checkpoints" / first.name)
    params = ["normalize:True", CHECKPOINTS]
    output = train(tmp_path, "-n", 400, "-i", tmp_path / "checkpoints", params=params, module="sb3_cesd.train")
    assert "Resuming the run" in output
    assert not differences(model_of(zoo_run[0]), model_of(tmp_path))
    train(tmp_path, "-n", 430, "-i", checkpoints_in(folder)[-1] / "model.zip", params=params)
    assert model_of(tmp_path, 2).num_timesteps == 430, "-n counts from the start of the run"


def test_environments_are_batched_and_evaluated_with_the_arguments_of_the_entry(tmp_path):
    (tmp_path / "mine.yml").write_text(
        "Walker-v0: {policy: MlpPolicy, n_timesteps: 200, n_envs: 4, batched: True, env_kwargs: {max_episode_steps: 50},\n"
        "  buffer_size: 1000, learning_starts: 100, train_freq: 2, batch_size: 32, policy_kwargs: 'dict(net_arch=[8])'}\n"
    )
    options = ["--conf-file", "mine.yml", "--eval-freq", 200, "--eval-episodes", 1, "--n-eval-envs", 2]
    run(tmp_path, *options, "-params", "n_skills:2", "policy_kwargs:dict(n_critics=2)", env="Walker-v0")
    model = model_of(tmp_path, env="Walker-v0")
    assert model.num_timesteps == 200 and model.policy_kwargs == {"net_arch": [8], "n_critics": 2}
    for idx in range(4):
        assert len((folder_of(tmp_path, env="Walker-v0") / f"{idx}.monitor.csv").read_text().splitlines()) == 2 + 1
    with np.load(folder_of(tmp_path, env="Walker-v0") / "evaluations.npz") as written:
        assert written["ep_lengths"].max() == 50


@pytest.mark.slow
@pytest.mark.parametrize("algo", [name for name in METHODS if name != "cesd"])
def test_every_method_trains_by_its_entry_and_is_enjoyed(tmp_path, algo):
    run(tmp_path, "-n", 1100, "--eval-freq", -1, algo=algo)
    model = model_of(tmp_path, algo=algo)
    assert model.n_skills == 10 and model.skill_duration is None and model._n_updates == 20
    enjoyed = run(tmp_path, "-f", "logs", "-n", 60, "--no-render", module="rl_zoo3.enjoy", algo=algo)
    assert "10 Episodes" in enjoyed


@pytest.mark.slow
def test_dreamers_train_by_their_entry_and_are_enjoyed(tmp_path):
    env = "MazeSquareAPixels-v0"
    run(tmp_path, "-n", 1200, "--eval-freq", -1, algo="cesd_dreamer", env=env)
    model = model_of(tmp_path, algo="cesd_dreamer", env=env)
    assert model.n_skills == 10 and model._n_updates == 20
    enjoyed = run(tmp_path, "-f", "logs", "-n", 60, "--no-render", module="rl_zoo3.enjoy", algo="cesd_dreamer", env=env)
    assert "10 Episodes" in enjoyed


def test_other_algorithms_are_left_to_rl_zoo(tmp_path):
    output = run(
        tmp_path, "-n", 64, "--eval-freq", 32, "--eval-episodes", 1, "-params", "n_envs:1", "n_steps:32",
        algo="ppo", env="Pendulum-v1",
    )  # fmt: skip
    assert "rl_zoo3/hyperparams/ppo.yml" in output.replace(os.sep, "/") and "New best mean reward!" in output
    assert type(SkillExperimentManager(None, "ppo", "Pendulum-v1", str(tmp_path))) is SkillExperimentManager.__base__
    assert ExperimentManager is SkillExperimentManager.__base__ or ExperimentManager is SkillExperimentManager


@pytest.mark.parametrize(
    ("params", "meant"),
    [
        ("batchsize:3", "batch_size"),
        ("intrinsic_kwargs:dict(alhpa=1)", "alpha"),
        ("policy_kwargs:dict(netarch=[8])", "net_arch"),
        ("intrinsic_kwargs:dict(entropy_kwargs=dict(kk=1))", "k"),
    ],
)
@pytest.mark.parametrize("optimize", [[], ["-optimize", "--n-trials", 1]])
def test_misspelt_arguments(tmp_path, params, meant, optimize):
    with pytest.raises((TypeError, ValueError), match=f"did you mean .{meant}"):
        run(tmp_path, *optimize, "-params", params)


def run_process(folder, *command, **environment):
    """Run a command in a process of its own."""
    result = subprocess.run(
        [sys.executable, *map(str, command)], cwd=folder, capture_output=True, text=True, timeout=600,
        env={**os.environ, "OMP_NUM_THREADS": "1", **environment},
    )  # fmt: skip
    return result.returncode, result.stdout + result.stderr


def test_the_command_as_a_user_types_it(tmp_path):
    options = ["-n", 160, "--eval-freq", 100, "--eval-episodes", 1, "-params", *SMALL, "n_envs:1"]
    code, output = run_process(tmp_path, "-m", "rl_zoo3.train", "--algo", "cesd", "--env", "Quadruped-v0", *options)
    assert code == 0 and model_of(tmp_path, env="Quadruped-v0").num_timesteps == 160, output
