from functools import partial
from importlib import import_module
from operator import attrgetter
from pathlib import Path
from typing import Any

import torch as th
from stable_baselines3.common.type_aliases import GymEnv

from sb3_cesd.checkpoints.arrays import REMEDY, read_with_arrays
from sb3_cesd.checkpoints.environments import set_env_statistics
from sb3_cesd.checkpoints.folders import BUFFER, MODEL, STATE, find_checkpoint, read_manifest
from sb3_cesd.checkpoints.training_state import set_training_state
from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.files import AnyPath, load_with_checksum
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

    The first ``learn`` continues the episodes of the environments, with all random numbers. ``VecNormalize`` has its
    statistics at once, so that the model can also be played or exported before. A checkpoint contains pickled objects, which
    can run any code: only resume checkpoints that you trust.

    :param path: folder of a checkpoint that :class:`~sb3_cesd.checkpoints.callback.ResumableCheckpoint` wrote, or folder of
        several, of which the latest is used
    :param env: environments like those of the run, as many and in the same wrappers (if registered in Gym, can be str)
    :param device: Device on which the code should run.
    :param model_class: class of the model, for one of your own that can't be imported by the name that it had; ``None`` for
        the one that the checkpoint names
    :param kwargs: arguments of the constructor to change, except ``seed``; any but those of logging change the run
    :return: the model
    :raises FileNotFoundError: if there is no checkpoint
    :raises ValueError: if it is damaged, or does not fit the environment or the arguments
    """
    check_arguments("resume", locals())
    folder = find_checkpoint(path)
    manifest = read_manifest(folder)
    name = manifest["class"][1]
    if model_class is None:
        model_class = _find_class(folder, *manifest["class"])
    saved, wanted = read_saved_data(folder / MODEL), kwargs.get("reward")
    if kwargs.pop("seed", None) not in (None, saved.get("seed")):
        raise ValueError("seed: a resumed run goes on with the random numbers of its checkpoint, leave it out.")
    if wanted is not None and wanted != saved.get("reward", "intrinsic"):
        raise ValueError(
            f"{folder} is of a run with another reward than {wanted!r}, and can't continue with it: leave reward out, "
            f"or begin a task with {name}.from_pretrained({str(folder / MODEL)!r}, env)."
        )
    model = model_class.load(folder / MODEL, env, device, force_reset=False, **kwargs)
    if model.n_envs != manifest["n_envs"]:
        raise ValueError(
            f"{folder} is of {manifest['n_envs']} environments, not of {model.n_envs}: pass as many (in RL Zoo, the "
            "--conf-file and -params of the run)."
        )
    try:
        with open(folder / STATE, "rb") as file:
            state = load_with_checksum(file, folder / STATE, REMEDY)
    except FileNotFoundError:
        raise FileNotFoundError(
            f"{folder / STATE} is missing: copy the whole checkpoint, or resume from another one."
        ) from None
    model._adopt_buffer(read_with_arrays(folder / BUFFER), folder / BUFFER)
    assert model.env is not None
    set_env_statistics(model.env, state["env_state"], state["reset_seed"] is None)
    changed = {name for name in ("action_noise", "noise_correlation") if name in kwargs and kwargs[name] != saved.get(name)}
    model._goes_on = partial(set_training_state, state=state, changed=changed)
    model.checkpoint_folders = frozenset([folder.resolve().parent])
    return model


def _find_class(folder: Path, module: str, name: str) -> type[SkillDDPG]:
    """
    Import the class of a model.

    :param folder: folder of the checkpoint
    :param module: name of its module
    :param name: its name in there
    :return: the class
    :raises ValueError: if it can't be imported
    """
    try:
        return attrgetter(name)(import_module(module))
    except (ImportError, AttributeError):
        raise ValueError(
            f"{folder} is of {name}, which can't be imported from the module {module!r}: pass it as model_class."
        ) from None


def remaining_timesteps(model: SkillDDPG) -> int:
    """
    Return the number of environment steps that remain of a run.

    :param model: a resumed model
    :return: environment steps to the end of the run, at least 0
    """
    return max(model._total_timesteps - model.num_timesteps, 0)
