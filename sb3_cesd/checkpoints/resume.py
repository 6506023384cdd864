from typing import Any

import torch as th
from stable_baselines3.common.type_aliases import GymEnv

from sb3_cesd.checkpoints.folders import BUFFER, CALLBACKS, MODEL, STATISTICS, find_checkpoint
from sb3_cesd.common.files import AnyPath, load_pickle
from sb3_cesd.common.vec_normalize import load_statistics
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.saved_files import read_saved_data


def resume(
    path: AnyPath,
    env: GymEnv | str,
    device: th.device | str = "auto",
    model_class: type[SkillDDPG] | None = None,
    **kwargs: Any,
) -> SkillDDPG:
    """
    Load a checkpoint, to continue its run as if it had never stopped::

        model = resume("checkpoints", env)
        model.learn(remaining_timesteps(model), callback, reset_num_timesteps=False)

    Pass the same callbacks as before, with a :class:`~sb3_cesd.checkpoints.callback.ResumableCheckpoint` among them. A
    checkpoint contains pickled objects, which can run any code: only resume checkpoints that you trust.

    :param path: folder of a checkpoint that ``ResumableCheckpoint`` wrote, or folder of several, of which the latest is used
    :param env: environments like those of the run, as many and in the same wrappers (if registered in Gym, can be str)
    :param device: Device on which the code should run.
    :param model_class: class of the model, for one of your own; ``None`` for the method that the checkpoint names
    :param kwargs: arguments of the constructor to change; any but those of logging change the run
    :return: the model
    :raises FileNotFoundError: if there is no checkpoint
    :raises ValueError: if it is damaged, or does not fit the environment or the arguments
    """
    folder = find_checkpoint(path)
    if model_class is None:
        name = read_saved_data(folder / MODEL)["lineage"][0]
        if name.lower() not in METHODS:
            raise ValueError(f"{folder} is of {name}, which is not a method of this package: pass it as model_class.")
        model_class = METHODS[name.lower()]
    model = model_class.load(folder / MODEL, env, device, **kwargs)
    model.load_replay_buffer(folder / BUFFER)
    normalize, has_statistics = model.get_vec_normalize_env(), (folder / STATISTICS).is_file()
    if (normalize is not None) != has_statistics:
        raise ValueError(f"{folder} is of a run {'with' if has_statistics else 'without'} VecNormalize: pass such an env.")
    if normalize is not None:
        saved = vars(load_statistics(folder / STATISTICS))
        vars(normalize).update({name: value for name, value in saved.items() if name != "venv"})
    model.resumed_callbacks = load_pickle(folder / CALLBACKS, list)
    return model


def remaining_timesteps(model: SkillDDPG) -> int:
    """
    Return the number of environment steps that remain of a run.

    :param model: a resumed model
    :return: environment steps to the end of the run, at least 0
    """
    return max(model._total_timesteps - model.num_timesteps, 0)
