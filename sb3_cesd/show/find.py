"""What a saved model is, told by where RL Zoo puts it."""

import re
from pathlib import Path

import gymnasium as gym
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv, VecNormalize

from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.zoo import ALGORITHMS


def find_algorithm(model_path: Path) -> str:
    """
    :param model_path: a model in a folder of RL Zoo (final, best, or checkpoint)
    :return: name of its algorithm; "cesd" if its folders do not tell
    """
    names = [folder.name for folder in model_path.resolve().parents]
    return next((name for name in names if name in ALGORITHMS), "cesd")


def load_model(model_path: Path, algorithm: str) -> SkillDDPG:
    """
    :param model_path: file of the model
    :param algorithm: name of its algorithm
    :return: the model
    :raises ValueError: if there is no such file, or it is of another algorithm
    """
    if not model_path.is_file():
        raise ValueError(f"There is no file {model_path}: pass that of a model, e.g. logs/cesd/Walker-v0_1/Walker-v0.zip.")
    model_class = ALGORITHMS[algorithm].model_class
    assert issubclass(model_class, SkillDDPG)
    return model_class.load(model_path, device="cpu")


def find_env_id(model_path: Path) -> str:
    """
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


def load_vec_normalize(model_path: Path, env_id: str) -> VecNormalize | None:
    """
    :param model_path: a model in a folder of RL Zoo
    :param env_id: its environment
    :return: the statistics RL Zoo saved beside it, or ``None`` if it was trained without
    """
    path = model_path.parent / env_id.replace("/", "-") / "vecnormalize.pkl"
    return VecNormalize.load(str(path), DummyVecEnv([lambda: gym.make(env_id)])) if path.is_file() else None


def normalised(env: VecEnv, vec_normalize: VecNormalize | None) -> VecEnv:
    """
    :param env: environments
    :param vec_normalize: statistics of training, or ``None``
    :return: the same as the model sees them
    """
    if vec_normalize is None:
        return env
    wrapped = VecNormalize(env, training=False, norm_obs=vec_normalize.norm_obs, norm_reward=False)
    wrapped.obs_rms = vec_normalize.obs_rms
    return wrapped
