"""
Join the rows of benchmarks that ran on several machines, or into several folders.

    python benchmarks/join.py results/seed_* --into benchmarks/results/urlb

Joins the CSV files of each folder into those of the same name. A run that is in two folders with the same measures is taken
once; if they differ, nothing is written. Models, rollouts and evaluations are not copied.
"""

import argparse
from pathlib import Path

import pandas as pd
from maze_methods import OF_MAZE, OF_MINE
from runs import keys_of, read_rows, write_rows
from urlb_methods import OF_GOALS, OF_PRETRAINING, OF_TASK

#: File -> columns that identify its runs
NAMES = {"runs.csv": OF_TASK, "mine.csv": OF_MINE, "pretraining.csv": OF_PRETRAINING, "hierarchical.csv": OF_GOALS}
#: Those that pictures add
OF_PICTURES = ["observation", "encoder_learns_from", "shift"]


def join(paths: list[Path]) -> pd.DataFrame:
    """
    Join the rows of files.

    :param paths: CSV files of one name, which may be missing
    :return: all rows, each run once
    :raises ValueError: if two rows of a run differ in their measures
    """
    rows = read_rows(*paths)
    if rows.empty:
        return rows
    names = list(OF_MAZE if "maze" in rows and paths[0].name == "runs.csv" else NAMES[paths[0].name])
    names += [name for name in OF_PICTURES if name in rows]
    measures = rows.select_dtypes("number").columns.difference([*names, "seconds"])
    runs = pd.Series([" ".join(key) for key in keys_of(rows, names)], index=rows.index)
    several = (rows[measures].groupby(runs).nunique() > 1).any(axis=1)
    if several.any():
        raise ValueError(f"A run was done twice, with different measures ({several.idxmax()}): delete one of its rows.")
    return rows[~runs.duplicated()].reset_index(drop=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folders", nargs="+", type=Path, help="folders of results, finished or not")
    parser.add_argument("--into", type=Path, required=True, help="folder to join them into")
    args = parser.parse_args()
    joined = {}
    try:
        for name in NAMES:
            joined[name] = join([folder / name for folder in (args.into, *args.folders)])
    except ValueError as error:
        parser.error(str(error))
    for name, rows in joined.items():
        if len(rows):
            args.into.mkdir(parents=True, exist_ok=True)
            write_rows(args.into / name, rows)
            print(f"{args.into / name}: {len(rows)} runs")


if __name__ == "__main__":
    main()
