"""
Run ``python -m rl_zoo3.train`` with the methods of this package, even if the start-up hook is not installed.

It takes the same arguments: ``python -m sb3_cesd.train --algo cesd --env Walker-v0``. ``-i`` also accepts a folder of
checkpoints, and uses the latest one.
"""

import sys
from pathlib import Path

from sb3_cesd.checkpoints.folders import MODEL, find_checkpoint
from sb3_cesd.zoo import register

#: Option of RL Zoo that names a model, and the shortest form of its long name that argparse takes for no other option
SHORT, LONG, SHORTEST_LONG = "-i", "--trained-agent", "--trai"


def with_checkpoints_found(arguments: list[str]) -> list[str]:
    """
    Replace a folder of checkpoints in RL Zoo's command line, which RL Zoo rejects, by the model of its latest checkpoint.

    :param arguments: arguments of the command line
    :return: the same, with the model of the latest checkpoint after ``-i`` or ``--trained-agent``, in any form of these that
        argparse takes
    :raises FileNotFoundError: if there is no checkpoint in a folder, or no such folder
    """
    found = list(arguments)
    for idx, word in enumerate(arguments):
        option, equals, value = word.partition("=")
        if names_model(option) and equals:
            found[idx] = f"{option}={model_of(value)}"
        elif names_model(word) and idx + 1 < len(arguments):
            found[idx + 1] = model_of(arguments[idx + 1])
        elif word.startswith(SHORT) and word != SHORT:
            found[idx] = f"{SHORT}{model_of(word.removeprefix(SHORT))}"
    return found


def names_model(option: str) -> bool:
    """
    Check whether an option names a model.

    :param option: a word of the command line
    :return: whether argparse takes it for ``-i`` or ``--trained-agent``
    """
    return option == SHORT or (option.startswith(SHORTEST_LONG) and LONG.startswith(option))


def model_of(value: str) -> str:
    """
    Replace a folder of checkpoints by the model of the latest one.

    :param value: a value of ``-i``, empty for no model
    :return: the model; the value if it is a file, or a .zip file that does not exist, which RL Zoo reports
    :raises FileNotFoundError: if there is no checkpoint in a folder, or no such folder
    """
    path = Path(value)
    if not value or path.is_file() or (path.suffix == ".zip" and not path.is_dir()):
        return value
    return str(find_checkpoint(value) / MODEL)


def main() -> None:
    """Run RL Zoo's training."""
    register()
    from rl_zoo3.train import train

    sys.argv[1:] = with_checkpoints_found(sys.argv[1:])
    train()


if __name__ == "__main__":
    main()
