"""Checkpoints are there as a whole or not at all."""

import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from small import make_small
from stable_baselines3.common.callbacks import BaseCallback, EveryNTimesteps
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import CeSD
from sb3_cesd.callbacks import ResumableCheckpoint
from sb3_cesd.checkpoints import (
    BUFFER,
    CALLBACKS,
    MODEL,
    STATISTICS,
    checkpoints_in,
    find_checkpoint,
    remaining_timesteps,
    resume,
)
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.train import with_checkpoint_found


def make(wrapper=lambda env: env, **kwargs):
    return make_small(CeSD, wrapper(MazeVecEnv("square_a", 2)), **kwargs)


def names(folder):
    return sorted(path.name for path in folder.iterdir())


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    make(VecNormalize).learn(300, ResumableCheckpoint(folder, 100, keep=2))
    return folder


@pytest.fixture
def checkpoints(trained, tmp_path):
    """A copy to damage."""
    return shutil.copytree(trained, tmp_path / "checkpoints")


def resumed(path, **kwargs):
    return resume(path, VecNormalize(MazeVecEnv("square_a", 2)), device="cpu", **kwargs)


def test_the_last_are_kept_and_found(trained):
    assert names(trained) == ["steps_000000000200", "steps_000000000300"]
    earlier, latest = checkpoints_in(trained)
    assert names(latest) == sorted([BUFFER, CALLBACKS, MODEL, STATISTICS])
    assert find_checkpoint(trained) == latest
    assert find_checkpoint(earlier) == find_checkpoint(earlier / MODEL) == earlier
    assert CeSD.load(earlier / MODEL).num_timesteps == 200
    for option in (["-i", str(trained)], ["--trained-agent", str(trained)]):
        assert with_checkpoint_found(option) == ["-i", str(latest / MODEL)]
    for others in (["-n", "1"], ["-i", "model.zip", "-f", str(trained)], ["-i", ""]):
        assert with_checkpoint_found(others) == others
    with pytest.raises(FileNotFoundError, match="no checkpoint"):
        find_checkpoint(trained.parent / "misspelt")


def test_a_folder_is_for_one_run(checkpoints):
    earlier, _ = checkpoints_in(checkpoints)
    model = resumed(earlier)
    assert remaining_timesteps(model) == 100
    for each, kwargs in ((make(), {}), (model, {"reset_num_timesteps": False})):
        with pytest.raises(ValueError, match="another folder"):
            each.learn(50, ResumableCheckpoint(checkpoints), **kwargs)
    assert names(checkpoints) == ["steps_000000000200", "steps_000000000300"]
    resumed(checkpoints).learn(60, ResumableCheckpoint(checkpoints, 50, keep=2), reset_num_timesteps=False)
    assert names(checkpoints) == ["steps_000000000352", "steps_000000000360"]


@pytest.mark.parametrize("file", [MODEL, BUFFER, STATISTICS, CALLBACKS])
def test_damage_is_named(checkpoints, file):
    path = find_checkpoint(checkpoints) / file
    path.write_bytes(path.read_bytes()[: path.stat().st_size // 2])
    with pytest.raises(ValueError, match=file):
        resumed(checkpoints)


def test_other_environments_are_refused(trained):
    with pytest.raises(ValueError, match="n_envs"):
        resume(trained, VecNormalize(MazeVecEnv("square_a", 3)))
    with pytest.raises(ValueError, match="VecNormalize"):
        resume(trained, MazeVecEnv("square_a", 2))
    with pytest.raises(ValueError, match="spaces"):
        resume(trained, "Pendulum-v1")


def test_mistakes_are_refused_at_the_start(tmp_path):
    (tmp_path / "file").touch()
    for callback, name in ((ResumableCheckpoint(), "path"), (EveryNTimesteps(20, ResumableCheckpoint(tmp_path)), "beside")):
        with pytest.raises(ValueError, match=name):
            make().learn(60, callback)
        callback.on_training_end()  # as RL Zoo does


def test_failure_leaves_the_others(tmp_path, monkeypatch):
    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    class Full(BaseCallback):
        def _on_step(self):
            if self.num_timesteps == 150:
                monkeypatch.setattr(os, "fsync", fail)
            return True

    with pytest.raises(OSError, match="No space left"):
        make().learn(300, [ResumableCheckpoint(tmp_path, 100), Full()])
    assert names(tmp_path) == ["steps_000000000100"]


KILLED = """
import sys
from small import make_small
from sb3_cesd import CeSD
from sb3_cesd.callbacks import ResumableCheckpoint
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
model = make_small(CeSD, MazeVecEnv("square_a", 2))
model.learn(1_000_000, ResumableCheckpoint(sys.argv[1], 2, keep=2))
"""


@pytest.mark.slow
def test_kill(tmp_path):
    """Whenever it is killed, the latest checkpoint is whole."""
    env = {**os.environ, "PYTHONPATH": os.pathsep.join([*sys.path, str(Path(__file__).parents[1])])}
    for attempt, seconds in enumerate(np.random.default_rng(0).uniform(0.1, 1, 3)):
        folder = tmp_path / str(attempt)
        with subprocess.Popen([sys.executable, "-c", KILLED, str(folder)], env=env) as process:
            while not checkpoints_in(folder):
                assert process.poll() is None
            with pytest.raises(subprocess.TimeoutExpired):
                process.wait(seconds)
            process.send_signal(signal.SIGKILL)
        model = resume(folder, MazeVecEnv("square_a", 2), device="cpu")
        assert model.num_timesteps == int(find_checkpoint(folder).name[-12:]) > 0
        model.learn(10, reset_num_timesteps=False)
