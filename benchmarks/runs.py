"""Many training runs in one command: resumable, side by side or on a cluster, one row of a CSV file each."""

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
from importlib.metadata import version
from pathlib import Path
from typing import Any

import pandas as pd
from filelock import FileLock, Timeout
from joblib import Parallel, delayed
from joblib.parallel import get_active_backend
from tqdm import tqdm

from sb3_cesd.common.files import write_text_whole

Row = dict[str, Any]
#: How often a backend may fail in a row without finishing any run, and how long it is given to notice what is lost [s]
N_ATTEMPTS, DELAY = 4, 5.0


def read_rows(path: Path) -> pd.DataFrame:
    """
    Read the finished runs.

    A line that is not whole (of a full disk, or an editor) is left out, with a warning: that run is done again, no other.

    :param path: the CSV file
    :return: all rows of finished runs; empty if there is no file yet
    :raises ValueError: if the file holds no table
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
    whole = [line for line in lines if len(line) == len(header) and any(line)]
    if len(whole) < len(lines):
        warnings.warn(f"{path}: {len(lines) - len(whole)} of {len(lines)} lines are not whole, their runs are done again.")
    text = io.StringIO()
    csv.writer(text).writerows([header, *whole])
    return pd.read_csv(io.StringIO(text.getvalue()))


def append_row(path: Path, row: Row) -> None:
    """
    Add a run to the CSV file, which a killed process leaves either with the whole row or without it.

    :param path: the CSV file
    :param row: columns by name; a column that the file does not have yet is added
    """
    rows = pd.concat([read_rows(path), pd.DataFrame([row])], ignore_index=True)
    write_text_whole(path, rows.to_csv(index=False, quoting=csv.QUOTE_MINIMAL))


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
    defaults: Row | None = None,
) -> pd.DataFrame:
    """
    Do the runs that are not in the CSV file yet.

    SIGTERM ends it with the usual exit code, and no worker survives it.

    :param runs: what identifies each run, by name of the column; the same columns for all
    :param run_one: does a run, in a process of its own, and returns more columns
    :param path: the CSV file
    :param n_jobs: runs side by side
    :param dry_run: say what would be done
    :param estimate: seconds that a run will take, told by the rows of finished ones
    :param defaults: what rows without a value in one of these columns were done with
    :return: all rows of the file
    :raises RuntimeError: after all runs, if some failed, which are done again by the next call; at once, if another process
        is at work on the file
    """
    with nullcontext() if dry_run else only_one(path), sigterm_exits():
        return _run_missing(list(runs), run_one, path, n_jobs, dry_run, estimate, defaults or {})


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
        finished.collect()  # what a killed call left
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
            # Results may be lost without an error: a damaged file of one is removed
            lost: Exception = RuntimeError(f"its results are not in {finished.folder}: see that nothing else works there")
            with _every_second(collect):
                try:
                    Parallel(n_jobs=n_jobs, batch_size=1, pre_dispatch=n_jobs, **worker_options())(
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
    :param defaults: what rows without a value in one of these columns were done with
    """

    def __init__(self, path: Path, defaults: Row | None = None) -> None:
        self.path = path
        self.defaults = defaults or {}
        self.folder = path.resolve().with_suffix(".finished")

    def add(self, run: Row, measures: Row, failure: str) -> None:
        """
        Leave a run for the process that writes the CSV file.

        :param run: the run
        :param measures: its measures
        :param failure: how it failed, or an empty text
        """
        name = f"{time.time_ns()}_{uuid.uuid4().hex}"  # in the order in which they end
        write_text_whole(self.folder / f"{name}.json", json.dumps([run, measures, failure], default=float))

    def remove(self) -> None:
        """Remove the folder, with what killed workers left unfinished."""
        shutil.rmtree(self.folder, ignore_errors=True)

    def collect(self, expected: list[Row] | None = None) -> list[tuple[Row, str]]:
        """
        Move what is there to the CSV file, unless it has the run already: a killed call may have moved it, or a worker that
        was lost finished one that was done again.

        :param expected: drop all other runs (a lost worker may have finished one that was done again); ``None`` for none
        :return: the runs, and how each failed (or an empty text)
        """
        runs: list[tuple[Row, str]] = []
        for file in sorted(self.folder.glob("*.json")):
            try:
                run, measures, failure = json.loads(file.read_text())
            except (ValueError, TypeError):  # no JSON, or not of three parts
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


def worker_options() -> Row:
    """
    Choose how workers start.

    :return: arguments of joblib's ``Parallel``: processes end with this one, those of a cluster belong to the cluster
    """
    backend, _ = get_active_backend()
    return {"initializer": end_with, "initargs": (os.getpid(),)} if type(backend).__name__ == "LokyBackend" else {}


def end_with(parent: int, interval: float = 0.5) -> None:
    """
    End this process when its parent has ended, in whatever way.

    :param parent: process that started this one
    :param interval: how often to look [s]
    """

    def watch() -> None:
        while os.getppid() == parent:
            time.sleep(interval)
        os._exit(1)

    threading.Thread(target=watch, daemon=True).start()


@contextmanager
def sigterm_exits() -> Iterator[None]:
    """Let SIGTERM end the program as an error would, so that all is cleaned up, with the exit code of that signal."""
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
    Tell which runs are done.

    :param rows: rows of the CSV file
    :param names: columns that identify a run
    :param defaults: what rows without a value in one of these columns were done with
    :return: what identifies them
    """
    return set(row_keys(rows, names, defaults))


def runs_left(runs: list[Row], rows: pd.DataFrame, defaults: Row) -> list[Row]:
    """
    Tell which runs are still to be done.

    :param runs: what identifies each run, by name of the column; the same columns for all
    :param rows: rows of the CSV file
    :param defaults: what rows without a value in one of these columns were done with
    :return: those that are not in the file
    """
    done = keys_of(rows, runs[0], defaults) if runs else set()
    return [run for run in runs if _key(run, run) not in done]


def row_keys(rows: pd.DataFrame, names: Iterable[str], defaults: Row) -> list[tuple[str, ...]]:
    """
    Tell of which runs rows are.

    :param rows: rows of the CSV file
    :param names: columns that identify a run
    :param defaults: what rows without a value in one of these columns were done with
    :return: what identifies each row
    """
    names = list(names)
    known = {name: rows[name] if name in rows else pd.Series(index=rows.index, dtype=object) for name in names}
    return [_key(row, names) for row in fill(pd.DataFrame(known), defaults).to_dict("records")]


def fill(rows: pd.DataFrame, defaults: Row) -> pd.DataFrame:
    """
    Say what rows were done with that do not tell.

    :param rows: rows of the CSV file
    :param defaults: what rows without a value in one of these columns were done with
    :return: the same rows, without gaps in these columns
    """
    known = {name: canonical(rows[name]).fillna(value) for name, value in defaults.items() if name in rows}
    return rows.assign(**known)


def canonical(cells: pd.Series) -> pd.Series:
    """
    Write equal cells in one form: in a CSV file, a column with a gap holds 0.0 for 0, and one of text ``"0"`` or ``"0.0"``.

    :param cells: a column
    :return: the same cells, all whole numbers as ``int``, also those read as text
    """
    # A column of numbers would make floats of them, and take no text
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
