"""What the page of a model is called, and where it is."""

from pathlib import Path

from sb3_cesd.checkpoints.folders import is_checkpoint
from sb3_cesd.export import SUFFIX


def model_name(path: Path) -> str:
    """
    Return the name of a model, which may contain dots: SB3 adds no suffix to such names.

    :param path: its file
    :return: the name, without the suffix of a model or an exported policy
    """
    return path.stem if path.suffix in (".zip", SUFFIX) else path.name


def page_name(path: Path) -> str:
    """
    Return the name of the page of a model.

    :param path: file of the model
    :return: the name of the model; that of the checkpoint for the model in one; that of the file for an exported policy beside
        a model of the same name
    """
    if is_checkpoint(path.parent):
        return path.resolve().parent.name
    return path.name if path.suffix == SUFFIX and path.with_suffix(".zip").is_file() else model_name(path)


def folder_of_pages(path: Path) -> Path:
    """
    Return the folder in which pages of a model are written.

    :param path: file of the model
    :return: its folder; that of the checkpoints for a model in one, since checkpoints are deleted
    """
    return path.resolve().parent.parent if is_checkpoint(path.parent) else path.parent
