"""Arguments of the command lines; each is checked before anything is trained."""

import argparse
from collections.abc import Callable


def at_least(least: int) -> Callable[[str], int]:
    """
    Make a parser of integers.

    :param least: the least that is right
    :return: a ``type`` for :meth:`argparse.ArgumentParser.add_argument`
    """

    def integer(text: str) -> int:
        try:
            value = int(text)
        except ValueError:
            value = least - 1
        if value < least:
            raise argparse.ArgumentTypeError(f"{text!r} is no integer from {least} on: pass {least} or more")
        return value

    return integer
