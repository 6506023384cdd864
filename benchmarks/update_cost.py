"""
Time of one whole update (sampling, encoder, clusters, rewards, critic, actor, prototypes, Polyak), routed against dense.

    python benchmarks/update_cost.py --json benchmarks/results/update_cost.json

All forms take turns in one process, so that a slow moment of the machine hits them alike; medians and their ratio are
reported.
"""

import argparse
import json
import platform
import statistics
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
import stable_baselines3
import torch as th
import yaml
from dense_reference import DenseCeSD, ReleasedCeSD
from gymnasium import spaces

import sb3_cesd
from sb3_cesd import CeSD, zoo

# Observation and action size of the robots
ROBOTS = {"walker": (24, 6), "quadruped": (78, 12)}
SIZES = {
    "published": {"n_skills": 16, "batch_size": 1024, "width": 1024},
    "small": {"n_skills": 8, "batch_size": 256, "width": 256},
}
FORMS: dict[str, type[CeSD]] = {"routed": CeSD, "dense": DenseCeSD, "released": ReleasedCeSD}


class FixedSpaces(gym.Env):
    """
    An environment that is never stepped: it only has the sizes of a robot.

    :param obs_dim: size of the observation
    :param action_dim: size of the action
    """

    def __init__(self, obs_dim: int, action_dim: int) -> None:
        self.observation_space = spaces.Box(-np.inf, np.inf, (obs_dim,), np.float32)
        self.action_space = spaces.Box(-1, 1, (action_dim,), np.float32)


def released_method() -> dict[str, Any]:
    """
    :return: the arguments of the constructor that make it the released code's method, the only one that has a dense form
    """
    entry = yaml.safe_load((zoo.hyperparams_folder() / "cesd_released.yml").read_text())["default"]
    return {f"{name}_kwargs": entry[f"{name}_kwargs"] for name in ("prototype", "entropy", "constraint", "relabel")}


def make_model(form: str, robot: str, size: str, device: str) -> CeSD:
    """
    :param form: one of ``FORMS``
    :param robot: one of ``ROBOTS``
    :param size: one of ``SIZES``
    :param device: device of the model
    :return: a model with a filled replay buffer
    """
    setting = SIZES[size]
    width, n_skills = setting["width"], setting["n_skills"]
    model = FORMS[form](
        "MlpPolicy",
        FixedSpaces(*ROBOTS[robot]),
        n_skills=n_skills,
        batch_size=setting["batch_size"],
        buffer_size=20_000,
        policy_kwargs={
            "net_arch": {"pi": [width, width], "qf": [width // 2, width]},
            "optimizer_kwargs": {} if form == "released" else None,
            "shared_value": False,
        },
        **released_method(),
        encoder_kwargs={"net_arch": [width, width]},
        seed=0,
        device=device,
    )
    model.set_logger(stable_baselines3.common.logger.configure(format_strings=[]))
    rng = np.random.default_rng(0)
    buffer = model.replay_buffer
    assert buffer is not None
    steps = rng.normal(size=buffer.observations.shape)
    # A random walk that stays near the origin: the next observation is close to the one before
    buffer.observations[0] = steps[0]
    for row in range(1, len(steps)):
        buffer.observations[row] = 0.995 * buffer.observations[row - 1] + 0.1 * steps[row]
    buffer.actions[:] = rng.uniform(-1, 1, size=buffer.actions.shape)
    buffer.skills[:] = rng.integers(n_skills, size=buffer.skills.shape)
    buffer.full = True
    return model


def interleaved_medians(functions: dict[str, Callable[[], None]], repeats: int) -> dict[str, float]:
    """
    :param functions: what to time, by name
    :param repeats: timed calls of each, after one that is not counted
    :return: median seconds of a call, by name
    """
    seconds: dict[str, list[float]] = {name: [] for name in functions}
    for repeat in range(repeats + 1):
        for name, function in functions.items():
            start = time.perf_counter()
            function()
            if repeat > 0:
                seconds[name].append(time.perf_counter() - start)
    return {name: statistics.median(values) for name, values in seconds.items()}


def update_of(model: CeSD) -> Callable[[], None]:
    """
    :param model: a model with a filled replay buffer
    :return: a function that does one update and waits for it
    """

    def update() -> None:
        model.train(gradient_steps=1, batch_size=model.batch_size)
        if model.device.type == "cuda":
            th.cuda.synchronize()

    return update


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--robot", choices=ROBOTS, default="quadruped")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--threads", nargs="+", type=int, default=[1, 2])
    parser.add_argument("--repeats", type=int, default=7)
    parser.add_argument("--device", default="cpu")
    parser.add_argument("--json", type=Path, help="write the figures to this file")
    args = parser.parse_args()

    figures: dict[str, object] = {
        "command": f"python benchmarks/update_cost.py --robot {args.robot} --repeats {args.repeats} --device {args.device}",
        "machine": f"{platform.machine()}, {args.device}",
        "versions": {"python": platform.python_version(), "torch": th.__version__, "sb3_cesd": sb3_cesd.__version__},
    }
    print(f"{args.robot}, median of {args.repeats} updates [ms]")
    print(
        f"{'size':>10} {'threads':>8} {'routed':>9} {'dense':>9} {'released':>9} {'dense/routed':>13} {'released/routed':>16}"
    )
    for size in args.sizes:
        for threads in args.threads:
            th.set_num_threads(threads)
            models = {form: make_model(form, args.robot, size, args.device) for form in FORMS}
            medians = interleaved_medians({form: update_of(model) for form, model in models.items()}, args.repeats)
            ratio, released_ratio = (medians[form] / medians["routed"] for form in ("dense", "released"))
            milliseconds = [medians[form] * 1000 for form in FORMS]
            print(f"{size:>10} {threads:>8} " + " ".join(f"{ms:9.1f}" for ms in milliseconds), end="")
            print(f" {ratio:12.2f}x {released_ratio:15.2f}x", flush=True)
            suffix = f"{size}_{threads}_threads"
            figures[f"ratio_{suffix}"] = ratio
            figures[f"ratio_released_{suffix}"] = released_ratio
            figures[f"milliseconds_{suffix}"] = dict(zip(FORMS, milliseconds, strict=True))
    if args.json is not None:
        args.json.parent.mkdir(parents=True, exist_ok=True)
        args.json.write_text(json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
