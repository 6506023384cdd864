"""Entries of yml files, and how ``-params`` and trials change them."""

import inspect
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sb3_cesd.common.arguments import merge
from sb3_cesd.presets import hyperparams_folder

#: Arguments whose entries ``-params`` and studies change one by one
NESTED = ("policy_kwargs", "intrinsic_kwargs", "replay_buffer_kwargs")
#: Encoders, each with arguments of its own
ENCODERS = ("encoder", "distance_encoder")


def find_conf_file(conf_file: str) -> str:
    """Find what RL Zoo is to read for ``--conf-file``: a file or module of the user, or one of ours by its name."""
    ours = {path.stem: path for path in sorted(hyperparams_folder().glob("*.yml"))}
    name, package = conf_file.removesuffix(".yml"), conf_file.partition(".")[0]
    if Path(conf_file).is_file():
        return conf_file
    if name in ours:
        return str(ours[name])
    if not conf_file.endswith((".yml", ".yaml", ".py")) and package and find_spec(package) is not None:
        return conf_file
    raise ValueError(f"There is no {conf_file}: pass --conf-file the path of a file, or one of {', '.join(ours)}.")


def with_params(method: Any, entry: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """
    Change arguments of an entry, those in ``policy_kwargs`` and other dictionaries one by one. With another encoder, the
    entry's arguments of its encoder are left out.
    """
    changed = {**entry, **params}
    for name in NESTED:
        kept, given = entry.get(name), params.get(name)
        if isinstance(kept, Mapping) and isinstance(given, Mapping):
            replaced = replaced_encoders(method, kept, given) if name == "intrinsic_kwargs" else ()
            kept = {key: value for key, value in kept.items() if key.removesuffix("_kwargs") not in replaced}
            changed[name] = merge(kept, given)
    return changed


def replaced_encoders(method: Any, kept: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """List the encoders among arguments of a reward that others replace."""
    known = inspect.signature(method.reward_class).parameters
    return [
        name for name in ENCODERS if name in known and name in given and given[name] != kept.get(name, known[name].default)
    ]
