"""Folders of checkpoints, which are written completely or not at all."""

import json
import os
import shutil
import warnings
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm

from sb3_cesd.common.files import AnyPath, lock, move, sync_folder

MODEL = "model.zip"
BUFFER = "replay_buffer"
STATE = "state.pkl"
MANIFEST = "checkpoint.json"
#: Statistics of ``VecNormalize``, under the name that RL Zoo gives them
STATISTICS = "vecnormalize.pkl"
PREFIX = "steps_"


@contextmanager
def new_checkpoint(target: Path, keep: int) -> Iterator[Path]:
    """
    Write a checkpoint to a temporary folder, move it to its place once it is complete and on disk, and delete the oldest ones.

    Whatever happens in between (an exception, a full disk, ``kill -9``), earlier checkpoints are untouched. Later ones are
    deleted, with a warning, since the run was resumed from an earlier one. Nothing else may write to the folder, see
    :func:`only_writer`.

    :param target: folder of the checkpoint, in the folder of the checkpoints of a run
    :param keep: number of checkpoints to keep
    :return: temporary folder for its files
    """
    folder = target.parent
    # A fixed name, so that the next process deletes what a killed one left behind
    unfinished = folder / ".unfinished"
    shutil.rmtree(unfinished, ignore_errors=True)
    unfinished.mkdir(parents=True)
    # One of the same name is deleted once the new one is in its place
    replaced = None
    try:
        yield unfinished
        sync_folder(unfinished)
        if target.exists():
            replaced = _set_aside(target)
        move(unfinished, target)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        if replaced is not None and not target.exists():
            move(replaced, target)
        raise
    sync_folder(folder)
    if replaced is not None:
        shutil.rmtree(replaced, ignore_errors=True)
    known = checkpoints_in(folder)
    until = known.index(target) + 1
    for old in known[: max(until - keep, 0)]:
        # The new one is complete; on Windows, one that another program has open is deleted by a later call
        with suppress(PermissionError):
            _delete(old)
    if later := known[until:]:
        warnings.warn(
            f"The run was resumed from an earlier checkpoint than the latest: {target} replaces "
            f"{', '.join(path.name for path in later)}. To keep the later ones, pass another folder."
        )
    for path in later:
        _delete(path)


@contextmanager
def only_writer(folder: Path) -> Iterator[None]:
    """
    Keep other trainings from writing checkpoints to a folder, on systems that can lock folders.

    :param folder: folder of the checkpoints of a run, which is created if it does not exist
    :raises ValueError: if another training writes to it at the moment, or it can't be written to
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise ValueError(f"Checkpoints can't be written to {folder} ({error}): pass another folder.") from error
    if not os.access(folder, os.W_OK):
        raise ValueError(f"Checkpoints can't be written to {folder} (no permission): pass another folder.")
    if os.name != "posix":
        yield
        return
    descriptor = os.open(folder, os.O_RDONLY)
    try:
        if lock(descriptor, wait=False) is False:
            raise ValueError(
                f"Another training writes its checkpoints to {folder} at the moment: pass another folder, or wait for its end."
            )
        yield
    finally:
        os.close(descriptor)


def _set_aside(checkpoint: Path) -> Path:
    """Rename a checkpoint that is to be deleted, so that an incomplete one is never found."""
    aside = checkpoint.with_name(".deleted")
    shutil.rmtree(aside, ignore_errors=True)
    move(checkpoint, aside)
    return aside


def _delete(checkpoint: Path) -> None:
    shutil.rmtree(_set_aside(checkpoint), ignore_errors=True)


def checkpoint_name(model: BaseAlgorithm) -> str:
    """
    Name the checkpoint of a model.

    :param model: a model
    :return: name of the folder
    """
    return f"{PREFIX}{model.num_timesteps:012d}"


def manifest_of(model: BaseAlgorithm) -> str:
    """
    Describe the run of a checkpoint.

    :param model: a model
    :return: JSON
    """
    model_class, normalize = type(model), model.get_vec_normalize_env()
    manifest = {
        "class": [model_class.__module__, model_class.__qualname__],
        "num_timesteps": model.num_timesteps,
        "total_timesteps": model._total_timesteps,
        "n_envs": model.n_envs,
        # To wrap environments in VecNormalize; its statistics are part of their state
        "normalize": normalize and {"norm_obs": normalize.norm_obs, "norm_reward": normalize.norm_reward},
    }
    return json.dumps(manifest)


def checkpoints_in(folder: Path) -> list[Path]:
    """
    List checkpoints.

    :param folder: folder of the checkpoints of a run
    :return: the checkpoints, the oldest first
    """
    return sorted(path for path in folder.glob(f"{PREFIX}*") if is_checkpoint(path))


def is_checkpoint(path: AnyPath) -> bool:
    """
    Check whether a folder is a checkpoint.

    :param path: any path
    :return: whether it is one
    """
    return (Path(path) / MANIFEST).is_file()


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
        raise FileNotFoundError(
            f"There is no checkpoint in {path}: pass the folder that ResumableCheckpoint wrote to, or one of the folders "
            f"{PREFIX}... in it."
        )
    return found[-1]


def read_manifest(checkpoint: Path) -> dict[str, Any]:
    """
    Read the manifest of a checkpoint.

    :param checkpoint: folder of the checkpoint
    :return: its content
    :raises ValueError: if the file is damaged
    """
    try:
        return json.loads((checkpoint / MANIFEST).read_text())
    except ValueError as error:
        raise ValueError(
            f"{checkpoint / MANIFEST} is damaged ({error}): resume from the checkpoint before this one."
        ) from error
