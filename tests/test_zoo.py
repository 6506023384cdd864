"""RL Zoo's commands as a user types them, each in a process of its own and from an empty folder."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import yaml
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.save_util import load_from_pkl

from sb3_cesd import CeSD, search_spaces, zoo
from sb3_cesd.envs.gl import egl_works
from sb3_cesd.envs.registration import ENVS

SMALL = [
    "-params",
    "n_skills:4",
    "learning_starts:100",
    "batch_size:32",
    "buffer_size:2000",
    "policy_kwargs:dict(net_arch=[16,16])",
    "encoder_kwargs:dict(net_arch=[16])",
    "entropy_kwargs:dict(k=3)",
]


def run(folder, *arguments, module="rl_zoo3.train", success=True):
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    command = [sys.executable, "-m", module] if module else []
    result = subprocess.run(
        [*command, *map(str, arguments)], cwd=folder, env=environment, capture_output=True, text=True, timeout=300
    )
    assert (result.returncode == 0) == success, result.stdout[-3000:] + result.stderr[-3000:]
    return result.stdout + result.stderr


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A folder in which Walker-v0 was trained with most of RL Zoo's options at once."""
    folder = tmp_path_factory.mktemp("zoo")
    options = ["-n", 600, "--eval-freq", 200, "--eval-episodes", 1, "--save-freq", 200, "--save-replay-buffer", "-P"]
    output = run(folder, "--algo", "cesd", "--env", "Walker-v0", "--seed", 1, "--log-interval", 1, *options, *SMALL)
    return folder, output


def test_train_writes_what_rl_zoo_writes(trained):
    folder, output = trained
    run_folder = folder / "logs/cesd/Walker-v0_1"
    files = {path.name for path in run_folder.iterdir()}
    assert {"Walker-v0.zip", "best_model.zip", "evaluations.npz", "0.monitor.csv", "replay_buffer.pkl"} <= files
    assert {f"rl_model_{steps}_steps.zip" for steps in (200, 400, 600)} <= files
    assert (run_folder / "Walker-v0/config.yml").is_file()
    assert np.load(run_folder / "evaluations.npz")["timesteps"].tolist() == [200, 400, 600]
    # Python 3.13: Shimmy misses labmaze, which the robots don't need
    expected = ("TqdmExperimentalWarning", "Warning, registration of `dm_control` locomotion envs has failed")
    assert not [line for line in output.splitlines() if "Warning" in line and not any(text in line for text in expected)]
    model = CeSD.load(run_folder / "Walker-v0.zip")
    assert model.num_timesteps == 600 and model.n_skills == 4 and model._n_updates == 250


def test_default_config_is_ours(trained):
    assert "hyperparams/cesd.yml" in trained[1].replace(os.sep, "/")


def test_continue_training(trained):
    folder, _ = trained
    agent = folder / "logs/cesd/Walker-v0_1/Walker-v0.zip"
    output = run(
        folder, "--algo", "cesd", "--env", "Walker-v0", "-i", agent, "-n", 200, "--eval-freq", -1, "-f", "continued", *SMALL
    )
    assert "Loading pretrained agent" in output and "Loading replay buffer" in output
    continued = CeSD.load(folder / "continued/cesd/Walker-v0_1/Walker-v0.zip")
    before = CeSD.load(agent)
    # 100 steps of warm-up, then one update for every two steps; optimisers go on where they were
    assert continued._n_updates == before._n_updates + 50
    first, second = (model.get_parameters()["actor.optimizer"]["state"][0]["step"] for model in (before, continued))
    assert second == first + 50


def test_continue_training_with_other_skills_is_refused_with_the_remedy(trained):
    folder, _ = trained
    agent = folder / "logs/cesd/Walker-v0_1/Walker-v0.zip"
    output = run(folder, "--algo", "cesd", "--env", "Walker-v0", "-i", agent, "-n", 100, "-f", "refused", success=False)
    assert "pass n_skills=4 or leave it out" in output


def tensors(path):
    return CeSD.load(path).policy.state_dict()


def test_a_task_starts_from_skills(trained):
    """Beside the agent lies the replay buffer of the pre-training, which is of no use."""
    folder, _ = trained
    agent = folder / "logs/cesd/Walker-v0_1/Walker-v0.zip"
    options = ["-n", 140, "--eval-freq", 140, "--eval-episodes", 1, "--seed", 3, "-f", "tuned", "--save-replay-buffer"]
    output = run(
        folder, "--algo", "cesd", "--env", "WalkerRun-v0", "-i", agent, *options, *SMALL, "learning_rate:1e-9", "skill:2"
    )  # fmt: skip
    assert "Fine-tuning skill 2 of" in output and "holds the pre-training, not the task" in output
    run_folder = folder / "tuned/cesd/WalkerRun-v0_1"
    model = CeSD.load(run_folder / "WalkerRun-v0.zip")
    assert (model.reward, model.skill, model.num_timesteps, model._n_updates) == ("extrinsic", 2, 140, 20)
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
    assert again.skill == 2 and again._n_updates == 20 + 10


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
    options = ["-n", 100, "--eval-freq", -1, *small, "skill:'best'", "n_eval_episodes:1"]
    output = run(tmp_path, "--algo", "diayn", "--env", "QuadrupedJump-v0", "-i", agent, *options)
    assert "(took 3000 steps, not part of num_timesteps)" in output
    run(
        tmp_path, "--algo", "diayn", "--env", "QuadrupedJump-v0", "-n", 20, "-f", "logs", "-o", "videos",
        module="rl_zoo3.record_video",
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
    run(folder, "--algo", "cesd", "--env", "Walker-v0", "-n", 20, "-f", "logs", "-o", "videos", module="rl_zoo3.record_video")
    videos = list((folder / "videos").glob("*.mp4"))
    assert len(videos) == 1 and videos[0].stat().st_size > 1000


@pytest.mark.slow
def test_console_script_with_parallel_environments(tmp_path):
    script = Path(sys.executable).with_name("rl_zoo3")
    output = run(
        tmp_path, script, "train", "--algo", "cesd", "--env", "Walker-v0", "-n", 400, "--eval-freq", 200, "--eval-episodes", 1,
        "--vec-env", "subproc", *SMALL, "n_envs:4", module=None,
    )  # fmt: skip
    assert "Using 4 environments" in output
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
    # A file of the user comes first
    (tmp_path / "cesd_laptop.yml").write_text("default: {policy: MlpPolicy, n_timesteps: 20, n_skills: 3, batch_size: 32}\n")
    output = run(tmp_path, "--algo", "cesd", "--env", "Walker-v0", "--eval-freq", -1, "--conf-file", "cesd_laptop.yml")
    assert "('n_skills', 3)" in output


@pytest.mark.slow
def test_tuning_in_two_processes_with_one_storage(tmp_path):
    import optuna

    arguments = [
        "--algo", "cesd", "--env", "Pendulum-v1", "-n", "200", "-optimize", "--n-trials", "2", "--n-evaluations", "1",
        "--eval-episodes", "1", "--storage", "study.log", "--study-name", "skills", "--sampler", "random", "--no-optim-plots",
        "--n-startup-trials", "0", "-params", "learning_starts:100", "buffer_size:2000",
    ]  # fmt: skip
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "rl_zoo3.train", *arguments, "--seed", str(seed)],
            cwd=tmp_path, env=environment, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
        )
        for seed in (0, 1)
    ]  # fmt: skip
    outputs = [process.communicate(timeout=400)[0] for process in processes]
    for process, output in zip(processes, outputs, strict=True):
        assert process.returncode == 0, output[-3000:]

    backend = optuna.storages.journal.JournalFileBackend(str(tmp_path / "study.log"))
    study = optuna.load_study(study_name="skills", storage=optuna.storages.JournalStorage(backend))
    assert len(study.trials) == 4
    assert {trial.state for trial in study.trials} <= {optuna.trial.TrialState.COMPLETE, optuna.trial.TrialState.PRUNED}
    # A trial can be trained by its number
    output = run(
        tmp_path, "--algo", "cesd", "--env", "Pendulum-v1", "-n", 20, "--eval-freq", -1,
        "--storage", "study.log", "--study-name", "skills", "--trial-id", 1, "-f", "trial",
    )  # fmt: skip
    assert "Loading from Optuna study" in output
    model = CeSD.load(tmp_path / "trial/cesd/Pendulum-v1_1/Pendulum-v1.zip")
    expected = search_spaces.convert_cesd(study.trials[1].params)
    assert model.learning_rate(1) == expected.pop("learning_rate")
    assert {name: getattr(model, name) for name in expected} == {**expected, "policy_kwargs": model.policy_kwargs}
    assert model.policy_kwargs["net_arch"] == expected["policy_kwargs"]["net_arch"]


def test_sampler_and_converter_agree_and_every_draw_makes_a_model():
    import optuna

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    seen = set()
    for _ in range(12):
        trial = study.ask()
        params = zoo.ALGORITHMS["cesd"].sample(trial, 1, 1, {})
        assert params == search_spaces.convert_cesd(trial.params)
        if params["policy_kwargs"]["net_arch"]["pi"] != [1024, 1024]:
            CeSD("MlpPolicy", "Pendulum-v1", buffer_size=100, **params)
        seen.add((params["encoder"], params["relabel_kwargs"]["critic"]))
    assert len(seen) > 4


@pytest.mark.parametrize("name", ["cesd", "cesd_laptop"])
def test_tuning_loses_nothing_of_our_files(name):
    """A trial replaces ``*_kwargs`` as a whole, so it has to draw all that the files set in them."""
    import optuna

    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    draws = [zoo.ALGORITHMS["cesd"].sample(study.ask(), 1, 1, {}) for _ in range(10)]
    entries = yaml.safe_load((zoo.hyperparams_folder() / f"{name}.yml").read_text())
    for env_id, entry in entries.items():
        # Mazes have settings of their own, of the constructor's defaults they name some that are not searched
        if env_id.startswith("Maze"):
            continue
        for kwargs in ("prototype_kwargs", "entropy_kwargs", "constraint_kwargs", "relabel_kwargs"):
            assert all(set(entry.get(kwargs, {})) <= set(draw[kwargs]) for draw in draws)


@pytest.mark.parametrize("n_envs, n_episodes, expected", [(1, 5, 8), (2, 4, 4), (3, 4, 12), (8, 1, 8)])
def test_objective_is_the_mean_over_all_skills(make_model, n_envs, n_episodes, expected):
    import optuna
    import rl_zoo3.exp_manager

    followed = {}

    class Spy(rl_zoo3.exp_manager.TrialEvalCallback):
        def _log_success_callback(self, locals_, globals_):
            """Called for every step that counts."""
            if locals_["done"]:
                skill = int(locals_["observations"][locals_["i"], -4:].argmax())
                followed.setdefault(self.n_calls, []).append(skill)

    trial = optuna.create_study().ask()
    env = make_vec_env("Pendulum-v1", n_envs)
    make_model().learn(100, callback=Spy(env, trial, n_eval_episodes=n_episodes, eval_freq=50))
    assert list(followed) == [50, 100]
    for skills in followed.values():
        assert sorted(skills) == sorted([0, 1, 2, 3] * (expected // 4))


def test_objective_of_a_task_is_left_alone(make_model):
    import optuna
    import rl_zoo3.exp_manager

    env = make_vec_env("Pendulum-v1")
    callback = rl_zoo3.exp_manager.TrialEvalCallback(env, optuna.create_study().ask(), n_eval_episodes=5)
    callback.init_callback(make_model(reward="extrinsic"))
    assert callback.n_eval_episodes == 5


def test_objective_of_other_algorithms_is_left_alone():
    import optuna
    import rl_zoo3.exp_manager

    env = make_vec_env("Pendulum-v1")
    callback = rl_zoo3.exp_manager.TrialEvalCallback(env, optuna.create_study().ask(), n_eval_episodes=5)
    callback.init_callback(PPO("MlpPolicy", env))
    assert callback.n_eval_episodes == 5


def test_bad_draw_is_pruned(tmp_path):
    """A learning rate that diverges ends the trial, not the study."""
    code = (
        "import sys; sys.argv[1:] = ['--algo', 'cesd', '--env', 'Pendulum-v1', '-n', '200', '-optimize', '--n-trials', '1',"
        " '--n-evaluations', '1', '--eval-episodes', '1', '--no-optim-plots', '-params',"
        " 'learning_starts:100', 'buffer_size:2000']\n"
        "import rl_zoo3.train\n"
        "from rl_zoo3.hyperparams_opt import HYPERPARAMS_SAMPLER\n"
        "sample = HYPERPARAMS_SAMPLER['cesd']\n"
        "def bad(*args): return {**sample(*args), 'learning_rate': 1e30}\n"
        "HYPERPARAMS_SAMPLER['cesd'] = bad\n"
        "try: rl_zoo3.train.train()\n"
        "except ValueError as error: assert 'No trials are completed' in str(error), error\n"
    )
    output = run(tmp_path, sys.executable, "-c", code, module=None)
    assert "pruned" in output and "training has diverged" in output


def test_other_algorithms_are_left_alone(tmp_path):
    output = run(
        tmp_path, "--algo", "ppo", "--env", "Pendulum-v1", "-n", 64, "--eval-freq", -1, "-params", "n_envs:1", "n_steps:32"
    )
    assert "rl_zoo3/hyperparams/ppo.yml" in output.replace(os.sep, "/")


@pytest.mark.parametrize("name", ["cesd", "cesd_laptop", "cesd_released"])
def test_hyperparameters_hold_every_robot_and_a_default(name):
    entries = yaml.safe_load((zoo.hyperparams_folder() / f"{name}.yml").read_text())
    assert {env_id for env_id in ENVS if not env_id.startswith("Maze")} | {"default"} <= set(entries)
    for env_id, entry in entries.items():
        if env_id.startswith("Maze"):
            continue
        alpha = 0.1 if env_id.startswith("Jaco") else 1.0
        assert entry["alpha"] == alpha, env_id
        iterations = {"Walk": 6, "Quad": 5, "Jaco": 4}.get(env_id[:4])
        assert iterations is None or entry["prototype_kwargs"]["sinkhorn_iterations"] == iterations
    check_tasks(name, entries)


def check_tasks(name, entries):
    """Domains are for pre-training, what they are followed by in an id is a task."""
    for env_id, entry in entries.items():
        if env_id.startswith("Maze"):
            continue
        is_task = env_id not in ("default", "Walker-v0", "Quadruped-v0", "Jaco-v0")
        n_timesteps = (5e4 if is_task else 2e5) if "laptop" in name else (1e5 if is_task else 2e6)
        assert float(entry["n_timesteps"]) == n_timesteps, env_id
        assert entry.get("reward") == ("extrinsic" if is_task else None), env_id
        domain = next((each for each in ("Walker", "Quadruped", "Jaco") if env_id.startswith(each)), None)
        if is_task:
            assert {**entries[f"{domain}-v0"], "n_timesteps": entry["n_timesteps"], "reward": "extrinsic"} == entry


@pytest.mark.parametrize("name", ["diayn", "dads", "cic", "apt"])
@pytest.mark.parametrize("scale", ["", "_laptop"])
def test_tasks_of_other_methods(name, scale):
    check_tasks(name + scale, yaml.safe_load((zoo.hyperparams_folder() / f"{name}{scale}.yml").read_text()))


def test_released_setting_is_written_out():
    """Every choice is named, so that it does not follow the defaults of the constructor."""
    entry = yaml.safe_load((zoo.hyperparams_folder() / "cesd_released.yml").read_text())["Quadruped-v0"]
    assert entry["relabel_kwargs"] == {"critic": "cluster", "actor": "skill"}
    assert entry["constraint_kwargs"] == {"lambda_": 1.0, "count": "released", "start": 0.0}
    assert entry["entropy_kwargs"] == {"k": 16, "scale": "variance", "clip": 0.0005, "aggregate": "mean", "log1p": True}
    assert entry["prototype_kwargs"] == {
        "temperature": 0.1, "sinkhorn_temperature": 0.1, "sinkhorn_iterations": 5, "swap": "next",
    }  # fmt: skip
    assert entry["encoder"] == "contrastive"
