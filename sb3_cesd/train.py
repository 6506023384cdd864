"""
Run ``python -m rl_zoo3.train`` with the methods of this package, even if the start-up hook is not installed.

It takes the same arguments: ``python -m sb3_cesd.train --algo cesd --env Walker-v0``. ``-i`` also accepts a folder of
checkpoints, and uses the latest one.
"""

import argparse
import sys
from pathlib import Path

from sb3_cesd.checkpoints import MODEL, find_checkpoint
from sb3_cesd.zoo import register


def with_checkpoint_found(arguments: list[str]) -> list[str]:
    """Replace a folder of checkpoints after ``-i``, which RL Zoo rejects, by the model of its latest checkpoint."""
    parser = argparse.ArgumentParser(add_help=False)
    parser.add_argument("-i", "--trained-agent")
    known, others = parser.parse_known_args(arguments)
    agent = known.trained_agent
    return [*others, "-i", str(find_checkpoint(agent) / MODEL)] if agent and Path(agent).is_dir() else arguments


def main() -> None:
    register()
    from rl_zoo3.train import train

    sys.argv[1:] = with_checkpoint_found(sys.argv[1:])
    train()


if __name__ == "__main__":
    main()
