"""Runs of RL Zoo, from the files that it writes when they start."""

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from runs import Row

from sb3_cesd.common.untrusted_yml import read_as_text

#: Name of the folder of a run: its environment, and a number; with ``--uuid`` also an id
RUN_NAME = re.compile(r"(.+)_(\d+)(?:_[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})?")
#: Path of a model that was saved during training: a checkpoint of ours, or of RL Zoo
SAVED_AT = re.compile(r"/(?:steps_(\d+)/model|rl_model_(\d+)_steps)\.zip$")


class ZooRun(NamedTuple):
    """
    What RL Zoo writes when a run starts.

    :param env_id: its environment
    :param args: arguments of the command line by name
    :param hyperparams: hyperparameters by name
    :param model: the model that it started from (``-i``), ``None`` without
    """

    env_id: str
    args: Row
    hyperparams: Row
    model: Path | None


def read_run(folder: Path) -> ZooRun | None:
    """
    Read what RL Zoo wrote when a run started.

    :param folder: folder of the run, an absolute path
    :return: the run; ``None`` if the folder or its yml files are missing
    :raises ValueError: if a file is damaged
    """
    match = RUN_NAME.fullmatch(folder.name)
    files = [folder / match[1] / name for name in ("args.yml", "config.yml")] if match else []
    if match is None or not all(file.is_file() for file in files):
        return None
    args, hyperparams = map(read_as_text, files)
    model = args.get("trained_agent")
    return ZooRun(match[1], args, hyperparams, (called_from(folder, args) / str(model)).resolve() if model else None)


def called_from(folder: Path, args: Mapping[str, Any]) -> Path:
    """
    Find the folder in which RL Zoo was called, to which its paths are relative.

    :param folder: folder of the run, ``.../LOG_FOLDER/METHOD/ENV_NUMBER``
    :param args: arguments of the command line by name
    :return: this folder; the current one if it is not known
    """
    logs, given = folder.parents[1], Path(str(args.get("log_folder"))).parts
    is_relative = 0 < len(given) < len(logs.parts) and logs.parts[-len(given) :] == given
    return logs.parents[len(given) - 1] if is_relative else Path()


def first_folder(folder: Path) -> Path:
    """
    Find the folder in which a run began: one that is continued from a checkpoint (``-i``) writes to a new folder.

    :param folder: folder of a run
    :return: the folder that it began in, which may be gone
    """
    run = read_run(folder)
    if run is None or run.model is None or not is_checkpoint(run.model):
        return folder
    before = folder_of(run.model)
    match = RUN_NAME.fullmatch(before.name)
    return first_folder(before) if match is not None and match[1] == run.env_id and before != folder else folder


def is_checkpoint(model: Path) -> bool:
    """
    Check whether a model is that of a checkpoint from which a run can go on.

    :param model: path of the model, which may be gone
    :return: whether it is one
    """
    match = SAVED_AT.search(model.as_posix())
    return match is not None and match[1] is not None


def folder_of(model: Path) -> Path:
    """
    Find the folder of the run that saved a model.

    :param model: path of the model, which may be gone
    :return: the folder
    """
    return model.parent.parent.parent if is_checkpoint(model) else model.parent
