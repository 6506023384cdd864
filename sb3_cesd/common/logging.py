import numpy as np
import torch as th
from stable_baselines3.common.logger import Logger


class MeanLogs:
    """
    Means of scalars and vectors over many updates, kept on their device until they are written.

    Reading a value with ``.item()`` at every update would make a GPU wait for the host each time. Sums keep their addresses,
    so that a captured CUDA graph may add to them.
    """

    def __init__(self) -> None:
        #: Sizes and sums of the values that are added together, with the number of updates as the last entry
        self._sums: dict[tuple[str, ...], tuple[list[int], th.Tensor]] = {}

    def add(self, values: dict[str, th.Tensor]) -> None:
        """Add the values of an update by name: detached scalars, or vectors with one entry per skill."""
        entries = [value.reshape(-1).float() for value in values.values()]
        entries.append(th.ones_like(entries[0][:1]))
        names = tuple(values)
        if names not in self._sums:
            sizes = [len(entry) for entry in entries]
            self._sums[names] = sizes, th.zeros(sum(sizes), device=entries[0].device)
        self._sums[names][1].add_(th.cat(entries))

    def means(self) -> dict[str, np.ndarray]:
        """Average what was added since the last :meth:`flush`, by name."""
        totals: dict[str, th.Tensor] = {}
        for names, (sizes, total) in self._sums.items():
            *sums, count = total.cpu().split(sizes)
            if count > 0:
                # The set of names may have changed meanwhile
                totals |= {name: totals.get(name, 0) + th.cat([each, count]) for name, each in zip(names, sums, strict=True)}
        return {name: (total[:-1] / total[-1]).numpy() for name, total in totals.items()}

    def not_finite(self) -> list[str]:
        """Name the values of which one was not finite. The host waits for a GPU here."""
        totals = [total.sum() for _, total in self._sums.values()]
        if not totals or th.stack(totals).sum().isfinite().item():
            return []
        return [name for name, values in self.means().items() if not np.isfinite(values).all()]

    def flush(self, logger: Logger) -> None:
        """Record the means and start anew. Vectors are recorded entry by entry, not on standard output."""
        for name, values in self.means().items():
            if len(values) > 1:
                record_per_skill(logger, name, values)
            else:
                logger.record(name, float(values[0]))
        for _, total in self._sums.values():
            total.zero_()


class SkillRewards:
    """Extrinsic reward of each skill during training, where a skill may be followed for only part of an episode."""

    def __init__(self, n_skills: int) -> None:
        self.rewards = np.zeros(n_skills)
        self.steps = np.zeros(n_skills)

    def add(self, skills: np.ndarray, rewards: np.ndarray) -> None:
        """Add the rewards of a step, both of shape ``(n_envs,)``."""
        np.add.at(self.rewards, skills, rewards)
        np.add.at(self.steps, skills, 1)

    def means(self) -> np.ndarray:
        """Average the rewards per step of each skill, NaN for one that was not followed, shape ``(n_skills,)``."""
        return np.divide(self.rewards, self.steps, out=np.full(len(self.steps), np.nan), where=self.steps > 0)

    def flush(self, logger: Logger, ep_len_mean: float) -> None:
        """Record the mean reward of each skill over an episode of mean length, and start anew."""
        record_per_skill(logger, "rollout/ep_rew_skill", self.means() * ep_len_mean)
        self.rewards[:] = 0
        self.steps[:] = 0


def record_per_skill(logger: Logger, name: str, values: np.ndarray) -> None:
    """Record one value per skill; NaN is left out."""
    for skill, value in enumerate(values):
        if not np.isnan(value):
            logger.record(f"{name}_{skill:02d}", float(value), exclude="stdout")
