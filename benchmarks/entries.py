"""Hyperparameters of a benchmark run: those that RL Zoo would use, and the ones they are compared with."""

from collections.abc import Mapping
from types import MappingProxyType
from typing import Any

from sb3_cesd.zoo import hyperparams

#: Variants in which one departure of the defaults from the released code is undone
UNDONE: dict[str, dict[str, Any]] = {
    "log1p=True": {"intrinsic_kwargs": {"entropy_kwargs": {"log1p": True}}},
    "entropy=released": {"intrinsic_kwargs": {"entropy_kwargs": {"log1p": True, "scale": "variance"}}},
    "shared_value=False": {"policy_kwargs": {"shared_value": False}},
    "start=0": {"intrinsic_kwargs": {"constraint_kwargs": {"start": 0.0, "freeze_clusters": False}}},
}


#: Items of an entry that are for RL Zoo, not for the constructor
OF_ZOO = ("n_timesteps", "n_envs")


def of_constructor(entry: Mapping[str, Any]) -> dict[str, Any]:
    """
    Remove items that are not for the constructor.

    :param entry: an entry of a yml file
    :return: arguments of the constructor
    """
    return {name: value for name, value in entry.items() if name not in OF_ZOO}


def read_entry(config: str, env_id: str, overrides: Mapping[str, Any] = MappingProxyType({})) -> dict[str, Any]:
    """
    Read the hyperparameters of an algorithm.

    :param config: name of the yml file of the package
    :param env_id: id of the environment
    :param overrides: arguments that differ from the yml file; dictionaries are merged
    :return: arguments of the constructor, and those of RL Zoo in the entry (``n_timesteps``, ``n_envs``)
    """
    return hyperparams.merge(hyperparams.read_entry(config, env_id), overrides)
