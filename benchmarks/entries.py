"""Hyperparameters of a benchmark run: those RL Zoo would train with, and what they are compared with."""

from collections.abc import Mapping
from typing import Any

import yaml

from sb3_cesd import zoo

#: One departure of the default from the released code undone
UNDONE: dict[str, dict[str, Any]] = {
    "log1p=True": {"entropy_kwargs": {"log1p": True}},
    "entropy=released": {"entropy_kwargs": {"log1p": True, "scale": "variance"}},
    "shared_value=False": {"policy_kwargs": {"shared_value": False}},
    "start=0": {"constraint_kwargs": {"start": 0.0}},
}


def read_entry(config: str, env_id: str, overrides: Mapping[str, Any] | None = None) -> dict[str, Any]:
    """
    :param config: name of the yml file of the package
    :param env_id: id of the environment
    :param overrides: arguments that differ from the yml file; those that are dicts are merged with it
    :return: arguments of the constructor, and those of RL Zoo in the entry (``n_timesteps``, ``n_envs``)
    """
    entry = yaml.safe_load((zoo.hyperparams_folder() / f"{config}.yml").read_text())[env_id]
    if "policy_kwargs" in entry:
        entry["policy_kwargs"] = eval(entry["policy_kwargs"])
    if "learning_rate" in entry:
        entry["learning_rate"] = float(entry["learning_rate"])
    for name, value in (overrides or {}).items():
        entry[name] = {**entry.get(name, {}), **value} if isinstance(value, Mapping) else value
    return entry
