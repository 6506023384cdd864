"""
Compare the time of an update in this checkout with that in another one, to see whether a change affects speed.

    git worktree add /tmp/before HEAD~1
    python benchmarks/compare_commits.py /tmp/before                                 # two minutes
    python benchmarks/compare_commits.py /tmp/before --sizes small published --methods APT --rounds 100

Each checkout runs in a process with one thread. The two take turns, a few updates at a time, so that a slow moment of the
machine affects both alike. The other one may be as old as commit 422d4d5. CPU time is compared, on which other processes
have little influence. To see the remaining noise, compare a checkout with itself.
"""

import argparse
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import numpy as np
from arguments import at_least, existing
from random_walk import RandomWalk
from timing import PHASES, SIZES

HERE = Path(__file__).resolve().parents[1]
ROBOT = "quadruped"
#: Name -> class, and the step at which the constraint of CeSD starts
METHODS: dict[str, tuple[str, int | None]] = {
    **{f"CeSD, {phase}": ("CeSD", start) for phase, start in PHASES.items()},
    "DIAYN": ("DIAYN", None),
    "APT": ("APT", None),
}
#: Transitions in the replay buffer
N_TRANSITIONS = 3000


class Worker:
    """
    A process with a model, which does updates on request.

    :param checkout: root of the clone whose code it runs
    :param method: one of ``METHODS``
    :param size: one of ``SIZES``
    """

    def __init__(self, checkout: Path, method: str, size: str) -> None:
        command = [sys.executable, __file__, str(checkout), "--serve", method, size]
        # Takes precedence over an installed sb3_cesd
        environment = {**os.environ, "PYTHONPATH": str(checkout), "OMP_NUM_THREADS": "1"}
        self.process = subprocess.Popen(command, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def __enter__(self) -> "Worker":
        return self

    def __exit__(self, *args: object) -> None:
        self.process.kill()
        self.process.wait()

    def time_of(self, n_updates: int) -> float:
        """
        Do updates.

        :param n_updates: number of updates
        :return: CPU time of an update [s]
        :raises RuntimeError: if the process has died
        """
        assert self.process.stdin is not None and self.process.stdout is not None
        try:
            print(n_updates, file=self.process.stdin, flush=True)
            return float(self.process.stdout.readline())
        except (BrokenPipeError, ValueError) as error:
            raise RuntimeError(f"{' '.join(self.process.args)} failed, see above") from error  # type: ignore[arg-type]


def serve(checkout: Path, method: str, size: str) -> None:
    """
    For each number of updates on the standard input, do them and print the CPU time of one.

    :param checkout: root of the clone whose code should run
    :param method: one of ``METHODS``
    :param size: one of ``SIZES``
    :raises RuntimeError: if the imported code is that of another clone
    """
    import sb3_cesd

    if not Path(sb3_cesd.__file__).is_relative_to(checkout):
        raise RuntimeError(f"{checkout} has no sb3_cesd, {sb3_cesd.__file__} was imported: pass the root of a clone.")
    model = make_model(sb3_cesd, method, **SIZES[size])
    for line in sys.stdin:
        start = time.process_time()
        model.train(gradient_steps=int(line), batch_size=model.batch_size)
        print((time.process_time() - start) / int(line), flush=True)


def make_model(package: Any, method: str, n_skills: int, batch_size: int, width: int) -> Any:
    """
    Create a model that is about to learn.

    :param package: ``sb3_cesd``
    :param method: one of ``METHODS``
    :param n_skills: number of skills
    :param batch_size: batch size
    :param width: size of the hidden layers
    :return: the model, with transitions in its replay buffer
    """
    import torch as th

    th.set_num_threads(1)
    name, start = METHODS[method]
    model_class = getattr(package, name)
    own: dict[str, Any] = {"net_arch": [width, width]} if name == "DIAYN" else {"encoder_kwargs": {"net_arch": [width, width]}}
    if start is not None:
        own["constraint_kwargs"] = {"start": start}
    model = model_class(
        "MlpPolicy",
        RandomWalk(ROBOT),
        n_skills=n_skills,
        skill_duration=1,
        learning_starts=N_TRANSITIONS,
        buffer_size=N_TRANSITIONS,
        batch_size=batch_size,
        policy_kwargs={"net_arch": {"pi": [width, width], "qf": [width // 2, width]}},
        seed=0,
        device="cpu",
        intrinsic_kwargs=own,
    )
    return model.learn(N_TRANSITIONS, log_interval=10**9)


def compare(checkouts: list[Path], method: str, size: str, rounds: int, n_updates: int) -> np.ndarray:
    """
    Time the updates of two checkouts in turn.

    :param checkouts: roots of the clones
    :param method: one of ``METHODS``
    :param size: one of ``SIZES``
    :param rounds: timed turns of each, after two for warm-up
    :param n_updates: updates per turn
    :return: CPU time of an update [s], shape ``(rounds, n_checkouts)``
    """
    with ExitStack() as stack:
        workers = [stack.enter_context(Worker(checkout, method, size)) for checkout in checkouts]
        times = np.empty((rounds + 2, len(workers)))
        for number, row in enumerate(times):
            # Rotate the order
            for index in np.roll(range(len(workers)), number):
                row[index] = workers[index].time_of(n_updates)
    return times[2:]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("other", type=existing, help="root of the other clone or worktree")
    parser.add_argument("--methods", nargs="+", choices=METHODS, default=list(METHODS))
    parser.add_argument("--sizes", nargs="+", choices=SIZES, default=["small"])
    parser.add_argument("--rounds", type=at_least(1), default=30, help="timed turns of each checkout")
    parser.add_argument("--updates", type=at_least(1), default=10, help="updates per turn")
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
            print(
                f"| {size} | {method} | {theirs:.2f} | {ours:.2f} | {ours / theirs:.3f} [{low:.3f}, {high:.3f}] |", flush=True
            )


if __name__ == "__main__":
    main()
