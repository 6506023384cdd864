from typing import Any, NamedTuple

import numpy as np
import torch as th
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.arguments import PositiveInt, checked
from sb3_cesd.common.buffers import SkillReplayBuffer


class Sequences(NamedTuple):
    """
    Sequences of consecutive transitions of one environment each, which may reach beyond the end of an episode.

    :param observations: as stored, shape ``(batch_size, n_steps, *obs_shape)``
    :param actions: those taken there, scaled to [-1, 1], shape ``(batch_size, n_steps, action_dim)``
    :param rewards: extrinsic rewards of those steps, shape ``(batch_size, n_steps)``
    :param terminated: 1 where the step ended the episode (not by a timeout), shape ``(batch_size, n_steps)``
    :param is_first: whether an episode begins at an observation, and true for the first one, shape ``(batch_size, n_steps)``
    :param skills: skills that acted, as stored in the replay buffer, ``(batch_size, n_steps, ...)``
    """

    observations: th.Tensor
    actions: th.Tensor
    rewards: th.Tensor
    terminated: th.Tensor
    is_first: th.Tensor
    skills: th.Tensor


class SequenceReplayBuffer(SkillReplayBuffer):
    """
    Replay buffer that samples sequences; for the other arguments see :class:`~sb3_cesd.common.buffers.SkillReplayBuffer`.

    :param sequence_length: number of transitions of a sequence
    """

    @checked
    def __init__(self, *args: Any, sequence_length: PositiveInt = 16, **kwargs: Any) -> None:
        super().__init__(*args, **kwargs)
        self.sequence_length = sequence_length

    def begins(self) -> np.ndarray:
        """Return whether an episode begins after the newest transition of each environment, shape ``(n_envs,)``."""
        return self._ends(int(self.newest[0])) if self.size() > 0 else np.ones(self.n_envs, dtype=bool)

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> Sequences:  # type: ignore[override]
        """
        Sample sequences uniformly, from the oldest transition to the newest, of which there must be enough for one.

        :param batch_size: number of sequences
        :param env: ``VecNormalize`` for the stored observations and rewards
        :return: the batch
        """
        shape = batch_size, self.sequence_length
        self.prepare(env)
        starts = np.random.randint(0, self.size() - shape[1] + 1, size=(batch_size, 1)) + (self.pos if self.full else 0)
        sequence_rows = (starts + np.arange(shape[1])) % self.buffer_size
        envs_of_rows = np.random.randint(0, self.n_envs, size=(batch_size, 1)).repeat(shape[1], axis=1)
        rows, envs = (self._tensors.upload(each.ravel()) for each in (sequence_rows, envs_of_rows))

        def of_sequences(values: th.Tensor) -> th.Tensor:
            return values.unflatten(0, shape)

        is_first = of_sequences(self._ended(rows, envs)).roll(1, dims=1)
        is_first[:, 0] = True
        rewards, skills = self._at("rewards", rows, envs), self._at("skills", rows, envs)
        if self._normalization is not None:
            rewards = self._normalization.rewards(rewards)
        terminated = self._at("dones", rows, envs) & ~self._at("timeouts", rows, envs)
        observations = self._normalized({name: self._at(f"observations {name}", rows, envs) for name in self.observations})
        return Sequences(
            observations=of_sequences(observations),
            actions=of_sequences(self._at("actions", rows, envs)),
            rewards=of_sequences(rewards),
            terminated=of_sequences(terminated.float()),
            is_first=is_first,
            skills=of_sequences(skills.long() if self.skill_space.discrete else skills),
        )
