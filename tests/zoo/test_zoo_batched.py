"""RL Zoo with ``batched``, each command in a process of its own as in test_zoo.py."""

import pytest
import yaml
from rl_zoo import SMALL, run

from sb3_cesd import CeSD


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("batched")
    output = run(
        folder, "--algo", "cesd", "--env", "Walker-v0", "-n", 400, "--eval-freq", 200, "--eval-episodes", 2,
        "--n-eval-envs", 2, "--seed", 1, "--env-kwargs", "max_episode_steps:50", *SMALL, "n_envs:4", "batched:True",
    )  # fmt: skip
    return folder, output


def test_training_and_evaluation_are_batched(trained):
    folder, output = trained
    # SB3 warns if the environments for evaluation are of another kind
    assert "Using 4 environments" in output and "not of the same type" not in output
    run_folder = folder / "logs/cesd/Walker-v0_1"
    assert yaml.unsafe_load((run_folder / "Walker-v0/config.yml").read_text())["batched"] is True
    for idx in range(4):
        rows = (run_folder / f"{idx}.monitor.csv").read_text().splitlines()
        assert len(rows) == 2 + 400 // 4 // 50
    assert CeSD.load(run_folder / "Walker-v0.zip").num_timesteps == 400
    assert (run_folder / "evaluations.npz").is_file()


@pytest.mark.slow
def test_enjoy_shows_it_in_a_single_environment(trained):
    folder, _ = trained
    output = run(folder, "--algo", "cesd", "--env", "Walker-v0", "-n", 60, "-f", "logs", "--no-render", module="rl_zoo3.enjoy")
    assert "Episode Reward:" in output


@pytest.mark.slow
def test_training_goes_on_without_it(trained):
    folder, _ = trained
    agent = folder / "logs/cesd/Walker-v0_1/Walker-v0.zip"
    run(folder, "--algo", "cesd", "--env", "Walker-v0", "-i", agent, "-n", 40, "--eval-freq", -1, "-f", "continued", *SMALL)
    assert CeSD.load(folder / "continued/cesd/Walker-v0_1/Walker-v0.zip").num_timesteps == 400 + 40


def test_manager_makes_batched_environments(tmp_path, monkeypatch):
    import argparse

    from rl_zoo3.exp_manager import ExperimentManager

    from sb3_cesd.envs.robots.vec_env import RobotVecEnv

    monkeypatch.chdir(tmp_path)
    kinds = {}
    for batched in (True, False):
        manager = ExperimentManager(
            argparse.Namespace(), "cesd", "Walker-v0", "logs", n_timesteps=10, eval_freq=-1, verbose=0, device="cpu",
            hyperparams={"batched": batched, "n_envs": 2, "buffer_size": 100, "policy_kwargs": {"net_arch": [8, 8]}},
        )  # fmt: skip
        model, _ = manager.setup_experiment()
        envs = [model.env.unwrapped, manager.create_envs(1, eval_env=True).unwrapped]
        assert [env.num_envs for env in envs] == [2, 1]
        kinds[batched] = [isinstance(env, RobotVecEnv) for env in envs]
    assert kinds == {True: [True, True], False: [False, False]}


def test_environment_that_cant_be_batched_is_refused_with_the_remedy(tmp_path):
    output = run(tmp_path, "--algo", "cesd", "--env", "Pendulum-v1", "-n", 10, *SMALL, "batched:True", success=False)
    assert "can't be batched" in output and "leave 'batched' out" in output


@pytest.mark.slow
def test_other_algorithms_take_it_too(tmp_path):
    run(
        tmp_path, "--algo", "ppo", "--env", "Walker-v0", "-n", 64, "--eval-freq", -1, "--conf-file", config(tmp_path),
        "-params", "batched:True",
    )  # fmt: skip


def config(folder):
    path = folder / "ppo.yml"
    path.write_text("default: {policy: MlpPolicy, n_timesteps: 64, n_envs: 2, n_steps: 16, batch_size: 16, n_epochs: 1}\n")
    return path
