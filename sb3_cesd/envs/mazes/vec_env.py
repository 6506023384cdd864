import time
from typing import Any

import gymnasium as gym
import numpy as np
from stable_baselines3.common.monitor import Monitor
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from sb3_cesd.common.arguments import PositiveInt, checked, finite_actions
from sb3_cesd.envs.mazes.dynamics import move, place, sample_starts
from sb3_cesd.envs.mazes.env import ACTION_SPACE
from sb3_cesd.envs.mazes.layouts import HORIZON, get_layout
from sb3_cesd.envs.mazes.pictures import MazeObserver


class MazeVecEnv(VecEnv):
    """
    A vectorized :class:`~sb3_cesd.envs.mazes.env.MazeEnv` for thousands of points, moved together by NumPy, without rendering.

    All episodes start and end together. The ``infos`` are those of ``Monitor`` and ``TimeLimit`` around a ``MazeEnv``,
    with positions at the ends of episodes only. All points share one random number generator.

    :param layout: see :class:`~sb3_cesd.envs.mazes.env.MazeEnv`
    :param n_envs: number of environments
    :param max_episode_steps: length of an episode, in steps
    :param image_size: see :class:`~sb3_cesd.envs.mazes.env.MazeEnv`
    :raises ValueError: if the layout is unknown, or a number is not positive
    """

    actions: np.ndarray

    @checked
    def __init__(
        self,
        layout: str,
        n_envs: PositiveInt,
        max_episode_steps: PositiveInt = HORIZON,
        image_size: PositiveInt | None = None,
    ) -> None:
        self.layout = get_layout(layout)
        self.image_size = image_size
        self.max_episode_steps = max_episode_steps
        self.render_mode = None  # read by VecEnv.__init__
        self._observe = MazeObserver(self.layout, image_size)
        super().__init__(n_envs, self._observe.space, ACTION_SPACE)
        self._rng = np.random.default_rng()
        self._positions = np.tile(np.array(self.layout.start_cell, dtype=np.float64), (n_envs, 1))
        self._n_steps = 0
        self._start_time = time.time()

    @property
    def position(self) -> np.ndarray:
        """Return the position (x, y, 0) of each point, shape ``(n_envs, 3)``."""
        return np.pad(self._positions, ((0, 0), (0, 1)))

    def reset(self) -> np.ndarray:
        if self._seeds[0] is not None:
            self._rng = np.random.default_rng(self._seeds[0])
        self._start_episodes()
        # Seeds and options are only used once
        self._reset_seeds()
        self._reset_options()
        return self._observe(self._positions)

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        self._positions = move(self.layout, self._positions, finite_actions(self.actions, (self.num_envs, 2)), self._rng)
        self._n_steps += 1
        rewards = np.zeros(self.num_envs, dtype=np.float32)
        done = self._n_steps >= self.max_episode_steps
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": done} for _ in range(self.num_envs)]
        if done:
            seconds = round(time.time() - self._start_time, 6)
            for info, observation, position in zip(infos, self._observe(self._positions), self.position, strict=True):
                info["terminal_observation"], info["position"] = observation, position
                info["episode"] = {"r": 0.0, "l": self._n_steps, "t": seconds}
            self._start_episodes()
        return self._observe(self._positions), rewards, np.full(self.num_envs, done), infos

    def close(self) -> None:
        pass

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute: each environment has its own ``position``, all others are shared."""
        value = getattr(self, attr_name)
        return [value[idx] if attr_name == "position" else value for idx in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute that the environments share."""
        setattr(self, attr_name, value)

    def env_method(self, method_name: str, *method_args, indices: VecEnvIndices = None, **method_kwargs) -> list[Any]:
        raise AttributeError(f"MazeVecEnv has no method {method_name!r} of one environment: use DummyVecEnv with MazeEnv.")

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        """Return true for ``Monitor``: the ``infos`` contain its entries, and SB3 relies on this answer."""
        return [issubclass(Monitor, wrapper_class) for _ in self._get_indices(indices)]

    def _start_episodes(self) -> None:
        self._positions = sample_starts(self.layout, self.num_envs, self._rng)
        for idx, options in enumerate(self._options):
            if "position" in options:
                self._positions[idx] = place(self.layout, options["position"])
        self._n_steps = 0
