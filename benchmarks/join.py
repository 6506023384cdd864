"""
Join the rows of benchmarks that ran on several machines, or into several folders.

    python benchmarks/join.py results/seed_*                                          # what would be joined
    python benchmarks/join.py results/seed_* --into benchmarks/results/urlb

Joins the files of each folder into those of the same name: ``runs.csv``, ``mine.csv``, ``pretraining.csv`` and
``hierarchical.csv``. Runs that are already there are skipped; if their measures differ, nothing is written. Models, rollouts
and evaluations are not copied.
"""

import argparse
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pandas as pd
from arguments import existing, make_folder, output_folder
from identities import IDENTITIES
from runs import Row, only_one, read_rows, row_keys, write_rows

#: Columns that may differ if a run was done twice
NOT_MEASURED = ("seconds", "versions")
#: Files that are joined
NAMES = ("runs.csv", "mine.csv", "pretraining.csv", "hierarchical.csv")


def identity_of(rows: pd.DataFrame, path: Path) -> tuple[tuple[str, ...], Row]:
    """
    Find the columns that identify the runs of a table.

    :param rows: its rows
    :param path: its file
    :return: the longest of :data:`~identities.IDENTITIES` that fits, and its default values
    :raises ValueError: if the table does not belong to a benchmark
    """
    fitting = [names for names, defaults in IDENTITIES.items() if set(names) - set(defaults) <= set(rows)]
    if not fitting:
        raise ValueError(f"{path} has no rows of maze.py, urlb.py or hierarchical.py: leave it out.")
    names = max(fitting, key=lambda names: len(set(names) & set(rows)))
    return names, IDENTITIES[names]


def join(tables: Mapping[Path, pd.DataFrame]) -> pd.DataFrame:
    """
    Join tables.

    :param tables: file -> its rows; the others are joined into the first
    :return: all rows of the first, then the missing ones of the others
    :raises ValueError: if two rows of a run differ, or the tables are of different benchmarks
    """
    joined: dict[tuple[str, ...], tuple[Path, Row]] = {}
    expected: tuple[str, ...] | None = None
    for path, rows in tables.items():
        names, defaults = identity_of(rows, path)
        if expected not in (None, names):
            raise ValueError(f"{path} is of another benchmark than {next(iter(tables))}: join them into different folders.")
        expected = names
        for key, row in zip(row_keys(rows, names, defaults), rows.to_dict("records"), strict=True):
            if key not in joined:
                joined[key] = path, row
                continue
            other_path, other = joined[key]
            compared = [name for name in row if name in other and name not in (*names, *NOT_MEASURED)]
            different = [name for name in compared if not _same(row[name], other[name])]
            if different:
                run = " ".join(f"{name}={value}" for name, value in zip(names, key, strict=True))
                values = ", ".join(f"{name} {other[name]} and {row[name]}" for name in different[:3])
                raise ValueError(
                    f"{other_path} and {path} have different rows of {run} ({values}): it was done twice. Delete one of them."
                )
    return pd.DataFrame([row for _, row in joined.values()])


def join_files(folders: Iterable[Path], name: str) -> pd.DataFrame:
    """
    Read and join the files of one name.

    :param folders: folders of the files
    :param name: one of :data:`NAMES`
    :return: all rows, each once; empty if no folder has any
    :raises ValueError: if two rows of a run differ
    """
    tables = {folder / name: rows for folder in folders if len(rows := read_rows(folder / name))}
    return join(tables) if tables else pd.DataFrame()


def _same(value: object, other: object) -> bool:
    """Whether two cells are equal, up to the digits that reading and writing numbers may lose."""
    if isinstance(value, int | float) and isinstance(other, int | float):
        return bool(np.isclose(value, other, rtol=1e-9, atol=0.0, equal_nan=True))
    return str(value) == str(other)


def join_folders(sources: list[Path], target: Path | None) -> None:
    """
    Join the files of folders, all of them or none.

    :param sources: folders with files of :data:`NAMES`
    :param target: folder to write to; ``None`` to only print what would be written
    :raises ValueError: if there is nothing to join, or rows contradict each other
    :raises RuntimeError: if another process writes a file of the target
    """
    folders = [source for source in sources if target is None or source.resolve() != target.resolve()]
    if not folders:
        raise ValueError(f"{target} is the folder to join into: pass the folders to join into it as well.")
    names = [name for name in NAMES if any(len(read_rows(folder / name)) for folder in folders)]
    if not names:
        raise ValueError(f"No file has rows in {', '.join(map(str, sources))}: pass folders with {', '.join(NAMES)}.")
    with ExitStack() as locks:
        joined = {}
        for name in names:
            if target is not None:
                locks.enter_context(only_one(target / name))
            paths = [folder / name for folder in ([] if target is None else [target]) + folders]
            tables = {path: rows for path in paths if len(rows := read_rows(path))}
            joined[name] = join(tables)
            counts = ", ".join(f"{len(rows)} of {path}" for path, rows in tables.items())
            print(f"{name}: {len(joined[name])} runs from {counts}")
        if target is not None:
            for name, rows in joined.items():
                write_rows(target / name, rows)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=existing, help="folders of results, finished or not")
    parser.add_argument("--into", type=output_folder, help="folder to join them into (default: print what would be done)")
    args = parser.parse_args()
    if args.into is not None:
        make_folder(parser, args.into)
    try:
        join_folders(args.folders, args.into)
    except (ValueError, RuntimeError) as error:
        parser.error(str(error))


if __name__ == "__main__":
    main()
