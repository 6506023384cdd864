from collections.abc import Callable
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.skills import plain_space, split_skill
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples, one_pair_per_transition

RelabelFn = Callable[[SkillReplayBufferSamples], SkillReplayBufferSamples]


class SkillReplayBuffer(NStepReplayBuffer):
    """
    N-step replay buffer for skill-augmented observations, whose rewards are relabelled when a batch is sampled.

    An observation is stored once, without its one-hot, and the skill as an integer: the next observation of a transition is
    the one that follows in the ring, but at the end of an episode, where the last one is kept apart. The next observation
    belongs to the skill that collected the transition, also if another skill was drawn in between, so the TD target
    is right for any ``skill_duration``.

    :param buffer_size: max number of transitions, over all environments
    :param observation_space: skill-augmented observation space, shape ``(obs_dim + n_skills,)``
    :param action_space: action space
    :param device: PyTorch device of the sampled tensors
    :param n_envs: number of parallel environments
    :param optimize_memory_usage: not supported (observations are stored once in any case)
    :param handle_timeout_termination: bootstrap from the last observation of a truncated episode
    :param n_skills: number of skills
    :param n_steps: number of steps of the n-step window
    :param gamma: discount factor
    :param relabel_fn: turns a batch with extrinsic n-step returns into one with intrinsic rewards; not saved
    """

    # The arrays whose rows are transitions
    ARRAYS = ("observations", "actions", "rewards", "dones", "timeouts", "skills", "last_slots")

    def __init__(
        self,
        buffer_size: int,
        observation_space: spaces.Box,
        action_space: spaces.Space,
        device: th.device | str = "auto",
        n_envs: int = 1,
        optimize_memory_usage: bool = False,
        handle_timeout_termination: bool = True,
        *,
        n_skills: int,
        n_steps: int = 3,
        gamma: float = 0.99,
        relabel_fn: RelabelFn | None = None,
    ) -> None:
        if optimize_memory_usage:
            raise ValueError("optimize_memory_usage is not supported: leave it out, observations are stored once in any case.")
        # The arrays of ReplayBuffer are not made: they hold each observation twice
        super(ReplayBuffer, self).__init__(
            max(buffer_size // n_envs, 1), plain_space(observation_space, n_skills), action_space, device, n_envs=n_envs
        )
        self.optimize_memory_usage = False
        self.handle_timeout_termination = handle_timeout_termination
        self.n_steps = n_steps
        self.gamma = gamma
        self.n_skills = n_skills
        self.relabel_fn = relabel_fn
        ring = (self.buffer_size, self.n_envs)
        self.observations = np.zeros((*ring, *self.obs_shape), dtype=self.observation_space.dtype)  # type: ignore[misc]
        self.actions = np.zeros((*ring, self.action_dim), dtype=np.float32)
        self.rewards = np.zeros(ring, dtype=np.float32)
        self.dones = np.zeros(ring, dtype=bool)
        self.timeouts = np.zeros(ring, dtype=bool)
        self.skills = np.zeros(ring, dtype=np.min_scalar_type(n_skills))
        #: Where an episode ends: index of its last observation in ``last_observations``
        self.last_slots = np.zeros(ring, dtype=np.int32)
        self.last_observations = np.zeros((1, *self.obs_shape), dtype=self.observations.dtype)
        self._free_slots: list[int] = [0]
        #: What follows the newest transition of each environment
        self.newest_next = np.zeros((self.n_envs, *self.obs_shape), dtype=self.observations.dtype)

    @property
    def nbytes(self) -> int:
        """Memory of all arrays [bytes]."""
        arrays = [*(getattr(self, name) for name in self.ARRAYS), self.last_observations, self.newest_next]
        return sum(array.nbytes for array in arrays)

    @property
    def next_observations(self) -> np.ndarray:  # type: ignore[override]
        """The next observation of every transition, gathered for inspection, shape ``(buffer_size, n_envs, obs_dim)``."""
        rows, envs = np.indices((self.buffer_size, self.n_envs))
        return self._next_observations(rows, envs)

    def visited_observations(self) -> np.ndarray:
        """
        :return: all observations of the stored transitions and those they lead to, in no order, shape ``(n, obs_dim)``
        """
        size = self.size()
        visited = [self.observations[:size], self.next_observations[:size]]
        return np.concatenate([observations.reshape(-1, *self.obs_shape) for observations in visited])

    def __getstate__(self) -> dict[str, Any]:
        # Save the rows in use only: the arrays are as large as the buffer can get
        state = self.__dict__.copy()
        state["relabel_fn"] = None
        for name in self.ARRAYS:
            state[name] = state[name][: self.size()]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in self.ARRAYS:
            saved = state[name]
            array = np.zeros((self.buffer_size, *saved.shape[1:]), dtype=saved.dtype)
            array[: len(saved)] = saved
            setattr(self, name, array)

    def add(
        self,
        obs: np.ndarray,
        next_obs: np.ndarray,
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """
        Store one transition of every environment.

        An observation other than the next one of the transition before, without an end of the episode, tells that the
        environment was reset: that transition then ends its trajectory.

        :param obs: skill-augmented observations, shape ``(n_envs, obs_dim + n_skills)``
        :param next_obs: the same after the step; the skill in it is ignored
        :param action: actions scaled to [-1, 1], shape ``(n_envs, action_dim)``
        :param reward: extrinsic rewards, shape ``(n_envs,)``
        :param done: end of episode, shape ``(n_envs,)``
        :param infos: ``TimeLimit.truncated`` tells a timeout from a termination
        """
        plain_obs, skills = split_skill(obs, self.n_skills)
        plain_obs = plain_obs.astype(self.observations.dtype)
        if self.size() > 0:
            self._end_trajectories((plain_obs != self.newest_next).any(axis=tuple(range(1, plain_obs.ndim))))
        row = self.pos
        if self.full:
            self._free_slots.extend(self.last_slots[row, self._ends(row)].tolist())
        self.observations[row] = plain_obs
        self.actions[row] = action.reshape(self.n_envs, self.action_dim)
        self.rewards[row] = reward
        self.dones[row] = done
        self.timeouts[row] = False
        if self.handle_timeout_termination:
            self.timeouts[row] = [info.get("TimeLimit.truncated", False) for info in infos]
        self.skills[row] = skills
        self.newest_next[:] = split_skill(next_obs, self.n_skills)[0]
        self._keep_last(row, self._ends(row))
        self.pos = (row + 1) % self.buffer_size
        self.full = self.full or self.pos == 0

    def end_trajectories(self) -> None:
        """Let no n-step window reach beyond the newest transitions: the environments are reset before the next ones."""
        if self.size() > 0:
            self._end_trajectories(np.ones(self.n_envs, dtype=bool))

    def _end_trajectories(self, ending: np.ndarray) -> None:
        """
        :param ending: environments whose newest transition is the last of a trajectory, shape ``(n_envs,)``
        """
        newest = (self.pos - 1) % self.buffer_size
        ending = ending & ~self._ends(newest)
        # As after a timeout the value is bootstrapped; a true termination stays one
        self.timeouts[newest, ending] = True
        self._keep_last(newest, ending)

    def _ends(self, row: int) -> np.ndarray:
        return self.dones[row] | self.timeouts[row]

    def _keep_last(self, row: int, ending: np.ndarray) -> None:
        """
        Keep what follows the newest transition, as another episode will follow in the ring.

        :param row: the newest row
        :param ending: environments, shape ``(n_envs,)``
        """
        for env_idx in np.flatnonzero(ending):
            if not self._free_slots:
                n_slots = len(self.last_observations)
                self.last_observations = np.concatenate([self.last_observations, np.zeros_like(self.last_observations)])
                self._free_slots.extend(range(n_slots, 2 * n_slots))
            slot = self._free_slots.pop()
            self.last_slots[row, env_idx] = slot
            self.last_observations[slot] = self.newest_next[env_idx]

    def _next_observations(self, rows: np.ndarray, envs: np.ndarray) -> np.ndarray:
        """
        :param rows: any shape
        :param envs: the same
        :return: next observation of each transition, shape ``(*rows.shape, obs_dim)``
        """
        following = self.observations[(rows + 1) % self.buffer_size, envs]
        newest = rows == (self.pos - 1) % self.buffer_size
        following[newest] = self.newest_next[envs[newest]]
        ended = self.dones[rows, envs] | self.timeouts[rows, envs]
        following[ended] = self.last_observations[self.last_slots[rows[ended], envs[ended]]]
        return following

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> SkillReplayBufferSamples:  # type: ignore[override]
        """
        :param batch_size: number of transitions
        :param env: normalises the stored observations (and extrinsic rewards)
        :return: a relabelled batch
        """
        samples: SkillReplayBufferSamples = super().sample(batch_size, env=env)  # type: ignore[assignment]
        return samples if self.relabel_fn is None else self.relabel_fn(samples)

    def _get_samples(  # type: ignore[override]
        self, batch_inds: np.ndarray, env: VecNormalize | None = None
    ) -> SkillReplayBufferSamples:
        env_inds = np.random.randint(0, self.n_envs, size=batch_inds.shape)
        window = self._window_lengths(batch_inds, env_inds)  # (batch_size,)

        indices = (batch_inds[:, None] + np.arange(self.n_steps)) % self.buffer_size  # (batch_size, n_steps)
        inside = np.arange(self.n_steps) < window[:, None]
        rewards = self._normalize_reward(self.rewards[indices, env_inds[:, None]], env)
        returns = (rewards * self.gamma ** np.arange(self.n_steps) * inside).sum(axis=1, keepdims=True)

        last_inds = (batch_inds + window - 1) % self.buffer_size
        terminated = self.dones[last_inds, env_inds] & ~self.timeouts[last_inds, env_inds]
        skills = self.to_torch(self.skills[batch_inds, env_inds].astype(np.int64))
        returns = self.to_torch(returns).float()
        return SkillReplayBufferSamples(
            observations=self._obs_to_torch(self.observations[batch_inds, env_inds], env),
            actions=self.to_torch(self.actions[batch_inds, env_inds]).float(),
            next_observations=self._obs_to_torch(self._next_observations(last_inds, env_inds), env),
            dones=self.to_torch(terminated[:, None]).float(),
            rewards=returns,
            discounts=self.to_torch(self.gamma ** window[:, None]).float(),
            skills=skills,
            clusters=skills,
            actor_skills=skills,
            pairs=one_pair_per_transition(skills, skills, returns),
        )

    def _obs_to_torch(self, obs: np.ndarray, env: VecNormalize | None) -> th.Tensor:
        return self.to_torch(self._normalize_obs(obs, env)).float()  # type: ignore[arg-type]

    def _window_lengths(self, batch_inds: np.ndarray, env_inds: np.ndarray) -> np.ndarray:
        """
        Number of steps of each n-step window: it ends with the episode, at the newest transition, or after ``n_steps``.

        :param batch_inds: shape ``(batch_size,)``
        :param env_inds: shape ``(batch_size,)``
        :return: shape ``(batch_size,)``, from 1 to ``n_steps``
        """
        indices = (batch_inds[:, None] + np.arange(self.n_steps)) % self.buffer_size
        ends = self.dones[indices, env_inds[:, None]] | self.timeouts[indices, env_inds[:, None]]
        # What follows the newest transition in the ring is the oldest one
        ends |= indices == (self.pos - 1) % self.buffer_size
        return np.where(ends.any(axis=1), ends.argmax(axis=1) + 1, self.n_steps)
