import os
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch as th
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.files import AnyPath, load_pickle
from sb3_cesd.registry import ALGORITHMS, name_of
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.saved_files import read_saved_data

MODEL = "model.zip"
BUFFER = "replay_buffer.pkl"
CALLBACKS = "callbacks.pkl"
#: Statistics of ``VecNormalize``, under the name that RL Zoo gives them
STATISTICS = "vecnormalize.pkl"
PREFIX, UNFINISHED = "steps_", ".unfinished_"


@contextmanager
def new_checkpoint(target: Path, keep: int) -> Iterator[Path]:
    """Write a checkpoint to a temporary folder, move it to its place once complete, and keep the newest ``keep`` alone."""
    # What a killed process left behind
    for left in target.parent.glob(f"{UNFINISHED}*"):
        shutil.rmtree(left, ignore_errors=True)
    unfinished = target.with_name(UNFINISHED + target.name)
    unfinished.mkdir(parents=True, exist_ok=True)
    try:
        yield unfinished
        os.replace(unfinished, target)
    except BaseException:
        shutil.rmtree(unfinished, ignore_errors=True)
        raise
    for old in checkpoints_in(target.parent)[:-keep]:
        # Renamed first, so that an incomplete checkpoint is never found
        left = old.rename(old.with_name(UNFINISHED + old.name))
        shutil.rmtree(left, ignore_errors=True)


def checkpoint_name(num_timesteps: int) -> str:
    """Name of the folder of a checkpoint."""
    return f"{PREFIX}{num_timesteps:012d}"


def checkpoints_in(folder: Path) -> list[Path]:
    """Checkpoints in a folder, the oldest first."""
    return sorted(path for path in folder.glob(f"{PREFIX}*") if is_checkpoint(path))


def is_checkpoint(path: AnyPath) -> bool:
    """Whether a folder is a checkpoint."""
    return (Path(path) / CALLBACKS).is_file()


def find_checkpoint(path: AnyPath) -> Path:
    """Find the folder of a checkpoint, given that, the model in it, or a folder of checkpoints, for the latest one."""
    path = Path(path)
    if path.name == MODEL:
        path = path.parent
    if is_checkpoint(path):
        return path
    found = checkpoints_in(path)
    if not found:
        raise FileNotFoundError(f"There is no checkpoint in {path}: pass the folder that ResumableCheckpoint wrote to.")
    return found[-1]


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
        class_name = read_saved_data(folder / MODEL)["lineage"][0]
        name = name_of(class_name)
        if name is None:
            raise ValueError(f"{folder} is of {class_name}, which is not a method of this package: pass it as model_class.")
        model_class = ALGORITHMS[name]
    model = model_class.load(folder / MODEL, env, device, **kwargs)
    model.load_replay_buffer(folder / BUFFER)
    normalize, has_statistics = model.get_vec_normalize_env(), (folder / STATISTICS).is_file()
    if (normalize is not None) != has_statistics:
        raise ValueError(f"{folder} is of a run {'with' if has_statistics else 'without'} VecNormalize: pass such an env.")
    if normalize is not None:
        saved = vars(load_pickle(folder / STATISTICS, VecNormalize))
        vars(normalize).update({name: value for name, value in saved.items() if name != "venv"})
    model.resumed_callbacks = load_pickle(folder / CALLBACKS, list)
    return model


def remaining_timesteps(model: SkillDDPG) -> int:
    """Return the number of environment steps to the end of the run of a resumed model, at least 0."""
    return max(model._total_timesteps - model.num_timesteps, 0)
