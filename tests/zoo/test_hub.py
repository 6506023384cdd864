"""RL Zoo's push_to_hub and load_from_hub, against a hub on this machine."""

import json
import os
import subprocess
import sys
from types import SimpleNamespace

import huggingface_sb3
import numpy as np
import pytest
from hub import running_hub
from huggingface_hub.errors import RemoteEntryNotFoundError
from requests.exceptions import HTTPError
from rl_zoo import run, train

from sb3_cesd import CeSD

ENV = "MazeSquareC-v0"
#: Runs modules as ``python -m`` does: the address of the hub is read when they are imported
ONE_AFTER_ANOTHER = """
import json, runpy, sys

for words in json.loads(sys.argv[1]):
    sys.argv = words
    runpy.run_module(words[0], run_name="__main__", alter_sys=True)
"""


@pytest.mark.slow
def test_a_model_is_pushed_with_its_statistics_and_loaded(tmp_path):
    train(tmp_path, "-n", 150, env=ENV, params=["normalize:True"])
    common = ["--algo", "cesd", "--env", ENV, "-orga", "me"]
    commands = [
        ["rl_zoo3.push_to_hub", *common, "-f", "logs", "-n", "20"],
        ["rl_zoo3.load_from_hub", *common, "-f", "loaded"],
    ]
    with running_hub() as hub:
        environment = {"HF_ENDPOINT": hub.url, "HF_TOKEN": "hf_token", "HF_HOME": str(tmp_path / "cache")}
        result = subprocess.run(
            [sys.executable, "-c", ONE_AFTER_ANOTHER, json.dumps(commands)], cwd=tmp_path, capture_output=True, text=True,
            env={**os.environ, **environment, "TRUST_REMOTE_CODE": "True", "OMP_NUM_THREADS": "1"}, timeout=300,
        )  # fmt: skip
        assert result.returncode == 0, result.stderr
        (files,) = hub.repos.values()
    assert {f"cesd-{ENV}.zip", "config.yml", "vec_normalize.pkl", "README.md"} <= files.keys()
    card = files["README.md"].decode()
    assert "**CeSD** Agent playing **MazeSquareC-v0**" in card and "mean_reward" in card
    trained, loaded = (CeSD.load(tmp_path / f"{name}/cesd/{ENV}_1/{ENV}.zip", device="cpu") for name in ("logs", "loaded"))
    observations = np.stack([trained.plain_space.sample() for _ in range(8)])
    assert np.array_equal(trained.predict(observations, skill=1)[0], loaded.predict(observations, skill=1)[0])
    enjoyed = run(tmp_path, "-f", "loaded", "-n", 5, "--no-render", module="rl_zoo3.enjoy", env=ENV)
    assert "Loading running average" in enjoyed and "Skill 0 acts" in enjoyed


def test_missing_file_is_told_as_rl_zoo_expects(monkeypatch):
    def missing(**kwargs):
        raise RemoteEntryNotFoundError("vec_normalize.pkl is not there", response=SimpleNamespace(headers={}, request=None))

    monkeypatch.setenv("TRUST_REMOTE_CODE", "True")
    monkeypatch.setattr("huggingface_hub.hf_hub_download", missing)
    with pytest.raises(HTTPError, match="is not there"):
        huggingface_sb3.load_from_hub("me/model", "vec_normalize.pkl")
