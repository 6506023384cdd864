"""
Measure the peak memory of an update, and the memory of a replay buffer of a million transitions.

    python benchmarks/speed_memory.py quadruped published routed cpu     # one form, in its own process; prints bytes
"""

import argparse
import json
import resource
import subprocess
import sys
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import torch as th
from arguments import device_name
from gymnasium import spaces
from random_walk import ROBOTS
from speed_update import FORMS, REFERENCE, make_model, update_of
from stable_baselines3.common.buffers import NStepReplayBuffer
from timing import SIZES, Figure

from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.observations import skill_observation_space
from sb3_cesd.common.skills import DiscreteSkills

GIGABYTE = 1e9


def peak_of_updates(robot: str, size: str, form: str, device: str) -> dict[str, float]:
    """
    Measure the memory of a model and its update.

    :param robot: one of ``ROBOTS``
    :param size: one of ``SIZES``
    :param form: one of ``FORMS``
    :param device: device of the model
    :return: peak memory of this process (or of the GPU) before the model is created and after some updates [bytes]
    """

    def peak() -> float:
        if device.startswith("cuda"):
            return float(th.cuda.max_memory_allocated(device))
        if Path("/proc/self/status").is_file():
            # Unlike that of getrusage, it does not start with the peak of the parent
            (line,) = [line for line in Path("/proc/self/status").read_text().splitlines() if line.startswith("VmHWM:")]
            return float(line.split()[1]) * 1024
        return float(resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)  # macOS

    before = peak()
    update = update_of(make_model(FORMS[form], robot, device, **SIZES[size]))
    for _ in range(5):
        update()
    return {"before": before, "after": peak()}


def measure_updates(robot: str, sizes: Iterable[str], device: str) -> list[Figure]:
    """
    Measure the memory of each form in its own process.

    :param robot: one of ``ROBOTS``
    :param sizes: some of ``SIZES``
    :param device: device of the models
    :return: peak memory of model and update in each form
    """
    figures: list[Figure] = []
    for size in sizes:
        peaks = {}
        for form in ("routed", "dense", "released", "default, constrained"):
            command = [sys.executable, __file__, robot, size, form, device]
            result = json.loads(subprocess.run(command, check=True, capture_output=True, text=True).stdout)
            peaks[form] = result["after"] - result["before"]
        setting = f"{robot}, {size}: model and update"
        figures += [_figure(setting, form, peak, peaks[REFERENCE], REFERENCE) for form, peak in peaks.items()]
    return figures


def measure_buffers(robot: str, n_transitions: int = 1_000_000, n_skills: int = 16) -> list[Figure]:
    """
    Compare the memory of our replay buffer with that of SB3's.

    :param robot: one of ``ROBOTS``
    :param n_transitions: transitions in the buffer
    :param n_skills: number of skills
    :return: memory of our replay buffer, and of SB3's with one-hot skills
    """
    obs_dim, action_dim = ROBOTS[robot]
    skills = DiscreteSkills(n_skills)
    observations = skill_observation_space(spaces.Box(-np.inf, np.inf, (obs_dim,), np.float32), skills)
    flat_observations = spaces.flatten_space(observations)
    actions = spaces.Box(-1, 1, (action_dim,), np.float32)
    ours = SkillReplayBuffer(n_transitions, observations, actions, "cpu", skill_space=skills)
    theirs = NStepReplayBuffer(n_transitions, flat_observations, actions, "cpu", n_steps=3)
    arrays = (theirs.observations, theirs.next_observations, theirs.actions, theirs.rewards, theirs.dones, theirs.timeouts)
    reference, n_bytes = "SB3's NStepReplayBuffer with one-hots", sum(array.nbytes for array in arrays)
    sizes = {"SkillReplayBuffer": ours.nbytes, reference: n_bytes}
    return [_figure(f"{robot}, {n_transitions} transitions", name, size, n_bytes, reference) for name, size in sizes.items()]


def _figure(setting: str, variant: str, n_bytes: float, of_reference: float, reference: str) -> Figure:
    return {
        "part": "memory", "setting": setting, "threads": 1, "variant": variant, "value": n_bytes / GIGABYTE,
        "unit": "GB", "ratio": of_reference / n_bytes, "reference": reference,
    }  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("robot", choices=ROBOTS)
    parser.add_argument("size", choices=SIZES)
    parser.add_argument("form", choices=FORMS)
    parser.add_argument("device", type=device_name)
    args = parser.parse_args()
    print(json.dumps(peak_of_updates(args.robot, args.size, args.form, args.device)))


if __name__ == "__main__":
    main()
