"""``python -m sb3_cesd.train`` finds checkpoints after ``-i``, however it is written."""

import argparse

import pytest

from sb3_cesd.train import with_checkpoints_found


@pytest.fixture
def checkpoint(tmp_path):
    folder = tmp_path / "run=1" / "steps_000000000100"
    folder.mkdir(parents=True)
    (folder / "checkpoint.json").touch()
    return folder


@pytest.mark.parametrize(
    "form", ["-i {}", "-i{}", "-i={}", "--trained-agent {}", "--trained {}", "--trai={}", "--trained-a={}"]
)
def test_every_form_of_the_option(checkpoint, form):
    parser = argparse.ArgumentParser()
    parser.add_argument("-i", "--trained-agent")
    parser.add_argument("--track", action="store_true")
    parser.add_argument("--trial-id")
    words = with_checkpoints_found([*form.format(checkpoint.parent).split(" "), "--trial-id", "-1", "--track"])
    found = parser.parse_args(words)
    assert found.trained_agent == str(checkpoint / "model.zip") and found.trial_id == "-1" and found.track


def test_other_options_are_left_alone(checkpoint):
    words = ["-f", str(checkpoint.parent), "--tra", str(checkpoint.parent), "--track", "-optimize", "-i"]
    assert with_checkpoints_found(words) == words
