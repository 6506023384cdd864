"""Arguments of the command lines; each is checked before anything is trained."""

import argparse
import os
from collections.abc import Sequence
from pathlib import Path

import torch as th

from sb3_cesd.common.argument_rules import DEVICES
from sb3_cesd.common.command_line import at_least, output_folder

__all__ = ["at_least", "check_eval_freq", "device_name", "existing", "make_folder", "output_folder", "seeds_of"]


def make_folder(parser: argparse.ArgumentParser, folder: Path) -> None:
    """
    Create the folder of results, or exit with a message.

    :param parser: parser of the command line
    :param folder: the folder
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        parser.error(f"{str(folder)!r} can't be created ({error.strerror}): pass another folder")


def seeds_of(parser: argparse.ArgumentParser, numbers: Sequence[int]) -> range:
    """
    Turn the values of ``--seeds`` into seeds, or exit with a message.

    :param parser: parser of the command line
    :param numbers: the number of seeds, or the first one and one past the last
    :return: the seeds, at least one
    """
    seeds = range(*numbers) if len(numbers) <= 2 else range(0)
    if not seeds:
        parser.error("--seeds: pass the number of seeds, or the first one and one past the last")
    return seeds


def check_eval_freq(parser: argparse.ArgumentParser, eval_freq: int, steps: int, name: str) -> None:
    """
    Exit with a message unless the last evaluation is at the end.

    :param parser: parser of the command line
    :param eval_freq: steps between two evaluations
    :param steps: number of steps
    :param name: subject and verb of what ends then, such as ``"tasks end"``
    """
    if eval_freq > steps:
        parser.error(f"--eval-freq {eval_freq}: {name} after {steps} steps, pass no more")
    if steps % eval_freq:
        parser.error(f"--eval-freq {eval_freq}: the last one would be before the end, pass a divisor of {steps}")


def existing(text: str) -> Path:
    """
    Parse the path of a file or folder to read.

    :param text: an argument
    :return: a file or folder that exists
    :raises argparse.ArgumentTypeError: if there is none
    """
    if not text or not os.path.exists(text):
        raise argparse.ArgumentTypeError(f"there is no {text!r}: pass a file or folder that exists")
    return Path(text)


def device_name(text: str) -> str:
    """
    Parse a device.

    :param text: an argument
    :return: its name
    :raises argparse.ArgumentTypeError: if there is no such device, or models can't run on it
    """
    try:
        th.zeros(1, device=text)
        usable = th.device(text).type in DEVICES
    except (AssertionError, RuntimeError):
        usable = False
    if not usable:
        raise argparse.ArgumentTypeError(f"there is no device {text!r} here: pass cpu")
    return text
