"""The other methods through RL Zoo, from an empty folder."""

import os
import subprocess
import sys

import pytest

from sb3_cesd import zoo


def run(folder, module, *arguments):
    command = [sys.executable, "-m", f"rl_zoo3.{module}", *map(str, arguments)]
    environment = {**os.environ, "OMP_NUM_THREADS": "1"}
    result = subprocess.run(command, cwd=folder, env=environment, capture_output=True, text=True, timeout=300)
    assert result.returncode == 0, result.stdout[-2000:] + result.stderr[-2000:]
    return result.stdout


@pytest.mark.slow
@pytest.mark.parametrize("algo", ["diayn", "dads", "cic", "apt"])
def test_train_then_enjoy(tmp_path, algo):
    run(tmp_path, "train", "--algo", algo, "--env", "MazeCorridor-v0", "-n", 1100, "--eval-freq", -1, "--num-threads", 1)
    model = zoo.ALGORITHMS[algo].model_class.load(tmp_path / f"logs/{algo}/MazeCorridor-v0_1/MazeCorridor-v0.zip")
    assert model.n_skills == 10 and model.skill_duration is None and model._n_updates == 20
    assert model.intrinsic_kwargs, "those of the maze's entry"
    output = run(tmp_path, "enjoy", "--algo", algo, "--env", "MazeCorridor-v0", "-f", "logs", "-n", 60, "--no-render")
    assert "Episode Length 50" in output


@pytest.mark.slow
def test_laptop_file_by_its_bare_name(tmp_path):
    arguments = ["--conf-file", "apt_laptop.yml", "--eval-freq", -1, "-n", 20, "--num-threads", 1]
    run(tmp_path, "train", "--algo", "apt", "--env", "Pendulum-v1", *arguments)
    model = zoo.ALGORITHMS["apt"].model_class.load(tmp_path / "logs/apt/Pendulum-v1_1/Pendulum-v1.zip")
    assert model.batch_size == 256 and model.intrinsic.entropy.k == 8 and model.intrinsic.encoder.features_dim == 256
