"""Patches of RL Zoo's modules, since RL Zoo has no plugin hook."""

import sys
from collections.abc import Callable
from functools import wraps
from importlib import import_module
from typing import Any

import huggingface_sb3
from huggingface_hub.errors import RemoteEntryNotFoundError

from sb3_cesd.registry import METHODS
from sb3_cesd.zoo.playing import show_skills


def add_methods(utils: Any) -> None:
    """
    Add the methods to the choices of ``--algo``, and show which skill acts when a model is played.

    :param utils: ``rl_zoo3.utils``
    """
    if METHODS.keys() <= utils.ALGOS.keys():
        return
    utils.ALGOS.update(METHODS)
    show_skills(utils)
    # Without the start-up hook, RL Zoo has imported the functions already
    for name in ("rl_zoo3", "rl_zoo3.enjoy"):
        module = sys.modules.get(name)
        for function in ("create_test_env", "get_model_path"):
            if hasattr(module, function):
                setattr(module, function, getattr(utils, function))
    mend_hub(import_module("huggingface_sb3.push_to_hub"))


def mend_hub(push_to_hub: Any) -> None:
    """
    Let RL Zoo's ``push_to_hub`` and ``load_from_hub`` work with newer versions of the libraries that they import from.

    :param push_to_hub: ``huggingface_sb3.push_to_hub``
    """
    make_card = getattr(push_to_hub, "_generate_metadata", None)
    if make_card is not None and not hasattr(push_to_hub, "generate_metadata"):
        push_to_hub.generate_metadata = lambda *args, **kwargs: make_card(*args, **kwargs).to_dict()
    load_from_hub = huggingface_sb3.load_from_hub

    @wraps(load_from_hub)
    def load(*args: Any, **kwargs: Any) -> str:
        try:
            return load_from_hub(*args, **kwargs)
        except RemoteEntryNotFoundError as error:
            # What RL Zoo catches for a repository without statistics of VecNormalize
            from requests.exceptions import HTTPError

            raise HTTPError(str(error)) from error

    huggingface_sb3.load_from_hub = load


def replace_manager(exp_manager: Any) -> None:
    """
    Put our manager and evaluations, which derive from those of RL Zoo, in their place.

    :param exp_manager: ``rl_zoo3.exp_manager``
    """
    import_module("sb3_cesd.zoo.manager")


#: Patch of each module of RL Zoo
PATCHES: dict[str, Callable[[Any], None]] = {"rl_zoo3.utils": add_methods, "rl_zoo3.exp_manager": replace_manager}
