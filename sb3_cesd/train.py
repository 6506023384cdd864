"""
Run ``python -m rl_zoo3.train`` with the methods of this package, even if the start-up hook is not installed.

It takes the same arguments: ``python -m sb3_cesd.train --algo cesd --env Walker-v0``. ``-i`` also accepts a folder of
checkpoints, and uses the latest one.
"""

import sys

from sb3_cesd.checkpoints.folders import with_checkpoints_found
from sb3_cesd.zoo import register


def main() -> None:
    """Run RL Zoo's training."""
    register()
    from rl_zoo3.train import train

    sys.argv[1:] = with_checkpoints_found(sys.argv[1:])
    train()


if __name__ == "__main__":
    main()
