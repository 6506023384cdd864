"""Checkpoints from which a run continues as if it had never stopped."""

import os
import shutil
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.callbacks import (
    BaseCallback,
    EvalCallback,
    EventCallback,
    EveryNTimesteps,
    StopTrainingOnMaxEpisodes,
    StopTrainingOnNoModelImprovement,
)
from stable_baselines3.common.type_aliases import GymEnv
from stable_baselines3.common.utils import set_random_seed
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.arguments import PositiveInt, checked
from sb3_cesd.common.files import AnyPath, dump_whole, load_pickle
from sb3_cesd.common.rng import seed_to_go_on
from sb3_cesd.common.vec_env import all_callbacks
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

    Pass the same callbacks as before, with a :class:`~sb3_cesd.checkpoints.ResumableCheckpoint` among them. A
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


class ResumableCheckpoint(BaseCallback):
    """
    Write checkpoints from which :func:`~sb3_cesd.checkpoints.resume` continues as if the run had never stopped: on the
    CPU, a model with a ``seed`` ends with the same weights, to the last bit, as in an uninterrupted run with this callback.

    For this, all episodes end at a checkpoint, whether the run is stopped there or not, and random numbers go on from the seed
    and the number of steps. A checkpoint is a folder with the model and its optimizers, the replay buffer, the statistics of
    ``VecNormalize``, and what callbacks have counted: those of SB3, and others that have ``get_state()`` and
    ``set_state(state)``. It is written completely or not at all.

    In RL Zoo, in the yml file or with ``-params``; ``-i`` then accepts the model of a checkpoint::

        callback:
          - sb3_cesd.callbacks.ResumableCheckpoint:
              save_freq: 50000

    :param path: folder of the checkpoints of this run; in RL Zoo, ``None`` for the folder ``checkpoints`` of the run
    :param save_freq: environment steps (of all environments together) between two checkpoints; a checkpoint is written before
        the next rollout, and at the end of training
    :param keep: number of checkpoints to keep
    :param verbose: verbosity level; 1 prints the name of each checkpoint
    """

    model: SkillDDPG  # type: ignore[assignment]

    @checked
    def __init__(
        self, path: AnyPath | None = None, save_freq: PositiveInt = 50_000, keep: PositiveInt = 2, verbose: int = 0
    ) -> None:
        super().__init__(verbose)
        self.path = path
        self.save_freq = save_freq
        self.keep = keep
        self._n_due = 0

    def _init_callback(self) -> None:
        if self.path is None:
            raise ValueError("Checkpoints need a folder: pass path to ResumableCheckpoint (RL Zoo chooses one by itself).")
        if any(path.name > checkpoint_name(self.model.num_timesteps) for path in checkpoints_in(Path(self.path))):
            raise ValueError(f"{self.path} holds checkpoints of another run, or later ones: resume, or pass another folder.")
        self._n_due = self.model.num_timesteps // self.save_freq

    def _on_training_start(self) -> None:
        if isinstance(self.parent, EventCallback):
            raise ValueError(f"{type(self.parent).__name__} passes on no rollouts: pass ResumableCheckpoint beside it.")
        set_callback_states(self.locals["callback"], self.model.resumed_callbacks)
        self.model.resumed_callbacks = ()
        if self.model.num_timesteps > 0:
            self._seed_generators()

    def _on_rollout_start(self) -> None:
        n_due = self.model.num_timesteps // self.save_freq
        if n_due > self._n_due:
            self._n_due = n_due
            self.write()
            # All episodes end, as in a resumed run
            self.model.set_random_seed(self._seed())
            self.model._restart()
            self._seed_generators()

    def _on_step(self) -> bool:
        return True

    def _on_training_end(self) -> None:
        if not self.locals:
            return  # RL Zoo ends a training that could not begin
        # A run that was stopped within a rollout goes on from its last checkpoint
        if self.model.num_timesteps >= self.model._total_timesteps:
            self.write()
            self.model.end_episodes()

    def write(self) -> None:
        """Write a checkpoint between two rollouts, unless there is one of this step."""
        assert self.path is not None and self.model.replay_buffer is not None
        target = Path(self.path) / checkpoint_name(self.model.num_timesteps)
        if target.exists():
            return
        # What is written has no episode that goes on
        self.model.replay_buffer.end_trajectories()
        with new_checkpoint(target, self.keep) as folder:
            self.model.save(folder / MODEL)
            self.model.save_replay_buffer(folder / BUFFER)
            if (statistics := self.model.get_vec_normalize_env()) is not None:
                dump_whole(statistics, folder / STATISTICS)
            dump_whole(get_callback_states(self.locals["callback"]), folder / CALLBACKS)
        if self.verbose >= 1:
            print(f"Wrote the checkpoint {target}")

    def _seed(self) -> int | None:
        return None if self.model.seed is None else seed_to_go_on(self.model.seed, self.model.num_timesteps)

    def _seed_generators(self) -> None:
        """Seed the global generators, whatever was drawn from them between two trainings."""
        if (seed := self._seed()) is not None:
            set_random_seed(seed, using_cuda=self.model.device.type == "cuda")
            self.model.action_space.seed(seed)


#: SB3's callbacks with a state -> beginnings of the names of its attributes
COUNTED = {
    EvalCallback: ("evaluations_", "best_mean_reward", "last_mean_reward"),
    EveryNTimesteps: ("last_time_trigger",),
    StopTrainingOnMaxEpisodes: ("n_episodes",),
    StopTrainingOnNoModelImprovement: ("last_best_mean_reward", "no_improvement_evals"),
}


def get_callback_states(callback: BaseCallback) -> list[tuple[str, dict[str, Any], Any]]:
    """Read class, counts and state (``get_state()``, if it has that) of a callback and of those within it."""
    states = []
    for each in all_callbacks(callback):
        names = tuple(name for kind, names in COUNTED.items() if isinstance(each, kind) for name in names)
        counted = {name: value for name, value in vars(each).items() if name.startswith(("n_calls", *names))}
        states.append((type(each).__name__, counted, each.get_state() if hasattr(each, "get_state") else None))
    return states


def set_callback_states(callback: BaseCallback, states: Sequence[tuple[str, dict[str, Any], Any]]) -> None:
    """Continue callbacks from those of another run. Callbacks of the same class are matched by their order."""
    waiting = list(states)
    for each in all_callbacks(callback):
        found = [idx for idx, (name, _, _) in enumerate(waiting) if name == type(each).__name__]
        if not found:
            continue
        _, counted, state = waiting.pop(found[0])
        vars(each).update(counted)
        if state is not None:
            each.set_state(state)
        folder = getattr(each, "best_model_save_path", None)
        if folder is not None and not (Path(folder) / "best_model.zip").is_file():
            each.best_mean_reward = -np.inf  # a resumed run in another folder has no best model yet
