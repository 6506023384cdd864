"""Folders of checkpoints, which are written completely or not at all."""

import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sb3_cesd.common.files import AnyPath

MODEL = "model.zip"
BUFFER = "replay_buffer.pkl"
CALLBACKS = "callbacks.pkl"
#: Statistics of ``VecNormalize``, under the name that RL Zoo gives them
STATISTICS = "vecnormalize.pkl"
PREFIX = "steps_"


@contextmanager
def new_checkpoint(target: Path, keep: int) -> Iterator[Path]:
    """
    Write a checkpoint to a temporary folder, move it to its place once it is complete, and delete the oldest ones.

    Whatever happens in between (an exception, a full disk, ``kill -9``), earlier checkpoints are untouched.

    :param target: folder of the checkpoint, in the folder of the checkpoints of a run
    :param keep: number of checkpoints to keep
    :return: temporary folder for its files
    """
    # A fixed name, so that the next process deletes what a killed one left behind
    unfinished = target.with_name(".unfinished")
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    try:
        yield unfinished
        os.replace(unfinished, target)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    for old in checkpoints_in(target.parent)[:-keep]:
        _delete(old)


def _delete(checkpoint: Path) -> None:
    # Renamed first, so that an incomplete checkpoint is never found
    aside = checkpoint.with_name(".deleted")
    try:
        shutil.rmtree(aside, ignore_errors=True)
        os.replace(checkpoint, aside)
        shutil.rmtree(aside)
    except OSError as error:
        warnings.warn(f"The old checkpoint {checkpoint} could not be deleted ({error}): delete it yourself.")


def checkpoint_name(num_timesteps: int) -> str:
    """Name of the folder of a checkpoint."""
    return f"{PREFIX}{num_timesteps:012d}"


def checkpoints_in(folder: Path) -> list[Path]:
    """Checkpoints in a folder, the oldest first."""
    return sorted(path for path in folder.glob(f"{PREFIX}*") if is_checkpoint(path))


def is_checkpoint(path: AnyPath) -> bool:
    """Whether a folder is a checkpoint."""
    return (Path(path) / CALLBACKS).is_file()


def find_checkpoint(path: AnyPath) -> Path:
    """
    Find a checkpoint.

    :param path: its folder, the model in it, or a folder of checkpoints, of which the latest is used
    :return: its folder
    :raises FileNotFoundError: if there is none
    """
    path = Path(path)
    if path.name == MODEL:
        path = path.parent
    if is_checkpoint(path):
        return path
    found = checkpoints_in(path)
    if not found:
        raise FileNotFoundError(f"There is no checkpoint in {path}: pass the folder that ResumableCheckpoint wrote to.")
    return found[-1]
