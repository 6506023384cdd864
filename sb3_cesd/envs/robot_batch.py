from importlib import import_module

import mujoco
import numpy as np
from dm_control.rl.control import PhysicsError
from mujoco.batch import Batch

from sb3_cesd.envs.robot import RobotEnv

#: All that a simulation goes on from, with the start of the solver
STATE = mujoco.mjtState.mjSTATE_INTEGRATION


class RobotBatch:
    """
    The simulations of many robots of one task, stepped by threads. A step is to the last bit that of dm_control.

    :param robot: makes initial states; it is used up by :meth:`start` and :meth:`show`
    :param n_envs: number of simulations
    :param n_threads: number of threads, with the one that calls
    """

    def __init__(self, robot: RobotEnv, n_envs: int, n_threads: int) -> None:
        self._robot = robot
        robot.reset()  # jaco's model is compiled by the first
        self._model, self._data = robot.physics.model.ptr, robot.physics.data.ptr
        # Of a simulation that keeps its data, the last stages of a step need not be computed again in the next
        self._batch = Batch(self._model, n_envs, n_threads, persistent=True)
        self._n_substeps = round(robot.dt / self._model.opt.timestep)
        self._ctrl = self._batch.bind("ctrl")
        self._warnings = self._batch.warning[:, :, 1]  # how often each was raised, (n_envs, n_warnings)
        self._reader = import_module(f"sb3_cesd.envs.{robot.domain}_batch").Reader(robot, self._batch)

    def start(self, idx: int, random_state: np.random.RandomState) -> np.ndarray:
        """
        Start an episode of a simulation.

        :param idx: the simulation
        :param random_state: what its initial state is drawn from
        :return: the first observation, float32
        """
        observation = self._robot.reset_as(random_state)
        self._batch.warning[idx] = 0
        mujoco.mj_getState(self._model, self._data, self._batch.state[idx], STATE)
        return observation

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """
        :param actions: in the units of the actuators, shape ``(n_envs, action_dim)``
        :return: the observations, float32, and rewards, shape ``(n_envs,)``
        :raises dm_control.rl.control.PhysicsError: if a simulation has diverged
        """
        self._ctrl[:] = actions
        warnings = self._warnings.copy()
        # As dm_control does: positions and velocities are those of the new state, forces those of the last substep
        self._batch.step(nstep=self._n_substeps, stage=mujoco.mjtStage.mjSTAGE_VEL.value)
        if (self._warnings > warnings).any():
            self._complain(self._warnings > warnings)
        return self._reader.observations(), self._reader.rewards()

    def positions(self) -> np.ndarray:
        """
        :return: as of the last step [m], shape ``(n_envs, 3)``
        """
        return self._reader.positions()

    def show(self, idx: int) -> None:
        """
        Put the robot into the state of a simulation.

        :param idx: the simulation
        """
        mujoco.mj_setState(self._model, self._data, self._batch.state[idx], STATE)
        mujoco.mj_forward(self._model, self._data)

    def _complain(self, is_new: np.ndarray) -> None:
        """
        :param is_new: shape ``(n_envs, n_warnings)``
        """
        idx = int(np.argmax(is_new.any(axis=1)))
        names = [name for name, new in zip(mujoco.mjtWarning.__members__, is_new[idx], strict=False) if new]
        raise PhysicsError(f"Physics state is invalid in environment {idx}. Warning(s) raised: {', '.join(names)}")
