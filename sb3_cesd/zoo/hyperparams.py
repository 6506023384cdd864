"""
Hyperparameters of the methods, by config and environment.

``common.yml`` holds what all methods share, ``NAME.yml`` how a method differs, in the same sections. The entry of an
environment merges the sections that apply to it, at any depth. Later sections take precedence over earlier ones, and within a
section the method takes precedence over ``common.yml``::

    any, e.g. Pendulum-v1    base, SCALE
    Walker-v0                base, SCALE, walker, SCALE_walker, SCALE_skills
    WalkerRun-v0             base, SCALE, walker, SCALE_walker, task, SCALE_task
    MazeTree-v0              maze, at either scale

Each method has the configs ``NAME`` (SCALE is ``published``) and ``NAME_laptop``; a variant has a file and a config of its own
(``cesd_released``). ``python -m sb3_cesd.zoo.hyperparams cesd_laptop Walker-v0`` prints the merged entry, and
``python -m sb3_cesd.zoo.hyperparams template`` a yml file for your own environment.
"""

import argparse
import copy
import inspect
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from sb3_cesd.common.arguments import merge
from sb3_cesd.envs.mazes.layouts import MAZES
from sb3_cesd.envs.registration import LOCOMOTION, ROBOTS
from sb3_cesd.registry import METHODS

Entry = dict[str, Any]

COMMON, TEMPLATE = "common", "template"
SCALES = ("published", "laptop")
#: Arguments whose entries ``-params`` and studies change one by one
NESTED = ("policy_kwargs", "intrinsic_kwargs", "replay_buffer_kwargs")
#: Encoders, each with arguments of its own
ENCODERS = ("encoder", "distance_encoder")


def hyperparams_folder() -> Path:
    """Find the folder of the yml files, in the package or (editable install) in the repository."""
    package = Path(__file__).parents[1]
    packaged = package / "hyperparams"
    return packaged if packaged.is_dir() else package.parent / "hyperparams"


def configs() -> dict[str, tuple[str, str]]:
    """List file (without ``.yml``) and scale of each config, by its name."""
    files = [path.stem for path in sorted(hyperparams_folder().glob("*.yml"))]
    variants = [name for name in files if name not in (COMMON, *METHODS)]
    return {
        **{name: (name, "published") for name in [*METHODS, *variants]},
        **{f"{name}_laptop": (name, "laptop") for name in METHODS},
    }


def entries(config: str) -> dict[str, Entry]:
    """Compose the entries of a config: arguments of the constructor and of RL Zoo, by id of the environment, or "default"."""
    known = configs()
    if config not in known:
        raise ValueError(f"There is no config {config!r}: use one of {', '.join(known)}.")
    file, scale = known[config]
    files = [read_sections(COMMON), read_sections(file)]
    sections = {"default": ["base", scale]}
    for env_id, (domain, _) in ROBOTS.items():
        is_task = env_id.lower() != f"{domain}-v0"
        of_kind = ["task", f"{scale}_task"] if is_task else [f"{scale}_skills"]
        sections[env_id] = ["base", scale, domain, f"{scale}_{domain}", *of_kind]
    sections.update({env_id: ["base", scale, domain, f"{scale}_{domain}"] for env_id, domain in LOCOMOTION.items()})
    sections.update({env_id: ["maze"] for env_id in MAZES})
    return {env_id: compose(files, names) for env_id, names in sections.items()}


def read_entry(config: str, env_id: str) -> Entry:
    """Read the entry of an environment (e.g. ``Walker-v0`` or ``sb3_cesd:Walker-v0``) or, as in RL Zoo, the default one."""
    composed = entries(config)
    return composed.get(env_id.removeprefix("sb3_cesd:"), composed["default"])


def read_sections(file: str) -> dict[str, Entry]:
    """Read the sections of a yml file by the name of the file; a method may have none."""
    path = hyperparams_folder() / f"{file}.yml"
    return (yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None) or {}


def compose(files: list[dict[str, Entry]], names: list[str]) -> Entry:
    """Merge sections, given by their names; later sections and later files take precedence."""
    entry: Entry = {}
    for name in names:
        for sections in files:
            entry = merge(entry, sections.get(name) or {})
    return copy.deepcopy(entry)


def find_conf_file(conf_file: str) -> str:
    """
    Find the file or module that RL Zoo is to read for ``--conf-file``: a file or module of the user, or a config, with or
    without ``.yml``, from any folder.
    """
    path = Path(conf_file)
    # RL Zoo can't read our files, which hold sections
    is_ours = path.parent.resolve() == hyperparams_folder().resolve()
    if path.is_file() and not is_ours:
        return conf_file
    config = path.name.removesuffix(".yml")
    if config in configs() and (is_ours or path.name == conf_file):
        return make_module(config)
    package = conf_file.partition(".")[0]
    if path.suffix not in (".yml", ".yaml", ".py") and package and find_spec(package) is not None:
        return conf_file
    raise ValueError(f"There is no {conf_file}: pass --conf-file the path of a file, or one of {', '.join(configs())}.")


def make_module(config: str) -> str:
    """Provide the entries of a config as a module with ``hyperparams``, which RL Zoo imports by the name that is returned."""
    module = ModuleType(f"{__name__}.{config}")
    vars(module)["hyperparams"] = entries(config)
    sys.modules[module.__name__] = module
    return module.__name__


def with_params(method: Any, entry: Entry, params: Entry) -> Entry:
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


def main() -> None:
    """Print the entries of a config, or the template."""
    parser = argparse.ArgumentParser(prog="python -m sb3_cesd.zoo.hyperparams", description="Print hyperparameters.")
    parser.add_argument(
        "config", choices=[*configs(), TEMPLATE], help=f"name of a config, or {TEMPLATE} for a yml file to start from"
    )
    parser.add_argument("env", nargs="?", help="id of an environment (default: all of them)")
    args = parser.parse_args()
    if args.config == TEMPLATE:
        print((Path(__file__).parent / f"{TEMPLATE}.yml").read_text(), end="")
        return
    shown = entries(args.config) if args.env is None else {args.env: read_entry(args.config, args.env)}
    print(yaml.safe_dump(shown, sort_keys=False, default_flow_style=None, width=127), end="")


if __name__ == "__main__":
    main()
