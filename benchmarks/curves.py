"""
Draw the curves of a training run of RL Zoo: TensorBoard logs, and evaluations of the skills.

    python -m rl_zoo3.train --algo cesd --env Quadruped-v0 --conf-file cesd_laptop.yml -n 100000 --eval-freq 10000 \
        --eval-episodes 8 --seed 0 --num-threads 1 -tb tb --log-interval 5
    python benchmarks/curves.py logs/cesd/Quadruped-v0_1 tb/Quadruped-v0/CeSD_1 --output benchmarks/results/quadruped_laptop
"""

import argparse
import csv
import io
import json
import platform
import textwrap
from pathlib import Path

import numpy as np
import torch as th
from arguments import existing, output_folder
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from tensorboard.backend.event_processing.event_accumulator import EventAccumulator

import sb3_cesd
from sb3_cesd.common.files import save_figure_whole, write_text_whole

PANELS = {
    "losses": ["train/critic_loss", "train/actor_loss", "train/encoder_loss", "train/prototype_loss"],
    "intrinsic reward": ["intrinsic/entropy", "intrinsic/constraint"],
    "skill and cluster agree": ["intrinsic/agreement"],
    "empty clusters": ["intrinsic/empty_clusters"],
    "return of the primal task (training)": ["rollout/ep_rew_mean"],
}
Curve = tuple[list[int], list[float]]


def read_tensorboard(folder: Path) -> dict[str, Curve]:
    """
    Read the curves of ``PANELS``.

    :param folder: a folder with TensorBoard events
    :return: steps and values by name
    """
    events = EventAccumulator(str(folder), size_guidance={"scalars": 0}).Reload()  # 0 for all of them
    names = [name for names in PANELS.values() for name in names]
    scalars = {name: events.Scalars(name) for name in names if name in events.Tags()["scalars"]}
    return {name: ([event.step for event in curve], [event.value for event in curve]) for name, curve in scalars.items()}


def draw(curves: dict[str, Curve], evaluations: dict[str, np.ndarray], title: str) -> Figure:
    """
    Draw all curves of a training.

    :param curves: as returned by :func:`read_tensorboard`
    :param evaluations: RL Zoo's evaluations.npz
    :param title: title of the figure
    :return: one panel per group of curves
    """
    figure = Figure(figsize=(12, 6.5), layout="constrained")
    FigureCanvasAgg(figure)
    figure.suptitle(textwrap.fill(title, 130), fontsize=10)
    panels = figure.subplots(2, 3).ravel()
    for axes, (label, names) in zip(panels, PANELS.items(), strict=False):
        for name in names:
            if name in curves:
                axes.plot(*curves[name], label=name.split("/")[1])
        axes.set(title=label, xlabel="time step")
        if len(names) > 1:
            axes.legend(fontsize=8)
    returns = evaluations["results"]  # (n_evaluations, n_episodes)
    panels[-1].plot(evaluations["timesteps"], returns, ".", color="tab:blue", alpha=0.5)
    panels[-1].plot(evaluations["timesteps"], returns.mean(axis=1), color="black", label="mean")
    panels[-1].set(title="evaluations, one dot per episode", xlabel="time step")
    return figure


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("run", type=existing, help="folder of the run, with evaluations.npz")
    parser.add_argument("tensorboard", type=existing, help="folder of its TensorBoard events")
    parser.add_argument("--output", type=output_folder, required=True, help="folder for curves.png and curves.csv")
    parser.add_argument("--json", type=Path, help="write the last values to this file")
    args = parser.parse_args()

    if not args.tensorboard.is_dir() or not any(args.tensorboard.glob("events*")):
        parser.error(f"{args.tensorboard} has no events of TensorBoard: pass the folder that -tb created")
    commands = sorted(args.run.glob("*/command.txt"))
    if not commands or not (args.run / "evaluations.npz").is_file():
        parser.error(f"{args.run} has no evaluations.npz and command.txt: pass the folder of a run of RL Zoo")
    curves = read_tensorboard(args.tensorboard)
    evaluations = dict(np.load(args.run / "evaluations.npz"))
    command = commands[0].read_text().split(" -m ", 1)[-1]
    args.output.mkdir(parents=True, exist_ok=True)
    save_figure_whole(draw(curves, evaluations, f"python -m {command}"), args.output / "curves.png", dpi=100)
    lines = io.StringIO()
    writer = csv.writer(lines, lineterminator="\n")
    writer.writerow(["name", "time_step", "value"])
    for name, (steps, values) in curves.items():
        writer.writerows((name, step, f"{value:.6g}") for step, value in zip(steps, values, strict=True))
    for step, returns in zip(evaluations["timesteps"], evaluations["results"], strict=True):
        writer.writerows((f"eval/return_{episode}", step, f"{value:.6g}") for episode, value in enumerate(returns))
    write_text_whole(args.output / "curves.csv", lines.getvalue())
    if args.json is not None:
        figures = {
            "command": f"python -m {command}",
            "versions": {"python": platform.python_version(), "torch": th.__version__, "sb3_cesd": sb3_cesd.__version__},
            "last": {name: values[-1] for name, (_, values) in curves.items()},
            "last_evaluation_mean": float(evaluations["results"][-1].mean()),
        }
        write_text_whole(args.json, json.dumps(figures, indent=2) + "\n")


if __name__ == "__main__":
    main()
