import os
import time
from collections.abc import Callable, Sequence
from types import SimpleNamespace
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium.wrappers import OrderEnforcing, PassiveEnvChecker, TimeLimit
from stable_baselines3.common.env_util import is_wrapped, make_vec_env
from stable_baselines3.common.monitor import Monitor, ResultsWriter
from stable_baselines3.common.vec_env import VecEnv
from stable_baselines3.common.vec_env.base_vec_env import VecEnvIndices, VecEnvStepReturn

from sb3_cesd.common.arguments import PositiveInt, checked, finite_actions
from sb3_cesd.envs.registration import HORIZONS
from sb3_cesd.envs.robots.env import RobotEnv, make_random_state, named_warnings
from sb3_cesd.envs.robots.gl import import_physics

__all__ = ["RobotVecEnv", "batch_envs", "make_batched"]

#: Wrappers of ``gym.make``, which a batch does not need
PLAIN_WRAPPERS = (TimeLimit, OrderEnforcing, PassiveEnvChecker)
#: Kind of an element of a composer model -> field of its position
POSITION_FIELDS = {"body": "xpos", "site": "site_xpos"}


class RobotVecEnv(VecEnv):
    """
    A vectorized :class:`~sb3_cesd.envs.robots.env.RobotEnv`, whose simulations are stepped by threads.

    Observations, rewards and ``infos`` are bit-identical to those of a ``DummyVecEnv`` of single environments in ``Monitor``,
    with the same seeds. All episodes start and end together, except that the episode of a diverging simulation ends alone.
    :func:`make_batched` makes one from an id.

    :param env: an environment of a robot, made by ``gym.make``; it becomes part of this one
    :param n_envs: number of environments
    :param n_threads: number of threads; ``None`` for one per core
    :param results_writers: writers of the monitor files of the environments
    :raises ValueError: if the environment can't be batched, or ``n_envs`` or ``n_threads`` is not positive
    """

    actions: np.ndarray

    @checked
    def __init__(
        self,
        env: gym.Env,
        n_envs: PositiveInt,
        n_threads: PositiveInt | None = None,
        results_writers: Sequence[ResultsWriter] = (),
    ) -> None:
        robot = env.unwrapped
        if type(robot) is not RobotEnv:
            raise ValueError(f"{env} can't be batched, only URLB's robots that observe vectors: use DummyVecEnv.")
        if robot.render_mode == "human":
            raise ValueError("Batched environments have no windows: pass render_mode='rgb_array', or use DummyVecEnv.")
        self.render_mode = robot.render_mode  # read by VecEnv.__init__
        self._env, self._robot = env, robot
        super().__init__(n_envs, robot.observation_space, robot.action_space)
        self.metadata = robot.metadata
        horizon = HORIZONS[robot.robot_name]
        self.max_episode_steps = min(horizon, (env.spec and env.spec.max_episode_steps) or horizon)
        n_cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
        self.n_threads = min(n_envs, n_threads or n_cores)
        self._make_simulations()
        self._random_states = [make_random_state() for _ in range(n_envs)]
        self._positions = np.zeros((n_envs, 3))
        self._n_steps = np.zeros(n_envs, dtype=int)
        self._returns = np.zeros(n_envs)
        self._last_observations = np.zeros((n_envs, *robot.observation_space.shape), dtype=np.float32)
        self._results_writers = results_writers
        self._start_time = time.time()

    def reset(self) -> np.ndarray:
        for idx, seed in enumerate(self._seeds):
            if seed is not None:
                self._random_states[idx] = make_random_state(seed)
            self._start_episode(idx)
        # Seeds and options are only used once
        self._reset_seeds()
        self._reset_options()
        return self._last_observations.copy()

    def step_async(self, actions: np.ndarray) -> None:
        self.actions = actions

    def step_wait(self) -> VecEnvStepReturn:
        actions = finite_actions(self.actions, (self.num_envs, *self._robot.action_space.shape))
        warnings_before = self._warnings.copy()
        self._ctrl[:] = self._robot.scale_action(actions)
        # As in dm_control, positions and velocities are those of the new state, forces those of the last substep
        self._batch.step(nstep=self._n_substeps, stage=self._stage)
        observations, rewards, self._positions = self._observe(), self._rewards(), self._read_positions()
        diverged = (self._warnings > warnings_before).any(axis=1)
        observations[diverged], rewards[diverged] = self._last_observations[diverged], 0.0
        self._last_observations = observations
        self._n_steps += 1
        self._returns += rewards
        dones = diverged | (self._n_steps == self.max_episode_steps)
        infos: list[dict[str, Any]] = [{"TimeLimit.truncated": False} for _ in range(self.num_envs)]
        for idx in np.flatnonzero(dones).tolist():
            seconds = round(time.time() - self._start_time, 6)
            episode = {"r": round(float(self._returns[idx]), 6), "l": int(self._n_steps[idx]), "t": seconds}
            if self._results_writers:
                self._results_writers[idx].write_row(episode)
            infos[idx] = {"terminal_observation": observations[idx].copy(), "episode": episode}
            infos[idx]["TimeLimit.truncated"] = not diverged[idx]
            if diverged[idx]:
                infos[idx]["physics_warnings"] = named_warnings(self._warnings[idx])
            self._start_episode(idx)
        return observations.copy(), rewards.astype(np.float32), dones, infos

    def close(self) -> None:
        """Release the renderer, and close the monitor files."""
        self._env.close()
        for writer in self._results_writers:
            writer.close()

    def get_images(self) -> Sequence[np.ndarray | None]:
        return self.env_method("render")

    def get_attr(self, attr_name: str, indices: VecEnvIndices = None) -> list[Any]:
        """Return an attribute: each environment has its own ``position``, all others are shared."""
        if attr_name == "position":
            return [self._positions[idx].copy() for idx in self._get_indices(indices)]
        return [self._env.get_wrapper_attr(attr_name) for _ in self._get_indices(indices)]

    def set_attr(self, attr_name: str, value: Any, indices: VecEnvIndices = None) -> None:
        """Set an attribute that the environments share; it has no effect on the simulations."""
        self._env.set_wrapper_attr(attr_name, value)

    def env_method(self, method_name: str, *method_args, indices: VecEnvIndices = None, **method_kwargs) -> list[Any]:
        """Call a method in the state of each environment, which stays as it is."""
        method = getattr(self._robot, method_name)
        results = []
        for idx in self._get_indices(indices):
            self._mujoco.mj_setState(self._model, self._data, self._batch.state[idx], self._state)
            self._mujoco.mj_forward(self._model, self._data)
            results.append(method(*method_args, **method_kwargs))
        return results

    def env_is_wrapped(self, wrapper_class: type[gym.Wrapper], indices: VecEnvIndices = None) -> list[bool]:
        """Return true for ``Monitor``, whose entries are in ``infos``, and for the wrappers of the given environment."""
        wrapped = issubclass(Monitor, wrapper_class) or is_wrapped(self._env, wrapper_class)
        return [wrapped for _ in self._get_indices(indices)]

    def _make_simulations(self) -> None:
        mujoco, batches = import_physics("mujoco", "mujoco.batch")
        robot = self._robot
        robot.reset()  # compiles jaco's model
        self._mujoco = mujoco
        self._stage = mujoco.mjtStage.mjSTAGE_VEL.value
        # From this state a simulation can go on, including the warm start of the solver
        self._state = mujoco.mjtState.mjSTATE_INTEGRATION
        self._model, self._data = robot.physics.model.ptr, robot.physics.data.ptr
        # A simulation that keeps its data need not repeat the last stages of a step in the next
        self._batch = batches.Batch(self._model, self.num_envs, self.n_threads, persistent=True)
        self._n_substeps = round(robot.dt / self._model.opt.timestep)
        self._ctrl = self._batch.bind("ctrl")
        self._warnings = self._batch.warning[:, :, 1]  # how often each was raised, (n_envs, n_warnings)
        physics, module, task = batch_physics(robot.physics, self._batch), robot._module, robot._dm_env.task
        if robot.robot_name == "jaco":
            self._observe: Callable[[], np.ndarray] = module.BatchedObservations(self._model, self._batch)
        else:
            self._observe = lambda: flat_observations(task, physics)
        self._rewards = lambda: np.asarray(task.get_reward(physics))
        self._read_positions = lambda: np.asarray(module.position(physics)).T
        # Bind all fields that these read: MuJoCo fills a field from the first step after it was bound
        self._observe(), self._rewards(), self._read_positions()

    def _start_episode(self, idx: int) -> None:
        self._robot._shimmy_env.np_random = self._random_states[idx]
        self._last_observations[idx] = self._robot.reset()[0]
        self._positions[idx] = self._robot.position
        self._batch.warning[idx] = 0
        self._mujoco.mj_getState(self._model, self._data, self._batch.state[idx], self._state)
        self._n_steps[idx] = 0
        self._returns[idx] = 0.0


@checked
def make_batched(
    env_id: str,
    n_envs: PositiveInt,
    seed: int | None = None,
    n_threads: PositiveInt | None = None,
    env_kwargs: dict[str, Any] | None = None,
    monitor_dir: str | None = None,
) -> RobotVecEnv:
    """
    Create vectorized environments of a robot, as SB3's ``make_vec_env`` but faster: threads step all environments together.

    :param env_id: id of a robot of dm_control
    :param n_envs: number of environments
    :param seed: seed of the first environment; environment i is seeded with ``seed + i``
    :param n_threads: number of threads; ``None`` for one per core
    :param env_kwargs: arguments of the environments
    :param monitor_dir: folder for the monitor files of the environments
    :return: the vectorized environment
    :raises ValueError: if the environment can't be batched
    """
    return make_vec_env(  # type: ignore[return-value]
        env_id,
        n_envs,
        seed=seed,
        monitor_dir=monitor_dir,
        env_kwargs=env_kwargs,
        vec_env_cls=batch_envs,  # type: ignore[arg-type]
        vec_env_kwargs={"n_threads": n_threads},
    )


def batch_envs(env_fns: Sequence[Callable[[], gym.Env]], n_threads: int | None = None) -> RobotVecEnv:
    """
    Batch environments of a robot. Pass it as ``vec_env_cls`` to SB3's ``make_vec_env``, instead of ``DummyVecEnv``.

    :param env_fns: functions that all make the same environment, with or without ``Monitor``
    :param n_threads: number of threads; ``None`` for one per core
    :return: the vectorized environment, with one environment per function
    :raises ValueError: if the environment can't be batched
    """
    env, writers = _unwrap_monitor(env_fns[0]())
    if writers:  # each environment has a monitor file
        writers += [writer for env_fn in env_fns[1:] for writer in _unwrap_monitor(env_fn())[1]]
    return RobotVecEnv(env, len(env_fns), n_threads, writers)


def _unwrap_monitor(env: gym.Env) -> tuple[gym.Env, list[ResultsWriter]]:
    """Take an environment out of its ``Monitor``, which may write a file, and refuse wrappers that a batch would ignore."""
    writers = []
    if isinstance(env, Monitor):
        writers = [] if env.results_writer is None else [env.results_writer]
        env = env.env
    layer = env
    while isinstance(layer, gym.Wrapper):
        if not isinstance(layer, PLAIN_WRAPPERS):
            raise ValueError(f"{type(layer).__name__} around one of a batch: wrap the vectorized environment instead.")
        layer = layer.env
    return env, writers


class BatchedArray(np.ndarray):
    """
    A value of many simulations that dm_control's formulas can treat as the value of a single one.

    The last axis runs over the simulations. A formula treats the other axes as those of a single simulation, and its results
    are bit-identical: powers are computed one by one, since NumPy rounds powers of arrays differently from powers of numbers.
    """

    def __pow__(self, exponent: Any, modulo: None = None) -> np.ndarray:
        values = np.asarray(self)
        powers = np.array([number**exponent for number in values.ravel().tolist()])
        return powers.reshape(values.shape).view(BatchedArray)

    def ravel(self, order: Any = "C") -> np.ndarray:
        return self.reshape(-1, self.shape[-1])

    def __array_function__(self, func: Callable, types: Any, args: Any, kwargs: Any) -> Any:
        if func not in BATCHED_FUNCTIONS:
            raise TypeError(f"{func.__name__} might mix simulations: add to BATCHED_FUNCTIONS what it does to each of them.")
        return BATCHED_FUNCTIONS[func](*args, **kwargs).view(BatchedArray)


#: NumPy function -> what it does to each simulation. Norms are taken one by one: a sum over an axis may round differently
BATCHED_FUNCTIONS: dict[Callable, Callable] = {
    np.where: lambda *args: np.where(*map(np.asarray, args)),
    np.hstack: lambda values: np.concatenate([np.asarray(value) for value in values]),
    np.linalg.norm: lambda vectors: np.sqrt([vector.dot(vector) for vector in np.ascontiguousarray(np.asarray(vectors).T)]),
}


class BatchedData:
    """
    MuJoCo's data of many simulations. Each field is a :class:`BatchedArray` that follows the simulations.

    MuJoCo fills a field from the first step after its first use.
    """

    def __init__(self, batch: Any, model: Any) -> None:
        self.model = model
        self._batch = batch

    def __getattr__(self, name: str) -> BatchedArray:
        field = np.moveaxis(self._batch.bind(name), 0, -1).view(BatchedArray)
        setattr(self, name, field)
        return field


class NamedField:
    """A field indexed by names, as in dm_control; ``axes`` convert names to indices, for each axis of a single simulation."""

    def __init__(self, field: BatchedArray, axes: Any) -> None:
        self._field = field
        self._axes = axes
        self._lists: dict[tuple, np.ndarray] = {}  # names -> indices, since converting many names takes a while

    def __getitem__(self, key: Any) -> BatchedArray:
        if isinstance(key, list):
            names = tuple(key)
            if names not in self._lists:
                self._lists[names] = np.asarray(self._axes[0].convert_key_item(key))
            return self._field[self._lists[names]]
        items = key if isinstance(key, tuple) else (key,)
        indices = [axis.convert_key_item(item) for axis, item in zip(self._axes, items, strict=False)]
        return self._field[tuple(indices)]


class NamedData:
    """All fields of :class:`BatchedData`, indexed by names as those of a single simulation."""

    def __init__(self, data: BatchedData, named_data: Any) -> None:
        self._data = data
        self._named_data = named_data

    def __getattr__(self, name: str) -> NamedField:
        field = NamedField(getattr(self._data, name), getattr(self._named_data, name).axes)
        setattr(self, name, field)
        return field


def batch_physics(physics: Any, batch: Any) -> Any:
    """Copy dm_control's Physics of a single simulation, so that its methods return a :class:`BatchedArray` of many."""
    batched = physics.copy(share_model=True)
    batched._data = BatchedData(batch, physics.model)
    named_data = NamedData(batched._data, physics.named.data)
    batched._named = batched._named._replace(data=named_data)

    def bind(element: Any) -> SimpleNamespace:
        # dm_control's method returns arrays of its own class
        return SimpleNamespace(xpos=getattr(named_data, POSITION_FIELDS[element.tag])[element.full_identifier])

    batched.bind = bind
    return batched


def flat_observations(task: Any, physics: Any) -> np.ndarray:
    """Compute the observations of a task of dm_control, shape ``(n_envs, obs_dim)``."""
    parts = [np.asarray(part) for part in task.get_observation(physics).values()]
    flat = [part.reshape(-1, part.shape[-1]) for part in parts]
    observations = np.empty((flat[0].shape[1], sum(len(part) for part in flat)), dtype=np.float32)
    np.concatenate(flat, out=observations.T)
    return observations
