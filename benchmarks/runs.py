"""Many training runs in one command: resumable, in parallel or on a cluster, each with a row of a CSV file."""

import csv
import io
import json
import os
import platform
import shutil
import signal
import subprocess
import sys
import threading
import time
import traceback
import uuid
import warnings
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock, Timeout
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from tqdm import tqdm

from sb3_cesd.common.files import write_text_whole

Row = dict[str, Any]
#: How often in a row a backend may fail without finishing any run, and how long it is given to detect losses [s]
N_ATTEMPTS, DELAY = 4, 5.0


def read_rows(path: Path) -> pd.DataFrame:
    """
    Read the finished runs.

    An incomplete line (from a full disk, or an editor) is skipped with a warning, so that only its run is repeated.

    :param path: the CSV file
    :return: all rows of finished runs; empty if there is no file yet
    :raises ValueError: if the file contains no table
    """
    if not path.is_file() or path.stat().st_size == 0:
        return pd.DataFrame()
    content = path.read_bytes()
    try:
        header, *lines = list(csv.reader(io.StringIO(content.decode(), newline="")))
    except (UnicodeDecodeError, csv.Error) as error:
        raise ValueError(f"{path} is damaged ({error}): restore it, or pass another --output.") from error
    if lines and not content.endswith(b"\n"):
        lines[-1] = []
    if not any(header):
        raise ValueError(f"{path} contains no table: restore it, or pass another --output.")
    whole = [line for line in lines if len(line) == len(header) and any(line)]
    if len(whole) < len(lines):
        warnings.warn(f"{path}: {len(lines) - len(whole)} of {len(lines)} lines are not whole, their runs are done again.")
    text = io.StringIO()
    csv.writer(text).writerows([header, *whole])
    return pd.read_csv(io.StringIO(text.getvalue()))


def write_rows(path: Path, rows: pd.DataFrame) -> None:
    """
    Write runs to a CSV file, the same on all systems.

    :param path: the CSV file
    :param rows: the runs
    """
    write_text_whole(path, rows.to_csv(index=False, lineterminator="\n"))


def append_row(path: Path, row: Row) -> None:
    """
    Add a run to the CSV file. If the process is killed, the file has either the whole row or none of it.

    :param path: the CSV file
    :param row: columns by name; a column that the file does not have yet is added
    """
    write_rows(path, pd.concat([read_rows(path), pd.DataFrame([row])], ignore_index=True))


@contextmanager
def only_one(path: Path) -> Iterator[None]:
    """
    Lock the CSV file against other processes.

    :param path: the CSV file
    :raises RuntimeError: if another process has locked it
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
    defaults: Row | None = None,
) -> pd.DataFrame:
    """
    Do the runs that are not in the CSV file yet.

    SIGTERM ends it with the usual exit code, and ends all workers.

    :param runs: values that identify each run, by name of the column; the same columns for all
    :param run_one: does a run, in its own process, and returns more columns
    :param path: the CSV file
    :param n_jobs: number of parallel runs
    :param dry_run: only print what would be done
    :param estimate: estimates the duration of a run [s] from the rows of finished ones
    :param defaults: values of columns that rows may lack
    :return: all rows of the file
    :raises RuntimeError: after all runs, if some failed, which the next call repeats; immediately, if another process is
        writing the file
    """
    with nullcontext() if dry_run else only_one(path), sigterm_exits():
        # A method that is named twice is done once
        once = {tuple(run.items()): run for run in runs}
        return _run_missing(list(once.values()), run_one, path, n_jobs, dry_run, estimate, defaults or {})


def _run_missing(
    runs: list[Row],
    run_one: Callable[[Row], Row],
    path: Path,
    n_jobs: int,
    dry_run: bool,
    estimate: Callable[[Row, pd.DataFrame], float] | None,
    defaults: Row,
) -> pd.DataFrame:
    finished = Finished(path, defaults)
    if not dry_run:
        finished.collect()  # runs that a killed call left
    rows = read_rows(path)
    lacking = [name for name in runs[0] if len(rows) and name not in rows and name not in defaults]
    if lacking:
        raise ValueError(f"{path} has no column {lacking[0]!r}: it is of another benchmark or version, pass another --output.")
    missing = runs_left(runs, rows, defaults)
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
            # Results may be lost without an error, as their file is removed if it is damaged
            lost: Exception = RuntimeError(f"its results are not in {finished.folder}: see that nothing else works there")
            with _every_second(collect):
                try:
                    Parallel(n_jobs=n_jobs, batch_size=1, pre_dispatch=n_jobs, **worker_options())(
                        delayed(_do)(run_one, run, finished) for run in list(left)
                    )
                except Exception as error:  # backends raise various errors if a process or machine is lost
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
    Finished runs that are not in the CSV file yet, as files that workers on any machine write to a folder.

    :param path: the CSV file
    :param defaults: values of columns that rows may lack
    """

    def __init__(self, path: Path, defaults: Row | None = None) -> None:
        self.path = path
        self.defaults = defaults or {}
        self.folder = path.resolve().with_suffix(".finished")

    def add(self, run: Row, measures: Row, failure: str) -> None:
        """
        Add a run for the process that writes the CSV file.

        :param run: the run
        :param measures: its measures
        :param failure: how it failed, or an empty string
        """
        name = f"{time.time_ns()}_{uuid.uuid4().hex}"  # in the order in which they end
        write_text_whole(self.folder / f"{name}.json", json.dumps([run, measures, failure], default=float))

    def remove(self) -> None:
        """Remove the folder, including unfinished files of killed workers."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def collect(self, expected: list[Row] | None = None) -> list[tuple[Row, str]]:
        """
        Move finished runs to the CSV file, except those that it already has: a killed call may have moved them, or a lost
        worker may have finished a run that was repeated.

        :param expected: drop all other runs (a lost worker may have finished one that was repeated); ``None`` to keep all
        :return: the runs, and how each failed (or an empty string)
        """
        runs: list[tuple[Row, str]] = []
        for file in sorted(self.folder.glob("*.json")):
            try:
                run, measures, failure = json.loads(file.read_text())
            except (ValueError, TypeError):  # not JSON, or not three parts
                warnings.warn(f"{file} is damaged: it was removed, and its run is done again.")
                file.unlink()
                continue
            new = expected is None or (run in expected and run not in [other for other, _ in runs])
            if new:
                if not failure and _key(run, run) not in keys_of(read_rows(self.path), run, self.defaults):
                    append_row(self.path, {**run, **measures})
                runs.append((run, failure))
            file.unlink()
        return runs


def _do(run_one: Callable[[Row], Row], run: Row, finished: Finished) -> None:
    """Do a run. Its failure must not affect the others."""
    try:
        used = json.dumps(versions())  # an error here must not cost hours of learning
        finished.add(run, {**run_one(run), "versions": used}, "")
    except Exception:
        finished.add(run, {}, traceback.format_exc())


@contextmanager
def _every_second(collect: Callable[[], None]) -> Iterator[None]:
    """
    Call a function every second while the context lasts.

    :param collect: function to call every second in a thread, and at the end
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


def worker_options() -> Row:
    """
    Choose how workers start.

    :return: arguments of joblib's ``Parallel``; processes of this machine end with this one, those of a cluster do not
    """
    backend, _ = get_active_backend()
    return {"initializer": end_with, "initargs": (os.getpid(),)} if type(backend).__name__ == "LokyBackend" else {}


def end_with(parent: int, interval: float = 0.5) -> None:
    """
    End this process when its parent has ended for any reason; not on Windows, where the end of a parent does not show.

    :param parent: process that started this one
    :param interval: time between two checks [s]
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(interval)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def sigterm_exits() -> Iterator[None]:
    """Make SIGTERM raise ``SystemExit`` with the exit code of the signal, so that everything is cleaned up."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    try:
        yield
    finally:
        signal.signal(signal.SIGTERM, before)


def keys_of(rows: pd.DataFrame, names: Iterable[str], defaults: Row) -> set[tuple[str, ...]]:
    """
    Return the keys of finished runs.

    :param rows: rows of the CSV file
    :param names: columns that identify a run
    :param defaults: values of columns that rows may lack
    :return: keys of the runs
    """
    return set(row_keys(rows, names, defaults))


def runs_left(runs: list[Row], rows: pd.DataFrame, defaults: Row) -> list[Row]:
    """
    Return the runs that are still missing.

    :param runs: values that identify each run, by name of the column; the same columns for all
    :param rows: rows of the CSV file
    :param defaults: values of columns that rows may lack
    :return: the runs that are not in the file
    """
    done = keys_of(rows, runs[0], defaults) if runs else set()
    return [run for run in runs if _key(run, run) not in done]


def row_keys(rows: pd.DataFrame, names: Iterable[str], defaults: Row) -> list[tuple[str, ...]]:
    """
    Return the keys of the runs of rows.

    :param rows: rows of the CSV file
    :param names: columns that identify a run
    :param defaults: values of columns that rows may lack
    :return: key of each row
    """
    names = list(names)
    known = {name: rows[name] if name in rows else pd.Series(index=rows.index, dtype=object) for name in names}
    return [_key(row, names) for row in fill(pd.DataFrame(known), defaults).to_dict("records")]


def fill(rows: pd.DataFrame, defaults: Row) -> pd.DataFrame:
    """
    Fill gaps in rows with default values.

    :param rows: rows of the CSV file
    :param defaults: values of columns that rows may lack
    :return: the rows, without gaps in these columns
    """
    known = {name: canonical(rows[name]).fillna(value) for name, value in defaults.items() if name in rows}
    return rows.assign(**known)


def canonical(cells: pd.Series) -> pd.Series:
    """
    Convert equal cells to the same form: read from a CSV file, 0 is 0.0 in a column with gaps, and ``"0"`` or ``"0.0"`` in a
    column of strings.

    :param cells: a column
    :return: the cells, with whole numbers as ``int``, also those read as strings
    """
    # A column of numbers would turn them into floats, and can't contain strings
    return pd.Series([_canonical(cell) for cell in cells], index=cells.index, dtype=object)


def _canonical(cell: Any) -> Any:
    try:
        number = float(cell)
    except (TypeError, ValueError):
        return cell
    return int(number) if number.is_integer() else cell


def _key(row: Row, names: Iterable[str]) -> tuple[str, ...]:
    return tuple(str(_canonical(row[name])) for name in names)


def versions() -> dict[str, str]:
    """
    List the versions of packages on which results depend.

    :return: versions by name, including Python's, the commit (with a "+" if files differ from it) and the processor; without
        ``dm_control`` if it is not installed, which mazes do not need, and without the commit outside of a clone
    :raises RuntimeError: if another one of them is not installed
    """
    names = ("sb3_cesd", "stable_baselines3", "torch", "gymnasium", "numpy", "mujoco", "dm_control")
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError as error:
            if name == "dm_control":
                continue
            raise RuntimeError(f"{name} is not installed: pip install -e .[benchmarks] installs what is missing.") from error
    return {**found, **commit(), "python": platform.python_version(), "processor": processor()}


@cache
def commit() -> dict[str, str]:
    """
    Return the commit of this clone, as it was when it was first asked for.

    :return: ``commit``, with a "+" if files that git knows differ from it; nothing outside of a clone
    """
    git = ["git", "-C", str(Path(__file__).parent), "describe", "--always", "--exclude=*", "--abbrev=12", "--dirty=+"]
    try:
        found = subprocess.run(git, capture_output=True, text=True, check=True, timeout=60)
    except (OSError, subprocess.SubprocessError):
        return {}
    return {"commit": found.stdout.strip()}


def processor() -> str:
    """
    Return the name of the processor.

    :return: name of the processor
    """
    if Path("/proc/cpuinfo").is_file():
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            if line.startswith("model name"):
                return line.split(":")[1].strip()
    if platform.system() == "Darwin":
        return subprocess.run(["sysctl", "-n", "machdep.cpu.brand_string"], capture_output=True, text=True).stdout.strip()
    return platform.processor()
