"""
Training steps per second from end to end: CeSD against SB3's TD3 and sb3_contrib's TQC, with equal
networks, batches and updates for a step.

    python benchmarks/training_speed.py --json benchmarks/results/training_speed.json

All take turns, so that a slow moment of the machine hits them alike; medians are reported.
"""

import argparse
import json
import os
import platform
import statistics
import time
from importlib.metadata import version
from pathlib import Path
from typing import Any

import torch as th
from entries import read_entry
from sb3_contrib import TQC
from stable_baselines3 import TD3
from stable_baselines3.common.off_policy_algorithm import OffPolicyAlgorithm

from sb3_cesd import CeSD

#: Share of training in which CeSD explores; then it is constrained, which costs more
EXPLORING = 0.8
WARM_UP = 300


def make_models(env_id: str, buffer_size: int) -> dict[str, OffPolicyAlgorithm]:
    """
    :param env_id: a pre-training id
    :param buffer_size: size of the replay buffers
    :return: models by name, with the sizes of ``cesd_laptop.yml``; CeSD once for each phase of its training
    """
    entry = read_entry("cesd_laptop", env_id, {"buffer_size": buffer_size, "learning_starts": WARM_UP})
    entry.pop("n_timesteps")
    models: dict[str, OffPolicyAlgorithm] = {}
    for name, start in {"CeSD, exploring": 1.0, "CeSD, constrained": 0.0}.items():
        models[name] = CeSD(env=env_id, seed=0, device="cpu", **{**entry, "constraint_kwargs": {"start": start}})
    shared: dict[str, Any] = {
        "batch_size": entry["batch_size"],
        "train_freq": entry["train_freq"],
        "gradient_steps": 1,
        "buffer_size": buffer_size,
        "learning_starts": WARM_UP,
        "n_steps": entry["n_steps"],
        "policy_kwargs": {"net_arch": entry["policy_kwargs"]["net_arch"]["pi"]},
        "seed": 0,
        "device": "cpu",
    }
    # Every update is one of actor and critic, as in CeSD
    models["TD3"] = TD3("MlpPolicy", env_id, policy_delay=1, **shared)
    models["TQC"] = TQC("MlpPolicy", env_id, **shared)
    return models


def seconds_of_turns(models: dict[str, OffPolicyAlgorithm], n_steps: int, repeats: int) -> dict[str, float]:
    """
    :param models: models by name, which go on learning
    :param n_steps: environment steps of a turn
    :param repeats: counted turns
    :return: median seconds of a step, by name
    """
    seconds: dict[str, list[float]] = {name: [] for name in models}
    for repeat in range(repeats + 1):
        for name, model in models.items():
            start = time.perf_counter()
            model.learn(n_steps + (WARM_UP if repeat == 0 else 0), reset_num_timesteps=False, log_interval=10**9)
            if repeat > 0:
                seconds[name].append((time.perf_counter() - start) / n_steps)
    return {name: statistics.median(values) for name, values in seconds.items()}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="Walker-v0", help="a pre-training id")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--steps", type=int, default=400, help="steps of a turn")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args()
    th.set_num_threads(args.threads)
    load = os.getloadavg()[0]
    models = make_models(args.env, WARM_UP + args.steps * (args.repeats + 1))
    seconds = seconds_of_turns(models, args.steps, args.repeats)
    seconds["CeSD"] = EXPLORING * seconds["CeSD, exploring"] + (1 - EXPLORING) * seconds["CeSD, constrained"]
    print(f"{args.env}, {args.threads} threads, median of {args.repeats} turns of {args.steps} steps")
    for name, value in seconds.items():
        print(f"{name:>18} {1 / value:7.0f} steps/s {value / seconds['TD3']:6.2f} times TD3's time")
    if args.json is not None:
        figures = {
            "command": f"python benchmarks/training_speed.py --env {args.env} --threads {args.threads} "
            f"--repeats {args.repeats} --steps {args.steps}",
            "machine": f"{platform.machine()}, load {load:.1f} at the start",
            "versions": {name: version(name) for name in ("torch", "stable_baselines3", "sb3_contrib", "sb3_cesd", "mujoco")},
            "steps_per_second": {name: 1 / value for name, value in seconds.items()},
            "times_td3": {name: value / seconds["TD3"] for name, value in seconds.items()},
        }
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
