"""
Compare the time of an update in this checkout with that in another one, to see whether a change affects speed.

    git worktree add /tmp/before HEAD~1
    python benchmarks/compare_commits.py /tmp/before                                 # two minutes
    python benchmarks/compare_commits.py /tmp/before --sizes small published --methods APT --rounds 100

Each checkout runs in a process with one thread. The two take turns, a few updates at a time, so that a slow moment of the
machine affects both alike. CPU time is compared, on which other processes have little influence. To see the remaining noise,
compare a checkout with itself.
"""

import argparse
import os
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import gymnasium as gym
import numpy as np
from gymnasium import spaces

HERE = Path(__file__).resolve().parents[1]
#: Name -> skills, transitions of a batch, and width of the networks
SIZES = {"published": (16, 1024, 1024), "small": (8, 256, 256)}
#: Sizes of observations and actions
ROBOTS = {"walker": (24, 6), "quadruped": (78, 12)}
#: Phase of CeSD -> environment step at which its constraint starts
PHASES = {"exploring": 10**9, "constrained": 0}
#: Name -> class, and the step at which the constraint of CeSD starts
METHODS: dict[str, tuple[str, int | None]] = {
    **{f"CeSD, {phase}": ("CeSD", start) for phase, start in PHASES.items()},
    "DIAYN": ("DIAYN", None),
    "APT": ("APT", None),
}
#: Transitions in the replay buffer
N_TRANSITIONS = 3000


class RandomWalk(gym.Env):
    """A cheap environment with the sizes of a robot, for timing updates without a simulation."""

    def __init__(self, robot: str) -> None:
        obs_dim, action_dim = ROBOTS[robot]
        self.observation_space = spaces.Box(-np.inf, np.inf, (obs_dim,), np.float32)
        self.action_space = spaces.Box(-1, 1, (action_dim,), np.float32)

    def reset(self, *, seed: int | None = None, options: dict[str, Any] | None = None) -> tuple[np.ndarray, dict[str, Any]]:
        super().reset(seed=seed)
        self.position = self.np_random.normal(size=self.observation_space.shape)
        return self.position.astype(np.float32), {}

    def step(self, action: np.ndarray) -> tuple[np.ndarray, float, bool, bool, dict[str, Any]]:
        # It stays near the origin
        self.position = 0.995 * self.position + 0.1 * self.np_random.normal(size=self.position.shape)
        return self.position.astype(np.float32), 0.0, False, False, {}


def start(checkout: Path, method: str, size: str) -> subprocess.Popen[str]:
    """Start a process with a model of a checkout, which does updates on request."""
    command = [sys.executable, __file__, str(checkout), "--serve", method, size]
    # Takes precedence over an installed sb3_cesd
    environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
    return subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def time_of(worker: Any, n_updates: int) -> float:
    """Let a process do updates; return the CPU time of one [s]."""
    try:
        print(n_updates, file=worker.stdin, flush=True)
        return float(worker.stdout.readline())
    except (BrokenPipeError, ValueError) as error:
        raise RuntimeError(f"{' '.join(worker.args)} failed, see above") from error


def serve(checkout: Path, method: str, size: str) -> None:
    """For each number of updates on the standard input, do them and print the CPU time of one."""
    import torch as th

    import sb3_cesd

    if not Path(sb3_cesd.__file__).is_relative_to(checkout):
        raise RuntimeError(f"{checkout} has no sb3_cesd, {sb3_cesd.__file__} was imported: pass the root of a clone.")
    th.set_num_threads(1)
    n_skills, batch_size, width = SIZES[size]
    name, constraint_start = METHODS[method]
    own: dict[str, Any] = {"net_arch": [width, width]} if name == "DIAYN" else {"encoder_kwargs": {"net_arch": [width, width]}}
    # The same whatever the defaults of a checkout are
    if name == "CeSD":
        own["entropy_kwargs"] = {"k": 16}
    if name == "APT":
        own["encoder_kwargs"]["features_dim"], own["entropy_kwargs"] = 512, {"k": 12}
    if constraint_start is not None:
        own["constraint_kwargs"] = {"start": constraint_start}
    model = getattr(sb3_cesd, name)(
        "MlpPolicy",
        RandomWalk("quadruped"),
        n_skills=n_skills,
        skill_duration=1,
        learning_starts=N_TRANSITIONS,
        buffer_size=N_TRANSITIONS,
        batch_size=batch_size,
        policy_kwargs={"net_arch": {"pi": [width, width], "qf": [width // 2, width]}},
        seed=0,
        device="cpu",
        intrinsic_kwargs=own,
    ).learn(N_TRANSITIONS, log_interval=10**9)
    for line in sys.stdin:
        begin = time.process_time()
        model.train(gradient_steps=int(line), batch_size=model.batch_size)
        print((time.process_time() - begin) / int(line), flush=True)


def compare(checkouts: list[Path], method: str, size: str, rounds: int, n_updates: int) -> np.ndarray:
    """Time updates in turn, after two rounds of warm-up; return their CPU times [s], shape ``(rounds, n_checkouts)``."""
    workers = [start(checkout, method, size) for checkout in checkouts]
    try:
        times = np.empty((rounds + 2, len(workers)))
        for number, row in enumerate(times):
            # Rotate the order
            for index in np.roll(range(len(workers)), number):
                row[index] = time_of(workers[index], n_updates)
    finally:
        for worker in workers:
            worker.kill()
            worker.wait()
    return times[2:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=Path, help="root of the other clone or worktree")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small"])
    parser.add_argument("--rounds", type=int, default=30, help="timed turns of each checkout")
    parser.add_argument("--updates", type=int, default=10, help="updates per turn")
    parser.add_argument("--serve", nargs=2, help=argparse.SUPPRESS)
    args = parser.parse_args()
    other = args.other.resolve()
    if not (other / "sb3_cesd").is_dir():
        parser.error(f"{args.other} contains no sb3_cesd: pass the root of a clone or worktree")
    if args.serve:
        serve(other, *args.serve)
        return
    print(f"CPU time of an update [ms], medians of {args.rounds} turns; ratios with their quartiles")
    print("| size | method | other | this | this / other |", "|---|---|---|---|---|", sep="\n")
    for size in args.sizes:
        for method in args.methods:
            times = compare([other, HERE], method, size, args.rounds, args.updates) * 1000
            theirs, ours = np.median(times, axis=0)
            low, high = np.quantile(times[:, 1] / times[:, 0], [0.25, 0.75])
            ratio = f"{ours / theirs:.3f} [{low:.3f}, {high:.3f}]"
            print(f"| {size} | {method} | {theirs:.2f} | {ours:.2f} | {ratio} |", flush=True)


if __name__ == "__main__":
    main()
