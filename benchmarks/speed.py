"""
Measure the speed of updates, environments and whole trainings, scaling, memory, and the updates of all methods.

    python benchmarks/speed.py                                        # everything, about 30 minutes on 2 quiet cores
    python benchmarks/speed.py --parts update --sizes published --threads 1 --repeats 9
    python benchmarks/speed.py --parts methods --sizes small --repeats 30            # what each method adds to an update
    python benchmarks/speed.py --parts update breakdown scaling memory training --device cuda

Compared variants take turns in one process, so that a slow moment of the machine affects all alike; medians are reported.
Writes ``speed.csv``, ``speed.md`` and ``speed_DEVICE.png`` to ``results/speed``; parts that are not measured now keep their
figures. Methods are measured on the CPU, and written to ``methods.md``.
"""

import argparse
import os
import sys
from pathlib import Path

import pandas as pd
import speed_envs
import speed_memory
import speed_methods
import speed_training
import speed_update
import torch as th
from arguments import at_least, device_name, make_folder, output_folder
from random_walk import ROBOTS
from runs import processor, versions, write_rows
from speed_plot import plot
from timing import SIZES, Figure

from sb3_cesd import registry
from sb3_cesd.common.files import write_text_whole
from sb3_cesd.envs.robots.vec_env import usable_cores

#: Parts with figures; the comparison of methods has its own page
FIGURES = ("update", "breakdown", "envs", "training", "scaling", "memory")
PARTS = (*FIGURES, "methods")
TITLES = {
    "update": "A whole update",
    "breakdown": "Where the time of an update goes",
    "envs": "Steps of environments",
    "training": "Training from end to end",
    "scaling": "Cost against number of skills and batch size",
    "memory": "Memory",
}


def measure(part: str, args: argparse.Namespace) -> list[Figure]:
    """
    Measure one part.

    :param part: one of ``FIGURES``
    :param args: arguments of the command line
    :return: its figures
    """
    if part == "update":
        return speed_update.measure_forms(args.robot, args.sizes, args.threads, args.repeats, args.device)
    if part == "breakdown":
        return speed_update.measure_breakdown(args.robot, args.sizes, args.repeats, args.device)
    if part == "envs":
        return [
            figure
            for env_id in speed_envs.HORIZONS
            for figure in speed_envs.measure(env_id, args.n_envs, args.threads, args.repeats, args.env_steps)
        ]
    if part == "training":
        return [
            figure
            for size in args.training_sizes
            for threads in args.threads
            for figure in speed_training.measure("Walker-v0", size, threads, args.repeats, args.training_steps, args.device)
        ]
    if part == "scaling":
        return speed_update.measure_scaling(args.robot, args.n_skills, args.batch_sizes, args.width, args.repeats, args.device)
    return speed_memory.measure_updates(args.robot, args.sizes, args.device) + speed_memory.measure_buffers(args.robot)


def number(value: float) -> str:
    """
    Format a number with three digits.

    :param value: any number
    :return: its first three digits
    """
    return f"{value:.0f}" if value >= 100 else f"{value:.3g}"


def markdown(figures: pd.DataFrame) -> str:
    """
    Tabulate figures.

    :param figures: all figures
    :return: a table per part
    """
    lines = []
    for part in FIGURES:
        for device, rows in figures[figures.part == part].groupby("device"):
            lines += [f"## {TITLES[part]}, {device}", "", f"{rows.machine.iloc[0]}. `{rows.command.iloc[0]}`", ""]
            lines += ["| | threads | | | compared |", "|---|---|---|---|---|"]
            for row in rows.itertuples():
                ratio = f"{row.ratio:.2f} times {row.reference}" if row.variant != row.reference else ""
                lines.append(f"| {row.setting} | {row.threads} | {row.variant} | {number(row.value)} {row.unit} | {ratio} |")
            lines.append("")
    return "\n".join(lines)


def machine(device: str) -> str:
    """
    Describe the machine.

    :param device: device of the models
    :return: the machine, in words
    """
    gpu = f", {th.cuda.get_device_name(device)}" if device.startswith("cuda") else ""
    return f"{processor()}, {usable_cores()} cores, load {os.getloadavg()[0]:.1f} at the start{gpu}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--methods", nargs="+", choices=list(registry.METHODS), default=list(registry.METHODS))
    parser.add_argument("--robot", choices=ROBOTS, default="quadruped")
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=list(SIZES))
    parser.add_argument("--training-sizes", nargs="+", choices=speed_training.SIZES, default=["laptop"])
    parser.add_argument("--threads", nargs="+", type=at_least(1), default=sorted({1, usable_cores()}))
    parser.add_argument("--repeats", type=at_least(1), default=7, help="timed turns of each variant")
    parser.add_argument("--device", type=device_name, default="cpu", help="device of the models: cpu or cuda")
    parser.add_argument("--n-envs", nargs="+", type=at_least(1), default=[8, 32], help="numbers of environments in a batch")
    parser.add_argument("--env-steps", type=at_least(1), default=2000, help="steps per turn, of all environments together")
    parser.add_argument("--training-steps", type=at_least(1), default=400, help="environment steps per turn of training")
    parser.add_argument("--n-skills", nargs="+", type=at_least(2), default=[4, 16, 64], help="numbers of skills for scaling")
    parser.add_argument("--batch-sizes", nargs="+", type=at_least(2), default=[256, 1024, 4096], help="sizes for scaling")
    parser.add_argument("--width", type=at_least(1), default=1024, help="width of the networks for scaling")
    parser.add_argument("--output", type=output_folder, default=Path("results/speed"), help="folder of the results")
    args = parser.parse_args()
    make_folder(parser, args.output)
    path = args.output / "speed.csv"
    command = " ".join(["python", "benchmarks/speed.py", *sys.argv[1:]])
    if "methods" in args.parts:
        title = f"# Updates of all methods\n\n{machine('cpu')}. `{command}`. Versions: {versions()}\n\n"
        text = title + speed_methods.report(args.methods, args.robot, args.sizes, args.repeats)
        write_text_whole(args.output / "methods.md", text)
        print(text, flush=True)
    parts = [part for part in args.parts if part in FIGURES]
    common = {"device": args.device, "command": command, "versions": str(versions())}
    for part in parts:
        started = machine(args.device)
        rows = pd.DataFrame(measure(part, args)).assign(machine=started, **common)
        if path.is_file():
            others = pd.read_csv(path)
            rows = pd.concat([others[(others.part != part) | (others.device != args.device)], rows], ignore_index=True)
        write_rows(path, rows)
        print(markdown(rows[rows.part == part]), flush=True)
    if not parts:
        return
    figures = pd.read_csv(path)
    write_text_whole(args.output / "speed.md", "# Speed\n\n" + markdown(figures))
    plot(figures[figures.device == args.device], TITLES, args.output / f"speed_{args.device}.png")


if __name__ == "__main__":
    main()
