"""Arguments of the command lines; each is checked before anything is trained."""

import argparse
from pathlib import Path

import torch as th

from sb3_cesd.common.command_line import at_least, existing, output_folder

__all__ = ["at_least", "device_name", "existing", "make_folder", "output_folder"]


def make_folder(parser: argparse.ArgumentParser, folder: Path) -> None:
    """
    Make the folder of results, or end the program with a message.

    :param parser: parser of the command line
    :param folder: the folder
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"{str(folder)!r} can't be made ({error.strerror}): pass another folder")


def device_name(text: str) -> str:
    """
    Parse a device.

    :param text: an argument
    :return: its name
    :raises argparse.ArgumentTypeError: if models do not run on such, or there is none here
    """
    try:
        th.zeros(1, device=text)
        usable = th.device(text).type in ("cpu", "cuda", "mps", "xpu")
    except (AssertionError, RuntimeError):
        usable = False
    if not usable:
        raise argparse.ArgumentTypeError(f"there is no device {text!r} here: pass cpu")
    return text
