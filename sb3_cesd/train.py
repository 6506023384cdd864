"""
``python -m rl_zoo3.train`` with the methods of this package, where the start-up hook is not installed.

It takes the same arguments: ``python -m sb3_cesd.train --algo cesd --env Walker-v0``.
"""

from sb3_cesd.zoo import register


def main() -> None:
    """Run RL Zoo's training."""
    register()
    from rl_zoo3.train import train

    train()


if __name__ == "__main__":
    main()
