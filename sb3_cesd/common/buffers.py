from collections.abc import Callable
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import NStepReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.skills import plain_space, split_skill
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples, one_pair_per_transition

RelabelFn = Callable[[SkillReplayBufferSamples], SkillReplayBufferSamples]


class SkillReplayBuffer(NStepReplayBuffer):
    """
    N-step replay buffer for skill-augmented observations, whose rewards are relabelled when a batch is sampled.

    The observation is stored once without its one-hot, the skill as an integer. The next observation of a transition
    belongs to the skill that collected the transition, also if another skill was drawn in between, so the TD target
    is right for any ``skill_duration``.

    :param buffer_size: max number of transitions, over all environments
    :param observation_space: skill-augmented observation space, shape ``(obs_dim + n_skills,)``
    :param action_space: action space
    :param device: PyTorch device of the sampled tensors
    :param n_envs: number of parallel environments
    :param optimize_memory_usage: not supported
    :param handle_timeout_termination: bootstrap from the last observation of a truncated episode
    :param n_skills: number of skills
    :param n_steps: number of steps of the n-step window
    :param gamma: discount factor
    :param relabel_fn: turns a batch with extrinsic n-step returns into one with intrinsic rewards; not saved
    """

    # The arrays whose rows are transitions
    ARRAYS = ("observations", "next_observations", "actions", "rewards", "dones", "timeouts", "skills")

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
        super().__init__(
            buffer_size,
            plain_space(observation_space, n_skills),
            action_space,
            device,
            n_envs=n_envs,
            optimize_memory_usage=optimize_memory_usage,
            handle_timeout_termination=handle_timeout_termination,
            n_steps=n_steps,
            gamma=gamma,
        )
        self.n_skills = n_skills
        self.relabel_fn = relabel_fn
        self.skills = np.zeros((self.buffer_size, self.n_envs), dtype=np.int64)

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

        :param obs: skill-augmented observations, shape ``(n_envs, obs_dim + n_skills)``
        :param next_obs: the same after the step; the skill in it is ignored
        :param action: actions scaled to [-1, 1], shape ``(n_envs, action_dim)``
        :param reward: extrinsic rewards, shape ``(n_envs,)``
        :param done: end of episode, shape ``(n_envs,)``
        :param infos: ``TimeLimit.truncated`` tells a timeout from a termination
        """
        plain_obs, skills = split_skill(obs, self.n_skills)
        self.skills[self.pos] = skills
        super().add(plain_obs, split_skill(next_obs, self.n_skills)[0], action, reward, done, infos)

    def end_trajectories(self) -> None:
        """Let no n-step window reach beyond the newest transitions: the environments are reset before the next ones."""
        if self.size() > 0:
            newest = (self.pos - 1) % self.buffer_size
            # As after a timeout the value is bootstrapped; a true termination stays one
            self.timeouts[newest, self.dones[newest] == 0] = 1

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
        terminated = self.dones[last_inds, env_inds] * (1.0 - self.timeouts[last_inds, env_inds])
        skills = self.to_torch(self.skills[batch_inds, env_inds])
        returns = self.to_torch(returns).float()
        return SkillReplayBufferSamples(
            observations=self._obs_to_torch(self.observations[batch_inds, env_inds], env),
            actions=self.to_torch(self.actions[batch_inds, env_inds]).float(),
            next_observations=self._obs_to_torch(self.next_observations[last_inds, env_inds], env),
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
        ends = (self.dones[indices, env_inds[:, None]] > 0) | (self.timeouts[indices, env_inds[:, None]] > 0)
        # What follows the newest transition in the ring is the oldest one
        ends |= indices == (self.pos - 1) % self.buffer_size
        return np.where(ends.any(axis=1), ends.argmax(axis=1) + 1, self.n_steps)
