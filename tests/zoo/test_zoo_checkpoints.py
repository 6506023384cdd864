"""Runs of RL Zoo that go on from a checkpoint."""

import pytest
from learned import differences
from rl_zoo import SMALL, run

from sb3_cesd import CeSD
from sb3_cesd.checkpoints.folders import checkpoints_in

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
