"""RL Zoo's push_to_hub and load_from_hub, with a folder in place of the Hugging Face Hub."""

import shutil
from pathlib import Path
from types import SimpleNamespace

import huggingface_sb3
import numpy as np
import pytest
from huggingface_hub import HfApi
from huggingface_hub.errors import RemoteEntryNotFoundError
from requests.exceptions import HTTPError
from rl_zoo import MAZE, model_of, run, train

from sb3_cesd import CeSD
from sb3_cesd.common.buffers import FrameReplayBuffer


@pytest.fixture
def hub(tmp_path, monkeypatch):
    folder = tmp_path / "remote"

    def download(repo_id, filename, **kwargs):
        if not (folder / filename).is_file():
            raise RemoteEntryNotFoundError("it is not there", response=SimpleNamespace(headers={}, request=None))
        return str(folder / filename)

    monkeypatch.setenv("TRUST_REMOTE_CODE", "True")
    monkeypatch.setattr(HfApi, "create_repo", lambda *args, **kwargs: "url")
    monkeypatch.setattr(HfApi, "snapshot_download", lambda self, repo_id, local_dir: Path(local_dir).mkdir(parents=True))
    monkeypatch.setattr(HfApi, "upload_folder", lambda self, folder_path, **kwargs: shutil.copytree(folder_path, folder))
    monkeypatch.setattr("huggingface_hub.hf_hub_download", download)
    return folder


def push_load_and_play(trained, folder, env=MAZE):
    """Do so, compare actions, and return the model and what ``enjoy`` prints."""
    run(folder, "-orga", "me", "-f", trained / "logs", "-n", 20, module="rl_zoo3.push_to_hub", env=env)
    run(folder, "-orga", "me", "-f", "loaded", module="rl_zoo3.load_from_hub", env=env)
    model, loaded = model_of(trained, env=env), model_of(folder, env=env, logs="loaded")
    observations = np.stack([model.plain_space.sample() for _ in range(8)])
    assert np.array_equal(model.predict(observations, skill=1)[0], loaded.predict(observations, skill=1)[0])
    return model, run(folder, "-f", "loaded", "-n", 5, "--no-render", module="rl_zoo3.enjoy", env=env)


def test_a_model_is_pushed_with_its_statistics_and_loaded(zoo_run, hub, tmp_path):
    _, enjoyed = push_load_and_play(zoo_run[0], tmp_path)
    assert {f"cesd-{MAZE}.zip", "config.yml", "vec_normalize.pkl", "README.md"} <= {path.name for path in hub.iterdir()}
    card = (hub / "README.md").read_text()
    assert "**CeSD** Agent playing **MazeSquareC-v0**" in card and "mean_reward" in card
    assert "Loading running average" in enjoyed and "Skill 0 acts" in enjoyed


def test_missing_file_is_told_as_rl_zoo_expects(hub):
    with pytest.raises(HTTPError, match="is not there"):
        huggingface_sb3.load_from_hub("me/model", "vec_normalize.pkl")


def test_a_model_of_pictures(hub, tmp_path):
    """Trained, pushed, loaded and played: RL Zoo stacks its frames."""
    env = "MazeSquareCPixels-v0"
    params = ["policy:'CnnPolicy'", "frame_stack:2", "buffer_size:300"]
    train(tmp_path, "-n", 150, "--env-kwargs", "image_size:16", params=params, env=env)
    model, enjoyed = push_load_and_play(tmp_path, tmp_path, env)
    assert isinstance(model, CeSD) and model.replay_buffer_class is FrameReplayBuffer and model._n_updates > 0
    assert model.plain_space.shape == (2, 16, 16) and "Skill 0 acts" in enjoyed
