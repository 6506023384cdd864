"""What a saved model is, told by where RL Zoo puts it."""

import re
from pathlib import Path
from typing import Any

import gymnasium as gym
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.untrusted import load_statistics, read_entry
from sb3_cesd.export import SUFFIX, ExportedPolicy, import_policy
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg import SkillDDPG


def find_algorithm(model_path: Path) -> str:
    """
    Tell the method of a model.

    :param model_path: a model in a folder of RL Zoo (final, best, or checkpoint)
    :return: its name; "cesd" if its folders do not tell
    """
    names = [folder.name for folder in model_path.resolve().parents]
    return next((name for name in names if name in METHODS), "cesd")


def load_model(model_path: Path, algorithm: str) -> SkillDDPG | ExportedPolicy:
    """
    Load a model whose skills can be shown.

    :param model_path: file of the model, or of an exported policy
    :param algorithm: name of its method
    :return: the model, or the policy
    :raises ValueError: if there is no such file, it is of another method, or learned a task with one of its skills
    """
    if not model_path.is_file():
        raise ValueError(f"There is no file {model_path}: pass that of a model, e.g. logs/cesd/Walker-v0_1/Walker-v0.zip.")
    model: SkillDDPG | ExportedPolicy
    if model_path.suffix == SUFFIX:
        model = import_policy(model_path)
    else:
        model = METHODS[algorithm].load(model_path, device="cpu")
    if model.reward == "extrinsic":
        raise ValueError(
            f"{model_path} learned a task with skill {model.skill} alone: show the pre-trained model, or watch this one by "
            "python -m rl_zoo3.enjoy or record_video."
        )
    return model


def find_env_id(model_path: Path) -> str:
    """
    Tell the environment of a model.

    :param model_path: a model in a folder of RL Zoo (final, best, or checkpoint), or named after its environment
    :return: the id of its environment
    :raises ValueError: if it can't be told
    """
    names = [model_path.stem, re.sub(r"_\d+$", "", model_path.resolve().parent.name)]
    for env_id in gym.registry:
        # RL Zoo writes a slash as a dash
        if env_id.replace("/", "-") in names:
            return env_id
    raise ValueError(f"The name of {model_path} does not tell its environment: pass --env.")


def find_env_kwargs(model_path: Path, env_id: str) -> dict[str, Any]:
    """
    Find the arguments the environment of a model was made with.

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
    return {name: value for name, value in env_kwargs.items() if name != "render_mode"}


def load_vec_normalize(model_path: Path, env_id: str) -> VecNormalize | None:
    """
    Load the statistics that RL Zoo saved beside a model.

    :param model_path: a model in a folder of RL Zoo
    :param env_id: its environment
    :return: the statistics; ``None`` if it was trained without, or holds them itself, as an exported policy does
    :raises ValueError: if the file is damaged, or would run code
    """
    path = _zoo_folder(model_path, env_id) / "vecnormalize.pkl"
    if model_path.suffix == SUFFIX or not path.is_file():
        return None
    return load_statistics(path)


def _zoo_folder(model_path: Path, env_id: str) -> Path:
    """Name the folder of what belongs to a run: RL Zoo calls it after the environment, with a dash for a slash."""
    return model_path.resolve().parent / env_id.split(":")[-1].replace("/", "-")
