"""Settings of runs of RL Zoo: runs that differ in them are no seeds of one method."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import pandas as pd
from runs import Row, canonical
from zoo_runs import RUN_NAME, SAVED_AT, ZooRun, first_folder, folder_of, is_checkpoint, read_run

from sb3_cesd.skill_ddpg.saved_files import with_lists
from sb3_cesd.zoo.tuning import leaves

Settings = dict[str, str]
#: Options of RL Zoo for evaluations
OF_EVALUATION = ("eval_freq", "eval_episodes", "eval_env_kwargs")
#: Prefix of settings of the pre-training
OF_PRETRAINING = "pretraining."
PRETRAINED, PRETRAINED_IN = "pretrained", f"{OF_PRETRAINING}env"
STEPS, CONF_FILE = "n_timesteps", "conf_file"
#: Values of settings: not known, not applicable, and that of the constructor
UNKNOWN, NONE, DEFAULT = "unknown", "none", "default"


def settings_of(folder: Path) -> Settings:
    """
    Collect the settings of a run, except seeds, verbosity, devices and paths.

    A continued run has the hyperparameters of the run that it continues, whatever its own files say.

    :param folder: folder of the run
    :return: values by name, nested names joined by dots; empty if they are not known, or if a run that it continues is gone
    :raises ValueError: if a file is damaged
    """
    run, first = read_run(folder), read_run(first_folder(folder))
    if run is None or first is None:
        return {}
    settings = hyperparameters(first)
    settings |= _texts({name: run.args[name] for name in OF_EVALUATION if run.args.get(name) is not None})
    settings[STEPS] = planned_steps(run)
    conf_file = first.args.get(CONF_FILE)
    settings[CONF_FILE] = Path(str(conf_file)).name.removesuffix(".yml") if conf_file else DEFAULT
    return settings | pretraining_of(first)


def hyperparameters(run: ZooRun) -> Settings:
    """
    Flatten the hyperparameters of a run.

    :param run: a run
    :return: values by name; without our callbacks, which only observe
    """
    hyperparams = dict(run.hyperparams)
    if run.args.get("env_kwargs"):
        hyperparams["env_kwargs"] = run.args["env_kwargs"]
    callbacks = hyperparams.pop("callback", None) or []
    others = [each for each in (callbacks if isinstance(callbacks, list) else [callbacks]) if not is_observer(each)]
    return _texts({**hyperparams, "callback": others} if others else hyperparams)


def is_observer(callback: Any) -> bool:
    """
    Check whether a callback is one of this package.

    :param callback: its name, or a dictionary of the name and its arguments
    :return: whether it is one, which does not change the training
    """
    return str(next(iter(callback)) if isinstance(callback, Mapping) and callback else callback).startswith("sb3_cesd.")


def planned_steps(run: ZooRun) -> str:
    """
    Return the number of environment steps that a run was started with.

    :param run: a run
    :return: ``-n``, or else the number in its hyperparameters
    """
    given = run.args.get(STEPS)
    return str(given if isinstance(given, int) and given > 0 else run.hyperparams.get(STEPS, DEFAULT))


def pretraining_of(run: ZooRun) -> Settings:
    """
    Collect the settings of the pre-training of a run.

    :param run: a run
    :return: whether there was one; its environment and settings, with a prefix. Their number of steps is that of the model
    """
    if run.model is None:
        return {PRETRAINED: "no", PRETRAINED_IN: NONE}
    folder = folder_of(run.model)
    match = RUN_NAME.fullmatch(folder.name)
    if match is None and is_checkpoint(run.model):
        # Of a callback with a path of its own: it may be of this run as well
        return {PRETRAINED: UNKNOWN, PRETRAINED_IN: UNKNOWN}
    settings = settings_of(folder)
    if match is None or not settings:
        return {PRETRAINED: "yes", PRETRAINED_IN: UNKNOWN}
    saved_at = SAVED_AT.search(run.model.as_posix())
    if saved_at is not None:
        settings[STEPS] = str(int(saved_at[1] or saved_at[2]))
    elif run.model.stem == "best_model":
        settings[STEPS] = run.model.stem
    known = {name: value for name, value in settings.items() if name.split(".")[0] not in OF_EVALUATION}
    return {PRETRAINED: "yes", PRETRAINED_IN: match[1], **{f"{OF_PRETRAINING}{name}": value for name, value in known.items()}}


def _texts(values: Row) -> Settings:
    """Flatten values, nested names joined by dots, and convert them to text."""
    return {".".join(map(str, path)): str(with_lists(value)) for path, value in leaves(values)}


def table_of(settings: Iterable[Settings], index: pd.Index) -> pd.DataFrame:
    """
    Make a table of the settings of runs.

    :param settings: those of each run
    :param index: index of the table
    :return: a column per setting; equal values have the same form
    """
    rows = list(settings)
    names = dict.fromkeys(name for row in rows for name in sorted(row))
    columns = {name: canonical(pd.Series([_value(row, name) for row in rows], index=index, dtype=object)) for name in names}
    return pd.DataFrame(columns, index=index)


def _value(settings: Settings, name: str) -> str:
    """Return a setting, also if it was not given."""
    if not settings:
        return UNKNOWN
    without = settings[PRETRAINED_IN] if name.startswith(OF_PRETRAINING) else DEFAULT
    return settings.get(name, without if without in (UNKNOWN, NONE) else DEFAULT)


def telling(table: pd.DataFrame, same: list[str]) -> list[str]:
    """
    Choose the settings that tell runs apart.

    Files of hyperparameters differ in many of them: where the names of the files tell the runs apart, these stand for what
    the files contain.

    :param table: settings of runs, see :func:`table_of`, and the columns ``same``
    :param same: columns whose values runs must share to be compared
    :return: columns of settings
    """
    files = [name for name in (f"{OF_PRETRAINING}{CONF_FILE}", CONF_FILE) if name in table]
    settings = [name for name in table if name not in (*same, *files)]
    chosen = [name for name in (PRETRAINED,) if name in table]
    for name in files:
        # Two files may hold the same
        is_told_by_settings = _n_kinds(table, [*same, *settings, name]) == _n_kinds(table, [*same, *settings])
        if is_told_by_settings and _n_kinds(table, [*same, *chosen, name]) > _n_kinds(table, [*same, *chosen]):
            chosen.append(name)
    groups = table.groupby([*same, *chosen], sort=False)
    return chosen + [name for name in settings if name not in chosen and (groups[name].nunique() > 1).any()]


def _n_kinds(table: pd.DataFrame, columns: list[str]) -> int:
    """Count the different rows of some columns."""
    return len(table.drop_duplicates(columns))
