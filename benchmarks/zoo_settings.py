"""Settings of runs of RL Zoo, from the files beside their evaluations: runs that differ in them are no seeds of one method."""

import re
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pandas as pd
import yaml
from runs import Row, canonical

from sb3_cesd.common.untrusted import ORDERED_DICT, TUPLE
from sb3_cesd.skill_ddpg.saved_files import with_lists
from sb3_cesd.zoo.nested import leaves

Settings = dict[str, str]
#: Name of the folder of a run: its environment, and a number
RUN_NAME = re.compile(r"(.+)_(\d+)")
#: Path of a model that was saved during training: a checkpoint of ours, or of RL Zoo
SAVED_AT = re.compile(r"/(?:steps_(\d+)/model|rl_model_(\d+)_steps)\.zip$")
#: Options of RL Zoo for evaluations
OF_EVALUATION = ("eval_freq", "eval_episodes", "eval_env_kwargs")
#: Prefix of settings of the pre-training
OF_PRETRAINING = "pretraining."
PRETRAINED, PRETRAINED_IN = "pretrained", f"{OF_PRETRAINING}env"
STEPS, CONF_FILE = "n_timesteps", "conf_file"
#: Values of settings: not known, not applicable, and that of the constructor
UNKNOWN, NONE, DEFAULT = "unknown", "none", "default"


class ZooRun(NamedTuple):
    """
    What RL Zoo writes when a run starts.

    :param env_id: its environment
    :param args: arguments of the command line by name
    :param hyperparams: hyperparameters by name
    :param model: the model that it started from (``-i``), ``None`` without
    """

    env_id: str
    args: Row
    hyperparams: Row
    model: Path | None


class _Loader(yaml.SafeLoader):
    """Loads plain data, and Python objects as text: nothing in the file is run."""


def _list(loader: yaml.SafeLoader, node: yaml.SequenceNode) -> list[Any]:
    return loader.construct_sequence(node, deep=True)


def _ordered_dict(loader: yaml.SafeLoader, node: yaml.SequenceNode) -> Row:
    (pairs,) = _list(loader, node)
    return dict(pairs)


def _text(loader: yaml.SafeLoader, name: str, node: yaml.Node) -> str:
    return name if isinstance(node, yaml.ScalarNode) else " ".join(yaml.serialize(node).split())


_Loader.add_constructor(ORDERED_DICT, _ordered_dict)
_Loader.add_constructor(TUPLE, _list)
_Loader.add_multi_constructor("tag:yaml.org,2002:python/", _text)


def read_yml(path: Path) -> Row:
    """
    Read a yml file of RL Zoo.

    :param path: ``args.yml`` or ``config.yml``
    :return: its entries, Python objects in them as text
    :raises ValueError: if it is damaged
    """
    try:
        content = yaml.load(path.read_text(encoding="utf-8"), Loader=_Loader)
        return {str(name): value for name, value in content.items()}
    except (yaml.YAMLError, AttributeError, TypeError, ValueError) as error:
        raise ValueError(f"{path} is not a yml file of RL Zoo, or is damaged: restore or remove it.") from error


def read_run(folder: Path) -> ZooRun | None:
    """
    Read what RL Zoo wrote when a run started.

    :param folder: folder of the run, an absolute path
    :return: the run; ``None`` if the folder or its yml files are missing
    :raises ValueError: if a file is damaged
    """
    match = RUN_NAME.fullmatch(folder.name)
    files = [folder / match[1] / name for name in ("args.yml", "config.yml")] if match else []
    if match is None or not all(file.is_file() for file in files):
        return None
    args, hyperparams = map(read_yml, files)
    model = args.get("trained_agent")
    return ZooRun(match[1], args, hyperparams, (called_from(folder, args) / str(model)).resolve() if model else None)


def called_from(folder: Path, args: Mapping[str, Any]) -> Path:
    """
    Find the folder in which RL Zoo was called, to which its paths are relative.

    :param folder: folder of the run, ``.../LOG_FOLDER/METHOD/ENV_NUMBER``
    :param args: arguments of the command line by name
    :return: this folder; the current one if it is not known
    """
    logs, given = folder.parents[1], Path(str(args.get("log_folder"))).parts
    is_relative = 0 < len(given) < len(logs.parts) and logs.parts[-len(given) :] == given
    return logs.parents[len(given) - 1] if is_relative else Path()


def first_folder(folder: Path) -> Path:
    """
    Find the folder in which a run began: one that is continued from a checkpoint (``-i``) writes to a new folder.

    :param folder: folder of a run
    :return: the folder that it began in, which may be gone
    """
    run = read_run(folder)
    if run is None or run.model is None or not is_checkpoint(run.model):
        return folder
    before = folder_of(run.model)
    match = RUN_NAME.fullmatch(before.name)
    return first_folder(before) if match is not None and match[1] == run.env_id and before != folder else folder


def is_checkpoint(model: Path) -> bool:
    """
    Check whether a model is that of a checkpoint from which a run can go on.

    :param model: path of the model, which may be gone
    :return: whether it is one
    """
    match = SAVED_AT.search(model.as_posix())
    return match is not None and match[1] is not None


def folder_of(model: Path) -> Path:
    """
    Find the folder of the run that saved a model.

    :param model: path of the model, which may be gone
    :return: the folder
    """
    return model.parent.parent.parent if is_checkpoint(model) else model.parent


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
    return {".".join(map(str, path)): str(with_lists(value)) for path, value in leaves(values).items()}


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
