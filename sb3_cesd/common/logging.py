import time
from collections.abc import Iterable

import numpy as np
import torch as th
from stable_baselines3.common.logger import HumanOutputFormat, Logger

#: How often a training writes logs by default: tables on the screen, and rows of files such as TensorBoard's
N_TABLES, N_ROWS = 20, 100
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


class MeanLogs:
    """
    Means of scalars and vectors over many updates, kept on their device until they are written.

    Reading a value with ``.item()`` at every update would make a GPU wait for the host each time. Sums keep their addresses,
    so that a captured CUDA graph may add to them.
    """

    def __init__(self) -> None:
        #: Sums by name; the last entry of each is the number of values
        self._sums: dict[str, th.Tensor] = {}
        self._shapes: dict[str, th.Size] = {}

    def add(self, values: dict[str, th.Tensor]) -> None:
        """
        Add the values of an update, except those that are not finite, as their step was left out.

        :param values: detached scalars, or vectors with one entry per skill, by name
        """
        for name, value in values.items():
            entry = th.cat([value.reshape(-1).float(), th.ones(1, device=value.device)])
            entry = th.where(entry.isfinite().all(), entry, th.zeros_like(entry))
            if name in self._sums:
                self._sums[name].add_(entry)
            else:
                self._sums[name], self._shapes[name] = entry, value.shape

    def get_state(self) -> dict[str, tuple[th.Tensor, th.Size]]:
        """
        Copy what was added since it was last written.

        :return: what :meth:`set_state` takes
        """
        return {name: (total.cpu().clone(), self._shapes[name]) for name, total in self._sums.items()}

    def set_state(self, state: dict[str, tuple[th.Tensor, th.Size]], device: th.device) -> None:
        """
        Continue with what another instance has added.

        :param state: what :meth:`get_state` of the other instance returned
        :param device: where updates run
        """
        self._sums = {name: total.to(device, copy=True) for name, (total, _) in state.items()}
        self._shapes = {name: shape for name, (_, shape) in state.items()}

    def flush(self, logger: Logger) -> None:
        """
        Record the means and start anew. Vectors are recorded entry by entry, not on standard output.

        :param logger: where to record
        """
        if not self._sums:
            return
        sizes = [len(total) for total in self._sums.values()]
        totals = th.cat(list(self._sums.values())).cpu().numpy()
        for name, total in zip(self._sums, np.split(totals, np.cumsum(sizes)[:-1]), strict=True):
            self._sums[name].zero_()
            if total[-1] == 0:
                continue
            mean = total[:-1] / total[-1]
            if self._shapes[name] == ():
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
