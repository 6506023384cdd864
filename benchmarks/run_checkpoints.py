"""Checkpoints of the runs of a benchmark, from which a stopped or killed call continues in the middle of a run."""

import shutil
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.checkpoints import ResumableCheckpoint, resume
from sb3_cesd.checkpoints.folders import checkpoints_in
from sb3_cesd.checkpoints.resume import remaining_timesteps
from sb3_cesd.common.files import dump_whole, load_pickle
from sb3_cesd.skill_ddpg import SkillDDPG

#: Environment steps between two checkpoints
SAVE_FREQ = 10_000


class RunCheckpoint(ResumableCheckpoint):
    """
    Writes checkpoints with additional data of a run.

    :param path: folder of the checkpoints of the run
    :param gathered: returns the data, which can be pickled
    """

    def __init__(self, path: Path, gathered: Callable[[], Any]) -> None:
        super().__init__(path, save_freq=SAVE_FREQ, keep=1)
        self.gathered = gathered

    def write(self) -> None:
        assert self.path is not None
        # Before the checkpoint, so that no checkpoint is without it
        path = gathered_file(Path(self.path), self.model.num_timesteps)
        dump_whole(self.gathered(), path)
        super().write()
        for old in set(path.parent.glob(gathered_file(path.parent, "*").name)) - {path}:
            old.unlink()


def gathered_file(folder: Path, n_timesteps: int | str) -> Path:
    """
    Return the file of the additional data of a run.

    :param folder: folder of the checkpoints of the run
    :param n_timesteps: environment steps of the checkpoint, or ``"*"`` for a pattern
    :return: the file
    """
    return folder / f"gathered_{n_timesteps}.pkl"


def start_or_resume(
    folder: Path, make_model: Callable[[], SkillDDPG], env: VecEnv | str, device: str
) -> tuple[SkillDDPG, Any]:
    """
    Create the model of a run, or load that of its last checkpoint.

    :param folder: folder of the checkpoints of the run
    :param make_model: creates the model
    :param env: its environment, or the id of one
    :param device: its device
    :return: the model, and the additional data of the run; ``None`` if it is new
    """
    found = checkpoints_in(folder)
    if not found:
        return make_model(), None
    model = resume(found[-1], env, device=device)
    return model, load_pickle(gathered_file(folder, model.num_timesteps), object)


def learn(
    model: SkillDDPG, n_timesteps: int, callback: BaseCallback, folder: Path, gathered: Callable[[], Any], seconds: float
) -> float:
    """
    Start or continue to learn with checkpoints. Call :func:`forget` when the row of the run is complete.

    :param model: returned by :func:`start_or_resume`
    :param n_timesteps: environment steps of the whole run
    :param callback: callback of the run
    :param folder: folder of the checkpoints of the run
    :param gathered: returns additional data of the run, which are stored with its duration
    :param seconds: duration of the run before it was stopped [s]
    :return: duration of the run [s]
    """
    start = time.perf_counter() - seconds
    checkpoint = RunCheckpoint(folder, lambda: (time.perf_counter() - start, gathered()))
    is_new = model.num_timesteps == 0
    model.learn(
        n_timesteps if is_new else remaining_timesteps(model),
        callback=CallbackList([callback, checkpoint]),
        log_interval=None,
        reset_num_timesteps=is_new,
    )
    return time.perf_counter() - start


def forget(folder: Path) -> None:
    """
    Delete the checkpoints of a finished run.

    :param folder: folder of the checkpoints of the run
    """
    shutil.rmtree(folder, ignore_errors=True)
