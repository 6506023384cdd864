"""RL Zoo's tuning: what is drawn, and what a trial is judged by."""

import os
import subprocess
import sys

import optuna
import pytest
import rl_zoo3.exp_manager
from rl_zoo import run
from rl_zoo3.hyperparams_opt import HYPERPARAMS_CONVERTER, HYPERPARAMS_SAMPLER
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import METHODS, CeSD
from sb3_cesd.zoo.hyperparams import entries


@pytest.mark.slow
def test_tuning_in_two_processes_with_one_storage(tmp_path):
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
    expected = CeSD.convert_hyperparams(study.trials[1].params)
    assert model.learning_rate(1) == expected.pop("learning_rate")
    assert {name: getattr(model, name) for name in expected} == {**expected, "policy_kwargs": model.policy_kwargs}
    assert model.policy_kwargs["net_arch"] == expected["policy_kwargs"]["net_arch"]


@pytest.mark.parametrize("name", METHODS)
def test_sampler_and_converter_agree_and_every_draw_makes_a_model(name):
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    seen = set()
    for _ in range(12):
        trial = study.ask()
        params = HYPERPARAMS_SAMPLER[name](trial, 1, 1, {})
        assert params == HYPERPARAMS_CONVERTER[name](trial.params)
        if params["policy_kwargs"]["net_arch"]["pi"] != [1024, 1024]:
            METHODS[name]("MlpPolicy", "Pendulum-v1", buffer_size=100, **params)
        seen.add((params["batch_size"], params["n_skills"], params["skill_duration"]))
    assert len(seen) > 4


def test_draws_of_cesd_differ_in_what_is_its_own():
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    draws = [CeSD.draw_hyperparams(study.ask()) for _ in range(12)]
    assert len({(draw["encoder"], draw["critic"]) for draw in draws}) > 4


@pytest.mark.parametrize("scale", ["", "_laptop"])
@pytest.mark.parametrize("name", METHODS)
def test_tuning_loses_nothing_of_our_files(name, scale):
    """A trial replaces ``*_kwargs`` as a whole, so it has to draw all that the files set in them."""
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=1))
    draws = [HYPERPARAMS_SAMPLER[name](study.ask(), 1, 1, {}) for _ in range(10)]
    for env_id, entry in entries(name + scale).items():
        # Mazes have settings of their own, of which some are not searched
        if env_id.startswith("Maze"):
            continue
        own = entry.get("intrinsic_kwargs", {})
        for draw in draws:
            drawn = draw["intrinsic_kwargs"]
            assert set(own) <= set(drawn)
            for kwargs in ("prototype_kwargs", "entropy_kwargs", "constraint_kwargs", "relabel_kwargs"):
                assert set(own.get(kwargs, {})) <= set(drawn.get(kwargs, {}))


@pytest.mark.parametrize("n_envs, n_episodes, expected", [(1, 5, 8), (2, 4, 4), (3, 4, 12), (8, 1, 8)])
def test_objective_is_the_mean_over_all_skills(make_model, n_envs, n_episodes, expected):
    followed = {}

    class Spy(rl_zoo3.exp_manager.TrialEvalCallback):
        def _log_success_callback(self, locals_, globals_):
            """Called for every step that counts."""
            if locals_["done"]:
                skill = int(locals_["observations"]["skill"][locals_["i"]].argmax())
                followed.setdefault(self.n_calls, []).append(skill)

    trial = optuna.create_study().ask()
    env = make_vec_env("Pendulum-v1", n_envs)
    make_model().learn(100, callback=Spy(env, trial, n_eval_episodes=n_episodes, eval_freq=50))
    assert list(followed) == [50, 100]
    for skills in followed.values():
        assert sorted(skills) == sorted([0, 1, 2, 3] * (expected // 4))


def test_objective_of_a_task_is_left_alone(make_model):
    env = make_vec_env("Pendulum-v1")
    callback = rl_zoo3.exp_manager.TrialEvalCallback(env, optuna.create_study().ask(), n_eval_episodes=5)
    callback.init_callback(make_model(reward="extrinsic"))
    assert callback.n_eval_episodes == 5


def test_objective_of_other_algorithms_is_left_alone():
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
