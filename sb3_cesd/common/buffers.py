"""Replay buffers of transitions with skills, whole or as frames of a stack."""

from collections.abc import Hashable
from typing import Any, ClassVar, Literal

import numpy as np
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import NStepReplayBuffer, ReplayBuffer
from stable_baselines3.common.vec_env import VecNormalize
from torch.nn import functional as F

from sb3_cesd.common.arguments import PositiveInt, Range, Share, check_value, checked
from sb3_cesd.common.cuda import DeviceArrays
from sb3_cesd.common.observations import OBSERVATION, SKILL, check_has_skill, entries_of, plain_form, plain_space, to_states
from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.common.vec_normalize import TensorNormalization


class SkillReplayBuffer(NStepReplayBuffer):
    """
    N-step replay buffer for observations with a skill.

    Each observation is stored once, and discrete skills as integers. The next observation of a transition is the one that
    follows in the ring, except at the end of an episode, whose last observation is stored separately. The next observation
    belongs to the skill that collected the transition, even if another skill was drawn in between, so that the TD target is
    correct for any ``skill_duration``.

    Transitions are written to numpy arrays and sampled from tensors on the device of the model (on the CPU, the same memory).
    :meth:`sample` draws a batch on the host (:meth:`draw`), with numpy's global generator, and gathers it on the device
    (:meth:`gather`).

    :param buffer_size: max number of transitions, over all environments
    :param observation_space: observation space with a skill, see
        :func:`~sb3_cesd.common.observations.skill_observation_space`
    :param action_space: action space
    :param device: PyTorch device of the sampled tensors
    :param n_envs: number of parallel environments
    :param optimize_memory_usage: not supported (observations are stored once in any case)
    :param handle_timeout_termination: bootstrap from the last observation of a truncated episode
    :param skill_space: space of the skills
    :param n_steps: number of steps of the n-step window
    :param gamma: discount factor
    :param one_step: also sample the observation after a single step
    :param average_window: if above 1, also sample moving averages of the observations, over up to this many steps of the
        episode, the last of which is that of the transition
    :param reward: ``"intrinsic"`` or ``"extrinsic"``: what the transitions were collected for
    """

    #: Computes the rewards of sampled batches: an intrinsic reward, or that of the task. Set by the model, and not saved
    reward_module: Any = None
    #: Id of the environment of the task, as far as it was known when the buffer was saved
    task: str | None = None

    # Arrays with one row per transition, except observations, and those of observations, by entry
    ARRAYS: ClassVar[tuple[str, ...]] = ("actions", "rewards", "dones", "timeouts", "skills", "last_slots")
    OBSERVATIONS: ClassVar[tuple[str, ...]] = ("observations", "last_observations", "newest_next")

    # By the name of the entry, as in SB3's DictReplayBuffer
    observations: dict[str, np.ndarray]  # type: ignore[assignment]

    @checked
    def __init__(
        self,
        buffer_size: PositiveInt,
        observation_space: spaces.Dict,
        action_space: spaces.Space,
        device: th.device | str = "auto",
        n_envs: PositiveInt = 1,
        optimize_memory_usage: Literal[False] = False,
        handle_timeout_termination: bool = True,
        *,
        skill_space: SkillSpace,
        n_steps: PositiveInt = 3,
        gamma: Share = 0.99,
        one_step: bool = False,
        average_window: PositiveInt = 1,
        reward: Literal["intrinsic", "extrinsic"] = "intrinsic",
    ) -> None:
        # Not ReplayBuffer.__init__, whose arrays hold each observation twice
        super(ReplayBuffer, self).__init__(
            max(buffer_size // n_envs, 1), plain_space(observation_space), action_space, device, n_envs=n_envs
        )
        self.optimize_memory_usage = False
        self.handle_timeout_termination = handle_timeout_termination
        self.n_steps = n_steps
        self.gamma = gamma
        self.skill_space = skill_space
        self.one_step = one_step
        self.average_window = average_window
        self.reward = reward
        entries = {name: space for name, space in observation_space.spaces.items() if name != SKILL}

        ring = (self.buffer_size, self.n_envs)
        #: Observation after the newest transition of each environment
        self.newest_next = {
            name: np.zeros((n_envs, *space.shape), space.dtype)  # type: ignore[misc]
            for name, space in entries.items()
        }
        self.observations = self._stored_zeros(*ring)
        self.actions = np.zeros((*ring, self.action_dim), dtype=np.float32)
        self.rewards = np.zeros(ring, dtype=np.float32)
        self.dones = np.zeros(ring, dtype=bool)
        self.timeouts = np.zeros(ring, dtype=bool)
        self.skills = np.zeros((*ring, *skill_space.stored_shape), dtype=skill_space.stored_dtype)
        #: Where an episode ends: index of its last observation in ``last_observations``
        self.last_slots = np.zeros(ring, dtype=np.int32)
        self.last_observations = self._stored_zeros(1)
        self._free_slots: list[int] = [0]
        #: Row of the newest transitions
        self.newest = np.zeros(1, dtype=np.int64)
        self._make_unsaved()

    def _stored(self, observations: Any) -> Any:
        """Take what is stored of observations, an array or a tensor of shape ``(n, *shape)``: here, all."""
        return observations

    def _stored_zeros(self, *shape: int) -> dict[str, np.ndarray]:
        stored = {name: self._stored(values) for name, values in self.newest_next.items()}
        return {name: np.zeros((*shape, *values.shape[1:]), values.dtype) for name, values in stored.items()}

    def _make_unsaved(self) -> None:
        #: Whether the ring is full, so that its last row precedes the first one
        self._wrapped = np.array([self.full])
        self._tensors = DeviceArrays(th.device(self.device))
        #: That of the last batches, and the last one that was made
        self._normalization: TensorNormalization | None = None
        self._last_normalization: TensorNormalization | None = None

    def _arrays(self) -> dict[str, np.ndarray]:
        arrays = {**{name: getattr(self, name) for name in (*self.ARRAYS, "newest")}, "wrapped": self._wrapped}
        for group in self.OBSERVATIONS:
            arrays.update({f"{group} {name}": array for name, array in getattr(self, group).items()})
        return arrays

    @property
    def nbytes(self) -> int:
        """Memory of all arrays [bytes]."""
        return sum(array.nbytes for array in self._arrays().values())

    @property
    def next_observations(self) -> dict[str, np.ndarray]:  # type: ignore[override]
        """The next observation of every transition, for inspection, entries of shape ``(buffer_size, n_envs, *shape)``."""
        self._update_tensors()
        ring = (self.buffer_size, self.n_envs)
        rows, envs = th.from_numpy(np.indices(ring).reshape(2, -1)).to(self.device)
        return {name: value.unflatten(0, ring).cpu().numpy() for name, value in self._next_observations(rows, envs).items()}

    def __getstate__(self) -> dict[str, Any]:
        # Save only the rows in use: the arrays have the size of a full buffer
        state = self.__dict__.copy()
        state.pop("reward_module", None)
        for name in ("_tensors", "_normalization", "_last_normalization", "_wrapped"):
            del state[name]
        for name in self.ARRAYS:
            state[name] = state[name][: self.size()]
        state["observations"] = {name: array[: self.size()] for name, array in self.observations.items()}
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        for name in self.ARRAYS:
            setattr(self, name, self._with_room(state[name]))
        self.observations = {name: self._with_room(saved) for name, saved in state["observations"].items()}
        self._make_unsaved()

    def _with_room(self, saved: np.ndarray) -> np.ndarray:
        array = np.zeros((self.buffer_size, *saved.shape[1:]), dtype=saved.dtype)
        array[: len(saved)] = saved
        return array

    def add(  # type: ignore[override]
        self,
        obs: dict[str, np.ndarray],
        next_obs: dict[str, np.ndarray],
        action: np.ndarray,
        reward: np.ndarray,
        done: np.ndarray,
        infos: list[dict[str, Any]],
    ) -> None:
        """
        Store one transition of every environment.

        If an observation is not the next observation of the previous transition, although the episode did not end there, the
        environment was reset: the previous transition then ends its trajectory.

        :param obs: observations with skills, of ``n_envs`` environments
        :param next_obs: the same after the step; the skill in it is ignored
        :param action: actions scaled to [-1, 1], shape ``(n_envs, *action_shape)``
        :param reward: extrinsic rewards, shape ``(n_envs,)``
        :param done: end of episode, shape ``(n_envs,)``
        :param infos: ``TimeLimit.truncated`` distinguishes timeouts from terminations
        """
        check_has_skill(obs)
        entries = {name: np.asarray(value, self.newest_next[name].dtype) for name, value in entries_of(obs).items()}
        if self.size() > 0:
            is_other = np.zeros(self.n_envs, dtype=bool)
            for name, value in entries.items():
                is_other |= (value != self.newest_next[name]).any(axis=tuple(range(1, value.ndim)))
            self.end_trajectories(is_other)
        row = self.pos
        if self.full:
            self._free_slots.extend(self.last_slots[row, self._ends(row)].tolist())
        self._store(row, entries)
        self.actions[row] = action.reshape(self.n_envs, self.action_dim)
        self.rewards[row] = reward
        self.dones[row] = done
        self.timeouts[row] = False
        if self.handle_timeout_termination:
            self.timeouts[row] = [info.get("TimeLimit.truncated", False) for info in infos]
        self.skills[row] = self.skill_space.decode(obs[SKILL])
        for name, value in entries_of(next_obs).items():
            self.newest_next[name][:] = value
        self.newest[0] = row
        self._keep_last(row, self._ends(row))
        self.pos = (row + 1) % self.buffer_size
        self.full = self._wrapped[0] = self.full or self.pos == 0
        self._tensors.mark([*self.ARRAYS, *(f"observations {name}" for name in entries)], [row])
        self._tensors.mark([f"newest_next {name}" for name in entries], range(self.n_envs))
        self._tensors.mark(["newest", "wrapped"], [0])

    def _store(self, row: int, entries: dict[str, np.ndarray]) -> None:
        """Store the observations of the transitions that :meth:`add` adds, shape ``(n_envs, *shape)`` each."""
        for name, value in entries.items():
            self.observations[name][row] = self._stored(value)

    def reset(self) -> None:
        """Forget all transitions."""
        super().reset()
        self.dones[:] = self.timeouts[:] = False
        self._free_slots = list(range(len(next(iter(self.last_observations.values())))))
        self._make_unsaved()

    def end_trajectories(self, where: np.ndarray | bool = True) -> None:
        """End n-step windows at the newest transitions, as environments (all, or some) are reset before the next ones."""
        if self.size() == 0:
            return
        newest = int(self.newest[0])
        ending = where & ~self._ends(newest)
        # As after a timeout, the value is bootstrapped; a true termination stays one
        self.timeouts[newest, ending] = True
        self._keep_last(newest, ending)
        if ending.any():
            self._tensors.mark(["timeouts", "last_slots"], [newest])

    def _ends(self, row: int) -> np.ndarray:
        return self.dones[row] | self.timeouts[row]

    def _keep_last(self, row: int, ending: np.ndarray) -> None:
        """Store the observations after the newest transitions that end, as another episode will follow in the ring."""
        for env_idx in np.flatnonzero(ending):
            if not self._free_slots:
                n_slots = len(next(iter(self.last_observations.values())))
                for name, last in self.last_observations.items():
                    self.last_observations[name] = np.concatenate([last, np.zeros_like(last)])
                self._free_slots.extend(range(n_slots, 2 * n_slots))
            slot = self._free_slots.pop()
            self.last_slots[row, env_idx] = slot
            for name, last in self.last_observations.items():
                last[slot] = self._stored(self.newest_next[name])[env_idx]
                self._tensors.mark([f"last_observations {name}"], [slot])

    def sample(self, batch_size: int, env: VecNormalize | None = None) -> SkillReplayBufferSamples:  # type: ignore[override]
        """
        Sample a batch, as training does. This changes nothing but the state of numpy's generator.

        :param batch_size: number of transitions
        :param env: ``VecNormalize`` for the stored observations (and extrinsic rewards)
        :return: the batch, with extrinsic n-step returns
        """
        self.prepare(env)
        return self.gather(self.draw(batch_size))

    def as_states(self, replay_data: SkillReplayBufferSamples) -> SkillReplayBufferSamples:
        """Flatten the observations of a batch to states, shape ``(batch_size, obs_dim)``; features of images are such."""
        space = self.observation_space
        observations: dict[str, Any] = {
            name: to_states(value, space)
            for name, value in replay_data.all_observations().items()
            if isinstance(value, dict) or value.shape[1:] == space.shape
        }
        return replay_data._replace(**observations)

    def relabel(self, replay_data: SkillReplayBufferSamples) -> SkillReplayBufferSamples:
        """
        Replace the rewards of a sampled batch by those of the reward module, as HER's buffer does with its environment, and
        choose the (transition, skill) pairs that learn from them. Stored rewards stay those of the environment.
        """
        relabelled = self.reward_module.relabel(self.as_states(replay_data))
        return relabelled._replace(observations=replay_data.observations, next_observations=replay_data.next_observations)

    def prepare(self, env: VecNormalize | None = None) -> None:
        """Copy what was added since the last call to the device, before batches are gathered, normalised as by ``env``."""
        self._update_tensors()
        if env is not None and (self._last_normalization is None or self._last_normalization.env is not env):
            self._last_normalization = TensorNormalization(env, th.device(self.device))
        self._normalization = None if env is None else self._last_normalization
        if self._normalization is not None:
            self._normalization.update()

    def _update_tensors(self) -> None:
        # A model that loads the buffer may be on another device
        if self._tensors.device != th.device(self.device):
            self._tensors = DeviceArrays(th.device(self.device))
        self._tensors.set(**self._arrays())
        self._tensors.update()

    @property
    def generation(self) -> Hashable:
        """Changes with the address of any tensor that :meth:`gather` reads; it keeps their owners, so that none is reused."""
        return self._tensors, self._tensors.generation, self._normalization

    @property
    def is_graphable(self) -> bool:
        """Whether :meth:`draw` and :meth:`gather`, as in a CUDA graph, do what :meth:`sample` does."""
        return type(self).sample is SkillReplayBuffer.sample

    def draw(self, batch_size: int) -> th.Tensor:
        """Draw transitions uniformly, after :meth:`prepare`: rows and environments on the device, ``(2, batch_size)``."""
        rows = np.random.randint(0, self.size(), size=batch_size)
        envs = np.random.randint(0, self.n_envs, size=batch_size)
        return self._tensors.upload(np.stack([rows, envs]))

    def gather(self, drawn: th.Tensor) -> SkillReplayBufferSamples:
        """Gather the n-step transitions that start at the drawn ones, with extrinsic returns, without the host."""
        rows, envs = drawn
        window = self._window_lengths(rows, envs)  # (batch_size,)
        last_rows = (rows + window - 1) % self.buffer_size
        terminated = self._at("dones", last_rows, envs) & ~self._at("timeouts", last_rows, envs)
        skills = self._at("skills", rows, envs)
        observations = self._observations(rows, envs)
        next_observations = self._next_observations(last_rows, envs)
        averages = {}
        if self.average_window > 1:
            averages["average_observations"] = self._averages(rows, envs)
            averages["average_next_observations"] = self._averages(last_rows, envs, next_observations)
        normalized_next = one_step = self._normalized(next_observations)
        if self.one_step and self.n_steps > 1:
            one_step = self._normalized(self._next_observations(rows, envs))
        return SkillReplayBufferSamples(
            observations=self._normalized(observations),
            actions=self._at("actions", rows, envs),
            next_observations=normalized_next,
            dones=terminated[:, None].float(),
            rewards=self._returns(rows, envs, window),
            discounts=(self.gamma ** window[:, None].double()).float(),
            skills=skills.long() if self.skill_space.discrete else skills,
            one_step_observations=one_step if self.one_step else None,
            **averages,
        )

    def _at(self, name: str, rows: th.Tensor, envs: th.Tensor) -> th.Tensor:
        """Read n entries of an array, shape ``(n, ...)``."""
        return self._tensors[name].flatten(0, 1).index_select(0, rows * self.n_envs + envs)

    def _ended(self, rows: th.Tensor, envs: th.Tensor) -> th.Tensor:
        return self._at("dones", rows, envs) | self._at("timeouts", rows, envs)

    def _normalized(self, observations: dict[str, th.Tensor]) -> Any:
        if self._normalization is not None:
            observations = {name: self._normalization.observations(name, value) for name, value in observations.items()}
        # Images stay uint8
        return plain_form({name: value if value.dtype == th.uint8 else value.float() for name, value in observations.items()})

    def _window(self, rows: th.Tensor, envs: th.Tensor) -> tuple[th.Tensor, th.Tensor]:
        """List rows and environments of the next ``n_steps`` transitions from each, both of shape ``(n * n_steps,)``."""
        steps = th.arange(self.n_steps, device=rows.device)
        return ((rows[:, None] + steps) % self.buffer_size).flatten(), envs.repeat_interleave(self.n_steps)

    def _window_lengths(self, rows: th.Tensor, envs: th.Tensor) -> th.Tensor:
        """Count the steps of windows: they end with the episode, at the newest transition, or after ``n_steps``."""
        window_rows, window_envs = self._window(rows, envs)
        # In the ring, the oldest transition follows the newest one
        ends = self._ended(window_rows, window_envs) | (window_rows == self._tensors["newest"])
        before_end = ends.view(-1, self.n_steps).int().cumsum(dim=1) == 0
        return (before_end.sum(dim=1) + 1).clamp(max=self.n_steps)

    def _returns(self, rows: th.Tensor, envs: th.Tensor, window: th.Tensor) -> th.Tensor:
        """Sum up the discounted extrinsic rewards within windows, shape ``(batch_size, 1)``."""
        rewards = self._at("rewards", *self._window(rows, envs))
        if self._normalization is not None:
            rewards = self._normalization.rewards(rewards)
        steps = th.arange(self.n_steps, device=rows.device)
        discounts = th.where(steps < window[:, None], self.gamma ** steps.double(), 0.0)
        return (rewards.view(-1, self.n_steps) * discounts).sum(dim=1, keepdim=True).float()

    def _averages(self, rows: th.Tensor, envs: th.Tensor, following: dict[str, th.Tensor] | None = None) -> Any:
        """
        Average up to ``average_window`` observations of the same episode, up to those of some transitions, or up to their next
        observations, if these are given.
        """
        n_steps = self.average_window - (following is not None)
        before = rows[:, None] - th.arange(n_steps, device=rows.device)  # newest first
        flat, flat_envs = (before % self.buffer_size).flatten(), envs.repeat_interleave(n_steps)
        # In the ring, the newest transition precedes the oldest one, or nothing does yet
        is_before_start = (before < 0).flatten() & ~self._tensors["wrapped"]
        ends = self._ended(flat, flat_envs) | (flat == self._tensors["newest"]) | is_before_start
        # The end of the last transition itself does not matter
        later_ends = ends.view(-1, n_steps)[:, 1:].int().cumsum(dim=1)
        within = F.pad(later_ends == 0, (1, 0), value=True).float()  # (n, n_steps)
        counts = within.sum(dim=1)
        if following is not None:
            counts = counts + 1
        averages = {}
        for name, stored in self._observations(flat, flat_envs).items():
            values = stored.float()
            sums = th.einsum("ns,nsd->nd", within, values.view(len(rows), n_steps, -1))
            if following is not None:
                sums = sums + following[name].float().flatten(1)
            averages[name] = (sums / counts[:, None]).view(-1, *values.shape[1:])
        return self._normalized(averages)

    def _observations(self, rows: th.Tensor, envs: th.Tensor) -> dict[str, th.Tensor]:
        """Read the observation of each transition, entries of shape ``(n, *shape)``."""
        return {name: self._at(f"observations {name}", rows, envs) for name in self.observations}

    def _next_observations(self, rows: th.Tensor, envs: th.Tensor) -> dict[str, th.Tensor]:
        """Read the next observation of each transition, entries of shape ``(n, *shape)``."""
        is_newest, ended = rows == self._tensors["newest"], self._ended(rows, envs)
        slots = self._at("last_slots", rows, envs)
        following = {}
        for name, array in self.observations.items():
            to_shape = (-1, *(1,) * (array.ndim - 2))
            after = self._at(f"observations {name}", (rows + 1) % self.buffer_size, envs)
            newest = self._stored(self._tensors[f"newest_next {name}"]).index_select(0, envs)
            # In a row without an end, the slot is outdated
            last = self._tensors[f"last_observations {name}"].index_select(0, slots)
            after = th.where(is_newest.view(to_shape), newest, after)
            following[name] = th.where(ended.view(to_shape), last, after)
        return following


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
