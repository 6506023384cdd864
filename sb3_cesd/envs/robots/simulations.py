from collections.abc import Callable
from importlib import import_module

import mujoco
import numpy as np
from dm_control.rl.control import PhysicsError
from mujoco.batch import Batch

from sb3_cesd.envs.robots.batched_physics import FlatObservations, batch_physics
from sb3_cesd.envs.robots.env import RobotEnv

#: All that determines how a simulation goes on, including the warm start of the solver
STATE = mujoco.mjtState.mjSTATE_INTEGRATION


class RobotBatch:
    """
    The simulations of many robots of one task, stepped by threads. A step is bit-identical to one of dm_control.

    :param robot: makes initial states; :meth:`start` and :meth:`show` overwrite its state
    :param n_envs: number of simulations
    :param n_threads: number of threads, including the one that calls
    """

    def __init__(self, robot: RobotEnv, n_envs: int, n_threads: int) -> None:
        self._robot = robot
        # Compile jaco's model, without drawing from the generator of an environment whose batch was closed
        robot.reset_as(np.random.RandomState())
        self._model, self._data = robot.physics.model.ptr, robot.physics.data.ptr
        # A simulation that keeps its data need not repeat the last stages of a step in the next
        self._batch = Batch(self._model, n_envs, n_threads, persistent=True)
        self._n_substeps = round(robot.dt / self._model.opt.timestep)
        self._ctrl = self._batch.bind("ctrl")
        self._warnings = self._batch.warning[:, :, 1]  # how often each was raised, (n_envs, n_warnings)
        self._task = robot.dm_task
        self._physics = batch_physics(robot.physics, self._batch)
        self._module = import_module(f"sb3_cesd.envs.robots.{robot.domain}")
        self._observe = self._make_observations()
        # Bind all fields that they read: MuJoCo fills a field from the first step after it was bound
        self._observe(), self._rewards(), self.positions()

    def start(self, idx: int, random_state: np.random.RandomState) -> np.ndarray:
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

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """
        Step all simulations.

        :param actions: actions in the units of the actuators, shape ``(n_envs, action_dim)``
        :return: the observations, float32, and rewards, shape ``(n_envs,)``
        :raises dm_control.rl.control.PhysicsError: if a simulation has diverged
        """
        self._ctrl[:] = actions
        warnings = self._warnings.copy()
        # As in dm_control, positions and velocities are those of the new state, forces those of the last substep
        self._batch.step(nstep=self._n_substeps, stage=mujoco.mjtStage.mjSTAGE_VEL.value)
        if (self._warnings > warnings).any():
            self._complain(self._warnings > warnings)
        return self._observe(), self._rewards()

    def positions(self) -> np.ndarray:
        """
        Return the positions of the robots after the last step.

        :return: positions [m], shape ``(n_envs, 3)``
        """
        return np.asarray(self._module.position(self._physics)).T

    def show(self, idx: int) -> None:
        """
        Put the robot into the state of a simulation.

        :param idx: the simulation
        """
        mujoco.mj_setState(self._model, self._data, self._batch.state[idx], STATE)
        mujoco.mj_forward(self._model, self._data)

    def _rewards(self) -> np.ndarray:
        """
        Compute the rewards by the formula of the task.

        :return: rewards, shape ``(n_envs,)``
        """
        return np.asarray(self._task.get_reward(self._physics))

    def _make_observations(self) -> Callable[[], np.ndarray]:
        """
        Choose how to compute the observations.

        :return: a function that returns them, shape ``(n_envs, obs_dim)``, float32
        """
        if self._robot.domain == "jaco":
            return import_module("sb3_cesd.envs.robots.batched_jaco").JacoObservations(self._model, self._batch)
        return FlatObservations(self._task, self._physics, (self._batch.nsim, self._module.OBS_DIM))

    def _complain(self, is_new: np.ndarray) -> None:
        """
        Raise an error that names the warnings of a simulation.

        :param is_new: whether a warning is new in a simulation, shape ``(n_envs, n_warnings)``
        :raises dm_control.rl.control.PhysicsError: always
        """
        idx = int(np.argmax(is_new.any(axis=1)))
        names = [name for name, new in zip(mujoco.mjtWarning.__members__, is_new[idx], strict=False) if new]
        raise PhysicsError(f"Physics state is invalid in environment {idx}. Warning(s) raised: {', '.join(names)}")
