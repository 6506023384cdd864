"""
Run ``python -m rl_zoo3.train`` with the methods of this package, even if the start-up hook is not installed.

It takes the same arguments: ``python -m sb3_cesd.train --algo cesd --env Walker-v0``. ``-i`` also accepts a folder of
checkpoints, and uses the latest one.
"""

import itertools
import sys
from pathlib import Path

from sb3_cesd.checkpoints.folders import MODEL, find_checkpoint
from sb3_cesd.zoo import register

#: Options of RL Zoo that name a model
OPTIONS = ("-i", "--trained-agent")


def with_checkpoints_found(arguments: list[str]) -> list[str]:
    """
    Replace a folder of checkpoints in RL Zoo's command line, which RL Zoo rejects, by the model of its latest checkpoint.

    :param arguments: arguments of the command line
    :return: the same, with the model of the latest checkpoint after ``-i`` or ``--trained-agent``
    :raises FileNotFoundError: if there is no checkpoint in a folder, or no such folder
    """
    found = list(arguments)
    for idx, (option, value) in enumerate(itertools.pairwise(arguments)):
        if option in OPTIONS and is_folder(value):
            found[idx + 1] = str(find_checkpoint(value) / MODEL)
    for idx, (option, _, value) in enumerate(word.partition("=") for word in arguments):
        if option in OPTIONS and is_folder(value):
            found[idx] = f"{option}={find_checkpoint(value) / MODEL}"
    return found


def is_folder(value: str) -> bool:
    """
    Tell whether a value is meant to be a folder of checkpoints.

    :param value: a value of ``-i``, empty for no model
    :return: whether it is a folder, or names nothing that exists and no .zip file, whose absence RL Zoo reports
    """
    path = Path(value)
    return bool(value) and (path.is_dir() or not (path.exists() or path.suffix == ".zip"))


def main() -> None:
    """Run RL Zoo's training."""
    register()
    from rl_zoo3.train import train

    sys.argv[1:] = with_checkpoints_found(sys.argv[1:])
    train()


if __name__ == "__main__":
    main()
