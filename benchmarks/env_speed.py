"""
Steps per second of batched environments, against DummyVecEnv with 8 single ones (dm_control through Shimmy).

    python benchmarks/env_speed.py --json benchmarks/results/env_speed.json

All take turns, so that a slow moment of the machine hits them alike; medians are reported. The start of episodes is timed
by itself and counted in, as often as it comes. CPU time tells what the steps cost where other processes use the same cores.
"""

import argparse
import json
import os
import platform
import statistics
import time
from importlib.metadata import version
from pathlib import Path
from typing import NamedTuple

import numpy as np
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.preprocessing import get_action_dim
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd import make_batched
from sb3_cesd.envs.robot_vec_env import usable_cores

HORIZONS = {"Walker-v0": 1000, "Quadruped-v0": 1000, "Jaco-v0": 250}
N_SINGLE = 8


class Turn(NamedTuple):
    """
    What one turn took, in seconds.

    :param wall: for a step of one environment
    :param cpu: of all cores, for a step of one environment
    :param start_wall: for the start of an episode of one environment
    :param start_cpu: of all cores, for the start of an episode of one environment
    """

    wall: float
    cpu: float
    start_wall: float
    start_cpu: float


def take_turn(env: VecEnv, actions: np.ndarray) -> Turn:
    """
    :param env: environments to step
    :param actions: of each step, shape ``(n_steps, n_envs, action_dim)``
    :return: what it took
    """
    times = [(time.perf_counter(), time.process_time())]
    env.reset()
    times.append((time.perf_counter(), time.process_time()))
    for action in actions:
        env.step(action)
    times.append((time.perf_counter(), time.process_time()))
    start, stepping = np.diff(times, axis=0) / env.num_envs
    return Turn(*(stepping / len(actions)).tolist(), *start.tolist())


def measure(env_id: str, sizes: list[int], threads: list[int], repeats: int, n_steps: int) -> dict[str, dict[str, float]]:
    """
    :param env_id: id of an environment
    :param sizes: numbers of environments in a batch
    :param threads: numbers of threads
    :param repeats: counted turns
    :param n_steps: steps of a turn, of all environments together
    :return: figures by name of the form
    """
    envs: dict[str, VecEnv] = {"single": make_vec_env(env_id, N_SINGLE, seed=0)}
    for n_envs in sizes:
        for n_threads in threads:
            if n_threads <= n_envs:
                envs[f"batched_{n_envs}_envs_{n_threads}_threads"] = make_batched(env_id, n_envs, 0, n_threads)
    rng = np.random.default_rng(0)
    actions = {}
    for name, env in envs.items():
        # No episode ends within a turn
        length = min(HORIZONS[env_id] - 1, max(1, n_steps // env.num_envs))
        actions[name] = rng.uniform(-1, 1, (length, env.num_envs, get_action_dim(env.action_space))).astype(np.float32)
    turns: dict[str, list[Turn]] = {name: [] for name in envs}
    for repeat in range(repeats + 1):
        for name, env in envs.items():
            turn = take_turn(env, actions[name])
            if repeat > 0:
                turns[name].append(turn)
    figures = {}
    for name, env in envs.items():
        medians = Turn(*(statistics.median(values) for values in zip(*turns[name], strict=True)))
        figures[name] = {
            "steps_per_second": 1 / (medians.wall + medians.start_wall / HORIZONS[env_id]),
            "cpu_microseconds_per_step": (medians.cpu + medians.start_cpu / HORIZONS[env_id]) * 1e6,
            "cpu_milliseconds_per_start": medians.start_cpu * 1e3,
        }
        env.close()
    for each in figures.values():
        each["ratio"] = each["steps_per_second"] / figures["single"]["steps_per_second"]
        each["cpu_ratio"] = figures["single"]["cpu_microseconds_per_step"] / each["cpu_microseconds_per_step"]
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--envs", nargs="+", choices=HORIZONS, default=list(HORIZONS))
    parser.add_argument("--sizes", nargs="+", type=int, default=[8, 32], help="numbers of environments in a batch")
    parser.add_argument("--threads", nargs="+", type=int, default=sorted({1, usable_cores()}))
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--steps", type=int, default=2000, help="steps of a turn, of all environments together")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args()

    figures: dict[str, object] = {
        "command": "python benchmarks/env_speed.py",
        "machine": f"{platform.machine()}, {usable_cores()} cores, load {os.getloadavg()[0]:.1f} at the start",
        "versions": {
            "python": platform.python_version(),
            **{name: version(name) for name in ("mujoco", "dm_control", "numpy")},
        },
    }
    print(
        f"{'environment':>13} {'':>29} {'steps/s':>8} {'ratio':>6} {'CPU us/step':>12} {'CPU ratio':>10} {'CPU ms/start':>13}"
    )
    for env_id in args.envs:
        figures[env_id] = measured = measure(env_id, args.sizes, args.threads, args.repeats, args.steps)
        for name, each in measured.items():
            print(
                f"{env_id:>13} {name:>29} {each['steps_per_second']:8.0f} {each['ratio']:5.2f}x "
                f"{each['cpu_microseconds_per_step']:12.1f} {each['cpu_ratio']:9.2f}x "
                f"{each['cpu_milliseconds_per_start']:13.2f}",
                flush=True,
            )
    if args.json is not None:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
