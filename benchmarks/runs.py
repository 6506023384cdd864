"""Many training runs in one command: resumable, in parallel, each with a row of a CSV file."""

import argparse
import json
import os
import platform
import signal
import subprocess
import sys
import threading
import time
import traceback
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures.process import BrokenProcessPool
from contextlib import contextmanager, suppress
from functools import cache, partial
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from filelock import FileLock, Timeout
from joblib import Parallel, delayed
from tqdm import tqdm

from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.files import AnyPath, written_whole

Row = dict[str, Any]
#: Values of the columns that identify a run, where older rows lack them
OLD_ROWS: Row = {
    "n_envs": 1,
    "pretrain_envs": 1,
    "eval_freq": 0,
    "repeat": 0,
    "task_params": 0,
    "chosen_by": 0,
    "n_timesteps": 36_000,
}
#: How often in a row workers may be lost without finishing any run
N_ATTEMPTS = 4


def read_rows(*paths: Path) -> pd.DataFrame:
    """Read the finished runs of CSV files; a row that is in two of them counts once."""
    tables = [pd.read_csv(path) for path in paths if path.is_file()]
    return pd.concat(tables, ignore_index=True).drop_duplicates(ignore_index=True) if tables else pd.DataFrame()


def write_rows(path: Path, rows: pd.DataFrame) -> None:
    """Write runs to a CSV file, the same on all systems, and wholly or not at all."""
    write_text_whole(path, rows.to_csv(index=False, lineterminator="\n"))


def plain(cell: Any) -> Any:
    """Give equal cells the same form: in columns with gaps or text, 0 is read as 0.0, "0" or "0.0"."""
    with suppress(TypeError, ValueError, OverflowError):
        if float(cell) == int(float(cell)):
            return int(float(cell))
    return cell


def filled(rows: pd.DataFrame, names: Iterable[str]) -> pd.DataFrame:
    """Give cells of some columns their :func:`plain` form, and older rows the values that they lack."""
    for name in names:
        cells = rows[name] if name in rows else pd.Series(index=rows.index, dtype=object)
        known = [plain(OLD_ROWS.get(name, cell) if pd.isna(cell) else cell) for cell in cells]
        rows = rows.assign(**{name: pd.Series(known, index=rows.index, dtype=object)})
    return rows


def keys_of(rows: pd.DataFrame, names: Iterable[str]) -> list[tuple[str, ...]]:
    """Return what identifies the run of each row: the values of some columns, as text."""
    names = list(names)
    return [tuple(map(str, row)) for row in filled(rows, names)[names].itertuples(index=False)]


def runs_left(runs: Sequence[Row], rows: pd.DataFrame) -> list[Row]:
    """Return the runs that have no row yet, each once."""
    done = set(keys_of(rows, runs[0])) if runs and len(rows) else set()
    left = {tuple(str(plain(value)) for value in run.values()): run for run in runs}
    return [run for key, run in left.items() if key not in done]


def run_missing(
    runs: Sequence[Row],
    run_one: Callable[[Row], Row],
    path: Path,
    n_jobs: int,
    dry_run: bool = False,
    seconds_of: Callable[[Row], float] | None = None,
) -> pd.DataFrame:
    """
    Do the runs that are not in the CSV file yet.

    :param runs: values that identify each run, by name of the column; the same columns for all
    :param run_one: does a run and returns more columns
    :param path: the CSV file
    :param n_jobs: number of parallel runs, each in its own process (in this one if there is a single one)
    :param dry_run: only print what would be done
    :param seconds_of: estimates how long a run takes, for a dry run
    :return: all rows of the file
    :raises RuntimeError: after all runs, if some failed, which the next call repeats; immediately, if another process is
        writing the file
    """
    rows = read_rows(path)
    missing = runs_left(runs, rows)
    print(f"{len(runs)} runs, {len(runs) - len(missing)} of them done already")
    if dry_run:
        for run in missing:
            print("  " + " ".join(f"{name}={value}" for name, value in run.items()))
    if missing and dry_run and seconds_of is not None:
        hours = sum(map(seconds_of, missing)) / 3600
        print(f"about {hours:.2g} hours of one core, from the time of a few steps and updates here")
    if dry_run or not missing:
        return rows
    failures = []
    with only_one(path), sigterm_exits(), tqdm(total=len(missing), unit="run") as progress:
        for run, measures, failure in results_of(partial(_do, run_one), missing, n_jobs):
            progress.update()
            if failure:
                failures.append(failure)
                tqdm.write(f"{run} failed:\n{failure}")
            else:
                # Read again, since a column of text would become one of numbers with a gap
                write_rows(path, pd.concat([read_rows(path), pd.DataFrame([{**run, **measures}])], ignore_index=True))
    if failures:
        raise RuntimeError(f"{len(failures)} of {len(missing)} runs failed, the last one with:\n{failures[-1]}")
    return read_rows(path)


def _do(run_one: Callable[[Row], Row], run: Row) -> tuple[Row, Row, str]:
    """Do a run. Its failure must not affect the others."""
    try:
        used = json.dumps(versions())  # as the clone is when it starts
        return run, {**run_one(run), "versions": used}, ""
    except Exception:
        return run, {}, traceback.format_exc()


def results_of(do: Callable[[Row], tuple[Row, Row, str]], runs: Sequence[Row], n_jobs: int) -> Iterator[tuple[Row, Row, str]]:
    """Do runs in parallel, and return results as they come; a run whose worker was lost is done again."""
    left, n_attempts = list(runs), 0
    how: Row = {"return_as": "generator_unordered", "batch_size": 1, "pre_dispatch": n_jobs}
    if n_jobs > 1:
        how |= {"initializer": end_with, "initargs": (os.getpid(),)}
    while left:
        n_left = len(left)
        workers = Parallel(n_jobs, **how)
        try:
            for result in workers(delayed(do)(run) for run in list(left)):
                left.remove(result[0])
                yield result
        except BrokenProcessPool as lost:
            n_attempts = n_attempts + 1 if len(left) == n_left else 0
            if n_attempts == N_ATTEMPTS:
                raise
            tqdm.write(f"A worker was lost ({type(lost).__name__}): going on with {len(left)} runs.")


def end_with(parent: int) -> None:
    """End this process when its parent has ended for any reason (not on Windows, where that does not show)."""

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(0.5)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """Lock the CSV file against other processes."""
    path.parent.mkdir(parents=True, exist_ok=True)
    lock = FileLock(path.with_suffix(".lock"))
    try:
        lock.acquire(blocking=False)
    except Timeout:
        raise RuntimeError(f"Another process writes {path}: wait for it, or pass another --output.") from None
    try:
        yield
    finally:
        lock.release()
        Path(lock.lock_file).unlink(missing_ok=True)


@contextmanager
def sigterm_exits() -> Iterator[None]:
    """Make SIGTERM raise ``SystemExit``, so that workers are ended."""
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


@cache
def versions() -> dict[str, str]:
    """
    List the versions of what results depend on.

    :return: versions of packages and of Python, the commit of this clone (with a "+" if files differ from it), the processor
    """
    found = {}
    for name in ("sb3_cesd", "stable_baselines3", "torch", "gymnasium", "numpy", "mujoco", "dm_control"):
        with suppress(PackageNotFoundError):
            found[name] = version(name)
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+"]
    with suppress(OSError, subprocess.SubprocessError):  # outside of a clone
        found["commit"] = subprocess.run(git, capture_output=True, text=True, check=True, timeout=60).stdout.strip()
    return {**found, "python": platform.python_version(), "processor": processor()}


def processor() -> str:
    """Return the name of the processor."""
    if Path("/proc/cpuinfo").is_file():
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    return platform.processor()


def made_with(rows: pd.DataFrame) -> str:
    """Describe the processors and versions of runs, with all values that differ between them."""
    found: dict[str, dict[str, None]] = {}
    devices = rows.device if "device" in rows else pd.Series("cpu", index=rows.index)
    for text, device in zip(rows.versions, devices.fillna("cpu"), strict=True):
        for name, number in json.loads(text if isinstance(text, str) else "{}").items():
            with_gpu = f" with an {device}" if name == "processor" and device != "cpu" else ""
            found.setdefault(name, {})[number + with_gpu] = None
    processors = " or ".join(found.pop("processor", {"an unknown processor": None}))
    packages = ", ".join(f"{name} {' or '.join(numbers)}" for name, numbers in found.items())
    return f"one thread of {processors}, {packages}"


def add_run_options(parser: argparse.ArgumentParser, output: str) -> None:
    """Add the options that all commands have which do runs."""
    parser.add_argument("--jobs", type=positive, default=2, help="number of parallel runs")
    parser.add_argument("--output", type=Path, default=Path(output), help="folder of the results")
    parser.add_argument("--dry-run", action="store_true", help="only list the missing runs")


def add_seeds(parser: argparse.ArgumentParser, default: int) -> None:
    """Add ``--seeds``, which :func:`seeds_of` reads."""
    parser.add_argument(
        "--seeds", type=int, nargs="+", default=[default], help="number of seeds, or the first one and one past the last"
    )


def seeds_of(parser: argparse.ArgumentParser, numbers: Sequence[int]) -> range:
    """Turn the values of ``--seeds`` into seeds."""
    seeds = range(*numbers) if len(numbers) <= 2 and min(numbers) >= 0 else range(0)
    if not seeds:
        parser.error("--seeds: pass the number of seeds, or the first one and one past the last")
    return seeds


def check_eval_freq(parser: argparse.ArgumentParser, eval_freq: int, steps: int) -> None:
    """Exit with a message unless the last evaluation is at the end."""
    if steps % eval_freq:
        parser.error(f"--eval-freq {eval_freq}: the last one would not be at the end, pass a divisor of {steps}")


def positive(text: str) -> int:
    """Parse a number of at least 1."""
    if int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text}: pass 1 or more")
    return int(text)


def visited_observations(buffer: SkillReplayBuffer) -> np.ndarray:
    """Collect the observations and next observations of all stored transitions, in no order, shape ``(n, obs_dim)``."""
    n = buffer.size()
    both = (buffer.observations, buffer.next_observations)
    rows = [[values[:n].reshape(n * buffer.n_envs, -1) for values in entries.values()] for entries in both]
    return np.concatenate([np.concatenate(entries, axis=1) for entries in rows])


def write_text_whole(path: AnyPath, text: str) -> None:
    """Write a text file, see :func:`written_whole`."""
    with written_whole(path) as file:
        file.write(text.encode())


def save_figure_whole(figure: Any, path: AnyPath) -> None:
    """Save a Matplotlib figure as PNG, see :func:`written_whole`."""
    with written_whole(path) as file:
        figure.savefig(file, format="png", dpi=110)
