"""Returns of runs on the tasks of robots, from the benchmark and from RL Zoo, and those that were published."""

import json
import re
import warnings
from collections.abc import Iterable, Mapping
from pathlib import Path
from types import MappingProxyType

import numpy as np
import pandas as pd
from identities import OF_OLD_TASKS, OF_TASK
from runs import Row, canonical, fill, read_rows, row_keys

PUBLISHED = Path(__file__).parent / "data" / "urlb_published.csv"
#: Columns a report needs
COLUMNS = ["method", "task", "seed", "steps", "returns", "final_return"]
#: Columns that tell which run of a method a row is
OF_RUN = ("method", "domain", "task", "seed", "repeat")
_SETTINGS = [name for name in OF_TASK if name not in OF_RUN]
_SETTINGS.insert(_SETTINGS.index("skill_choice") + 1, "chosen_by")
#: Settings of a run, and how its skill was chosen
SETTINGS = tuple(_SETTINGS)
#: What rows do not tell that are older than a choice of the skill by its states
CHOSEN_BEFORE: Row = {"chosen_by": 0}
#: Value of a setting that a method does not have
NOT_APPLICABLE = "0"


def published() -> pd.DataFrame:
    """
    Read the published returns.

    :return: published returns after 2M + 100k steps (means over 10 seeds) and those of experts: ``task`` (an id),
        ``method``, ``return_mean``, ``return_spread``, ``expert_return``
    """
    rows = pd.read_csv(PUBLISHED)
    rows["task"] = [_task_id(domain, task) for domain, task in zip(rows.domain, rows.task, strict=True)]
    return rows


def _task_id(domain: str, task: str) -> str:
    """Id of a task of the paper's table, e.g. ``JacoReachTopLeft-v0`` of ``jaco`` and ``reach_top_left``."""
    return "".join(word.capitalize() for word in (domain, *task.split("_"))) + "-v0"


def expert_returns() -> dict[str, float]:
    """
    Read the returns of experts.

    :return: task -> return of an expert, a score of 1
    """
    rows = published()
    return dict(zip(rows.task, rows.expert_return.astype(float), strict=True))


def read_runs(paths: Iterable[Path], where: Mapping[str, str] = MappingProxyType({})) -> pd.DataFrame:
    """
    Read runs from CSV files and from folders of RL Zoo.

    :param paths: ``runs.csv`` of ``urlb.py``, a folder of RL Zoo with ``evaluations.npz``, or a folder of such folders. A run
        that two CSV files have is read once, and so is a folder; a method that both have is two
    :param where: setting (or ``domain``) -> value of the runs to keep; those of a method that has no such setting are kept
    :return: a row for each run, see :data:`COLUMNS`; ``steps`` and ``returns`` of its evaluations are arrays
    :raises ValueError: if there is nothing to read, two files differ in a run, or ``where`` is for folders of RL Zoo
    """
    tables: dict[Path, pd.DataFrame] = {}
    evaluations: dict[Path, None] = {}
    for path in paths:
        if path.is_file() and path.suffix == ".csv":
            tables[path] = read_rows(path)
            missing = sorted(set(COLUMNS) - set(tables[path]))
            if missing:
                raise ValueError(f"{path} lacks the columns {', '.join(missing)}: pass the runs.csv of benchmarks/urlb.py.")
            continue
        files = sorted(path.rglob("evaluations.npz"))
        if not files:
            raise ValueError(f"{path} is no CSV file and has no evaluations.npz in it: pass runs.csv, or a folder of RL Zoo.")
        if where:
            raise ValueError(f"The runs of RL Zoo in {path} name no settings: leave {', '.join(where)} out.")
        evaluations.update(dict.fromkeys(file.resolve() for file in files))
    of_zoo = _finished(pd.DataFrame([_read_zoo(file) for file in evaluations]))
    if not tables:
        return of_zoo
    of_tables = mean_of_repeats(_keep(_read_tables(tables), where))
    if evaluations:
        both = of_zoo.method.isin(of_tables.method)
        of_zoo["method"] = of_zoo.method.where(~both, of_zoo.method + ", RL Zoo")
    return pd.concat([of_zoo, name_variants(of_tables)], ignore_index=True)


def _read_tables(tables: Mapping[Path, pd.DataFrame]) -> pd.DataFrame:
    """
    Join CSV files.

    :param tables: file -> its rows
    :return: all runs, each once, with arrays of evaluations
    :raises ValueError: if two files differ in a run
    """
    rows = fill(pd.concat(tables.values(), ignore_index=True), {**OF_OLD_TASKS, **CHOSEN_BEFORE})
    rows = rows.assign(**{name: canonical(rows[name]) for name in OF_TASK if name in rows})
    same = pd.Series(["|".join(key) for key in row_keys(rows, OF_TASK, OF_OLD_TASKS)], index=rows.index)
    several = rows.groupby(same).final_return.transform("nunique") > 1
    if several.any():
        raise ValueError(
            f"A run has other returns in one row of {', '.join(map(str, tables))} than in another ({same[several].iloc[0]}): "
            "it was done twice, delete one of the rows."
        )
    rows = rows[~same.duplicated()].reset_index(drop=True)
    for name in ("steps", "returns"):
        rows[name] = [np.asarray(json.loads(text), dtype=float) for text in rows[name]]
    return rows


def _keep(rows: pd.DataFrame, where: Mapping[str, str]) -> pd.DataFrame:
    """Rows with these settings, or of this domain."""
    known = [name for name in ("domain", *SETTINGS) if name in rows]
    for setting, wanted in where.items():
        if setting not in known:
            raise ValueError(f"The runs have no setting {setting!r}: choose from {', '.join(known)}.")
        values = rows[setting].astype(str)
        rows = rows[values.isin([wanted, NOT_APPLICABLE])]
        if wanted not in set(values):
            there = ", ".join(sorted(set(values) - {NOT_APPLICABLE}))
            raise ValueError(f"No run has {setting}={wanted}: choose from {there}.")
    return rows


def mean_of_repeats(rows: pd.DataFrame) -> pd.DataFrame:
    """
    Join the runs that learned a task from the same model: they share its luck, and must not pass for as many seeds.

    :param rows: runs
    :return: one row for each model and task, with the mean of the returns; the same rows if nothing was repeated
    """
    identity = [name for name in OF_TASK if name in rows and name != "repeat"]
    if "repeat" not in rows or not rows.duplicated(identity).any():
        return rows
    groups = rows.groupby(identity, sort=False, dropna=False)
    means = groups[["returns", "final_return"]].agg(lambda values: sum(values) / len(values))
    return groups.first().assign(**means).reset_index()


def of_last(rows: pd.DataFrame, n_evaluations: int) -> pd.DataFrame:
    """
    Take the end of each run: returns jump between two evaluations.

    :param rows: runs
    :param n_evaluations: number of evaluations
    :return: the same, with the mean of the last ones as ``final_return``; that of one is there, with all its digits
    :raises ValueError: if a run has fewer
    """
    if n_evaluations == 1:
        return rows
    fewest = min(len(returns) for returns in rows.returns)
    if n_evaluations > fewest:
        raise ValueError(f"Some run has {fewest} evaluations: pass --last {fewest} at most.")
    return rows.assign(final_return=[float(returns[-n_evaluations:].mean()) for returns in rows.returns])


def name_variants(rows: pd.DataFrame, settings: Iterable[str] = SETTINGS) -> pd.DataFrame:
    """
    Tell runs of a method that differ in a setting apart: they must not pass for its seeds.

    :param rows: runs
    :param settings: columns of settings
    :return: the same; a setting that differs between the runs of a method with one robot has become part of its name. One
        that differs between robots alone is that of their entries
    """
    names = rows.method.astype(str)
    same_robot = [rows[name] for name in ("method", "domain") if name in rows]
    for setting in (setting for setting in settings if setting in rows):
        values = canonical(rows[setting])
        several = (values.groupby(same_robot).transform("nunique") > 1).groupby(rows.method).transform("any")
        names = names.where(~several, names + f", {setting}=" + values.astype(str))
    return rows.assign(method=names)


def _read_zoo(file: Path) -> dict:
    """
    Read one run of RL Zoo.

    :param file: ``logs/METHOD/TASK_NUMBER/evaluations.npz``, an absolute path
    :return: a row
    :raises ValueError: if the folder is not named so
    """
    folder = file.parent
    match = re.fullmatch(r"(.+)_(\d+)", folder.name)
    if match is None:
        raise ValueError(f"{folder} does not tell task and run: RL Zoo names it like logs/cesd/WalkerRun-v0_1.")
    evaluations = np.load(file)
    returns = evaluations["results"].mean(axis=1)
    return {
        "method": folder.parent.name,
        "task": match[1],
        "seed": int(match[2]),
        "steps": evaluations["timesteps"].astype(float),
        "returns": returns,
        "final_return": float(returns[-1]),
    }


def _finished(rows: pd.DataFrame) -> pd.DataFrame:
    """Leave out, with a warning, runs of RL Zoo that ended before others of their method and task."""
    if rows.empty:
        return rows
    last = rows.steps.map(lambda steps: steps[-1])
    longest = last.groupby([rows.method, rows.task]).transform("max")
    for _, run in rows[last < longest].iterrows():
        warnings.warn(
            f"{run.method}/{run.task}_{run.seed} has evaluations up to step {run.steps[-1]:.0f}, others go on longer: it is "
            "left out, go on with it by -i to have it counted."
        )
    return rows[last == longest].reset_index(drop=True)


def normalise(rows: pd.DataFrame) -> pd.DataFrame:
    """
    Score runs.

    :param rows: runs
    :return: the same with ``score``, the final return as a share of the expert's
    :raises ValueError: for a task without an expert, or a return that is not finite
    """
    experts = expert_returns()
    lost = rows[~np.isfinite(rows.final_return)]
    if len(lost):
        run = lost.iloc[0]
        raise ValueError(
            f"{len(lost)} runs have no finite return, the first is of {run.method}, {run.task}, seed {run.seed}: delete their "
            "rows, or do them again."
        )
    unknown = sorted(set(rows.task) - set(experts))
    if unknown:
        raise ValueError(f"There is no expert return of {', '.join(unknown)}: leave them out, or add it to {PUBLISHED.name}.")
    return rows.assign(score=rows.final_return / rows.task.map(experts))


def samples(rows: pd.DataFrame, tasks: Iterable[str], column: str = "score") -> list[np.ndarray]:
    """
    Group values by task.

    :param rows: runs of one method
    :param tasks: the tasks
    :param column: what to take
    :return: values of each task, shape ``(n_seeds,)`` each
    """
    return [rows.loc[rows.task == task, column].to_numpy(dtype=float) for task in tasks]


def mean_and_spread(values: np.ndarray) -> str:
    """
    Write returns as a cell of a table.

    :param values: one per seed, at least one, shape ``(n_seeds,)``
    :return: mean and standard deviation over seeds; the mean alone for a single seed
    """
    spread = f" ± {values.std(ddof=1):.0f}" if len(values) > 1 else ""
    return f"{values.mean():.0f}{spread}"
