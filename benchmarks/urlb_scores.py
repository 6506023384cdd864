"""Returns of runs on the tasks of robots, from the benchmark and from RL Zoo, and published returns."""

import json
import warnings
from collections.abc import Collection, Iterable, Mapping
from pathlib import Path
from types import MappingProxyType
from typing import Any
from zipfile import BadZipFile

import numpy as np
import pandas as pd
from identities import OF_OLD_TASKS, OF_TASK
from runs import Row, canonical, fill, read_rows, row_keys
from urlb_methods import METHODS
from zoo_runs import RUN_NAME, first_folder, folder_of, read_run
from zoo_settings import settings_of, table_of, telling

from sb3_cesd.envs.robots.ids import ROBOTS

PUBLISHED = Path(__file__).parent / "data" / "urlb_published.csv"
#: Columns that a report needs
COLUMNS = ["method", "task", "seed", "steps", "returns", "final_return"]
#: Columns that identify a run of a method
OF_RUN = ("method", "domain", "task", "seed", "repeat")
_SETTINGS = [name for name in OF_TASK if name not in OF_RUN]
_SETTINGS.insert(_SETTINGS.index("skill_choice") + 1, "chosen_by")
#: Settings of a run, and how its skill was chosen
SETTINGS = tuple(_SETTINGS)
#: Values of columns that rows lack if they are older than the choice of a skill by its states
CHOSEN_BEFORE: Row = {"chosen_by": 0}
#: Settings that an option of ``urlb.py`` sets for all robots; the others may come from the entries of the robots
OF_OPTIONS = (
    "scale",
    "skill_choice",
    "warm_up",
    "transfer",
    "eval_freq",
    "n_eval_episodes",
    "n_skill_episodes",
    "task_params",
)
#: Settings of the pre-training and of its skills
OF_SKILLS = ("pretrain_steps", "pretrain_envs", "skill_choice", "chosen_by", "warm_up", "transfer", "n_skill_episodes")
#: Settings of learning
OF_LEARNING = ("eval_freq", "task_params")
#: Methods that learn no skills, and those that learn nothing
WITHOUT_SKILLS = frozenset(name for name, method in METHODS.items() if not method.pretrained)
WITHOUT_LEARNING = frozenset(name for name, method in METHODS.items() if not method.algo)
#: Setting -> methods that lack it, whatever is in their rows: 0 is also a skill, or stands for the values of the yml file
LACKING = {**dict.fromkeys(OF_SKILLS, WITHOUT_SKILLS), **dict.fromkeys(OF_LEARNING, WITHOUT_LEARNING)}


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
    """Return the id of a task in the paper's table, e.g. ``JacoReachTopLeft-v0`` for ``jaco`` and ``reach_top_left``."""
    return "".join(word.capitalize() for word in (domain, *task.split("_"))) + "-v0"


def expert_returns() -> dict[str, float]:
    """
    Read the returns of experts.

    :return: task -> return of an expert, which is a score of 1
    """
    rows = published()
    return dict(zip(rows.task, rows.expert_return.astype(float), strict=True))


def read_runs(paths: Iterable[Path], where: Mapping[str, str] = MappingProxyType({})) -> pd.DataFrame:
    """
    Read runs from CSV files and from folders of RL Zoo.

    :param paths: ``runs.csv`` of ``urlb.py``, a folder of RL Zoo with ``evaluations.npz``, or a folder of such folders. A run
        in two CSV files, or a folder given twice, is read once; a method in a CSV file and in RL Zoo counts as two methods.
        Runs of RL Zoo without an expert's return, such as pre-training, are left out with a warning if there are others
    :param where: setting (or ``domain``) -> value of the runs to keep; runs of methods without this setting are kept
    :return: a row per run, see :data:`COLUMNS`; ``steps`` and ``returns`` of its evaluations are arrays. A setting in which
        runs of a method differ is part of its name
    :raises ValueError: if there is nothing to read, two files differ in a run, or ``where`` is used for folders of RL Zoo
    """
    tables: dict[Path, pd.DataFrame] = {}
    evaluations: dict[Path, None] = {}
    for path in paths:
        if path.is_file() and path.suffix == ".csv":
            tables[path] = read_rows(path)
            if tables[path].empty:
                raise ValueError(f"{path} has no runs: pass the runs.csv of benchmarks/urlb.py, once it has finished one.")
            missing = sorted(set(COLUMNS) - set(tables[path]))
            if missing:
                raise ValueError(f"{path} lacks the columns {', '.join(missing)}: pass the runs.csv of benchmarks/urlb.py.")
            continue
        files = sorted(path.rglob("evaluations.npz"))
        if not files:
            raise ValueError(f"{path} is not a CSV file and has no evaluations.npz: pass runs.csv, or a folder of RL Zoo.")
        if where:
            names = ", ".join(where)
            raise ValueError(f"{path} is of RL Zoo, whose runs --where does not select: leave {names} out, or pass --methods.")
        evaluations.update(dict.fromkeys(file.resolve() for file in files))
    if not tables:
        return _read_zoo(evaluations)
    of_tables = mean_of_repeats(_keep(_read_tables(tables), where))
    of_zoo = [_read_zoo(evaluations, set(of_tables.method))] if evaluations else []
    return pd.concat([*of_zoo, name_variants(of_tables)], ignore_index=True)


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
            f"A run has different returns in two rows of {', '.join(map(str, tables))} ({same[several].iloc[0]}): it was done "
            "twice, delete one of the rows."
        )
    rows = rows[~same.duplicated()].reset_index(drop=True)
    for name in ("steps", "returns"):
        rows[name] = [_evaluations(run, name) for _, run in rows.iterrows()]
    # Text becomes NaN, which can't be scored
    return rows.assign(final_return=pd.to_numeric(rows.final_return, errors="coerce"))


def _evaluations(run: pd.Series, name: str) -> np.ndarray:
    """
    Read the evaluations of a run.

    :param run: its row
    :param name: ``steps`` or ``returns``
    :return: a value per evaluation
    :raises ValueError: if the cell is damaged
    """
    try:
        return np.asarray(json.loads(run[name]), dtype=float)
    except (ValueError, TypeError) as error:
        raise ValueError(
            f"The {name} of {run.method}, {run.task}, seed {run.seed} can't be read ({run[name]!r}): restore them, or delete "
            "the row."
        ) from error


def _keep(rows: pd.DataFrame, where: Mapping[str, str]) -> pd.DataFrame:
    """Select rows with these settings or of this domain, and those of methods that lack such a setting."""
    known = [name for name in ("domain", *SETTINGS) if name in rows]
    for setting, wanted in where.items():
        if setting not in known:
            raise ValueError(f"The runs have no setting {setting!r}: choose from {', '.join(known)}.")
        lacks = rows.method.isin(LACKING.get(setting, ()))
        values = rows[setting].astype(str)
        there = sorted(set(values[~lacks]))
        if wanted not in there:
            remedy = f"choose from {', '.join(there)}" if there else f"leave {setting} out"
            raise ValueError(f"No run has {setting}={wanted}: {remedy}.")
        rows = rows[lacks | (values == wanted)]
    return rows


def check_have_runs(names: Iterable[str], known: Iterable[str]) -> None:
    """
    Check that methods or robots have runs.

    :param names: their names
    :param known: names of those that have runs
    :raises ValueError: if one has none
    """
    known = list(dict.fromkeys(known))
    unknown = [name for name in names if name not in known]
    if unknown:
        raise ValueError(f"There are no runs of {', '.join(unknown)}: choose from {', '.join(known)}.")


def mean_of_repeats(rows: pd.DataFrame) -> pd.DataFrame:
    """
    Average the runs that learned a task from the same model, since they are not independent and must not count as seeds.

    :param rows: runs
    :return: one row per model and task, with the mean of the returns; the same rows if nothing was repeated
    """
    identity = [name for name in OF_TASK if name in rows and name != "repeat"]
    if "repeat" not in rows or not rows.duplicated(identity).any():
        return rows
    groups = rows.groupby(identity, sort=False, dropna=False)
    means = groups[["returns", "final_return"]].agg(lambda values: sum(values) / len(values))
    return groups.first().assign(**means).reset_index()


def until(rows: pd.DataFrame, n_timesteps: int) -> pd.DataFrame:
    """
    Cut runs where the task had been learned for some time, to compare how fast it is learned.

    :param rows: runs
    :param n_timesteps: environment steps
    :return: the runs without later evaluations, with the last of the others as ``final_return``; methods that don't learn are
        unchanged
    :raises ValueError: if a run that learned has no evaluation by then
    """
    learned = _learned(rows)
    first = max((int(steps[0]) for steps in rows.steps[learned]), default=0)
    if n_timesteps < first:
        raise ValueError(f"A run has no evaluation before step {first}: pass --at {first} at least.")
    counts = [int(np.searchsorted(steps, n_timesteps, side="right")) for steps in rows.steps]
    cut = {name: [values[:n] for values, n in zip(rows[name], counts, strict=True)] for name in ("steps", "returns")}
    ends = pd.Series([float(values[-1]) if len(values) else np.nan for values in cut["returns"]], index=rows.index)
    return rows.assign(**cut, final_return=rows.final_return.where(~learned, ends))


def of_last(rows: pd.DataFrame, n_evaluations: int) -> pd.DataFrame:
    """
    Average the last evaluations of each run, since returns vary between two evaluations.

    :param rows: runs
    :param n_evaluations: number of evaluations
    :return: the runs, with the mean of the last evaluations as ``final_return``; unchanged for a single one, and for methods
        that don't learn
    :raises ValueError: if a run that learned has fewer evaluations
    """
    learned = _learned(rows)
    if n_evaluations == 1 or not learned.any():
        return rows
    fewest = int(rows.returns[learned].map(len).min())
    if n_evaluations > fewest:
        raise ValueError(f"A run has only {fewest} evaluations: pass --last {fewest} at most.")
    means = rows.returns.map(lambda returns: float(returns[-n_evaluations:].mean()))
    return rows.assign(final_return=rows.final_return.where(~learned, means))


def _learned(rows: pd.DataFrame) -> pd.Series:
    # Settings follow a comma and a space
    return ~rows.method.str.split(", ").str[0].isin(WITHOUT_LEARNING)


def name_variants(rows: pd.DataFrame, settings: Iterable[str] = SETTINGS) -> pd.DataFrame:
    """
    Rename methods whose runs differ in a setting, since such runs must not count as seeds of one method.

    :param rows: runs
    :param settings: columns of settings
    :return: the runs; a setting that differs between the runs of a method with the same robot becomes part of its name, and
        one of :data:`OF_OPTIONS` also if it differs between robots. Others that only differ between robots come from their
        entries
    """
    names = rows.method.astype(str)
    same_robot = [rows[name] for name in ("method", "domain") if name in rows]
    for setting in (setting for setting in settings if setting in rows):
        values = canonical(rows[setting])
        compared = [rows.method] if setting in OF_OPTIONS else same_robot
        several = (values.groupby(compared).transform("nunique") > 1).groupby(rows.method).transform("any")
        names = names.where(~several, names + f", {setting}=" + values.astype(str))
    return rows.assign(method=names)


def _read_zoo(files: Iterable[Path], others: Collection[str] = ()) -> pd.DataFrame:
    """
    Read runs of RL Zoo.

    :param files: ``logs/METHOD/TASK_NUMBER/evaluations.npz``, absolute paths
    :param others: methods with runs from elsewhere
    :return: a row per run, see :data:`COLUMNS`
    :raises ValueError: if a folder has another name, or one of its files is damaged
    """
    rows = pd.DataFrame([_zoo_row(file) for file in files], columns=[*COLUMNS, "folder", "written"])
    rows = _with_expert(rows, has_others=len(others) > 0)
    if rows.empty:
        return rows[COLUMNS]
    rows = _continued_once(rows)
    rows["method"] = rows.method.where(~rows.method.isin(list(others)), rows.method + ", RL Zoo")
    rows["domain"] = [ROBOTS.get(task, (task,))[0] for task in rows.task]
    same = rows[["method", "domain"]]
    table = same.join(table_of(map(settings_of, rows.folder), rows.index))
    rows["method"] = name_variants(table, telling(table, list(same))).method
    return _number(_latest_of_seed(_finished(rows)))[COLUMNS]


def _zoo_row(file: Path) -> Row:
    """
    Read one run of RL Zoo.

    :param file: ``logs/METHOD/TASK_NUMBER/evaluations.npz``, an absolute path
    :return: a row, with the folder and when it was written; its seed is the number of the folder
    :raises ValueError: if the folder has another name, or the file is damaged
    """
    folder = file.parent
    match = RUN_NAME.fullmatch(folder.name)
    if match is None:
        raise ValueError(f"{folder} does not name a task and a run: pass a folder of RL Zoo like logs/cesd/WalkerRun-v0_1.")
    try:
        with np.load(file) as evaluations:
            steps, returns = evaluations["timesteps"].astype(float), evaluations["results"].mean(axis=1)
        final_return = float(returns[-1])
    except (ValueError, EOFError, BadZipFile, KeyError, IndexError) as error:
        raise ValueError(f"{file} is damaged ({error}): restore it, or delete its folder and repeat the run.") from error
    return {
        "method": folder.parent.name,
        "task": match[1],
        "seed": int(match[2]),
        "steps": steps,
        "returns": returns,
        "final_return": final_return,
        "folder": folder,
        "written": file.stat().st_mtime_ns,
    }


def _with_expert(rows: pd.DataFrame, has_others: bool) -> pd.DataFrame:
    """Remove, with a warning, runs of RL Zoo in environments without an expert, unless there are no other runs."""
    known = rows.task.isin(list(expert_returns()))
    if known.all() or not (known.any() or has_others):
        return rows
    counts = rows.task[~known].value_counts(sort=False)
    listed = ", ".join(f"{task} ({count} {'run' if count == 1 else 'runs'})" for task, count in counts.items())
    warnings.warn(
        f"There is no expert return of {listed}: left out. To silence this, pass the folders of tasks, like "
        "logs/cesd/WalkerRun-v0_*."
    )
    return rows[known].reset_index(drop=True)


def _continued_once(rows: pd.DataFrame) -> pd.DataFrame:
    """Keep the longest of several folders of one run of RL Zoo, which was continued from a checkpoint."""
    last = rows.steps.map(lambda steps: steps[-1])
    began = pd.Series([first_folder(folder) for folder in rows.folder], index=rows.index)
    by_length = began[last.sort_values(kind="stable").index]
    return rows[~by_length.duplicated(keep="last").reindex(rows.index)].reset_index(drop=True)


def _finished(rows: pd.DataFrame) -> pd.DataFrame:
    """Remove, with a warning, runs of RL Zoo that ended before others of the same method and task."""
    last = rows.steps.map(lambda steps: steps[-1])
    longest = last.groupby([rows.method, rows.task]).transform("max")
    for _, run in rows[last < longest].iterrows():
        warnings.warn(
            f"{run.folder.parent.name}/{run.folder.name} has evaluations up to step {run.steps[-1]:.0f}, but others are "
            "longer: it is left out. Repeat it, then delete this folder; or continue it with -i from a checkpoint, which "
            "writes a folder that counts in place of this one (keep both)."
        )
    return rows[last == longest].reset_index(drop=True)


def _latest_of_seed(rows: pd.DataFrame) -> pd.DataFrame:
    """
    Keep the latest, with a warning, of several runs of RL Zoo of one method, task and seed, which are not independent.

    :param rows: runs; their seeds are the numbers of their folders, by which and then by time the latest is chosen
    :return: the runs that count, with their seeds in RL Zoo where these are known; others are all kept
    """
    seeds = rows.folder.map(_seeds_of)
    by_time = rows.assign(seeds=seeds).sort_values(["seed", "written"])
    kept = []
    for (_, _, of_run), runs in by_time[by_time.seeds.notna()].groupby(["method", "task", "seeds"], sort=False):
        *earlier, latest = runs.folder
        kept.append(runs.index[-1])
        if earlier:
            warnings.warn(
                f"{latest} repeats {', '.join(map(str, earlier))} with the same seed ({of_run[0]}) and settings, so only the "
                "latest counts: pass another --seed to what is to count as well, and delete the folders of the others."
            )
    known = [number if of_run is None else of_run[0] for number, of_run in zip(rows.seed, seeds, strict=True)]
    return rows.assign(seed=known)[seeds.isna() | rows.index.isin(kept)].reset_index(drop=True)


def _seeds_of(folder: Path) -> tuple[Any, ...] | None:
    """
    Look up the seeds of a run of RL Zoo.

    :param folder: its folder
    :return: its seed, then the same of the run whose model it started from, or the path of this model if they are not known;
        ``None`` if its own is not known
    """
    run = read_run(first_folder(folder))
    seed = None if run is None else run.args.get("seed")
    if run is None or not isinstance(seed, int) or seed < 0:
        return None
    return (seed,) if run.model is None else (seed, *(_seeds_of(folder_of(run.model)) or (str(run.model),)))


def _number(rows: pd.DataFrame) -> pd.DataFrame:
    """
    Tell runs of RL Zoo of one method and task apart.

    :param rows: runs, whose seeds may be numbers of folders, and log folders (``-f``) count theirs separately
    :return: the runs; those of a method and task are numbered in turn if two have the same seed
    """
    twice = rows.duplicated(["method", "task", "seed"], keep=False).groupby([rows.method, rows.task]).transform("any")
    return rows.assign(seed=rows.seed.where(~twice, rows.groupby(["method", "task"]).cumcount() + 1))


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
            "rows, or repeat them."
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
    :param column: column of the values
    :return: values of each task, shape ``(n_seeds,)`` each
    """
    return [rows.loc[rows.task == task, column].to_numpy(dtype=float) for task in tasks]


def mean_and_spread(values: np.ndarray) -> str:
    """
    Format returns as a cell of a table.

    :param values: one per seed, at least one, shape ``(n_seeds,)``
    :return: mean and standard deviation over seeds; the mean alone for a single seed
    """
    spread = f" ± {values.std(ddof=1):.0f}" if len(values) > 1 else ""
    return f"{values.mean():.0f}{spread}"
