"""
Train for hours with several environments and everything that a long run has: checkpoints and metrics of skills::

    python benchmarks/load.py --minutes 60 --output load

Writes ``load.csv`` (a line every half minute) and ``load.png``, and compares the first quarter with the last one: memory,
handles, threads, and steps per second of wall-clock and of processor time. The replay buffer is full within minutes, so any
later growth is a leak. Linux only, as it reads ``/proc/self``.
"""

import argparse
import csv
import os
import tempfile
import time
from pathlib import Path
from typing import Any, TextIO

import matplotlib

matplotlib.use("Agg")
import matplotlib.pyplot as plt
import pandas as pd
from arguments import at_least, make_folder, output_folder
from stable_baselines3.common.callbacks import BaseCallback, CallbackList
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import CeSD
from sb3_cesd.callbacks import SkillMetricsCallback
from sb3_cesd.checkpoints import ResumableCheckpoint
from sb3_cesd.common.checks import explain_unknown_env
from sb3_cesd.common.files import save_figure_whole

#: Time between two lines [s]
INTERVAL = 30.0


class Load(BaseCallback):
    """
    Logs the resources of the process, and ends training in time.

    :param file: file for the lines
    :param seconds: duration of training [s]
    """

    def __init__(self, file: TextIO, seconds: float) -> None:
        super().__init__()
        self.seconds = seconds
        self.file = file
        self.writer = csv.DictWriter(file, list(self.measure(0.0)))
        self.writer.writeheader()
        self.start = self.last = time.perf_counter()

    def measure(self, seconds: float) -> dict[str, Any]:
        """
        Measure the process.

        :param seconds: time since the start
        :return: one line
        """
        resident_pages = int(Path("/proc/self/statm").read_text().split()[1])
        return {
            "seconds": round(seconds, 1),
            "cpu_seconds": round(time.process_time(), 2),
            "steps": self.num_timesteps,
            "memory_mb": round(resident_pages * os.sysconf("SC_PAGE_SIZE") / 2**20, 1),
            "handles": len(os.listdir("/proc/self/fd")),
            "threads": len(os.listdir("/proc/self/task")),
        }

    def _on_step(self) -> bool:
        now = time.perf_counter()
        if now - self.last >= INTERVAL:
            self.last = now
            self.writer.writerow(self.measure(now - self.start))
            self.file.flush()
        return now - self.start < self.seconds


def compare(rows: pd.DataFrame) -> str:
    """
    Compare the first quarter with the last one.

    :param rows: the lines
    :return: a table in Markdown
    """
    quarter = len(rows) // 4
    speeds = {
        f"steps per {name}": rows.steps.diff() / rows[column].diff()
        for name, column in (("second", "seconds"), ("second of processor time", "cpu_seconds"))
    }
    columns = {"memory [MB]": rows.memory_mb, "handles": rows.handles, "threads": rows.threads, **speeds}
    lines = ["| median of | first quarter | last quarter | ratio |", "| --- | ---: | ---: | ---: |"]
    for name, values in columns.items():
        first, last = values[:quarter].median(), values[-quarter:].median()
        ratio = f"{last / first:.3f}" if first else ""
        lines.append(f"| {name} | {first:.4g} | {last:.4g} | {ratio} |")
    return "\n".join(lines)


def plot(rows: pd.DataFrame, path: Path) -> None:
    """
    Plot memory and speed over time.

    :param rows: the lines
    :param path: file of the picture
    """
    figure, (memory, speed) = plt.subplots(2, 1, sharex=True, figsize=(7, 5), constrained_layout=True)
    minutes = rows.seconds / 60
    memory.plot(minutes, rows.memory_mb)
    memory.set(ylabel="memory [MB]", ylim=(0, None))
    speed.plot(minutes, rows.steps.diff() / rows.cpu_seconds.diff(), label="processor time")
    speed.plot(minutes, rows.steps.diff() / rows.seconds.diff(), label="wall-clock time", alpha=0.6)
    speed.set(xlabel="time [min]", ylabel="steps per second", ylim=(0, None))
    speed.legend()
    save_figure_whole(figure, path, dpi=100)
    plt.close(figure)


def main() -> None:
    """Train for the given time, and print the resources of the process."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--env", default="Walker-v0", help="id of the environment")
    parser.add_argument("--n-envs", type=at_least(1), default=8)
    parser.add_argument("--minutes", type=at_least(5), default=60)
    parser.add_argument("--output", type=output_folder, default=Path("load"), help="folder of the results")
    args = parser.parse_args()
    try:
        with explain_unknown_env(args.env):
            env = make_vec_env(args.env, args.n_envs, seed=0)
    except ValueError as error:
        parser.error(f"--env: {error}")
    make_folder(parser, args.output)
    model = CeSD(
        "MlpPolicy",
        env,
        n_skills=4,
        learning_starts=800,
        batch_size=64,
        buffer_size=40_000,
        train_freq=1,
        gradient_steps=2,
        policy_kwargs={"net_arch": [64, 64]},
        seed=0,
        device="cpu",
    )
    path = args.output / "load.csv"
    with tempfile.TemporaryDirectory() as folder, path.open("w", newline="") as file:
        beside = [ResumableCheckpoint(folder, save_freq=50_000), SkillMetricsCallback(eval_freq=10_000 // args.n_envs)]
        model.learn(10**12, callback=CallbackList([Load(file, 60.0 * args.minutes), *beside]))
    rows = pd.read_csv(path)
    plot(rows, args.output / "load.png")
    print(f"{args.env}, {args.n_envs} envs, {os.cpu_count()} cores: {model.num_timesteps} steps, {model._n_updates} updates")
    print(compare(rows))


if __name__ == "__main__":
    main()
