"""
Steps per second of batched environments, compared with DummyVecEnv with 8 single ones (dm_control through Shimmy).

The start of episodes is timed separately, and included according to its frequency. CPU time measures the cost of steps even if
other processes use the same cores.
"""

import statistics
import time
from typing import NamedTuple

import numpy as np
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.vec_env import VecEnv
from timing import Figure

from sb3_cesd import make_batched

HORIZONS = {"Walker-v0": 1000, "Quadruped-v0": 1000, "Jaco-v0": 250}
N_SINGLE = 8


class Turn(NamedTuple):
    """
    Times of one turn.

    :param wall: wall-clock time of a step of one environment [s]
    :param cpu: CPU time on all cores of a step of one environment [s]
    :param start_wall: wall-clock time of the start of an episode of one environment [s]
    :param start_cpu: CPU time on all cores of the start of an episode of one environment [s]
    """

    wall: float
    cpu: float
    start_wall: float
    start_cpu: float


def take_turn(env: VecEnv, actions: np.ndarray) -> Turn:
    """
    Time the start of episodes and some steps.

    :param env: environments to step
    :param actions: actions of each step, shape ``(n_steps, n_envs, action_dim)``
    :return: the times
    """
    times = [(time.perf_counter(), time.process_time())]
    env.reset()
    times.append((time.perf_counter(), time.process_time()))
    for action in actions:
        env.step(action)
    times.append((time.perf_counter(), time.process_time()))
    start, stepping = np.diff(times, axis=0) / env.num_envs
    return Turn(*(stepping / len(actions)).tolist(), *start.tolist())


def measure(env_id: str, sizes: list[int], threads: list[int], repeats: int, n_steps: int) -> list[Figure]:
    """
    Measure the speed of single and batched environments.

    :param env_id: id of an environment
    :param sizes: numbers of environments in a batch
    :param threads: numbers of threads
    :param repeats: timed turns
    :param n_steps: steps per turn, of all environments together
    :return: steps per second, CPU time of a step, and of the start of an episode
    """
    envs: dict[tuple[str, int], VecEnv] = {("single", 1): make_vec_env(env_id, N_SINGLE, seed=0)}
    for n_envs in sizes:
        for n_threads in threads:
            if n_threads <= n_envs:
                envs[f"batch of {n_envs}", n_threads] = make_batched(env_id, n_envs, 0, n_threads)
    rng = np.random.default_rng(0)
    actions = {}
    for name, env in envs.items():
        # No episode ends within a turn
        length = min(HORIZONS[env_id] - 1, max(1, n_steps // env.num_envs))
        actions[name] = rng.uniform(-1, 1, (length, env.num_envs, get_action_dim(env.action_space))).astype(np.float32)
    turns: dict[tuple[str, int], list[Turn]] = {name: [] for name in envs}
    for repeat in range(repeats + 1):
        for name, env in envs.items():
            turn = take_turn(env, actions[name])
            if repeat > 0:
                turns[name].append(turn)
    measured: dict[tuple[str, int], dict[str, float]] = {}
    for name, env in envs.items():
        medians = Turn(*(statistics.median(values) for values in zip(*turns[name], strict=True)))
        measured[name] = {
            "steps/s": 1 / (medians.wall + medians.start_wall / HORIZONS[env_id]),
            "us of CPU a step": (medians.cpu + medians.start_cpu / HORIZONS[env_id]) * 1e6,
            "ms of CPU a start": medians.start_cpu * 1e3,
        }
        env.close()
    figures = []
    for (variant, n_threads), values in measured.items():
        for unit, value in values.items():
            ratio = value / measured["single", 1][unit]
            figures.append(
                {
                    "part": "envs", "setting": env_id, "threads": n_threads, "variant": variant, "value": value,
                    "unit": unit, "ratio": ratio if unit == "steps/s" else 1 / ratio, "reference": "single",
                }
            )  # fmt: skip
    return figures
