from abc import ABC, abstractmethod
from collections.abc import Callable
from importlib import import_module
from typing import Any, ClassVar

import mujoco
import numpy as np
from mujoco.batch import Batch

from sb3_cesd.envs.robots.batched_physics import FlatObservations, batch_physics
from sb3_cesd.envs.robots.env import RobotEnv
from sb3_cesd.envs.robots.robot import Robot

#: State from which a simulation can continue, including the warm start of the solver
STATE = mujoco.mjtState.mjSTATE_INTEGRATION


def get_state(physics: Any) -> np.ndarray:
    """
    Read the state from which a simulation can continue.

    :param physics: dm_control's Physics
    :return: the state, shape ``(n,)``
    """
    state = np.empty(mujoco.mj_stateSize(physics.model.ptr, STATE))
    mujoco.mj_getState(physics.model.ptr, physics.data.ptr, state, STATE)
    return state


def set_state(physics: Any, state: np.ndarray) -> None:
    """
    Set the state of a simulation.

    :param physics: dm_control's Physics
    :param state: state that :func:`get_state` returned, shape ``(n,)``
    """
    mujoco.mj_setState(physics.model.ptr, physics.data.ptr, state, STATE)
    # As after a step of dm_control: positions and velocities are computed from the state
    mujoco.mj_step1(physics.model.ptr, physics.data.ptr)


def named_warnings(counts: np.ndarray) -> dict[str, int]:
    """
    Name the warnings of MuJoCo.

    :param counts: how often each was raised, shape ``(n_warnings,)``
    :return: counts of those that were raised, by name
    """
    return {name: int(count) for name, count in zip(mujoco.mjtWarning.__members__, counts, strict=False) if count > 0}


class SimulationBatch(ABC):
    """
    Simulations of many robots of one task, stepped by threads. A step is bit-identical to that of a single robot.

    :param robot: creates initial states; :meth:`start` and :meth:`show` overwrite its state
    :param model: MuJoCo's model
    :param data: MuJoCo's data of the robot
    :param dt: duration of a step [s]
    :param n_envs: number of simulations
    :param n_threads: number of threads, including the calling one
    """

    #: Forward stages of MuJoCo that are computed in the new state
    stage: ClassVar[mujoco.mjtStage]

    def __init__(self, robot: Robot, model: Any, data: Any, dt: float, n_envs: int, n_threads: int) -> None:
        self._robot = robot
        self._model, self._data = model, data
        # A simulation that keeps its data need not repeat the last stages of a step in the next
        self._batch = Batch(model, n_envs, n_threads, persistent=True)
        self._n_substeps = round(dt / model.opt.timestep)
        self._ctrl = self._batch.bind("ctrl")
        self._warnings = self._batch.warning[:, :, 1]  # how often each was raised, (n_envs, n_warnings)

    @abstractmethod
    def positions(self) -> np.ndarray:
        """
        Return the positions of the robots after the last step.

        :return: positions [m], shape ``(n_envs, 3)``
        """

    def infos(self) -> list[dict[str, Any]]:
        """
        Return the entries of ``info`` for the states after the last step.

        :return: for each simulation, the entries that :meth:`~sb3_cesd.envs.robots.robot.Robot.state_info` returns
        """
        return [{} for _ in range(self._batch.nsim)]

    @abstractmethod
    def observe(self) -> np.ndarray:
        """
        Compute the observations.

        :return: observations, shape ``(n_envs, obs_dim)``, float32
        """

    @abstractmethod
    def rewards(self) -> np.ndarray:
        """
        Compute the rewards of the last step.

        :return: rewards, shape ``(n_envs,)``
        """

    def start(self, idx: int, random_state: Any) -> np.ndarray:
        """
        Start an episode of a simulation.

        :param idx: the simulation
        :param random_state: random number generator for its initial state
        :return: the first observation, float32
        """
        observation = self._robot.reset_as(random_state)
        self._batch.warning[idx] = 0
        mujoco.mj_getState(self._model, self._data, self._batch.state[idx], STATE)
        return observation

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[int, dict[str, int]]]:
        """
        Step all simulations.

        :param actions: actions in the units of the actuators, shape ``(n_envs, action_dim)``
        :return: the observations, float32; rewards, shape ``(n_envs,)``; and the warnings of diverged simulations, whose
            observation and reward are invalid, by index
        """
        self._ctrl[:] = actions
        warnings = self._warnings.copy()
        self._batch.step(nstep=self._n_substeps, stage=self.stage.value)
        diverged = np.flatnonzero((self._warnings > warnings).any(axis=1)).tolist()
        return self.observe(), self.rewards(), {idx: named_warnings(self._warnings[idx]) for idx in diverged}

    def get_state(self) -> Any:
        """
        Return the state from which the simulations can continue.

        :return: state for :meth:`set_state`
        """
        return self._batch.state.copy()

    def set_state(self, state: Any) -> None:
        """
        Set the state of the simulations.

        :param state: state that :meth:`get_state` returned
        """
        self._batch.warning[:] = 0
        self._batch.state[:] = state
        self._batch.forward(stage=self.stage.value)

    def show(self, idx: int) -> None:
        """
        Put the robot into the state of a simulation.

        :param idx: the simulation
        """
        mujoco.mj_setState(self._model, self._data, self._batch.state[idx], STATE)
        mujoco.mj_forward(self._model, self._data)


class RobotBatch(SimulationBatch):
    """
    Simulations of many of dm_control's robots.

    :param robot: creates initial states; :meth:`start` and :meth:`show` overwrite its state
    :param n_envs: number of simulations
    :param n_threads: number of threads, including the calling one
    """

    # As in dm_control, positions and velocities are those of the new state, forces those of the last substep
    stage = mujoco.mjtStage.mjSTAGE_VEL

    def __init__(self, robot: RobotEnv, n_envs: int, n_threads: int) -> None:
        # Compile jaco's model, without drawing from the generator of an environment whose batch was closed
        robot.reset_as(np.random.RandomState())
        super().__init__(robot, robot.physics.model.ptr, robot.physics.data.ptr, robot.dt, n_envs, n_threads)
        self._task = robot.dm_task
        self._physics = batch_physics(robot.physics, self._batch)
        self._module = import_module(f"sb3_cesd.envs.robots.{robot.domain}")
        self._observe = self._make_observations(robot.domain)
        # Bind all fields that these methods read: MuJoCo fills a field from the first step after it was bound
        self.observe(), self.rewards(), self.positions()

    def positions(self) -> np.ndarray:
        return np.asarray(self._module.position(self._physics)).T

    def observe(self) -> np.ndarray:
        return self._observe()

    def rewards(self) -> np.ndarray:
        return np.asarray(self._task.get_reward(self._physics))

    def _make_observations(self, domain: str) -> Callable[[], np.ndarray]:
        """
        Choose how to compute the observations.

        :param domain: domain of the robot
        :return: a function that returns them, shape ``(n_envs, obs_dim)``, float32
        """
        if domain == "jaco":
            return import_module("sb3_cesd.envs.robots.batched_jaco").JacoObservations(self._model, self._batch)
        return FlatObservations(self._task, self._physics, (self._batch.nsim, self._module.OBS_DIM))
