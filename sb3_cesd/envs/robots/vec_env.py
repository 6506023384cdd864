import copy
import os
import time
from collections.abc import Iterable, Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.wrappers import TimeLimit
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.monitor import Monitor, ResultsWriter
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from sb3_cesd.envs.actions import NO_EPISODE, to_numbers
from sb3_cesd.envs.allowed import check_env_arguments
from sb3_cesd.envs.robots.ids import LOCOMOTION, ROBOTS
from sb3_cesd.envs.robots.robot import Robot, check_finite

#: Methods that can't be called on a single environment
NOT_SINGLE = ("reset", "reset_as", "step", "close", "get_state", "set_state")


class RobotVecEnv(VecEnv):
    """
    A vectorized :class:`~sb3_cesd.envs.robots.robot.Robot`, whose simulations are stepped by threads.

    Observations, rewards and ``infos`` are bit-identical to those of a ``DummyVecEnv`` of single environments in ``Monitor``,
    with the same seeds. All episodes start and end together, except that the episode of a diverging simulation ends alone.
    After :meth:`close`, :meth:`reset` opens the environments again.
    :func:`~sb3_cesd.envs.robots.batching.make_batched` makes one from an id.

    :param env: an environment of a robot, made by ``gym.make``; it becomes part of this one
    :param n_envs: number of environments
    :param n_threads: number of threads; ``None`` for one per core
    :param results_writers: writers of the monitor files of the environments
    :raises ValueError: if the environment can't be batched, or ``n_envs`` or ``n_threads`` is not positive
    """

    actions: np.ndarray
    _is_closed: bool

    def __init__(
        self,
        env: gym.Env,
        n_envs: int,
        n_threads: int | None = None,
        results_writers: Sequence[ResultsWriter] = (),
    ) -> None:
        check_env_arguments("RobotVecEnv", locals())
        robot = env.unwrapped
        if not isinstance(robot, Robot):
            raise ValueError(
                f"{env} can't be batched, only {', '.join([*ROBOTS, *LOCOMOTION])} can: use DummyVecEnv or SubprocVecEnv "
                "(in RL Zoo: leave 'batched' out)."
            )
        if robot.render_mode == "human":
            raise ValueError("Batched environments have no windows: pass render_mode='rgb_array', or use DummyVecEnv.")
        self.render_mode = robot.render_mode  # read by VecEnv.__init__
        self._env = env
        self._robot = robot
        self._attributes: list[dict[str, Any]] = [{} for _ in range(n_envs)]  # set by set_attr
        super().__init__(n_envs, robot.observation_space, robot.action_space)
        self.metadata = robot.metadata
        self.max_episode_steps = time_limit(env)
        self.n_threads = min(n_envs, n_threads or usable_cores())
        self._open()
        self._random_states = [robot.make_random_state() for _ in range(n_envs)]
        self._start_positions = np.full((n_envs, 3), np.nan)
        self._has_started = False
        self._n_steps = np.zeros(n_envs, dtype=int)
        self._returns = np.zeros(n_envs)
        self._n_diverged = np.zeros(n_envs, dtype=int)
        self._last_observations = np.zeros((n_envs, *robot.observation_space.shape), dtype=np.float32)
        self._last_infos: list[dict[str, Any]] = [{} for _ in range(n_envs)]
        self._results_writers = results_writers
        self._start_time = time.time()

    def __getstate__(self) -> dict[str, Any]:
        raise TypeError(
            "Batched robots can't be copied or pickled with their simulations: to play a model in other processes, pass a "
            "policy of export_policy, or a model that was loaded without env."
        )

    @property
    def position(self) -> np.ndarray:
        """Return the positions of the torsos (jaco: of the hands) in the world [m], shape ``(n_envs, 3)``."""
        if not self._n_steps.any():
            return self._start_positions.copy()
        return np.where(self._n_steps[:, None] > 0, self._batch.positions(), self._start_positions)

    def reset(self) -> np.ndarray:
        """
        Start an episode in each environment. Opens the environments again after :meth:`close`.

        :return: observations, shape ``(n_envs, obs_dim)``
        :raises gymnasium.error.ClosedEnvironmentError: after :meth:`close`, if there are monitor files
        """
        if self._is_closed:
            if self._results_writers:
                raise ClosedEnvironmentError("The monitor files of these environments are closed: make new environments.")
            self._open()
        for idx, seed in enumerate(self._seeds):
            if seed is not None:
                self._random_states[idx] = self._robot.make_random_state(seed)
        observations = self._last_observations
        self._start_episodes(observations, range(self.num_envs))
        # Seeds and options are only used once
        self._reset_seeds()
        self._reset_options()
        return observations.copy()

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """
        Step all environments.

        :return: observations, rewards, dones and infos
        :raises ValueError: if the actions are not an array of numbers, have the wrong shape, or are not finite
        :raises gymnasium.error.ResetNeeded: before the first :meth:`reset`
        :raises gymnasium.error.ClosedEnvironmentError: after :meth:`close`
        """
        self._check_open()
        if not self._has_started:
            raise ResetNeeded(NO_EPISODE)
        observations, rewards, warnings = self._batch.step(self._robot.scale_action(self._checked_actions()))
        states = self._batch.infos()
        for idx in warnings:
            observations[idx], rewards[idx], states[idx] = self._last_observations[idx], 0.0, self._last_infos[idx]
            self._n_diverged[idx] += 1
        self._n_steps += 1
        self._returns += rewards
        dones = self._n_steps == self.max_episode_steps
        dones[list(warnings)] = True
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": False, **state} for state in states]
        self._last_infos = states
        if dones.any():
            ended = np.flatnonzero(dones).tolist()
            for idx in ended:
                infos[idx].update(self._final_info(idx, observations[idx].copy(), warnings.get(idx)))
            self._start_episodes(observations, ended)
        self._last_observations = observations
        return observations.copy(), rewards.astype(np.float32), dones, infos

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._env.close()
            for writer in self._results_writers:
                writer.close()

    def get_state(self) -> dict[str, Any]:
        """
        Return the state from which the environments can continue.

        :return: state for :meth:`set_state`
        """
        self._check_open()
        return {
            "simulations": self._batch.get_state(),
            "random_states": copy.deepcopy(self._random_states),
            "start_positions": self._start_positions.copy(),
            "has_started": self._has_started,
            "n_steps": self._n_steps.copy(),
            "returns": self._returns.copy(),
            "last_observations": self._last_observations.copy(),
            "n_diverged": self._n_diverged.copy(),
            "seconds": time.time() - self._start_time,
        }

    def set_state(self, state: dict[str, Any]) -> None:
        """
        Continue from the state of as many other environments of the same task.

        :param state: state that :meth:`get_state` of the other environments returned
        """
        self._check_open()
        self._batch.set_state(state["simulations"])
        self._last_infos = self._batch.infos()
        self._random_states = copy.deepcopy(state["random_states"])
        self._start_positions[:] = state["start_positions"]
        self._has_started = state["has_started"]
        self._n_steps[:] = state["n_steps"]
        self._returns[:] = state["returns"]
        self._last_observations = state["last_observations"].copy()
        self._n_diverged[:] = state["n_diverged"]
        self._start_time = time.time() - state["seconds"]
        # Discard seeds and options that were set for the next reset
        self._reset_seeds()
        self._reset_options()

    def get_images(self) -> Sequence[np.ndarray | None]:
        return self.env_method("render")

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """
        Return an attribute of each environment; ``physics`` is a copy.

        :param attr_name: its name
        :param indices: which environments; ``None`` for all
        :return: its value in each
        :raises AttributeError: if there is none of that name
        """
        values = []
        positions = self.position if attr_name == "position" else None
        for idx in self._get_indices(indices):
            if attr_name in self._attributes[idx]:
                values.append(self._attributes[idx][attr_name])
            elif positions is not None:
                values.append(positions[idx])
            elif attr_name == "random_state":
                values.append(self._random_states[idx])
            elif attr_name == "n_diverged":
                values.append(int(self._n_diverged[idx]))
            elif attr_name == "physics":
                self._batch.show(idx)
                values.append(self._env.get_wrapper_attr("physics").copy(share_model=True))
            else:
                values.append(self._env.get_wrapper_attr(attr_name))
        return values

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """
        Set an attribute, for :meth:`get_attr` to return; it has no effect on the simulations.

        :param attr_name: its name
        :param value: its new value
        :param indices: which environments; ``None`` for all
        """
        for idx in self._get_indices(indices):
            self._attributes[idx][attr_name] = value

    def env_method(self, method_name: str, *method_args, indices: VecEnvIndices = None, **method_kwargs) -> list[Any]:
        """
        Call a method of each environment, in the state of that environment.

        :param method_name: its name
        :param method_args: its arguments
        :param indices: which environments; ``None`` for all
        :param method_kwargs: its arguments by name
        :return: what it returns for each
        :raises AttributeError: for ``reset``, ``step``, ``close`` and the methods of the state, which concern all environments
        """
        if method_name in NOT_SINGLE:
            raise AttributeError(
                f"Batched environments share {method_name!r}: call that of the vectorized environment, or use DummyVecEnv."
            )
        method = self._robot.get_wrapper_attr(method_name)
        results = []
        for idx in self._get_indices(indices):
            self._batch.show(idx)
            results.append(method(*method_args, **method_kwargs))
        return results

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        """
        Return true for ``Monitor``, whose entries are in ``infos``, and for the wrappers of the given environment.

        :param wrapper_class: class of a wrapper
        :param indices: which environments; ``None`` for all
        :return: the answer for each
        """
        wrapped = issubclass(Monitor, wrapper_class) or is_wrapped(self._env, wrapper_class)
        return [wrapped for _ in self._get_indices(indices)]

    def _open(self) -> None:
        """Make the simulations."""
        self._batch = self._robot.make_batch(self.num_envs, self.n_threads)
        self._is_closed = False

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedEnvironmentError("This environment is closed: call reset() to open it again.")

    def _checked_actions(self) -> np.ndarray:
        """
        Check the actions.

        :return: float64 actions, shape ``(n_envs, action_dim)``
        :raises ValueError: if they are not numbers, have the wrong shape, or are not finite
        """
        actions = to_numbers(self.actions, (self.num_envs, *self._robot.action_space.shape), several=True)
        if not np.isfinite(actions).all():
            idx = int(np.argmin(np.isfinite(actions).all(axis=1)))
            check_finite(actions[idx], f" of environment {idx}")
        return actions

    def _start_episodes(self, observations: np.ndarray, indices: Iterable[int]) -> None:
        """
        Start an episode in some environments.

        :param observations: where to put the first observations, shape ``(n_envs, obs_dim)``
        :param indices: which environments
        """
        for idx in indices:
            observations[idx] = self._batch.start(idx, self._random_states[idx])
            self._start_positions[idx] = self._robot.position
            self._last_infos[idx] = self._robot.state_info()
            self.reset_infos[idx] = self._last_infos[idx].copy()
            self._n_steps[idx] = 0
            self._returns[idx] = 0.0
        self._has_started = True

    def _final_info(self, idx: int, observation: np.ndarray, warnings: dict[str, int] | None) -> dict[str, Any]:
        """
        Return the entries of ``info`` at the end of an episode, and write the monitor file.

        :param idx: the environment
        :param observation: last observation of the episode, shape ``(obs_dim,)``
        :param warnings: MuJoCo's warnings, if the simulation diverged
        :return: the entries
        """
        seconds = round(time.time() - self._start_time, 6)
        episode = {"r": round(float(self._returns[idx]), 6), "l": int(self._n_steps[idx]), "t": seconds}
        if idx < len(self._results_writers):
            self._results_writers[idx].write_row(episode)
        info = {"TimeLimit.truncated": warnings is None, "terminal_observation": observation, "episode": episode}
        return info if warnings is None else {**info, "physics_warnings": warnings}


def time_limit(env: gym.Env) -> int:
    """
    Return the length of an episode: that of the robot's task, or a shorter one set by ``TimeLimit``.

    :param env: an environment of a robot, with or without ``TimeLimit``
    :return: length in steps
    """
    limit = env.unwrapped.max_steps  # type: ignore[attr-defined]
    while isinstance(env, gym.Wrapper):
        if isinstance(env, TimeLimit):
            limit = min(limit, env._max_episode_steps)
        env = env.env
    return limit


def usable_cores() -> int:
    """
    Count the cores that this process may use.

    :return: number of cores
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
