"""Types of command line arguments, which are checked before anything is run."""

import argparse
import os
from collections.abc import Callable
from pathlib import Path

#: Largest count that is accepted by default
MOST = 2**31 - 1


def at_least(least: int, most: int = MOST) -> Callable[[str], int]:
    """
    Make a parser of integers.

    :param least: smallest integer to accept
    :param most: largest integer to accept
    :return: a ``type`` for :meth:`argparse.ArgumentParser.add_argument`
    """

    def integer(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r} is not an integer of at least {least}: pass {least} or more")
        if value > most:
            raise argparse.ArgumentTypeError(f"{text!r} is too large: pass at most {most}")
        return value

    return integer


def output_folder(text: str) -> Path:
    """
    Parse the folder of results, without creating it.

    :param text: an argument
    :return: a folder that exists or can be created
    :raises argparse.ArgumentTypeError: if it neither exists nor can be created
    """
    path = Path(text)
    above = path.absolute()
    try:
        while not above.exists() and above != above.parent:
            above = above.parent
        writable = bool(text) and above.is_dir() and os.access(above, os.W_OK | os.X_OK)
    except OSError:  # a name that is too long
        writable = False
    if not writable:
        raise argparse.ArgumentTypeError(f"{text!r} can't be written to: pass a folder that exists or can be created")
    return path
