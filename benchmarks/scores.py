"""Returns of runs on the tasks of robots, from the benchmark and from RL Zoo, and published returns."""

import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path

import numpy as np
import pandas as pd
from runs import filled, plain, read_rows
from urlb_methods import METHODS, OF_TASK

from sb3_cesd.envs.registration import pixels_id

PUBLISHED = Path(__file__).parent / "data" / "urlb_published.csv"
#: Settings of a run that become part of a method's name where its runs differ in them, and how its skill was chosen
SETTINGS = (
    "scale", "pretrain_steps", "pretrain_envs", "finetune_steps", "skill_choice", "chosen_by", "warm_up", "transfer",
    "eval_freq", "n_eval_episodes", "task_params",
)  # fmt: skip
#: Those of pre-training and its skills, and those of learning, which other methods lack
OF_SKILLS = {"pretrain_steps", "pretrain_envs", "skill_choice", "chosen_by", "warm_up", "transfer"}
OF_LEARNING = {"eval_freq", "task_params"}
#: Settings that come from the entries of the robots: no variants if they only differ between robots
OF_ROBOTS = ("pretrain_steps", "pretrain_envs", "finetune_steps", "chosen_by")
WITHOUT_SKILLS = {name for name, method in METHODS.items() if not method.pretrained}
WITHOUT_LEARNING = {name for name, method in METHODS.items() if not method.algo}


def published() -> pd.DataFrame:
    """
    Read the published returns.

    :return: published returns after 2M + 100k steps, with their table, and those of experts: ``task`` (an id),
        ``method``, ``return_mean``, ``return_spread``, ``expert_return``
    """
    rows = pd.read_csv(PUBLISHED)
    words = (rows.domain + "_" + rows.task).str.split("_")
    return rows.assign(task=["".join(word.capitalize() for word in of_task) + "-v0" for of_task in words])


def expert_returns() -> dict[str, float]:
    """Return the return of an expert, which is a score of 1, for each task, from pictures as from vectors."""
    rows = published()
    returns = dict(zip(rows.task, rows.expert_return.astype(float), strict=True))
    return {**returns, **{pixels_id(task): expert for task, expert in returns.items()}}


def read_runs(paths: Iterable[Path], where: Mapping[str, str] | None = None) -> pd.DataFrame:
    """
    Read runs of tasks.

    :param paths: ``runs.csv`` of ``urlb.py``, or folders of RL Zoo (``LOGS/METHOD/TASK_NUMBER/evaluations.npz``)
    :param where: setting (or ``domain``) -> value of the runs to keep; methods that lack the setting are kept
    :return: a row per run with ``method``, ``task``, ``seed``, ``final_return``; ``steps`` and ``returns`` of its evaluations
        are arrays. A setting in which runs of a method differ is part of its name
    :raises ValueError: if there is nothing to read, or a run was done twice
    """
    tables, zoo = [path for path in paths if path.suffix == ".csv"], [path for path in paths if path.suffix != ".csv"]
    rows = read_rows(*tables)
    if len(rows):
        rows = name_variants(_mean_of_repeats(_keep(_read_evaluations(rows), where or {})))
    rows = pd.concat([rows, *map(_read_zoo, zoo)], ignore_index=True)
    if rows.empty:
        raise ValueError(f"There are no runs in {', '.join(map(str, paths))}: pass runs.csv of urlb.py, or folders of RL Zoo.")
    return rows


def _read_evaluations(rows: pd.DataFrame) -> pd.DataFrame:
    """Give rows the same form, with arrays of evaluations."""
    rows = filled(rows, dict.fromkeys([*OF_TASK, "chosen_by"]))
    arrays = {name: rows[name].map(lambda text: np.asarray(json.loads(text), dtype=float)) for name in ("steps", "returns")}
    rows = rows.assign(**arrays, seed=rows.seed.astype(int))
    twice = rows.duplicated([*OF_TASK])
    if twice.any():
        run = rows[twice].iloc[0]
        raise ValueError(f"{run.method}, {run.task}, seed {run.seed} was done twice: delete one of the rows.")
    return rows


def _keep(rows: pd.DataFrame, where: Mapping[str, str]) -> pd.DataFrame:
    """Select rows with these settings, and those of methods that lack such a setting."""
    for setting, wanted in where.items():
        known = ["domain", *SETTINGS]
        if setting not in known:
            raise ValueError(f"The runs have no setting {setting!r}: choose from {', '.join(known)}.")
        lacking = WITHOUT_SKILLS if setting in OF_SKILLS else WITHOUT_LEARNING if setting in OF_LEARNING else set()
        lacks, values = rows.method.isin(lacking), rows[setting].astype(str)
        if wanted not in set(values[~lacks]):
            raise ValueError(f"No run has {setting}={wanted}: choose from {', '.join(sorted(set(values[~lacks])))}.")
        rows = rows[lacks | (values == wanted)]
    return rows


def _mean_of_repeats(rows: pd.DataFrame) -> pd.DataFrame:
    """Average the runs that learned a task from the same model, since they must not count as seeds."""
    identity = [name for name in OF_TASK if name != "repeat"]
    if not rows.duplicated(identity).any():
        return rows
    groups = rows.groupby(identity, sort=False, dropna=False)
    means = groups[["returns", "final_return"]].agg(lambda values: sum(values) / len(values))
    return groups.first().assign(**means).reset_index()


def name_variants(rows: pd.DataFrame, settings: Sequence[str] = SETTINGS) -> pd.DataFrame:
    """Make settings in which runs of a method differ part of its name, since such runs must not count as seeds."""
    names = rows.method.astype(str)
    for setting in settings:
        if setting in rows:
            values = rows[setting].map(plain)
            compared = [rows.method, rows.domain] if setting in OF_ROBOTS and "domain" in rows else [rows.method]
            several = (values.groupby(compared).transform("nunique") > 1).groupby(rows.method).transform("any")
            names = names.where(~several, names + f", {setting}=" + values.astype(str))
    return rows.assign(method=names)


def _read_zoo(folder: Path) -> pd.DataFrame:
    """
    Read runs of RL Zoo. Those of one method and folder count as its seeds: keep others in another one.

    :param folder: a log folder, or a folder in it
    :return: a row per run; seeds are the numbers of its folder
    """
    rows = []
    for file in sorted(folder.rglob("evaluations.npz")):
        task, _, number = file.parent.name.rpartition("_")
        if task in expert_returns() and number.isdecimal():
            with np.load(file) as evaluations:
                steps, returns = evaluations["timesteps"].astype(float), evaluations["results"].mean(axis=1)
            run = {"method": f"{file.parents[1].name}, {folder}", "domain": task, "task": task, "seed": int(number)}
            rows.append({**run, "steps": steps, "returns": returns, "final_return": float(returns[-1])})
        else:
            print(f"{file.parent} is of no task with an expert's return: left out.")
    return pd.DataFrame(rows)


def select(rows: pd.DataFrame, column: str, values: Sequence[str]) -> pd.DataFrame:
    """Select rows with some values of a column, in their order."""
    values = list(dict.fromkeys(values))
    if unknown := [value for value in values if value not in set(rows[column])]:
        known = ", ".join(dict.fromkeys(rows[column]))
        raise ValueError(f"There are no runs of {', '.join(unknown)}: choose from {known}.")
    return pd.concat([rows[rows[column] == value] for value in values], ignore_index=True)


def until(rows: pd.DataFrame, n_timesteps: int) -> pd.DataFrame:
    """Cut runs where the task had been learned for some steps, to compare how fast it is learned."""
    counts = [int(np.searchsorted(steps, n_timesteps, side="right")) for steps in rows.steps]
    if not all(counts):
        raise ValueError(f"A run has no evaluation by step {n_timesteps}: pass a larger --at.")
    cut = {name: [values[:n] for values, n in zip(rows[name], counts, strict=True)] for name in ("steps", "returns")}
    return rows.assign(**cut, final_return=[values[-1] for values in cut["returns"]])


def of_last(rows: pd.DataFrame, n_evaluations: int) -> pd.DataFrame:
    """Average the last evaluations of each run, since returns vary between two of them; random actions have one alone."""
    if n_evaluations == 1:
        return rows
    learned = ~rows.method.str.split(", ").str[0].isin(WITHOUT_LEARNING)
    if n_evaluations > (fewest := rows.returns[learned].map(len).min()):
        raise ValueError(f"A run has only {fewest} evaluations: pass --last {fewest} at most.")
    return rows.assign(final_return=rows.returns.map(lambda returns: float(returns[-n_evaluations:].mean())))


def normalise(rows: pd.DataFrame) -> pd.DataFrame:
    """Add ``score``, the final return as a share of the expert's."""
    experts = expert_returns()
    if unknown := sorted(set(rows.task) - set(experts)):
        raise ValueError(f"There is no expert return of {', '.join(unknown)}: leave them out, or add it to {PUBLISHED.name}.")
    return rows.assign(score=rows.final_return / rows.task.map(experts))


def scores_of(rows: pd.DataFrame, method: str, tasks: Sequence[str]) -> np.ndarray:
    """Return the scores of a method, shape ``(n_seeds, n_tasks)``; NaN where a seed lacks a task."""
    table = rows[rows.method == method].pivot_table("score", "seed", "task").reindex(columns=list(tasks))
    return table.to_numpy(dtype=float)


def mean_and_spread(values: pd.Series) -> str:
    """Format the mean and standard deviation of returns over seeds; the mean alone for a single one, a dash for none."""
    spread = f" ± {values.std():.0f}" if len(values) > 1 else ""
    return f"{values.mean():.0f}{spread}" if len(values) else "-"
