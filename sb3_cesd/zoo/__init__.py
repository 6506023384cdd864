"""
The methods in RL Zoo: their names, hyperparameters and search spaces. The only folder that knows ``rl_zoo3``.

A start-up hook calls :func:`extend` right after the import of each module of RL Zoo. Where packages are installed without such
hooks (``pip install --target``, a folder on ``PYTHONPATH``), ``python -m sb3_cesd.train`` does without, or :func:`register`.
"""

from typing import Any

__all__ = ["extend", "register"]


def extend(module: Any) -> None:
    """
    Add the methods to a module of RL Zoo, see :func:`sb3_cesd.zoo.patches.extend`.

    :param module: a module whose import has ended
    """
    # Optuna and more, which the hyperparameters beside it can do without
    from sb3_cesd.zoo import patches

    patches.extend(module)


def register() -> None:
    """Make the methods known to RL Zoo, see :func:`sb3_cesd.zoo.patches.register`."""
    from sb3_cesd.zoo import patches

    patches.register()
