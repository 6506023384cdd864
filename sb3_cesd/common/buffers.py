from collections.abc import Callable
from threading import RLock
from typing import Any

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.device_arrays import DeviceArrays
from sb3_cesd.common.normalization import TensorNormalization
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

    Transitions are written to numpy arrays and sampled from tensors on the device of the model (on the CPU, the same memory).
    A batch is drawn on the host (:meth:`draw`), by numpy's global generator, and gathered on the device (:meth:`gather`).

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
    OTHER_ARRAYS = ("last_observations", "newest_next", "newest")

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
        self.skills = np.zeros(ring, dtype=np.uint8 if n_skills <= 256 else np.int32)
        #: Where an episode ends: index of its last observation in ``last_observations``
        self.last_slots = np.zeros(ring, dtype=np.int32)
        self.last_observations = np.zeros((1, *self.obs_shape), dtype=self.observations.dtype)
        self._free_slots: list[int] = [0]
        #: What follows the newest transition of each environment
        self.newest_next = np.zeros((self.n_envs, *self.obs_shape), dtype=self.observations.dtype)
        #: Row of the newest transitions
        self.newest = np.zeros(1, dtype=np.int64)
        self._make_unsaved()

    def _make_unsaved(self) -> None:
        """What is not saved with the buffer. Tensors are made when they are needed."""
        self._tensors: DeviceArrays | None = None
        self._normalization: TensorNormalization | None = None
        #: One thread may sample while another adds
        self._lock = RLock()

    @property
    def nbytes(self) -> int:
        """Memory of all arrays [bytes]."""
        return sum(getattr(self, name).nbytes for name in (*self.ARRAYS, *self.OTHER_ARRAYS))

    @property
    def next_observations(self) -> np.ndarray:  # type: ignore[override]
        """The next observation of every transition, gathered for inspection, shape ``(buffer_size, n_envs, obs_dim)``."""
        self._update_tensors()
        rows, envs = np.indices((self.buffer_size, self.n_envs)).reshape(2, -1)
        following = self._next_observations(th.from_numpy(rows).to(self.device), th.from_numpy(envs).to(self.device))
        return following.cpu().numpy().reshape(self.buffer_size, self.n_envs, *self.obs_shape)

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
        for name in ("_tensors", "_normalization", "_lock"):
            del state[name]
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
        self._make_unsaved()

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
        with self._lock:
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
            self.newest[0] = row
            self._keep_last(row, self._ends(row))
            self.pos = (row + 1) % self.buffer_size
            self.full = self.full or self.pos == 0
            if self._tensors is not None:
                self._tensors.mark(self.ARRAYS, [row])
                self._tensors.mark(["newest_next"], range(self.n_envs))
                self._tensors.mark(["newest"], [0])

    def end_trajectories(self) -> None:
        """Let no n-step window reach beyond the newest transitions: the environments are reset before the next ones."""
        if self.size() > 0:
            self._end_trajectories(np.ones(self.n_envs, dtype=bool))

    def set_skill(self, skill: int) -> None:
        """
        :param skill: the skill that is to learn from all transitions so far
        """
        with self._lock:
            self.skills[: self.size()] = skill
            if self._tensors is not None:
                self._tensors.mark(["skills"], range(self.size()))

    def _end_trajectories(self, ending: np.ndarray) -> None:
        """
        :param ending: environments whose newest transition is the last of a trajectory, shape ``(n_envs,)``
        """
        newest = int(self.newest[0])
        ending = ending & ~self._ends(newest)
        # As after a timeout the value is bootstrapped; a true termination stays one
        self.timeouts[newest, ending] = True
        self._keep_last(newest, ending)
        if self._tensors is not None and ending.any():
            self._tensors.mark(("timeouts", "last_slots"), [newest])

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
                if self._tensors is not None and self._tensors.shared:
                    # Another thread may gather before the next preparation
                    self._tensors.set(last_observations=self.last_observations)
            slot = self._free_slots.pop()
            self.last_slots[row, env_idx] = slot
            self.last_observations[slot] = self.newest_next[env_idx]
            if self._tensors is not None and slot < len(self._tensors["last_observations"]):
                self._tensors.mark(["last_observations"], [slot])

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> SkillReplayBufferSamples:  # type: ignore[override]
        """
        :param batch_size: number of transitions
        :param env: normalises the stored observations (and extrinsic rewards)
        :return: a relabelled batch
        """
        self.prepare(env)
        return self.relabelled(self.draw(batch_size))

    def relabelled(self, drawn: th.Tensor) -> SkillReplayBufferSamples:
        """
        :param drawn: rows and environments, shape ``(2, batch_size)``
        :return: the relabelled batch
        """
        with self._lock:
            samples = self.gather(drawn)
        return samples if self.relabel_fn is None else self.relabel_fn(samples)

    def prepare(self, env: VecNormalize | None = None) -> None:
        """
        Bring what was added since the last call to the device, before batches are gathered.

        :param env: normalises the stored observations (and extrinsic rewards) of those batches
        """
        self._update_tensors()
        if env is None:
            self._normalization = None
        elif self._normalization is None or self._normalization.env is not env:
            self._normalization = TensorNormalization(env, th.device(self.device))
        if self._normalization is not None:
            self._normalization.update()

    def _update_tensors(self) -> None:
        with self._lock:
            if self._tensors is None:
                self._tensors = DeviceArrays(th.device(self.device))
            self._tensors.set(**{name: getattr(self, name) for name in (*self.ARRAYS, *self.OTHER_ARRAYS)})
            self._tensors.update()

    @property
    def generation(self) -> tuple[int, int]:
        """Changes with the address of any tensor that :meth:`gather` reads."""
        return 0 if self._tensors is None else self._tensors.generation, id(self._normalization)

    def draw(self, batch_size: int) -> th.Tensor:
        """
        :param batch_size: number of transitions
        :return: rows and environments of transitions, uniformly drawn, on the device, shape ``(2, batch_size)``
        """
        assert self._tensors is not None, "call prepare() first"
        with self._lock:
            size = self.size()
        rows = np.random.randint(0, size, size=batch_size)
        envs = np.random.randint(0, self.n_envs, size=batch_size)
        return self._tensors.upload(np.stack([rows, envs]))

    def gather(self, drawn: th.Tensor) -> SkillReplayBufferSamples:
        """
        N-step transitions that start at the drawn ones; nothing of it needs the host.

        :param drawn: rows and environments, shape ``(2, batch_size)``
        :return: a batch with the extrinsic n-step returns
        """
        rows, envs = drawn
        window = self._window_lengths(rows, envs)  # (batch_size,)
        last_rows = (rows + window - 1) % self.buffer_size
        terminated = self._at("dones", last_rows, envs) & ~self._at("timeouts", last_rows, envs)
        skills = self._at("skills", rows, envs).long()
        returns = self._returns(rows, envs, window)
        return SkillReplayBufferSamples(
            observations=self._normalized(self._at("observations", rows, envs)),
            actions=self._at("actions", rows, envs),
            next_observations=self._normalized(self._next_observations(last_rows, envs)),
            dones=terminated[:, None].float(),
            rewards=returns,
            discounts=(self.gamma ** window[:, None].double()).float(),
            skills=skills,
            clusters=skills,
            actor_skills=skills,
            pairs=one_pair_per_transition(skills, skills, returns),
        )

    def _at(self, name: str, rows: th.Tensor, envs: th.Tensor) -> th.Tensor:
        """
        :param name: one of ``ARRAYS``
        :param rows: shape ``(n,)``
        :param envs: shape ``(n,)``
        :return: entries of the array, shape ``(n, ...)``
        """
        assert self._tensors is not None, "call prepare() first"
        return self._tensors[name].flatten(0, 1).index_select(0, rows * self.n_envs + envs)

    def _normalized(self, observations: th.Tensor) -> th.Tensor:
        return observations.float() if self._normalization is None else self._normalization.observations(observations)

    def _window(self, rows: th.Tensor, envs: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """
        :param rows: shape ``(n,)``
        :param envs: shape ``(n,)``
        :return: rows and environments of the next ``n_steps`` transitions from each, both of shape ``(n * n_steps,)``
        """
        steps = th.arange(self.n_steps, device=rows.device)
        return ((rows[:, None] + steps) % self.buffer_size).flatten(), envs.repeat_interleave(self.n_steps)

    def _window_lengths(self, rows: th.Tensor, envs: th.Tensor) -> th.Tensor:
        """
        Number of steps of each n-step window: it ends with the episode, at the newest transition, or after ``n_steps``.

        :param rows: shape ``(batch_size,)``
        :param envs: shape ``(batch_size,)``
        :return: shape ``(batch_size,)``, from 1 to ``n_steps``
        """
        assert self._tensors is not None, "call prepare() first"
        window_rows, window_envs = self._window(rows, envs)
        ends = self._at("dones", window_rows, window_envs) | self._at("timeouts", window_rows, window_envs)
        # What follows the newest transition in the ring is the oldest one
        ends |= window_rows == self._tensors["newest"]
        before_end = ends.view(-1, self.n_steps).int().cumsum(dim=1) == 0
        return (before_end.sum(dim=1) + 1).clamp(max=self.n_steps)

    def _returns(self, rows: th.Tensor, envs: th.Tensor, window: th.Tensor) -> th.Tensor:
        """
        :param rows: shape ``(batch_size,)``
        :param envs: shape ``(batch_size,)``
        :param window: number of steps of each window, shape ``(batch_size,)``
        :return: discounted sums of the extrinsic rewards within the windows, shape ``(batch_size, 1)``
        """
        rewards = self._at("rewards", *self._window(rows, envs))
        if self._normalization is not None:
            rewards = self._normalization.rewards(rewards)
        steps = th.arange(self.n_steps, device=rows.device)
        discounts = th.where(steps < window[:, None], self.gamma ** steps.double(), 0.0)
        return (rewards.view(-1, self.n_steps) * discounts).sum(dim=1, keepdim=True).float()

    def _next_observations(self, rows: th.Tensor, envs: th.Tensor) -> th.Tensor:
        """
        :param rows: shape ``(n,)``
        :param envs: shape ``(n,)``
        :return: next observation of each transition, shape ``(n, obs_dim)``
        """
        assert self._tensors is not None, "call prepare() first"
        following = self._at("observations", (rows + 1) % self.buffer_size, envs)
        newest = self._tensors["newest_next"].index_select(0, envs)
        # In a row without an end, the slot is an old one
        last = self._tensors["last_observations"].index_select(0, self._at("last_slots", rows, envs))
        ended = self._at("dones", rows, envs) | self._at("timeouts", rows, envs)
        following = th.where((rows == self._tensors["newest"])[:, None], newest, following)
        return th.where(ended[:, None], last, following)
