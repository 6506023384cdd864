import os
import time
from collections.abc import Sequence
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.error import ClosedEnvironmentError, ResetNeeded
from gymnasium.wrappers import TimeLimit
from stable_baselines3.common.env_util import is_wrapped
from stable_baselines3.common.monitor import Monitor, ResultsWriter
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from sb3_cesd.envs.gl import import_physics
from sb3_cesd.envs.robot import TASKS, RobotEnv, check_finite

#: Of a single environment only: here all are reset and stepped together
NOT_SINGLE = ("reset", "step", "close")


class RobotVecEnv(VecEnv):
    """
    Many :class:`~sb3_cesd.envs.robot.RobotEnv` in one: threads step their physics, numpy computes what they observe and earn.

    Observations, rewards and ``infos`` are to the last bit those of ``DummyVecEnv`` around ``Monitor`` around single
    environments, with the same seeds. All episodes start and end together. See
    :func:`~sb3_cesd.envs.batching.make_batched` for making one by its id.

    :param env: an environment of a robot, made by ``gym.make``; it becomes part of this one
    :param n_envs: number of environments
    :param n_threads: number of threads; ``None`` for as many as there are cores
    :param results_writers: of ``Monitor``: what writes the episodes of each environment to a file
    :raises ValueError: if this environment can't be batched, or ``n_envs`` or ``n_threads`` is not positive
    """

    actions: np.ndarray

    def __init__(
        self,
        env: gym.Env,
        n_envs: int,
        n_threads: int | None = None,
        results_writers: Sequence[ResultsWriter] = (),
    ) -> None:
        for name, value in (("n_envs", n_envs), ("n_threads", n_threads)):
            if value is not None and value < 1:
                raise ValueError(f"{name}={value}: pass at least 1.")
        robot = env.unwrapped
        if not isinstance(robot, RobotEnv):
            raise ValueError(
                f"{env} can't be batched, only robots ({', '.join(TASKS)}) can: use DummyVecEnv or SubprocVecEnv "
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
        [robot_batch] = import_physics("sb3_cesd.envs.robot_batch")
        self._batch = robot_batch.RobotBatch(robot, n_envs, self.n_threads)
        self._random_states = [np.random.RandomState() for _ in range(n_envs)]
        self._start_positions = np.full((n_envs, 3), np.nan)
        self._has_started = False
        self._n_steps = 0
        self._returns = np.zeros(n_envs)
        self._results_writers = results_writers
        self._start_time = time.time()
        self._is_closed = False

    @property
    def position(self) -> np.ndarray:
        """Positions of the torsos (jaco: of the hands) in the world [m], shape ``(n_envs, 3)``."""
        return self._batch.positions() if self._n_steps > 0 else self._start_positions.copy()

    def reset(self) -> np.ndarray:
        """
        :return: observations, shape ``(n_envs, obs_dim)``
        :raises gymnasium.error.ClosedEnvironmentError: after :meth:`close`
        """
        self._check_open()
        for idx, seed in enumerate(self._seeds):
            if seed is not None:
                self._random_states[idx] = np.random.RandomState(seed % 2**32)
        observations = self._start_episodes()
        # Seeds and options are only used once
        self._reset_seeds()
        self._reset_options()
        return observations

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        """
        :return: observations, rewards, dones and infos
        :raises ValueError: if an action is of another shape, or not finite
        :raises gymnasium.error.ResetNeeded: before the first :meth:`reset`
        :raises dm_control.rl.control.PhysicsError: if a simulation has diverged
        :raises gymnasium.error.ClosedEnvironmentError: after :meth:`close`
        """
        self._check_open()
        if not self._has_started:
            raise ResetNeeded("There is no episode to step: call reset() first.")
        observations, rewards = self._batch.step(self._robot.scale_action(self._checked_actions()))
        self._n_steps += 1
        self._returns += rewards
        done = self._n_steps == self.max_episode_steps
        if done:
            infos = self._final_infos(observations)
            observations = self._start_episodes()
        else:
            infos = [{"TimeLimit.truncated": False} for _ in range(self.num_envs)]
        return observations, rewards.astype(np.float32), np.full(self.num_envs, done), infos

    def close(self) -> None:
        if not self._is_closed:
            self._is_closed = True
            self._env.close()
            for writer in self._results_writers:
                writer.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        return self.env_method("render")

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return attribute of each environment; ``physics`` is a copy."""
        values = []
        positions = self.position if attr_name == "position" else None
        for idx in self._get_indices(indices):
            if attr_name in self._attributes[idx]:
                values.append(self._attributes[idx][attr_name])
            elif positions is not None:
                values.append(positions[idx])
            elif attr_name == "random_state":
                values.append(self._random_states[idx])
            elif attr_name == "physics":
                self._batch.show(idx)
                values.append(self._robot.physics.copy(share_model=True))
            else:
                values.append(self._env.get_wrapper_attr(attr_name))
        return values

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set attribute, to be read by :meth:`get_attr`; the simulations do not heed it."""
        for idx in self._get_indices(indices):
            self._attributes[idx][attr_name] = value

    def env_method(self, method_name: str, *method_args, indices: VecEnvIndices = None, **method_kwargs) -> list[Any]:
        """
        Call a method of each environment, in its state.

        :raises AttributeError: for ``reset``, ``step`` and ``close``, which are for all
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
        """True for ``Monitor``, whose ``infos`` these are, and for the wrappers of the environment passed."""
        wrapped = issubclass(Monitor, wrapper_class) or is_wrapped(self._env, wrapper_class)
        return [wrapped for _ in self._get_indices(indices)]

    def _check_open(self) -> None:
        if self._is_closed:
            raise ClosedEnvironmentError("This environment is closed: make a new one.")

    def _checked_actions(self) -> np.ndarray:
        actions = np.asarray(self.actions, dtype=np.float64)
        expected = (self.num_envs, *self._robot.action_space.shape)
        if actions.shape != expected:
            raise ValueError(f"The actions have shape {actions.shape}: pass some of shape {expected}.")
        if not np.isfinite(actions).all():
            idx = int(np.argmin(np.isfinite(actions).all(axis=1)))
            check_finite(actions[idx], f" of environment {idx}")
        return actions

    def _start_episodes(self) -> np.ndarray:
        """
        :return: the first observations, shape ``(n_envs, obs_dim)``
        """
        observations = np.empty((self.num_envs, *self._robot.observation_space.shape), dtype=np.float32)
        for idx, random_state in enumerate(self._random_states):
            observations[idx] = self._batch.start(idx, random_state)
            self._start_positions[idx] = self._robot.position
        self._has_started = True
        self._n_steps = 0
        self._returns[:] = 0.0
        return observations

    def _final_infos(self, observations: np.ndarray) -> list[dict[str, Any]]:
        """
        :param observations: the last of the episodes, shape ``(n_envs, obs_dim)``
        :return: one for each environment
        """
        seconds = round(time.time() - self._start_time, 6)
        episodes = [{"r": round(total, 6), "l": self._n_steps, "t": seconds} for total in self._returns.tolist()]
        for writer, episode in zip(self._results_writers, episodes, strict=False):
            writer.write_row(episode)
        return [
            {"TimeLimit.truncated": True, "terminal_observation": observation, "episode": episode}
            for observation, episode in zip(observations, episodes, strict=True)
        ]


def time_limit(env: gym.Env) -> int:
    """
    :param env: an environment of a robot, with or without ``TimeLimit``
    :return: length of an episode, in steps: that of the robot's task, or less
    """
    limit = env.unwrapped.max_steps  # type: ignore[attr-defined]
    while isinstance(env, gym.Wrapper):
        if isinstance(env, TimeLimit):
            limit = min(limit, env._max_episode_steps)
        env = env.env
    return limit


def usable_cores() -> int:
    """
    :return: number of cores that this process may use
    """
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
