"""Checkpoints are there as a whole or not at all; what did not change is not written again."""

import copy
import json
import os
import shutil
import signal
import subprocess
import sys
import warnings

import gymnasium as gym
import numpy as np
import pytest
from learned import differences
from rl_zoo3.callbacks import ParallelTrainCallback
from small import make_small
from stable_baselines3.common.callbacks import BaseCallback, ConvertCallback, EvalCallback, EveryNTimesteps
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from tuning import saved

from sb3_cesd import CeSD
from sb3_cesd.callbacks import ResumableCheckpoint
from sb3_cesd.checkpoints import arrays, folders, remaining_timesteps, resume
from sb3_cesd.checkpoints.folders import (
    BUFFER,
    MANIFEST,
    MODEL,
    STATE,
    STATISTICS,
    checkpoints_in,
    find_checkpoint,
    new_checkpoint,
)
from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.files import move
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.train import with_checkpoints_found
from sb3_cesd.zoo.callbacks import train_in_parallel


def train(path, save_freq=100, total=300, **kwargs):
    model = make_small(CeSD, MazeVecEnv("square_a", 2))
    return model.learn(total, ResumableCheckpoint(path, save_freq, **kwargs))


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    folder = tmp_path_factory.mktemp("checkpoints")
    train(folder, keep=2)
    return folder


@pytest.fixture
def checkpoints(trained, tmp_path):
    """A copy to damage."""
    return shutil.copytree(trained, tmp_path / "checkpoints")


def names(folder):
    return sorted(path.name for path in folder.iterdir())


def test_the_last_are_kept(trained):
    assert names(trained) == ["steps_000000000200", "steps_000000000300"]
    assert find_checkpoint(trained) == trained / "steps_000000000300"
    assert find_checkpoint(trained / "steps_000000000200") == trained / "steps_000000000200"
    assert find_checkpoint(trained / "steps_000000000200" / MODEL) == trained / "steps_000000000200"


def test_model_is_a_saved_model(trained):
    model = CeSD.load(trained / "steps_000000000200" / MODEL)
    assert model.num_timesteps == 200


def test_statistics_have_a_file_if_there_are_any(trained, tmp_path):
    class Mine(VecNormalize):
        """Defined in a function, so it can't be pickled."""

    assert STATISTICS not in names(trained / "steps_000000000200")
    found = []
    for wrapper in (VecNormalize, Mine):
        model = make_small(CeSD, wrapper(MazeVecEnv("square_a", 2)))
        model.learn(60, ResumableCheckpoint(tmp_path / wrapper.__name__))
        (folder,) = checkpoints_in(tmp_path / wrapper.__name__)
        assert names(folder) == sorted(
            ["checkpoint.json", MODEL, BUFFER, STATE, *([STATISTICS] if wrapper is VecNormalize else [])]
        )
        found.append(resume(folder, wrapper(MazeVecEnv("square_a", 2)), device="cpu").get_vec_normalize_env().obs_rms)
    assert found[0].count == found[1].count > 60 and (found[0].mean == found[1].mean).all()
    loaded = VecNormalize.load(str(tmp_path / "VecNormalize/steps_000000000060" / STATISTICS), MazeVecEnv("square_a", 3))
    assert (loaded.obs_rms.mean == found[0].mean).all()


def test_resumed_from_an_earlier_one(checkpoints):
    """What came after it in the other run is not taken for part of this one."""
    model = resume(checkpoints / "steps_000000000200", MazeVecEnv("square_a", 2))
    assert remaining_timesteps(model) == 100
    with pytest.warns(UserWarning, match=r"steps_0+240 replaces steps_0+300\. To keep the later ones, pass another folder\."):
        model.learn(50, ResumableCheckpoint(checkpoints, 40, keep=2), reset_num_timesteps=False)
    assert names(checkpoints) == ["steps_000000000240", "steps_000000000252"]


def test_another_run_does_not_mix(checkpoints):
    with pytest.raises(ValueError, match=r"holds the checkpoints of another run: .*resume, or pass another folder"):
        train(checkpoints)
    assert names(checkpoints) == ["steps_000000000200", "steps_000000000300"]


def test_one_training_writes_to_a_folder_at_a_time(tmp_path):
    class Other(BaseCallback):
        """Starts another training, as another process would."""

        def __init__(self, path):
            super().__init__()
            self.path = path

        def _on_training_start(self):
            with pytest.raises(ValueError, match=r"Another training writes .* at the moment: pass another folder, or wait"):
                train(self.path)

        def _on_step(self):
            return True

    callbacks = [ResumableCheckpoint(tmp_path, save_freq=100), Other(tmp_path)]
    model = make_small(CeSD, MazeVecEnv("square_a", 2)).learn(200, callbacks)
    assert names(tmp_path) == ["steps_000000000100", "steps_000000000200"]
    model.learn(100, ResumableCheckpoint(tmp_path, save_freq=100, keep=1), reset_num_timesteps=False)
    assert names(tmp_path) == ["steps_000000000300"], "the folder is free once a training has ended"


def test_a_folder_that_cannot_be_written_to_is_refused_at_the_start(tmp_path):
    (tmp_path / "file").touch()
    for path in (tmp_path / "file", tmp_path / "file/checkpoints"):
        with pytest.raises(ValueError, match=r"Checkpoints can't be written to .*: pass another folder"):
            train(path)


def test_learn_from_zero_starts_anew(trained, tmp_path):
    """A resumed model that is to count from 0 forgets the run, and resets its environments."""
    model = resume(trained, MazeVecEnv("square_a", 2))
    assert model.is_resumed
    model.learn(20)
    assert model.num_timesteps == 20 and not model.is_resumed


def test_checkpoints_of_another_run_are_kept(checkpoints, tmp_path):
    model = make_small(CeSD, MazeVecEnv("square_a", 2)).learn(60)
    loaded = CeSD.load(saved(model), MazeVecEnv("square_a", 2), device="cpu")
    before = checkpoints_in(checkpoints)
    copied = CeSD.load(before[-1] / MODEL, MazeVecEnv("square_a", 2), device="cpu")
    for each in (model, loaded, copied):
        with pytest.raises(ValueError, match=r"holds the checkpoints of another run: continue it by .*resume, or pass"):
            each.learn(40, ResumableCheckpoint(checkpoints), reset_num_timesteps=False)
    assert checkpoints_in(checkpoints) == before
    # Its own may be in the folder, also of an earlier learn
    for name in ("own", "other", "own"):
        model.learn(40, ResumableCheckpoint(tmp_path / name), reset_num_timesteps=False)
    own = checkpoints_in(tmp_path / "own")
    assert len(own) == 2
    for each in (model, resume(own[-1], MazeVecEnv("square_a", 2), device="cpu")):
        said = r"the checkpoints of this run, which would begin anew: .*reset_num_timesteps=False\), or pass another folder\.$"
        with warnings.catch_warnings(), pytest.raises(ValueError, match=said):
            warnings.simplefilter("ignore")
            each.learn(20, ResumableCheckpoint(tmp_path / "own"))
    assert checkpoints_in(tmp_path / "own") == own


def test_a_resumed_run_that_is_refused_a_folder_can_be_continued(checkpoints, tmp_path):
    first = checkpoints_in(checkpoints)[0]
    whole, resumed = (resume(first, MazeVecEnv("square_a", 2), device="cpu") for _ in range(2))
    train(tmp_path / "other")
    with pytest.raises(ValueError, match="holds the checkpoints of another run"):
        resumed.learn(remaining_timesteps(resumed), ResumableCheckpoint(tmp_path / "other"), reset_num_timesteps=False)
    for each, folder in ((whole, "whole"), (resumed, "resumed")):
        each.learn(remaining_timesteps(each), ResumableCheckpoint(tmp_path / folder), reset_num_timesteps=False)
    assert not differences(whole, resumed)


def test_stop_writes_a_checkpoint(tmp_path):
    class StopsAt(ResumableCheckpoint):
        def _on_step(self):
            if self.model.num_timesteps == 130:
                self.request_stop()
            return super()._on_step()

    model = make_small(CeSD, MazeVecEnv("square_a", 2))
    model.learn(300, StopsAt(tmp_path, 1000))
    assert len(checkpoints_in(tmp_path)) == 1
    resumed = resume(tmp_path, MazeVecEnv("square_a", 2))
    assert resumed.num_timesteps in (130, 132, 134) and model.num_timesteps == resumed.num_timesteps + 2
    assert remaining_timesteps(resumed) == 300 - resumed.num_timesteps


def test_a_run_that_is_stopped_in_its_last_step_has_no_checkpoint_of_it(tmp_path):
    """The transition of that step is not stored."""

    def stop(locals_, globals_):
        return model.num_timesteps < 60

    model = make_small(CeSD, train_freq=1)
    model.learn(60, [ResumableCheckpoint(tmp_path, save_freq=50), ConvertCallback(stop)])
    assert names(tmp_path) == ["steps_000000000050"]


def test_a_callback_can_copy_the_model(tmp_path):
    class Copies(BaseCallback):
        def _on_step(self):
            copies.append(copy.deepcopy(self.model))
            return True

    copies = []
    model = make_small(CeSD)
    model.learn(2, [ResumableCheckpoint(tmp_path), Copies()])
    assert [each.num_timesteps for each in copies] == [1, 2]


@pytest.mark.parametrize("file", [MODEL, STATE, "checkpoint.json", f"{BUFFER}/object.pkl"])
@pytest.mark.parametrize("damage", ["changed", "truncated"])
def test_damage_is_named(checkpoints, file, damage):
    path = checkpoints / "steps_000000000300" / file
    content = bytearray(path.read_bytes())
    if damage == "changed":
        content[len(content) // 2 if file != "checkpoint.json" else 0] ^= 0xFF
    else:
        del content[len(content) // 2 :]
    path.unlink()
    path.write_bytes(content)
    with pytest.raises(ValueError, match=path.name) as caught:
        resume(checkpoints, MazeVecEnv("square_a", 2))
    assert "checkpoint" in str(caught.value)


def test_a_missing_file_is_named(checkpoints):
    (checkpoints / "steps_000000000300" / STATE).unlink()
    with pytest.raises(FileNotFoundError, match=rf"{STATE} is missing: copy the whole checkpoint"):
        resume(checkpoints, MazeVecEnv("square_a", 2))


def test_no_checkpoint(tmp_path):
    with pytest.raises(FileNotFoundError, match=r"There is no checkpoint in .*: pass the folder that ResumableCheckpoint"):
        resume(tmp_path, MazeVecEnv("square_a", 2))


def test_other_environments(trained):
    with pytest.raises(ValueError, match="is of 2 environments, not of 3: pass as many"):
        resume(trained, MazeVecEnv("square_a", 3))
    # Two of another kind are found out before the first step
    model = resume(trained, make_vec_env("MazeSquareA-v0", 2))
    with pytest.raises(ValueError, match="pass as many environments as were trained with, in the same wrappers"):
        model.learn(10, reset_num_timesteps=False)


def test_needs_a_folder(tmp_path):
    with pytest.raises(ValueError, match="Checkpoints need a folder: pass path"):
        train(None)


@pytest.fixture
def pieces(monkeypatch):
    """Arrays are cut into pieces of 80 bytes."""
    monkeypatch.setattr(arrays, "PIECE", 80)


def test_arrays_come_back(tmp_path, pieces):
    rng = np.random.default_rng(0)
    value = {
        "numbers": rng.normal(size=(100, 3)),
        "flags": rng.normal(size=(90, 2)) > 0,
        "view": rng.normal(size=(50, 4)).astype(np.float32)[:, ::2],
        "large rows": rng.normal(size=(3, 50)),
        "small": np.arange(3),
        "none": np.zeros((0, 5)),
        "objects": np.array([{}, None] * 20),
        "scalar": np.float64(3),
    }
    arrays.write_with_arrays(tmp_path / "first", value)
    found = arrays.read_with_arrays(tmp_path / "first")
    assert found.keys() == value.keys()
    for name, array in value.items():
        np.testing.assert_array_equal(found[name], array, name)
        assert np.asarray(found[name]).dtype == np.asarray(array).dtype
        assert np.asarray(found[name]).flags.writeable or name == "scalar"


def test_only_changed_pieces_are_written(tmp_path, pieces):
    value = {"a": np.arange(1000.0), "b": np.zeros((20, 10))}
    arrays.write_with_arrays(tmp_path / "first", value)
    value["a"][[0, 999]] = -1
    arrays.write_with_arrays(tmp_path / "second", value, tmp_path / "first")
    shared = [path.name for path in (tmp_path / "second").glob("*.bin") if path.stat().st_nlink == 2]
    alone = [path.name for path in (tmp_path / "second").glob("*.bin") if path.stat().st_nlink == 1]
    assert sorted(alone) == ["000_00000.bin", "000_00099.bin"] and len(shared) == 98 + 20
    shutil.rmtree(tmp_path / "first")
    found = arrays.read_with_arrays(tmp_path / "second")
    np.testing.assert_array_equal(found["a"], value["a"])
    np.testing.assert_array_equal(found["b"], value["b"])


def test_growing_arrays(tmp_path, pieces):
    """As of a buffer that fills up, and then wraps around."""
    previous = None
    for step, size in enumerate((15, 38, 100, 100)):
        value = np.arange(size, dtype=np.float64) + (np.arange(size) < 5) * step
        arrays.write_with_arrays(tmp_path / str(step), [value], previous)
        previous = tmp_path / str(step)
        np.testing.assert_array_equal(arrays.read_with_arrays(previous)[0], value)


def test_disk_without_links(tmp_path, pieces, monkeypatch):
    def refuse(*args):
        raise OSError

    value = [np.arange(100.0)]
    arrays.write_with_arrays(tmp_path / "first", value)
    monkeypatch.setattr(os, "link", refuse)
    arrays.write_with_arrays(tmp_path / "second", value, tmp_path / "first")
    np.testing.assert_array_equal(arrays.read_with_arrays(tmp_path / "second")[0], value[0])


def test_previous_in_part(tmp_path, pieces):
    """What is missing of it is written anew."""
    value = [np.arange(100.0)]
    arrays.write_with_arrays(tmp_path / "first", value)
    (tmp_path / "first/000_00002.bin").unlink()
    arrays.write_with_arrays(tmp_path / "second", value, tmp_path / "first")
    np.testing.assert_array_equal(arrays.read_with_arrays(tmp_path / "second")[0], value[0])
    os.truncate(tmp_path / "second/000_00004.bin", 7)
    arrays.write_with_arrays(tmp_path / "third", value, tmp_path / "second")
    np.testing.assert_array_equal(arrays.read_with_arrays(tmp_path / "third")[0], value[0])


def test_damage_does_not_get_into_the_next_checkpoint(tmp_path, pieces):
    value = [np.arange(100.0)]
    arrays.write_with_arrays(tmp_path / "first", value)
    damaged = tmp_path / "first/000_00002.bin"
    damaged.write_bytes(damaged.read_bytes()[::-1])
    arrays.write_with_arrays(tmp_path / "second", value, tmp_path / "first")
    np.testing.assert_array_equal(arrays.read_with_arrays(tmp_path / "second")[0], value[0])
    assert [path.name for path in (tmp_path / "second").glob("*.bin") if path.stat().st_nlink == 1] == [damaged.name]


def test_damaged_piece(tmp_path, pieces):
    arrays.write_with_arrays(tmp_path / "first", [np.arange(100.0)])
    piece = tmp_path / "first/000_00003.bin"
    content = bytearray(piece.read_bytes())
    content[5] ^= 1
    piece.write_bytes(content)
    with pytest.raises(ValueError, match=r"000_00003.bin is missing or damaged: .* Resume from the checkpoint before"):
        arrays.read_with_arrays(tmp_path / "first")
    piece.unlink()
    with pytest.raises(ValueError, match=r"000_00003.bin is missing or damaged"):
        arrays.read_with_arrays(tmp_path / "first")


def test_failure_leaves_the_others(tmp_path, monkeypatch):
    model = make_small(CeSD, MazeVecEnv("square_a", 2))
    callback = ResumableCheckpoint(tmp_path, 100)
    model.learn(120, callback)
    before = names(tmp_path)

    def fail(*args, **kwargs):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("sb3_cesd.checkpoints.callback.write_with_arrays", fail)
    model.num_timesteps += 2
    with pytest.raises(OSError, match="No space left"):
        callback.write()
    assert names(tmp_path) == before


KILLED = """
import sys
from learned import differences
from small import make_small
from sb3_cesd import CeSD
from sb3_cesd.callbacks import ResumableCheckpoint
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
model = make_small(CeSD, MazeVecEnv("square_a", 2))
print("ready", flush=True)
model.learn(1_000_000, ResumableCheckpoint(sys.argv[1], 2, keep=2))
"""


def test_one_of_the_same_name_stays_until_its_successor_is_in_place(tmp_path, monkeypatch):
    def write(content):
        with new_checkpoint(tmp_path / "steps_1", keep=2) as folder:
            (folder / MANIFEST).write_text(content)

    def fails(source, target):
        if source.name == ".unfinished":
            raise KeyboardInterrupt
        move(source, target)

    write("first")
    write("second")
    monkeypatch.setattr(folders, "move", fails)
    with pytest.raises(KeyboardInterrupt):
        write("third")
    assert [(path.name, (path / MANIFEST).read_text()) for path in tmp_path.iterdir()] == [("steps_1", "second")]


def test_the_end_of_a_training_that_could_not_begin_is_no_error():
    """RL Zoo ends it all the same."""
    for callback in (ResumableCheckpoint(), train_in_parallel(ParallelTrainCallback)()):
        callback.on_training_end()


@pytest.mark.slow
def test_kill(tmp_path):
    """Whenever it is killed, the latest checkpoint is whole."""
    rng = np.random.default_rng(0)
    for attempt in range(5):
        folder = tmp_path / str(attempt)
        tests = os.path.dirname(os.path.dirname(__file__))
        process = subprocess.Popen(
            [sys.executable, "-c", KILLED, str(folder)],
            stdout=subprocess.PIPE,
            env={**os.environ, "PYTHONPATH": tests},
        )
        process.stdout.readline()
        while not checkpoints_in(folder):
            assert process.poll() is None
        with pytest.raises(subprocess.TimeoutExpired):
            process.wait(rng.uniform(0.1, 1))
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        latest = find_checkpoint(folder)
        model = resume(folder, MazeVecEnv("square_a", 2))
        assert model.num_timesteps == json.loads((latest / "checkpoint.json").read_text())["num_timesteps"] > 0
        model.learn(10, reset_num_timesteps=False)


def test_command_line(trained, tmp_path):
    latest = str(trained / "steps_000000000300" / MODEL)
    found = with_checkpoints_found(["--algo", "cesd", "-i", str(trained), "-n", "100"])
    assert found == ["--algo", "cesd", "-i", latest, "-n", "100"]
    assert with_checkpoints_found(["--trained-agent", str(trained)]) == ["--trained-agent", latest]
    assert with_checkpoints_found([f"--trained-agent={trained}"]) == [f"--trained-agent={latest}"]
    assert with_checkpoints_found(["-i", "model.zip", "-f", str(trained)]) == ["-i", "model.zip", "-f", str(trained)]
    with pytest.raises(FileNotFoundError, match="There is no checkpoint"):
        with_checkpoints_found(["-i", str(tmp_path)])
    with pytest.raises(FileNotFoundError, match=r"There is no checkpoint in .*misspelt: pass the folder"):
        with_checkpoints_found(["-i", str(tmp_path / "misspelt")])
    for nothing in (["-i", ""], ["--trained-agent="]):
        assert with_checkpoints_found(nothing) == nothing, "RL Zoo's default, for no model"


def test_the_end_of_a_run_replaces_that_of_the_run_it_branched_off(tmp_path):
    make_small(CeSD, "MazeSquareC-v0").learn(60, ResumableCheckpoint(tmp_path, save_freq=30))
    branch = resume(checkpoints_in(tmp_path)[0], "MazeSquareC-v0", device="cpu", learning_rate=1e-2)
    branch.learn(remaining_timesteps(branch), ResumableCheckpoint(tmp_path, save_freq=100), reset_num_timesteps=False)
    latest = resume(tmp_path, "MazeSquareC-v0", device="cpu")
    assert latest.num_timesteps == 60 and latest.learning_rate == 1e-2
    assert all((a == b).all() for a, b in zip(latest.policy.parameters(), branch.policy.parameters(), strict=True))


def test_within_an_event_nothing_would_be_written(tmp_path):
    model = make_small(CeSD, "MazeSquareC-v0")
    with pytest.raises(ValueError, match=r"EveryNTimesteps passes on neither rollouts .*: pass it beside, in a list"):
        model.learn(60, EveryNTimesteps(20, ResumableCheckpoint(tmp_path)))
    with pytest.raises(ValueError, match=r"EvalCallback passes on neither rollouts .*: pass it beside, in a list"):
        model.learn(60, EvalCallback(gym.make("MazeSquareC-v0"), callback_on_new_best=ResumableCheckpoint(tmp_path)))


class OwnBuffer(SkillReplayBuffer):
    pass


def test_a_buffer_that_cannot_be_pickled_is_refused_at_the_start(tmp_path):
    class LocalBuffer(SkillReplayBuffer):
        pass

    model = make_small(CeSD, "MazeSquareC-v0", replay_buffer_class=LocalBuffer)
    with pytest.raises(ValueError, match=r"LocalBuffer can't be imported, .*: define it at the top level of a module"):
        model.learn(60, ResumableCheckpoint(tmp_path))
    assert model.num_timesteps == 0


def test_a_buffer_whose_class_is_gone_is_named(tmp_path, monkeypatch):
    make_small(CeSD, "MazeSquareC-v0", replay_buffer_class=OwnBuffer).learn(60, ResumableCheckpoint(tmp_path))
    monkeypatch.delattr(sys.modules[__name__], "OwnBuffer")
    with pytest.raises(ValueError, match=r"can't be imported here .*OwnBuffer.*: install it, or define it where it was"):
        resume(tmp_path, "MazeSquareC-v0", device="cpu")


def test_a_class_of_ones_own_that_has_no_module_is_passed(tmp_path):
    class Own(CeSD):
        pass

    make_small(Own, "MazeSquareC-v0").learn(60, ResumableCheckpoint(tmp_path))
    with pytest.raises(ValueError, match=r"is of .*Own, which can't be imported from .*: pass it as model_class"):
        resume(tmp_path, "MazeSquareC-v0", device="cpu")
    with pytest.raises(ValueError, match="pass that of the model"):
        resume(tmp_path, "MazeSquareC-v0", device="cpu", model_class="Own")
    model = resume(tmp_path, "MazeSquareC-v0", device="cpu", model_class=Own)
    assert isinstance(model, Own) and model.num_timesteps == 60 and model.is_resumed


def test_a_training_that_could_not_begin_changes_nothing(tmp_path):
    """The remedy in the error works: neither steps nor the state of the run are lost."""
    model = make_small(CeSD, MazeVecEnv("square_a", 2)).learn(100, ResumableCheckpoint(tmp_path, save_freq=60))
    resumed = resume(checkpoints_in(tmp_path)[0], MazeVecEnv("square_a", 2), device="cpu")
    for each, n_timesteps in ((resumed, 60), (model, 100)):
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # that a resumed model begins anew
            with pytest.raises(ValueError, match=r"would begin anew: continue it by .*, reset_num_timesteps=False\)"):
                each.learn(200, ResumableCheckpoint(tmp_path))
        assert each.num_timesteps == n_timesteps and each._total_timesteps == 100
    resumed.learn(remaining_timesteps(resumed), ResumableCheckpoint(tmp_path, save_freq=60), reset_num_timesteps=False)
    assert not differences(model, resumed)
    model.learn(20, ResumableCheckpoint(tmp_path), reset_num_timesteps=False)
    assert model.num_timesteps == 120


def test_a_copy_that_a_callback_makes_learns_on(tmp_path):
    class Copy(BaseCallback):
        def _on_step(self):
            if self.num_timesteps == 60:
                copies.append(copy.deepcopy(self.model))
            return True

    copies = []
    model = make_small(CeSD, MazeVecEnv("square_a", 2))
    model.learn(100, [ParallelTrainCallback(1), Copy()])
    (copied,) = copies
    n_updates, learning_starts = copied._n_updates, copied.learning_starts
    copied.end_episodes()
    copied.learn(100, reset_num_timesteps=False)
    assert copied._n_updates > n_updates and learning_starts == model.learning_starts
