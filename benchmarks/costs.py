"""How long a training takes here, from the time of a few of its steps and updates, with its own networks and batches."""

import statistics
import time
import warnings
from collections.abc import Mapping
from contextlib import suppress
from typing import Any, NamedTuple

from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.checks import TrainingDiverged


class Costs(NamedTuple):
    """
    Processor times of one thread [s]: of a step, of the first update and of the last, which a constraint makes longer.

    :param share: share of the updates that are as the first one
    """

    step: float
    first: float
    last: float
    share: float
    learning_starts: int
    train_freq: int

    def of_training(self, n_timesteps: int) -> float:
        """Extrapolate to a training of some environment steps [s]."""
        update = self.share * self.first + (1 - self.share) * self.last
        return n_timesteps * self.step + max(0, n_timesteps - self.learning_starts) / self.train_freq * update


def measure_costs(
    kind: type[SkillDDPG], env: VecEnv, settings: Mapping[str, Any], n_timesteps: int, n_steps: int = 200, repeats: int = 1
) -> tuple[SkillDDPG, Costs]:
    """Time some steps and updates (the median of ``repeats``) of a training of ``n_timesteps``; also return the model."""
    own = {"buffer_size": 4000, "learning_starts": 40_000, "warm_up": "policy"}
    model: Any = kind("MlpPolicy", env, seed=0, device="cpu", **{**settings, **own})
    for _ in range(2):
        start = time.process_time()
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # nothing is learned
            model.learn(n_steps, log_interval=None)
        step = (time.process_time() - start) / model.num_timesteps
    learning_starts = settings["learning_starts"]
    model._total_timesteps = n_timesteps
    updates, model.learning_starts = [], 0
    for when in (learning_starts, n_timesteps - 1):
        model.num_timesteps = when
        model._update_current_progress_remaining(when, n_timesteps)
        seconds = []
        for _ in range(1 + repeats):
            start = time.process_time()
            with suppress(TrainingDiverged):  # SMM on so few states, in the same time
                model.train(gradient_steps=1, batch_size=model.batch_size)
            seconds.append(time.process_time() - start)
        updates.append(statistics.median(seconds[1:]))
    assert model._n_updates == 2 * (1 + repeats)
    constraint = getattr(model.intrinsic, "constraint", None)
    share = 1.0 if constraint is None else constraint.start / (1 if constraint.start <= 1 else n_timesteps)
    return model, Costs(step, updates[0], updates[1], min(1.0, share), learning_starts, model.train_freq.frequency)
