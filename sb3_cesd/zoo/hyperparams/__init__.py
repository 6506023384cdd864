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
(``cesd_released``). ``python -m sb3_cesd.zoo.hyperparams cesd_laptop Walker-v0`` prints the merged entry.
"""

import copy
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import yaml

from sb3_cesd.common.merging import merge
from sb3_cesd.envs.mazes.ids import MAZES
from sb3_cesd.envs.robots.ids import HORIZONS, LOCOMOTION, ROBOTS
from sb3_cesd.registry import METHODS

Entry = dict[str, Any]

COMMON = "common"
SCALES = ("published", "laptop")
OF_SCALES = tuple(f"{scale}_{part}" for scale in SCALES for part in (*HORIZONS, "skills", "task"))
SECTIONS = ("base", *SCALES, *HORIZONS, "task", *OF_SCALES, "maze")


def hyperparams_folder() -> Path:
    """
    Find the folder of the yml files.

    :return: the folder, in the package or (editable install) in the repository
    """
    package = Path(__file__).parents[2]
    packaged = package / "hyperparams"
    return packaged if packaged.is_dir() else package.parent / "hyperparams"


def configs() -> dict[str, tuple[str, str]]:
    """
    List the configs.

    :return: file (without ``.yml``) and scale of each, by its name
    """
    files = [path.stem for path in sorted(hyperparams_folder().glob("*.yml"))]
    variants = [name for name in files if name not in (COMMON, *METHODS)]
    return {
        **{name: (name, "published") for name in [*METHODS, *variants]},
        **{f"{name}_laptop": (name, "laptop") for name in METHODS},
    }


def entries(config: str) -> dict[str, Entry]:
    """
    Compose the entries of a config.

    :param config: name of the config
    :return: arguments of the constructor and of RL Zoo (``n_timesteps``, ``n_envs``), by id of the environment, and "default"
        for all others
    :raises ValueError: if there is no such config
    """
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
    """
    Read the hyperparameters of a method in an environment.

    :param config: name of the config
    :param env_id: id of the environment, which may name this package (``sb3_cesd:Walker-v0``)
    :return: its entry or, as in RL Zoo, the default one
    """
    composed = entries(config)
    return composed.get(env_id.removeprefix("sb3_cesd:"), composed["default"])


def read_sections(file: str) -> dict[str, Entry]:
    """
    Read a yml file.

    :param file: its name without ``.yml``; a method may have none
    :return: sections by name
    :raises ValueError: if a section is unknown
    """
    path = hyperparams_folder() / f"{file}.yml"
    sections = (yaml.safe_load(path.read_text(encoding="utf-8")) if path.is_file() else None) or {}
    unknown = [name for name in sections if name not in SECTIONS]
    if unknown:
        raise ValueError(f"{path} has unknown sections, {', '.join(unknown)}: use {', '.join(SECTIONS)}.")
    return sections


def compose(files: list[dict[str, Entry]], names: list[str]) -> Entry:
    """
    Compose an entry from sections.

    :param files: sections of each file; later files take precedence
    :param names: names of the sections; later sections take precedence
    :return: the entry
    """
    entry: Entry = {}
    for name in names:
        for sections in files:
            entry = merge(entry, sections.get(name) or {})
    return copy.deepcopy(entry)


def find_config(conf_file: str) -> str | None:
    """
    Find the config that RL Zoo's ``--conf-file`` refers to.

    :param conf_file: name of a config, with or without ``.yml``; or the path of such a file in our folder
    :return: the config; ``None`` for a file or module of the user
    """
    path = Path(conf_file.removeprefix(f"{__name__}."))
    in_our_folder = path.parent.resolve() == hyperparams_folder().resolve()
    if not in_our_folder and (path.is_file() or path.name != str(path)):
        return None
    name = path.name.removesuffix(".yml")
    return name if name in configs() else None


def make_module(config: str) -> str:
    """
    Provide the entries of a config as a module with a dictionary ``hyperparams``, which RL Zoo imports.

    :param config: name of the config
    :return: name of the module
    """
    module = ModuleType(f"{__name__}.{config}")
    vars(module)["hyperparams"] = entries(config)
    sys.modules[module.__name__] = module
    return module.__name__
