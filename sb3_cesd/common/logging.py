import time
from collections.abc import Iterable

import numpy as np
import torch as th
from stable_baselines3.common.logger import HumanOutputFormat, Logger

#: How often a training writes logs by default: tables on the screen, and rows of files such as TensorBoard's
N_TABLES, N_ROWS = 20, 100
#: Attributes in which a logger keeps values until they are written
LOGGED = ("name_to_value", "name_to_count", "name_to_excluded")
#: Longest time without a log [s]
LONGEST_SILENCE = 60.0


class LogSchedule:
    """
    Decides when logs are written: at equal intervals of environment steps, and after a minute without any.

    Where the intervals end depends on the number of steps alone, so a resumed training keeps them.
    """

    def __init__(self) -> None:
        self.begin(0, 1, 0)

    def begin(self, start: int, end: int, now: int, n_logs: int = N_TABLES) -> None:
        """
        Start the schedule of a training.

        :param start: environment steps before its first
        :param end: environment steps after its last
        :param now: environment steps so far, more than ``start`` in a resumed training
        :param n_logs: number of intervals
        """
        self._n_logs = n_logs
        self._start, self._n_timesteps = start, max(end - start, 1)
        self._interval = self._interval_of(now)
        self._written_at = time.monotonic()

    def is_due(self, num_timesteps: int) -> bool:
        """
        Return whether to write logs now; the caller is expected to do so.

        :param num_timesteps: environment steps so far
        :return: whether an interval is over, or the last log was long ago
        """
        interval, now = self._interval_of(num_timesteps), time.monotonic()
        if interval == self._interval and now - self._written_at < LONGEST_SILENCE:
            return False
        self._interval, self._written_at = interval, now
        return True

    def _interval_of(self, num_timesteps: int) -> int:
        return (num_timesteps - self._start) * self._n_logs // self._n_timesteps


def n_logs_for(logger: Logger) -> int:
    """
    Choose how often a training writes logs: more often if they also go to a file, where nobody has to scroll through them.

    :param logger: where they are written
    :return: number of logs of a training
    """
    return N_TABLES if all(isinstance(out, HumanOutputFormat) for out in logger.output_formats) else N_ROWS


class _Sums:
    """
    Sums of values that are always added together, in one tensor, so that adding them takes a GPU few operations.

    :param shapes: shape of each value, by name
    :param carried: what :meth:`totals` of other sums returned, to start with
    :param device: where updates run
    """

    def __init__(self, shapes: dict[str, th.Size], carried: dict[str, th.Tensor], device: th.device) -> None:
        self.shapes = shapes
        self.sizes = [shape.numel() for shape in shapes.values()]
        owners = [idx for idx, size in enumerate(self.sizes) for _ in range(size)]
        #: Index of the value to which each entry belongs
        self.owners = th.tensor(owners, device=device)
        totals = [carried.get(name, th.zeros(size + 1)) for name, size in zip(shapes, self.sizes, strict=True)]
        self.entries = th.cat([total[:-1] for total in totals]).to(device)
        #: How often each value was added
        self.counts = th.cat([total[-1:] for total in totals]).to(device)

    def add(self, values: Iterable[th.Tensor]) -> None:
        entries = th.cat([value.reshape(-1).float() for value in values])
        is_bad = th.zeros_like(self.counts).index_add(0, self.owners, (~entries.isfinite()).float()) > 0
        self.entries.add_(entries.masked_fill(is_bad.index_select(0, self.owners), 0.0))
        self.counts.add_(~is_bad)

    def totals(self) -> dict[str, th.Tensor]:
        """
        Copy the sums to the CPU.

        :return: entries of each value, and how often it was added, by name
        """
        both = th.cat([self.entries, self.counts]).cpu()
        entries = both[: len(self.entries)].split(self.sizes)
        counts = both[len(self.entries) :].split(1)
        return {name: th.cat(total) for name, total in zip(self.shapes, zip(entries, counts, strict=True), strict=True)}

    def reset(self) -> None:
        self.entries.zero_()
        self.counts.zero_()


class MeanLogs:
    """
    Means of scalars and vectors over many updates, kept on their device until they are written.

    Reading a value with ``.item()`` at every update would make a GPU wait for the host each time. Sums keep their addresses,
    so that a captured CUDA graph may add to them.
    """

    def __init__(self) -> None:
        #: By the names of the values that are added together
        self._sums: dict[tuple[str, ...], _Sums] = {}
        #: Of another instance, until values of these names are added
        self._carried: dict[str, tuple[th.Tensor, th.Size]] = {}

    def add(self, values: dict[str, th.Tensor]) -> None:
        """
        Add the values of an update, except those that are not finite, as their step was left out.

        :param values: detached scalars, or vectors with one entry per skill, by name
        :raises ValueError: if a value has another shape than before
        """
        if not values:
            return
        names = tuple(values)
        shapes = {name: value.shape for name, value in values.items()}
        if names not in self._sums:
            device = next(iter(values.values())).device
            carried = {name: self._carried.pop(name)[0] for name in names if name in self._carried}
            self._sums[names] = _Sums(shapes, carried, device)
        sums = self._sums[names]
        for name, shape in shapes.items():
            if shape != sums.shapes[name]:
                raise ValueError(
                    f"The log {name!r} has shape {tuple(shape)}, and had {tuple(sums.shapes[name])} before: log a scalar, for "
                    "instance the mean."
                )
        sums.add(values.values())

    def get_state(self) -> dict[str, tuple[th.Tensor, th.Size]]:
        """
        Copy what was added since it was last written.

        :return: what :meth:`set_state` takes
        """
        state = dict(self._carried)
        for sums in self._sums.values():
            for name, total in sums.totals().items():
                state[name] = (state[name][0] + total if name in state else total, sums.shapes[name])
        return state

    def set_state(self, state: dict[str, tuple[th.Tensor, th.Size]]) -> None:
        """
        Continue with what another instance has added.

        :param state: what :meth:`get_state` of the other instance returned
        """
        self._sums, self._carried = {}, dict(state)

    def flush(self, logger: Logger) -> None:
        """
        Record the means and start anew. Vectors are recorded entry by entry, not on standard output.

        :param logger: where to record
        """
        state, self._carried = self.get_state(), {}
        for sums in self._sums.values():
            sums.reset()
        for name, (total, shape) in state.items():
            if total[-1] == 0:
                continue
            mean = (total[:-1] / total[-1]).numpy()
            if shape == ():
                logger.record(name, float(mean[0]))
            else:
                record_per_skill(logger, name, mean)


def listed(values: Iterable[float]) -> str:
    """
    Format one value per skill, in a line.

    :param values: the values
    :return: values with four significant digits
    """
    return ", ".join(f"{value:.4g}" for value in values)


class SkillRewards:
    """
    Extrinsic reward of each skill during training, where a skill may be followed for only part of an episode.

    :param n_skills: number of skills
    """

    def __init__(self, n_skills: int) -> None:
        self.rewards = np.zeros(n_skills)
        self.steps = np.zeros(n_skills)

    def add(self, skills: np.ndarray, rewards: np.ndarray) -> None:
        """
        Add the rewards of a step.

        :param skills: skill followed in each environment, shape ``(n_envs,)``
        :param rewards: extrinsic rewards, shape ``(n_envs,)``
        """
        np.add.at(self.rewards, skills, rewards)
        np.add.at(self.steps, skills, 1)

    def means(self) -> np.ndarray:
        """
        Average the rewards so far.

        :return: mean reward per step of each skill, NaN for one that was not followed, shape ``(n_skills,)``
        """
        return np.divide(self.rewards, self.steps, out=np.full(len(self.steps), np.nan), where=self.steps > 0)

    def flush(self, logger: Logger, ep_len_mean: float) -> None:
        """
        Record the mean reward per step of each skill times the length of an episode, and start anew.

        :param logger: where to record
        :param ep_len_mean: mean episode length, in steps
        """
        record_per_skill(logger, "rollout/ep_rew_skill", self.means() * ep_len_mean)
        self.rewards[:] = 0
        self.steps[:] = 0


def record_per_skill(logger: Logger, name: str, values: np.ndarray) -> None:
    """
    Record one value per skill.

    :param logger: where to record
    :param name: common part of the names
    :param values: one value per skill, shape ``(n_skills,)``; NaN is left out
    """
    for skill, value in enumerate(values):
        if not np.isnan(value):
            logger.record(f"{name}_{skill:02d}", float(value), exclude="stdout")
