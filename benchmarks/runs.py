"""Many training runs in one command: resumable, side by side or on a cluster, one row of a CSV file each."""

import csv
import json
import os
import platform
import shutil
import subprocess
import threading
import time
import traceback
import uuid
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock, Timeout
from joblib import Parallel, delayed
from tqdm import tqdm

Row = dict[str, Any]
#: How often a backend may fail in a row without finishing any run, and how long it is given to notice what is lost [s]
N_ATTEMPTS, DELAY = 4, 5.0


def read_rows(path: Path) -> pd.DataFrame:
    """
    Read the finished runs.

    :param path: the CSV file
    :return: all rows of finished runs; empty if there is no file yet
    """
    return pd.read_csv(path) if path.is_file() and path.stat().st_size > 0 else pd.DataFrame()


def append_row(path: Path, row: Row) -> None:
    """
    Add a run to the CSV file, which a killed process leaves either with the whole row or without it.

    :param path: the CSV file
    :param row: columns by name; a column that the file does not have yet is added
    """
    rows = pd.concat([read_rows(path), pd.DataFrame([row])], ignore_index=True)
    unfinished = path.with_suffix(".tmp")
    rows.to_csv(unfinished, index=False, quoting=csv.QUOTE_MINIMAL)
    os.replace(unfinished, path)


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """
    Lock the CSV file.

    :param path: the CSV file, which no other process is to write meanwhile
    :raises RuntimeError: if another one does
    """
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


def run_missing(
    runs: Iterable[Row],
    run_one: Callable[[Row], Row],
    path: Path,
    n_jobs: int,
    dry_run: bool = False,
    estimate: Callable[[Row, pd.DataFrame], float] | None = None,
) -> pd.DataFrame:
    """
    Do the runs that are not in the CSV file yet.

    :param runs: what identifies each run, by name of the column
    :param run_one: does a run, in a process of its own, and returns more columns
    :param path: the CSV file
    :param n_jobs: runs side by side
    :param dry_run: say what would be done
    :param estimate: seconds that a run will take, told by the rows of finished ones
    :return: all rows of the file
    :raises RuntimeError: after all runs, if some failed, which are done again by the next call; at once, if another process
        is at work on the file
    """
    with nullcontext() if dry_run else only_one(path):
        return _run_missing(list(runs), run_one, path, n_jobs, dry_run, estimate)


def _run_missing(
    runs: list[Row],
    run_one: Callable[[Row], Row],
    path: Path,
    n_jobs: int,
    dry_run: bool,
    estimate: Callable[[Row, pd.DataFrame], float] | None,
) -> pd.DataFrame:
    finished = Finished(path)
    if not dry_run:
        finished.collect()  # what a killed call left
    rows = read_rows(path)
    done = {_key(row, runs[0]) for row in rows.to_dict("records")} if len(rows) else set()
    missing = [run for run in runs if _key(run, run) not in done]
    print(f"{len(runs)} runs, {len(runs) - len(missing)} of them done already")
    if dry_run:
        for run in missing:
            print("  " + " ".join(f"{name}={value}" for name, value in run.items()))
    if estimate is not None and missing:
        hours = sum(estimate(run, rows) for run in missing) / 3600
        print(f"about {hours:.1f} hours of one core, {hours / n_jobs:.1f} hours for {n_jobs} jobs")
    if dry_run or not missing:
        return rows
    failures: list[str] = []
    with tqdm(total=len(missing), unit="run") as progress:

        def collect() -> None:
            for run, failure in finished.collect(left):
                progress.update()
                left.remove(run)
                if failure:
                    failures.append(failure)
                    tqdm.write(f"{run} failed:\n{failure}")

        left, n_attempts = list(missing), 0
        while left:
            n_left = len(left)
            with _every_second(collect):
                try:
                    Parallel(n_jobs=n_jobs, batch_size=1, pre_dispatch=n_jobs)(
                        delayed(_do)(run_one, run, finished) for run in list(left)
                    )
                except Exception as error:  # whatever the backend makes of a lost process or machine
                    lost = error
            if left:
                n_attempts = n_attempts + 1 if len(left) == n_left else 0
                if n_attempts == N_ATTEMPTS:
                    raise lost
                tqdm.write(f"A worker was lost ({type(lost).__name__}): going on with {len(left)} runs.")
                time.sleep(DELAY)
    finished.remove()
    if failures:
        raise RuntimeError(f"{len(failures)} of {len(missing)} runs failed, the last one with:\n{failures[-1]}")
    return read_rows(path)


class Finished:
    """
    Runs that are done and not in the CSV file yet, as files of a folder where workers leave them, on whatever machine.

    :param path: the CSV file
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self.folder = path.resolve().with_suffix(".finished")

    def add(self, run: Row, measures: Row, failure: str) -> None:
        """
        Leave a run for the process that writes the CSV file.

        :param run: the run
        :param measures: its measures
        :param failure: how it failed, or an empty text
        """
        name = f"{time.time_ns()}_{uuid.uuid4().hex}"  # in the order in which they end
        self.folder.mkdir(parents=True, exist_ok=True)
        unfinished = self.folder / f"{name}.tmp"
        unfinished.write_text(json.dumps([run, measures, failure], default=float))
        unfinished.replace(self.folder / f"{name}.json")

    def remove(self) -> None:
        """Remove the folder, with what killed workers left unfinished."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def collect(self, expected: list[Row] | None = None) -> list[tuple[Row, str]]:
        """
        Move what is there to the CSV file.

        :param expected: drop all other runs (a lost worker may have finished one that was done again); ``None`` for none
        :return: the runs, and how each failed (or an empty text)
        """
        runs: list[tuple[Row, str]] = []
        for file in sorted(self.folder.glob("*.json")):
            run, measures, failure = json.loads(file.read_text())
            new = expected is None or (run in expected and run not in [other for other, _ in runs])
            if new:
                if not failure:
                    append_row(self.path, {**run, **measures})
                runs.append((run, failure))
            file.unlink()
        return runs


def _do(run_one: Callable[[Row], Row], run: Row, finished: Finished) -> None:
    """Do a run; should it fail, it must not cost the others."""
    try:
        finished.add(run, {**run_one(run), "versions": json.dumps(versions())}, "")
    except Exception:
        finished.add(run, {}, traceback.format_exc())


@contextmanager
def _every_second(collect: Callable[[], None]) -> Iterator[None]:
    """
    Call a function every second for as long as the context lasts.

    :param collect: called every second, by a thread, and at the end
    """
    over = threading.Event()

    def repeat() -> None:
        while not over.wait(1.0):
            collect()

    with ThreadPoolExecutor(1) as executor:
        future = executor.submit(repeat)
        try:
            yield
        finally:
            over.set()
        future.result()
    collect()


def _key(row: Row, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(row[name]) for name in names)


def versions() -> dict[str, str]:
    """
    List the versions of what results depend on.

    :return: versions of what results depend on, and the processor
    """
    names = ("sb3_cesd", "stable_baselines3", "torch", "gymnasium", "numpy", "mujoco", "dm_control")
    return {**{name: version(name) for name in names}, "python": platform.python_version(), "processor": processor()}


def processor() -> str:
    """
    Find out the name of the processor.

    :return: name of the processor
    """
    if Path("/proc/cpuinfo").is_file():
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    if platform.system() == "Darwin":
        return subprocess.run(["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True).stdout.strip()
    return platform.processor()
