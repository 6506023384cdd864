"""
Integration with RL Zoo: names, hyperparameters and search spaces of the methods.

A start-up hook calls :func:`extend` right after each module of RL Zoo is imported. If packages are installed without such
hooks (``pip install --target``, a folder on ``PYTHONPATH``), use ``python -m sb3_cesd.train`` or :func:`register`.
"""

import sys
from importlib import import_module
from typing import Any

__all__ = ["extend", "register"]

#: Modules of RL Zoo that are extended
EXTENDED = ("rl_zoo3.utils", "rl_zoo3.exp_manager")


def extend(module: Any) -> None:
    """Add the methods to a module of RL Zoo, if it is one that needs them. Calling this again is harmless."""
    # Imported here, as Optuna and more come with them, which presets do not need
    if module.__name__ == "rl_zoo3.utils":
        import_module("sb3_cesd.zoo.patches").add_methods(module)
    elif module.__name__ == "rl_zoo3.exp_manager":
        # Puts our manager in the place of RL Zoo's
        import_module("sb3_cesd.zoo.manager")


def register() -> None:
    """Add the methods to RL Zoo, as the start-up hook does automatically. Calling this again is harmless."""
    for name in EXTENDED:
        module = sys.modules.get(name) or import_module(name)
        # A module that is still being imported lacks what is extended
        if not getattr(module.__spec__, "_initializing", False):
            extend(module)
