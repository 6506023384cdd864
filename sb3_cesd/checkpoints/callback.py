import pickle
from contextlib import suppress
from pathlib import Path
from pickle import PicklingError

from stable_baselines3.common.callbacks import BaseCallback, EventCallback

from sb3_cesd.checkpoints.arrays import write_with_arrays
from sb3_cesd.checkpoints.folders import (
    BUFFER,
    MANIFEST,
    MODEL,
    STATE,
    STATISTICS,
    checkpoint_name,
    checkpoints_in,
    manifest_of,
    new_checkpoint,
    only_writer,
)
from sb3_cesd.checkpoints.training_state import get_training_state, restart_episodes, warn_of_restarts
from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.files import AnyPath, dump_with_checksum, write_text_whole, written_whole
from sb3_cesd.common.signals import DeferredSignals, deferred_signals, delivered_if_workers_end
from sb3_cesd.common.vec_normalize import save_statistics
from sb3_cesd.skill_ddpg import SkillDDPG


class ResumableCheckpoint(BaseCallback):
    """
    Write checkpoints from which :func:`~sb3_cesd.checkpoints.resume.resume` continues as if the run had never stopped: on the
    CPU, the weights are bit-identical to those of the uninterrupted run with the same callback.

    A checkpoint is a folder with the model and its optimizers, the replay buffer, all random states, the environments in the
    middle of their episodes with their statistics, the current skills, noise, counters, values that are not logged yet, the
    results and counts of SB3's own callbacks, and the state of callbacks that have ``get_state()`` and ``set_state(state)``,
    such as :class:`~sb3_cesd.callbacks.SkillMetricsCallback`. It is written completely or not at all. Parts of the replay
    buffer that did not change since the last checkpoint are hard links, which take no time and space. The statistics of
    ``VecNormalize`` are also in ``vecnormalize.pkl``, which ``VecNormalize.load`` reads.

    A folder is for one run: that of another one, or one that another training writes to at the moment, is refused. Once a run
    that was resumed from an earlier checkpoint writes its first one, the later ones in the folder are deleted, with a warning.

    Environments whose state can't be read (another process, a simulation that can't be pickled) are reset at each checkpoint
    instead, with a warning.

    Ctrl-C and SIGTERM wait for the end of the rollout, and end training with a checkpoint (a second signal does not wait). A
    signal that also ends the environments of ``SubprocVecEnv``, as Ctrl-C in a terminal does, ends a rollout at once, in which
    case there is no further checkpoint.

    In RL Zoo, in the yml file or with ``-params``; ``-i`` then accepts the model of a checkpoint::

        callback:
          - sb3_cesd.callbacks.ResumableCheckpoint:
              save_freq: 50000

    :param path: folder of the checkpoints; in RL Zoo, ``None`` for the folder ``checkpoints`` of the run
    :param save_freq: environment steps (of all environments together) between two checkpoints; a checkpoint is written before
        the next rollout, and at the end of training
    :param keep: number of checkpoints to keep
    :param verbose: verbosity level; 1 prints the name of each checkpoint
    """

    model: SkillDDPG  # type: ignore[assignment]
    _signals: DeferredSignals

    def __init__(self, path: AnyPath | None = None, save_freq: int = 50_000, keep: int = 2, verbose: int = 0) -> None:
        check_arguments("ResumableCheckpoint", locals())
        super().__init__(verbose)
        self.path = path
        self.save_freq = save_freq
        self.keep = keep
        self._n_written = 0
        # Time step of the last checkpoint of this training
        self._written_at: int | None = None
        self._stop_requested = False
        self._stops = False
        self._has_warned = False

    def request_stop(self) -> None:
        """Write a checkpoint before the next rollout, and end training with it."""
        self._stop_requested = True

    def _init_callback(self) -> None:
        if not isinstance(self.model, SkillDDPG):
            raise ValueError(
                f"{type(self.model).__name__} is not a method of this package: use SB3's CheckpointCallback for it."
            )
        self._check_parent()
        _check_classes(self.model)
        if self.path is None:
            raise ValueError("Checkpoints need a folder: pass path to ResumableCheckpoint (RL Zoo chooses one by itself).")
        folder = Path(self.path).resolve()
        self.model.until_learned.enter_context(only_writer(folder))
        is_own = folder in self.model.checkpoint_folders
        goes_on = is_own and self.model.num_timesteps > 0
        if not goes_on and checkpoints_in(folder):
            if is_own:
                run, how = "this run, which would begin anew", "learn(remaining_timesteps(model), reset_num_timesteps=False)"
            else:
                run, how = "another run", "sb3_cesd.checkpoints.resume"
            raise ValueError(f"{self.path} holds the checkpoints of {run}: continue it by {how}, or pass another folder.")
        self._n_written = self.model.num_timesteps // self.save_freq
        self._stop_requested = self._stops = False

    def _on_training_start(self) -> None:
        self._check_parent()  # again: lists pass their parent on late
        self._written_at = None
        self._signals = self.model.until_learned.enter_context(deferred_signals())
        self.model.until_learned.enter_context(delivered_if_workers_end(self._signals, self.training_env))

    def _check_parent(self) -> None:
        if isinstance(self.parent, EventCallback):
            raise ValueError(
                f"{type(self.parent).__name__} passes on neither rollouts nor the end of training, so ResumableCheckpoint "
                "would write nothing: pass it beside, in a list, and set its save_freq."
            )

    def _on_rollout_start(self) -> None:
        if self._signals.received is not None:
            self.write()
            self._signals.deliver()
        if self._stop_requested or self.model.num_timesteps // self.save_freq > self._n_written:
            self.write()
            self._stops = self._stop_requested

    def _on_step(self) -> bool:
        return not self._stops

    def _on_training_end(self) -> None:
        if not hasattr(self, "model"):
            return  # RL Zoo ends a training that could not begin
        # Not for a run that was stopped within a rollout, whose last transition is not stored. RL Zoo ends training twice
        is_over = self.model.num_timesteps >= self.model._total_timesteps and not self.model._is_stepping
        if is_over and self._written_at != self.model.num_timesteps:
            self.write()

    def write(self) -> None:
        """Write a checkpoint now. Call it between rollouts."""
        assert self.path is not None
        self._n_written = self.model.num_timesteps // self.save_freq
        self._written_at = self.model.num_timesteps
        self.model.checkpoint_folders |= {Path(self.path).resolve()}
        state = get_training_state(self.model, self.locals["callback"], self.n_calls)
        target = Path(self.path) / checkpoint_name(self.model)
        known = checkpoints_in(target.parent)
        with new_checkpoint(target, self.keep) as folder:
            self.model.save(folder / MODEL)
            write_with_arrays(folder / BUFFER, self.model.replay_buffer, known[-1] / BUFFER if known else None)
            with written_whole(folder / STATE) as file:
                dump_with_checksum(state, file)
            if (statistics := self.model.get_vec_normalize_env()) is not None:
                # Also in the state; a file of its own for tasks that start from the model, and to show it
                with suppress(AttributeError, TypeError, PicklingError):  # a class of the user that can't be pickled
                    save_statistics(statistics, folder / STATISTICS)
            write_text_whole(folder / MANIFEST, manifest_of(self.model))
        if self.verbose >= 1:
            print(f"Wrote the checkpoint {target}")
        if state["reset_seed"] is not None:
            if not self._has_warned:
                warn_of_restarts(self.model)
                self._has_warned = True
            restart_episodes(self.model, state["reset_seed"])


def _check_classes(model: SkillDDPG) -> None:
    """
    Check that replay buffer and noise, which a user may have written, can be pickled.

    :param model: a model at the start of ``learn``
    :raises ValueError: if the class of one can't be imported
    """
    for found in (type(model.replay_buffer), type(model.action_noise)):
        try:
            pickle.dumps(found)
        except (PicklingError, AttributeError):
            raise ValueError(
                f"{found.__qualname__} can't be imported, so that no checkpoint could hold it: define it at the top level "
                "of a module."
            ) from None
