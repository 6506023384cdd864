import time
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv, VecMonitor
from stable_baselines3.common.vec_env.base_vec_env import VecEnvStepReturn

from sb3_cesd.envs.maze import HORIZON, MAX_DISPLACEMENT, get_layout, make_spaces
from sb3_cesd.envs.maze_dynamics import MazeDynamics


class MazeVecEnv(VecEnv):
    """
    Many points in a maze of their own each, moved together by numpy: the dynamics of :class:`~sb3_cesd.envs.maze.MazeEnv` for
    thousands of agents. There is no reward; episodes are reported as by ``Monitor``.

    :param layout: name of the maze
    :param n_envs: number of points
    """

    def __init__(self, layout: str, n_envs: int) -> None:
        self.layout = get_layout(layout)
        self.num_envs = n_envs  # read by the constructor of VecEnv through get_attr
        self.render_mode = None
        super().__init__(n_envs, *make_spaces(self.layout))
        self._dynamics = MazeDynamics(self.layout)
        self._rng = np.random.default_rng()
        self._positions = np.zeros((n_envs, 2))
        self._n_steps = np.zeros(n_envs, dtype=int)
        self._displacements = np.zeros((n_envs, 2))
        self._start_time = time.time()

    def seed(self, seed: int | None = None) -> Sequence[int | None]:
        # One stream of random numbers moves all points: the seed counts from now on
        self._rng = np.random.default_rng(seed)
        return [seed] * self.num_envs

    def reset(self) -> np.ndarray:
        self._positions = self._dynamics.start_positions(self.num_envs, self._rng)
        self._n_steps[:] = 0
        return self._positions.astype(np.float32)

    def step_async(self, actions: np.ndarray) -> None:
        self._displacements = np.clip(actions, -MAX_DISPLACEMENT, MAX_DISPLACEMENT)

    def step_wait(self) -> VecEnvStepReturn:
        self._positions = self._dynamics.move(self._positions, self._displacements, self._rng)
        self._n_steps += 1
        observations = self._positions.astype(np.float32)
        dones = self._n_steps >= HORIZON
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": False} for _ in range(self.num_envs)]
        if dones.any():
            episode = {"r": 0.0, "l": HORIZON, "t": round(time.time() - self._start_time, 6)}
            for idx in np.nonzero(dones)[0]:
                infos[idx] = {
                    "TimeLimit.truncated": True,
                    "terminal_observation": observations[idx].copy(),
                    "episode": episode,
                }
            self._positions[dones] = self._dynamics.start_positions(int(dones.sum()), self._rng)
            self._n_steps[dones] = 0
            observations[dones] = self._positions[dones]
        return observations, np.zeros(self.num_envs, dtype=np.float32), dones, infos

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: int | Iterable[int] | None = None) -> list[Any]:
        return [getattr(self, attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: int | Iterable[int] | None = None) -> None:
        raise ValueError(
            "The points of a MazeVecEnv have no attributes of their own: use make_vec_env with a maze id instead."
        )

    def env_method(self, method_name: str, *method_args: Any, indices: Any = None, **method_kwargs: Any) -> list[Any]:
        raise ValueError("The points of a MazeVecEnv have no methods of their own: use make_vec_env with a maze id instead.")

    def env_is_wrapped(self, wrapper_class: type, indices: int | Iterable[int] | None = None) -> list[bool]:
        # Episodes are reported as Monitor and VecMonitor do
        return [wrapper_class in (Monitor, VecMonitor) for _ in self._get_indices(indices)]
