"""Batches of the robots of :mod:`sb3_cesd.envs.robots.locomotion`."""

import logging
from typing import Any

import mujoco
import numpy as np

from sb3_cesd.envs.robots.locomotion import LocomotionEnv
from sb3_cesd.envs.robots.simulations import STATE, SimulationBatch
from sb3_cesd.envs.robots.simulations import named_warnings as named_warnings

#: The torso, whose velocity is rewarded
TORSO = 1

# MuJoCo's default handler writes a file to the working directory; warnings of a simulation are in ``infos``
if mujoco.get_mju_user_warning() is None:
    mujoco.set_mju_user_warning(logging.getLogger(__name__).info)


def get_state(model: Any, data: Any) -> tuple[np.ndarray, np.ndarray]:
    """
    Read the state from which a simulation can continue.

    :param model: MuJoCo's model
    :param data: MuJoCo's data
    :return: the state, shape ``(n,)``; and the position of the torso before the last substep, from which the ant's velocity is
        computed, shape ``(3,)``
    """
    state = np.empty(mujoco.mj_stateSize(model, STATE))
    mujoco.mj_getState(model, data, state, STATE)
    return state, data.xpos[TORSO].copy()


def set_state(model: Any, data: Any, state: tuple[np.ndarray, np.ndarray]) -> None:
    """
    Set the state of a simulation.

    :param model: MuJoCo's model
    :param data: MuJoCo's data
    :param state: state that :func:`get_state` returned
    """
    mujoco.mj_setState(model, data, state[0], STATE)
    mujoco.mj_forward(model, data)
    # Restore the warm start of the solver, which mj_forward has changed
    mujoco.mj_setState(model, data, state[0], STATE)
    data.xpos[TORSO] = state[1]


class LocomotionBatch(SimulationBatch):
    """
    Simulations of many of Gymnasium's robots.

    :param robot: creates initial states; :meth:`start` and :meth:`show` overwrite its state
    :param n_envs: number of simulations
    :param n_threads: number of threads, including the calling one
    """

    # As in Gymnasium, positions of bodies are those before the last substep
    stage = mujoco.mjtStage.mjSTAGE_NONE

    def __init__(self, robot: LocomotionEnv, n_envs: int, n_threads: int) -> None:
        # Reopen a closed robot, which creates its model anew, without drawing from its generator
        robot.reset_as(robot.make_random_state())
        super().__init__(robot, robot.model, robot.data, robot.dt, n_envs, n_threads)
        self._locomotion = robot
        self._qpos, self._qvel, self._xpos = (self._batch.bind(name) for name in ("qpos", "qvel", "xpos"))
        #: Where the velocity is measured from: x of the ant's torso (one substep late), x of the half-cheetah
        self._x = np.zeros(n_envs)
        self._x_before = np.zeros(n_envs)

    def start(self, idx: int, random_state: Any) -> np.ndarray:
        observation = super().start(idx, random_state)
        self._x[idx] = self._data.xpos[TORSO, 0] if self._locomotion.robot == "ant" else self._data.qpos[0]
        return observation

    def step(self, actions: np.ndarray) -> tuple[np.ndarray, np.ndarray, dict[int, dict[str, int]]]:
        self._x_before[:] = self._x
        return super().step(actions)

    def positions(self) -> np.ndarray:
        return self._locomotion.positions_of(self._qpos)

    def infos(self) -> list[dict[str, Any]]:
        return self._locomotion.infos_of(self._qpos)

    def observe(self) -> np.ndarray:
        return self._locomotion.observation_of(np.concatenate([self._qpos, self._qvel], axis=1))

    def rewards(self) -> np.ndarray:
        is_ant = self._locomotion.robot == "ant"
        self._x[:] = self._xpos[:, TORSO, 0] if is_ant else self._qpos[:, 0]
        velocities = (self._x - self._x_before) / self._locomotion.dt
        costs = np.array([np.square(action).sum() for action in self._ctrl])
        if not is_ant:
            return velocities - 0.1 * costs
        heights = self._qpos[:, 2]
        is_finite = np.isfinite(self._qpos).all(axis=1) & np.isfinite(self._qvel).all(axis=1)
        is_healthy = is_finite & (heights >= 0.2) & (heights <= 1.0)
        return velocities + is_healthy - 0.5 * costs

    def get_state(self) -> Any:
        return super().get_state(), self._x.copy()

    def set_state(self, state: Any) -> None:
        simulations, self._x[:] = state
        super().set_state(simulations)
