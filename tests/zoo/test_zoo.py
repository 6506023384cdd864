"""RL Zoo's commands as a user types them, each in a process of its own and from an empty folder."""

import os
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

import numpy as np
import pytest
import yaml
from rl_zoo import SMALL, run
from stable_baselines3.common.save_util import load_from_pkl

from sb3_cesd import METHODS, CeSD
from sb3_cesd.envs.robots.gl import egl_works

ROOT = Path(__file__).parents[2]


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder in which Walker-v0 was trained with most of RL Zoo's options at once."""
    folder = tmp_path_factory.mktemp("zoo")
    options = ["-n", 600, "--eval-freq", 300, "--eval-episodes", 1, "--save-freq", 200, "--save-replay-buffer", "-P"]
    options += ["--seed", 1, "--log-interval", 1, *SMALL]
    return folder, run(folder, "--algo", "cesd", "--env", "Walker-v0", *options, fresh=True)


def test_train_writes_what_rl_zoo_writes(trained):
    folder, output = trained
    run_folder = folder / "logs/cesd/Walker-v0_1"
    files = {path.name for path in run_folder.iterdir()}
    assert {"Walker-v0.zip", "best_model.zip", "evaluations.npz", "0.monitor.csv", "replay_buffer.pkl"} <= files
    assert {f"rl_model_{steps}_steps.zip" for steps in (200, 400, 600)} <= files
    assert (run_folder / "Walker-v0/config.yml").is_file()
    assert np.load(run_folder / "evaluations.npz")["timesteps"].tolist() == [300, 600]
    # Python 3.13: Shimmy misses labmaze, which the robots don't need
    expected = ("TqdmExperimentalWarning", "Warning, registration of `dm_control` locomotion envs has failed")
    assert not [line for line in output.splitlines() if "Warning" in line and not any(text in line for text in expected)]
    model = CeSD.load(run_folder / "Walker-v0.zip")
    assert model.num_timesteps == 600 and model.n_skills == 4 and model._n_updates == 250


def test_default_config_is_ours(trained):
    assert "Loading hyperparameters from: sb3_cesd.zoo.hyperparams.cesd\n" in trained[1]


def test_continue_training(trained):
    folder, _ = trained
    agent = folder / "logs/cesd/Walker-v0_1/Walker-v0.zip"
    output = run(
        folder, "--algo", "cesd", "--env", "Walker-v0", "-i", agent, "-n", 200, "--eval-freq", -1, "-f", "continued", *SMALL
    )
    assert "Loading pretrained agent" in output and "Loading replay buffer" in output
    continued = CeSD.load(folder / "continued/cesd/Walker-v0_1/Walker-v0.zip")
    before = CeSD.load(agent)
    # Counts go on, so that there is no warm-up: one update for every two steps; optimisers go on where they were
    assert continued.num_timesteps == before.num_timesteps + 200
    assert continued._n_updates == before._n_updates + 100
    first, second = (model.get_parameters()["actor.optimizer"]["state"][0]["step"] for model in (before, continued))
    assert second == first + 100


def test_continue_training_with_other_skills_is_refused_with_the_remedy(trained):
    folder, _ = trained
    agent = folder / "logs/cesd/Walker-v0_1/Walker-v0.zip"
    options = ["--algo", "cesd", "--env", "Walker-v0", "-i", agent, "-n", 100, "-f", "refused", "-params", "n_skills:16"]
    assert "pass n_skills=4 or leave it out" in run(folder, *options, success=False)


def test_skills_are_those_of_the_model_whatever_the_entry_says(trained, tmp_path):
    """The entry is of published scale; the replay buffer beside the model would not fit it."""
    folder, _ = trained
    agent = shutil.copy(folder / "logs/cesd/Walker-v0_1/Walker-v0.zip", tmp_path)
    output = run(folder, "--algo", "cesd", "--env", "Walker-v0", "-i", agent, "-n", 60, "-f", "skills_of_model")
    assert "Kept from the model, instead of the values of the yml file: n_skills=4" in output
    run_folder = folder / "skills_of_model/cesd/Walker-v0_1"
    assert CeSD.load(run_folder / "Walker-v0.zip").n_skills == 4
    config = dict(yaml.unsafe_load((run_folder / "Walker-v0/config.yml").read_text()))
    assert config["n_skills"] == 4 and config["policy_kwargs"] == {"net_arch": [16, 16]}
    assert config["intrinsic_kwargs"]["encoder_kwargs"] == {"net_arch": [16]} and config["batch_size"] == 1024


def tensors(path):
    return CeSD.load(path).policy.state_dict()


def test_a_task_starts_from_skills(trained):
    """Beside the agent lies the replay buffer of the pre-training, which is of no use."""
    folder, _ = trained
    agent = folder / "logs/cesd/Walker-v0_1/Walker-v0.zip"
    options = ["-n", 140, "--eval-freq", 140, "--eval-episodes", 1, "--seed", 3, "-f", "tuned", "--save-replay-buffer"]
    output = run(
        folder, "--algo", "cesd", "--env", "WalkerRun-v0", "-i", agent, *options, *SMALL, "learning_rate:1e-9", "skill:2",
        "policy_kwargs:dict(optimizer_kwargs=dict(eps=1e-5))",
    )  # fmt: skip
    assert "Fine-tuning skill 2 of" in output and "holds the pre-training, not the task" in output
    run_folder = folder / "tuned/cesd/WalkerRun-v0_1"
    model = CeSD.load(run_folder / "WalkerRun-v0.zip")
    assert (model.reward, model.skill, model.num_timesteps, model._n_updates) == ("extrinsic", 2, 140, 20)
    assert model.policy_kwargs == {"net_arch": [16, 16], "optimizer_kwargs": {"eps": 1e-5}}
    # After 20 tiny steps
    before, after = tensors(agent), model.policy.state_dict()
    close = {name: bool((after[name] - before[name]).abs().max() < 1e-4) for name in after if name in before}
    assert {".".join(name.split(".")[:2]) for name, same in close.items() if same} >= {"actor.mu", "critic.trunk"}
    assert not close["critic.shared_networks.0.0.weight"]
    # The same command with the result goes on with it, with its buffer, and the skill
    output = run(
        folder, "--algo", "cesd", "--env", "WalkerRun-v0", "-i", run_folder / "WalkerRun-v0.zip", "-n", 120, "--eval-freq", -1,
        "-f", "again", *SMALL,
    )  # fmt: skip
    assert "holds the pre-training" not in output
    again = CeSD.load(folder / "again/cesd/WalkerRun-v0_1/WalkerRun-v0.zip")
    # Steps count on, and the buffer is there: every other of 120 steps has an update
    assert again.skill == 2 and again._n_updates == 20 + 60


def test_without_an_agent_a_task_is_learned_from_scratch(tmp_path):
    run(tmp_path, "--algo", "cesd", "--env", "WalkerRun-v0", "-n", 140, "--eval-freq", -1, "--seed", 3, *SMALL)
    run_folder = tmp_path / "logs/cesd/WalkerRun-v0_1"
    model = CeSD.load(run_folder / "WalkerRun-v0.zip")
    assert (model.reward, model.skill, model.zero_shot, model._n_updates) == ("extrinsic", 0, None, 20)
    enjoy = run(
        tmp_path, "--algo", "cesd", "--env", "WalkerRun-v0", "-n", 1010, "-f", "logs", "--no-render", module="rl_zoo3.enjoy"
    )
    assert "Episode Reward:" in enjoy


@pytest.mark.slow
@pytest.mark.skipif(not egl_works(), reason="this machine has no EGL: install libegl1 libegl-mesa0 libgl1-mesa-dri")
def test_other_methods_fine_tune_and_record_videos(tmp_path):
    small = ["-params", "n_skills:3", "learning_starts:50", "batch_size:16", "buffer_size:500"]
    small += ["policy_kwargs:dict(net_arch=[16,16])", "intrinsic_kwargs:dict(net_arch=[16])"]
    run(tmp_path, "--algo", "diayn", "--env", "Quadruped-v0", "-n", 100, "--eval-freq", -1, *small)
    agent = "logs/diayn/Quadruped-v0_1/Quadruped-v0.zip"
    options = ["-n", 100, "--eval-freq", -1, *small, "skill:'best'"]
    output = run(tmp_path, "--algo", "diayn", "--env", "QuadrupedJump-v0", "-i", agent, *options)
    assert "Mean reward per step of each skill" in output
    options += ["n_eval_episodes:1", "warm_up:'random'"]
    output = run(tmp_path, "--algo", "diayn", "--env", "QuadrupedJump-v0", "-i", agent, *options)
    assert "(took 3000 steps, not part of num_timesteps)" in output
    run(
        tmp_path, "--algo", "diayn", "--env", "QuadrupedJump-v0", "-n", 20, "-f", "logs", "-o", "videos",
        module="rl_zoo3.record_video", fresh=True,
    )  # fmt: skip
    assert len(list((tmp_path / "videos").glob("*.mp4"))) == 1


@pytest.mark.slow
def test_a_task_is_normalised_as_the_pretraining_was(tmp_path):
    small = [*SMALL, "normalize:True"]
    run(tmp_path, "--algo", "cesd", "--env", "Walker-v0", "-n", 300, "--eval-freq", -1, *small)
    agent = "logs/cesd/Walker-v0_1/Walker-v0.zip"
    output = run(tmp_path, "--algo", "cesd", "--env", "WalkerRun-v0", "-i", agent, "-n", 200, "--eval-freq", -1, *small)
    assert "Loading saved VecNormalize stats" in output
    before, after = (
        load_from_pkl(tmp_path / f"logs/cesd/{name}-v0_1/{name}-v0/vecnormalize.pkl") for name in ("Walker", "WalkerRun")
    )
    assert 200 <= after.obs_rms.count - before.obs_rms.count <= 202
    # The result goes on with its own statistics, also in another folder
    agent = "logs/cesd/WalkerRun-v0_1/WalkerRun-v0.zip"
    run(tmp_path, "--algo", "cesd", "--env", "WalkerRun-v0", "-i", agent, "-n", 100, "--eval-freq", -1, "-f", "again", *small)
    again = load_from_pkl(tmp_path / "again/cesd/WalkerRun-v0_1/WalkerRun-v0/vecnormalize.pkl")
    assert 100 <= again.obs_rms.count - after.obs_rms.count <= 102


@pytest.mark.slow
def test_enjoy(trained):
    folder, _ = trained
    for which in ([], ["--load-best"], ["--load-checkpoint", 400], ["--load-last-checkpoint"]):
        options = ["-n", 1050, "-f", "logs", "--no-render"] if not which else ["-n", 20, "-f", "logs", "--no-render"]
        output = run(folder, "--algo", "cesd", "--env", "Walker-v0", *options, *which, module="rl_zoo3.enjoy")
        if not which:
            assert "Episode Reward:" in output


@pytest.mark.slow
@pytest.mark.skipif(not egl_works(), reason="this machine has no EGL: install libegl1 libegl-mesa0 libgl1-mesa-dri")
def test_record_video(trained):
    folder, _ = trained
    options = ["-n", 20, "-f", "logs", "-o", "videos"]
    run(folder, "--algo", "cesd", "--env", "Walker-v0", *options, module="rl_zoo3.record_video", fresh=True)
    videos = list((folder / "videos").glob("*.mp4"))
    assert len(videos) == 1 and videos[0].stat().st_size > 1000


@pytest.mark.slow
def test_console_script_with_parallel_environments(tmp_path):
    script = Path(sys.executable).with_name("rl_zoo3")
    output = run(
        tmp_path, script, "train", "--algo", "cesd", "--env", "Walker-v0", "-n", 400, "--eval-freq", 200, "--eval-episodes", 1,
        "--vec-env", "subproc", *SMALL, "n_envs:2", module=None,
    )  # fmt: skip
    assert "Using 2 environments" in output
    assert CeSD.load(tmp_path / "logs/cesd/Walker-v0_1/Walker-v0.zip")._n_updates == pytest.approx(150, abs=4)


@pytest.mark.slow
def test_any_environment_trains_by_the_default_entry_and_with_normalisation(tmp_path):
    output = run(tmp_path, "--algo", "cesd", "--env", "Pendulum-v1", "-n", 300, "--eval-freq", 200, *SMALL, "normalize:True")
    assert "Using 'default' hyperparameters" in output
    enjoy = run(
        tmp_path, "--algo", "cesd", "--env", "Pendulum-v1", "-n", 210, "-f", "logs", "--no-render", module="rl_zoo3.enjoy"
    )
    assert "Loading running average" in enjoy and "Episode Reward:" in enjoy


@pytest.mark.slow
def test_config_by_bare_name(tmp_path):
    output = run(
        tmp_path, "--algo", "cesd", "--env", "Walker-v0", "-n", 20, "--eval-freq", -1, "--conf-file", "cesd_laptop.yml"
    )
    assert "('n_skills', 8)" in output
    # So does the path of our file, from the repository
    folder = Path(os.path.relpath(ROOT / "hyperparams", tmp_path))
    output = run(
        tmp_path,
        "--algo",
        "cesd",
        "--env",
        "Walker-v0",
        "-n",
        20,
        "--eval-freq",
        -1,
        "--conf-file",
        folder / "cesd_laptop.yml",
    )
    assert "('n_skills', 8)" in output
    # A file of the user comes first
    (tmp_path / "cesd_laptop.yml").write_text("default: {policy: MlpPolicy, n_timesteps: 20, n_skills: 3, batch_size: 32}\n")
    output = run(tmp_path, "--algo", "cesd", "--env", "Walker-v0", "--eval-freq", -1, "--conf-file", "cesd_laptop.yml")
    assert "('n_skills', 3)" in output


def test_other_algorithms_are_left_alone(tmp_path):
    output = run(
        tmp_path, "--algo", "ppo", "--env", "Pendulum-v1", "-n", 64, "--eval-freq", -1, "-params", "n_envs:1", "n_steps:32"
    )
    assert "rl_zoo3/hyperparams/ppo.yml" in output.replace(os.sep, "/")


@pytest.mark.slow
@pytest.mark.parametrize("algo", [name for name in METHODS if name != "cesd"])
def test_other_methods_train_then_enjoy(tmp_path, algo):
    run(tmp_path, "--algo", algo, "--env", "MazeCorridor-v0", "-n", 1100, "--eval-freq", -1, "--num-threads", 1)
    model = METHODS[algo].load(tmp_path / f"logs/{algo}/MazeCorridor-v0_1/MazeCorridor-v0.zip")
    assert model.n_skills == 10 and model.skill_duration is None and model._n_updates == 20
    assert model.intrinsic_kwargs, "those of the maze's entry"
    options = ["-f", "logs", "-n", 60, "--no-render"]
    output = run(tmp_path, "--algo", algo, "--env", "MazeCorridor-v0", *options, module="rl_zoo3.enjoy")
    assert "Episode Length 50" in output


@pytest.mark.slow
def test_config_of_another_method_by_its_bare_name(tmp_path):
    arguments = ["--conf-file", "apt_laptop.yml", "--eval-freq", -1, "-n", 20, "--num-threads", 1]
    run(tmp_path, "--algo", "apt", "--env", "Pendulum-v1", *arguments)
    model = METHODS["apt"].load(tmp_path / "logs/apt/Pendulum-v1_1/Pendulum-v1.zip")
    assert model.batch_size == 256 and model.intrinsic.entropy.k == 8 and model.intrinsic.encoder.features_dim == 256


def test_the_hook_does_without_matplotlib():
    code = "import sys, sb3_cesd.zoo.patches; assert 'matplotlib' not in sys.modules"
    subprocess.run([sys.executable, "-c", code], check=True, timeout=120)


def test_train_without_the_hook(tmp_path):
    """As with ``pip install --target``: no .pth file is read."""
    arguments = ["--algo", "rnd", "--env", "Pendulum-v1", "-n", 130, "--eval-freq", -1, "--seed", 4, "--num-threads", 1]
    arguments += ["--conf-file", "rnd_laptop.yml", *SMALL[:-1], "intrinsic_kwargs:dict(net_arch=[16])"]
    paths = os.pathsep.join([str(ROOT), sysconfig.get_path("purelib")])
    without = {"module": "sb3_cesd.train", "options": ["-S"], "PYTHONPATH": paths}
    refused = run(tmp_path, *arguments, success=False, **{**without, "module": "rl_zoo3.train"})
    assert "invalid choice: 'rnd'" in refused
    for folder, how in (("without", without), ("with", {})):
        output = run(tmp_path, "-f", folder, *arguments, **how)
        assert "Loading hyperparameters from: sb3_cesd.zoo.hyperparams.rnd_laptop\n" in output
    first, second = (
        METHODS["rnd"].load(tmp_path / f"{folder}/rnd/Pendulum-v1_1/Pendulum-v1.zip").policy.state_dict()
        for folder in ("without", "with")
    )
    assert all(bool((first[name] == second[name]).all()) for name in first)
