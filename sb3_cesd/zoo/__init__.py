"""
The methods in RL Zoo: their names, hyperparameters and search spaces. The only folder that knows ``rl_zoo3``.

A start-up hook calls :func:`extend` right after the import of each module of RL Zoo. Where packages are installed without such
hooks (``pip install --target``, a folder on ``PYTHONPATH``), ``python -m sb3_cesd.train`` does without, or :func:`register`.
"""

from sb3_cesd.zoo.patches import extend, register

__all__ = ["extend", "register"]
