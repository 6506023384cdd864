"""
Integration with RL Zoo: names, hyperparameters and search spaces of the methods.

A start-up hook calls :func:`extend` right after each module of RL Zoo is imported. If packages are installed without such
hooks (``pip install --target``, a folder on ``PYTHONPATH``), use ``python -m sb3_cesd.train`` or :func:`register`.
"""

from typing import Any

__all__ = ["extend", "register"]


def extend(module: Any) -> None:
    """
    Add the methods to a module of RL Zoo, see :func:`sb3_cesd.zoo.patches.extend`.

    :param module: a module after its import
    """
    # Imports Optuna and more, which sb3_cesd.zoo.hyperparams does not need
    from sb3_cesd.zoo import patches

    patches.extend(module)


def register() -> None:
    """Add the methods to RL Zoo, see :func:`sb3_cesd.zoo.patches.register`."""
    from sb3_cesd.zoo import patches

    patches.register()
