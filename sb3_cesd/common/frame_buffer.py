from typing import Any, ClassVar

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.vec_env import VecEnv, VecFrameStack, unwrap_vec_wrapper

from sb3_cesd.common.arguments import Range, check_value
from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.observations import OBSERVATION


def n_stacked(env: VecEnv) -> int:
    """Count the frames in an observation of environments; 1 without ``VecFrameStack``, and where it stacks dictionaries."""
    wrapper = unwrap_vec_wrapper(env, VecFrameStack)
    return wrapper.stacked_obs.n_stack if wrapper is not None and isinstance(wrapper.observation_space, spaces.Box) else 1


class FrameReplayBuffer(SkillReplayBuffer):
    """
    Replay buffer for stacks of frames, of which it stores the newest one: a stack is rebuilt when it is sampled, exactly as
    the policy saw it.

    Stacks are those of ``VecFrameStack``: channels first, the oldest frame first, and black frames before an episode.
    For the other arguments see :class:`~sb3_cesd.common.buffers.SkillReplayBuffer`.

    :param n_stack: number of frames in a stack, at least 2
    """

    # Number of frames of the same episode before that of a transition, up to n_stack - 1
    ARRAYS: ClassVar[tuple[str, ...]] = (*SkillReplayBuffer.ARRAYS, "n_before")
    # Frames that were overwritten last, the newest first, which the oldest stacks still contain
    OBSERVATIONS: ClassVar[tuple[str, ...]] = (*SkillReplayBuffer.OBSERVATIONS, "overwritten")

    def __init__(self, *args: Any, n_stack: int, **kwargs: Any) -> None:
        check_value("n_stack", n_stack, Range(2))
        self.n_stack = n_stack
        super().__init__(*args, **kwargs)
        self.n_before = np.zeros((self.buffer_size, self.n_envs), dtype=np.uint8)
        self.overwritten = self._stored_zeros(n_stack - 1, self.n_envs)

    def _stored(self, observations: Any) -> Any:
        return observations[:, -(observations.shape[1] // self.n_stack) :]

    def add(  # type: ignore[override]
        self, obs: dict[str, np.ndarray], next_obs: dict[str, np.ndarray], *args: Any, **kwargs: Any
    ) -> None:
        """Store one transition of every environment, see :meth:`SkillReplayBuffer.add`, if its frames are stacked."""
        stack, next_stack = obs[OBSERVATION], next_obs[OBSERVATION]
        n_channels = stack.shape[1] // self.n_stack
        if (next_stack[:, :-n_channels] != stack[:, n_channels:]).any():
            self._refuse()
        super().add(obs, next_obs, *args, **kwargs)

    def _refuse(self) -> None:
        raise ValueError(
            "Images are not stacked as VecFrameStack stacks them: pass replay_buffer_class=SkillReplayBuffer, which stores "
            "whole stacks."
        )

    def _store(self, row: int, entries: dict[str, np.ndarray]) -> None:
        before = row - 1  # also in the first row, which follows the last one
        begins = self._ends(before) if self.size() > 0 else np.ones(self.n_envs, dtype=bool)
        self.n_before[row] = np.where(begins, 0, np.minimum(self.n_before[before] + 1, self.n_stack - 1))
        for name, stacks in entries.items():
            if stacks[begins, : -(stacks.shape[1] // self.n_stack)].any():
                self._refuse()
            overwritten = self.overwritten[name]
            overwritten[1:] = overwritten[:-1].copy()
            overwritten[0] = self.observations[name][row]
            self._tensors.mark([f"overwritten {name}"], range(len(overwritten)))
        super()._store(row, entries)

    def _observations(self, rows: th.Tensor, envs: th.Tensor) -> dict[str, th.Tensor]:
        newest = super()._observations(rows, envs)
        n_before = self._at("n_before", rows, envs)
        return {name: self._stacks(name, frames, rows, envs, n_before, 1) for name, frames in newest.items()}

    def _next_observations(self, rows: th.Tensor, envs: th.Tensor) -> dict[str, th.Tensor]:
        newest = super()._next_observations(rows, envs)
        # The frame of the transition itself comes before the next one
        n_before = self._at("n_before", rows, envs) + 1
        return {name: self._stacks(name, frames, rows, envs, n_before, 0) for name, frames in newest.items()}

    def _stacks(
        self, name: str, newest: th.Tensor, rows: th.Tensor, envs: th.Tensor, n_before: th.Tensor, first: int
    ) -> th.Tensor:
        """
        Put frames before the newest ones.

        :param newest: newest frame of each stack, shape ``(n, *frame_shape)``
        :param n_before: how many frames of each episode precede it; the others are black
        :param first: how many rows before those in ``rows`` the frame before the newest one is
        :return: shape ``(n, n_stack * channels, height, width)``
        """
        frames = [newest]
        # Number of rows that the ring still holds before each
        oldest = th.where(self._tensors["wrapped"], self._tensors["newest"] + 1, 0)
        n_held = (rows - oldest) % self.buffer_size
        for idx in range(self.n_stack - 1):
            steps = idx + first
            held = self._at(f"observations {name}", (rows - steps) % self.buffer_size, envs)
            lost = self._at(f"overwritten {name}", (steps - n_held - 1).clamp(min=0), envs)
            to_shape = (-1, *(1,) * (newest.ndim - 1))
            frame = th.where((steps <= n_held).view(to_shape), held, lost)
            frames.insert(0, th.where((idx < n_before).view(to_shape), frame, 0))
        return th.cat(frames, dim=1)
