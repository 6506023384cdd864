"""Find out what a saved model is, from its file and from the folders of RL Zoo."""

import importlib
import re
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import gymnasium as gym
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.checkpoints.folders import STATISTICS, is_checkpoint
from sb3_cesd.common.env_specs import without_rendering
from sb3_cesd.common.untrusted_yml import read_entry
from sb3_cesd.common.vec_normalize import load_statistics
from sb3_cesd.export import SUFFIX, ExportedPolicy, import_policy
from sb3_cesd.registry import METHODS
from sb3_cesd.show.page_names import model_name
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.saved_files import read_saved_data

#: Folder of the checkpoints of a run
CHECKPOINTS = "checkpoints"


def find_algorithm(model_path: Path) -> str:
    """
    Find the method of a model.

    :param model_path: a model
    :return: its name, from the file, else from the folders of RL Zoo; "cesd" if neither says
    :raises ValueError: if the file says that another class saved it
    """
    if model_path.is_file() and model_path.suffix != SUFFIX:
        saved_by = read_saved_data(model_path).get("lineage", [])
        for class_name in saved_by:
            if class_name.lower() in METHODS:
                return class_name.lower()
        if saved_by:
            raise ValueError(
                f"{model_path} was saved by {saved_by[0]}, which the command line does not know: call "
                f"show_skills({saved_by[0]}.load(path), env) in Python, or pass a policy that export_policy wrote."
            )
    names = [folder.name for folder in model_path.resolve().parents]
    return next((name for name in names if name in METHODS), "cesd")


def load_model(model_path: Path, algorithm: str | None = None) -> SkillDDPG | ExportedPolicy:
    """
    Load a model to show.

    :param model_path: file of the model, or of an exported policy
    :param algorithm: name of its method; ``None`` to find it from the file
    :return: the model, or the policy
    :raises ValueError: if there is no such file, or it is of another method
    """
    if not model_path.is_file():
        raise ValueError(f"There is no file {model_path}: pass that of a model, e.g. logs/cesd/Walker-v0_1/Walker-v0.zip.")
    if model_path.suffix == SUFFIX:
        return import_policy(model_path)
    return METHODS[algorithm or find_algorithm(model_path)].load(model_path, device="cpu", buffer_size=1)


def run_folder(model_path: Path) -> Path | None:
    """
    Find the folder in which RL Zoo keeps the settings of a run.

    :param model_path: a model in a folder of RL Zoo (final, best, or checkpoint)
    :return: the folder of ``args.yml`` and ``config.yml``; ``None`` if there is none, or more than one
    """
    for parent in _folders_of_run(model_path):
        folders = [path.parent for path in sorted(parent.glob("*/args.yml"))] or [
            path.parent for path in sorted(parent.glob("*/config.yml"))
        ]
        named = [folder for folder in folders if folder.name == model_path.stem]
        if len(named or folders) == 1:
            return (named or folders)[0]
    return None


def _folders_of_run(model_path: Path) -> list[Path]:
    """List the folder of a model and, for a checkpoint, that of the run, which is two levels up."""
    parents = model_path.resolve().parents
    return [parents[0], *([parents[2]] if len(parents) > 2 and parents[1].name == CHECKPOINTS else [])]


def import_packages(model_path: Path, packages: Sequence[str] = ()) -> list[str]:
    """
    Import packages that register the environment of a model.

    :param model_path: a model in a folder of RL Zoo
    :param packages: names of packages
    :return: names of ``packages`` and of those in ``args.yml``; the latter are ignored for an exported policy, which must not
        run code
    :raises ValueError: if one can't be imported
    """
    names = list(packages)
    folder = run_folder(model_path)
    if folder is not None and model_path.suffix != SUFFIX and (folder / "args.yml").is_file():
        found = read_entry(folder / "args.yml", "gym_packages") or []
        names += [name for name in found if name not in names]
    for name in names:
        try:
            importlib.import_module(name)
        except (ImportError, TypeError, ValueError) as error:  # the last two if it is not a valid name
            raise ValueError(
                f"The environment comes from the package {name!r} (--gym-packages), which can't be imported ({error}): "
                "install it, or call this from the folder that contains it."
            ) from error
    return names


def find_env_id(model_path: Path) -> str:
    """
    Find the environment of a model.

    :param model_path: a model in a folder of RL Zoo (final, best, or checkpoint), or named after its environment
    :return: the id of its environment
    :raises ValueError: if it can't be found
    """
    folder = run_folder(model_path)
    parents = [re.sub(r"_\d+$", "", parent.name) for parent in _folders_of_run(model_path)]
    names = [model_path.stem, *([] if folder is None else [folder.name]), *parents]
    for name in names:
        for env_id in gym.registry:
            # RL Zoo writes a slash as a dash
            if env_id.replace("/", "-") == name:
                return env_id
    raise ValueError(
        f"The path {model_path} contains no environment id: pass --env, and --gym-packages if a package registers it."
    )


def find_env_kwargs(model_path: Path, env_id: str) -> dict[str, Any]:
    """
    Find the arguments with which the environment of a model was created.

    :param model_path: a model in a folder of RL Zoo
    :param env_id: its environment
    :return: those of the command line, else of the hyperparameters
    :raises ValueError: if a file is damaged, or would run code
    """
    env_kwargs: dict[str, Any] = {}
    for name in ("config.yml", "args.yml"):
        path = _zoo_folder(model_path, env_id) / name
        if path.is_file():
            env_kwargs = read_entry(path, "env_kwargs") or env_kwargs
            if not isinstance(env_kwargs, dict):
                raise ValueError(f"{path} has env_kwargs {env_kwargs!r}: write a dictionary, or remove the entry.")
    return without_rendering(env_kwargs)


def find_wrappers(model_path: Path, env_id: str) -> dict[str, Any]:
    """
    Find the wrappers of a model's environment in a run of RL Zoo.

    :param model_path: a model in a folder of RL Zoo
    :param env_id: its environment
    :return: the entries ``env_wrapper``, ``vec_env_wrapper`` and ``frame_stack`` of ``config.yml``, if there are any
    :raises ValueError: if the file is damaged or would run code, or names wrappers of an exported policy, which must not run
        code
    """
    path = _zoo_folder(model_path, env_id) / "config.yml"
    if not path.is_file():
        return {}
    entries = {name: read_entry(path, name) for name in ("env_wrapper", "vec_env_wrapper", "frame_stack")}
    found = {name: value for name, value in entries.items() if value}
    if model_path.suffix == SUFFIX and {"env_wrapper", "vec_env_wrapper"} & found.keys():
        raise ValueError(
            f"{path} names wrappers ({found}), but showing an exported policy imports nothing that a file names: wrap the "
            "environment in Python and call show_skills(policy, env), or remove the entries."
        )
    return found


def load_vec_normalize(model_path: Path, env_id: str, statistics: Path | None = None) -> tuple[VecNormalize, Path] | None:
    """
    Load the statistics that were saved with a model.

    :param model_path: a model
    :param env_id: its environment
    :param statistics: their file; ``None`` to look for it where checkpoints and RL Zoo have it, and in the folder of the model
    :return: the statistics and their file; ``None`` for a model that was trained without, or an exported policy, which
        contains them
    :raises ValueError: if the file is missing or damaged, or would run code, or if there are several candidates
    """
    if statistics is not None:
        if not statistics.is_file():
            raise ValueError(f"There is no file {statistics}: pass what VecNormalize.save wrote.")
        return load_statistics(statistics), statistics
    if model_path.suffix == SUFFIX:
        return None
    folder = model_path.resolve().parent
    # SB3's CheckpointCallback puts the number of steps last
    name = model_name(model_path)
    of_checkpoint = re.sub(r"_(\d+_steps)$", r"_vecnormalize_\1", name)
    likely = [
        # Those of the run, which RL Zoo saves with its best model and at its end, are of another step
        *([folder / STATISTICS] if is_checkpoint(folder) else []),
        *([folder / f"{of_checkpoint}.pkl"] if of_checkpoint != name else []),
        _zoo_folder(model_path, env_id) / STATISTICS,
        folder / f"{name}_vecnormalize.pkl",
        folder / f"{name}_vec_normalize.pkl",
    ]
    for path in likely:
        if path.is_file():
            return load_statistics(path), path
    others = sorted(path for path in folder.glob("*.pkl") if re.search("vec_?normalize", path.name))
    if len(others) > 1:
        raise ValueError(
            f"There are several statistics of VecNormalize next to {model_path} ({', '.join(path.name for path in others)}): "
            "choose one of them with --vec-normalize."
        )
    return (load_statistics(others[0]), others[0]) if others else None


def _zoo_folder(model_path: Path, env_id: str) -> Path:
    """Return the folder of the settings of a run, which RL Zoo names after the environment, with a dash for a slash."""
    found = run_folder(model_path)
    if found is not None:
        return found
    return model_path.resolve().parent / env_id.split(":")[-1].replace("/", "-")
