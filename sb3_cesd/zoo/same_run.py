"""RL Zoo resumes a checkpoint by the run that wrote it, and keeps what that run has in its folder."""

import inspect
import shutil
from collections import OrderedDict
from functools import wraps
from pathlib import Path
from typing import Any

import yaml

from sb3_cesd.checkpoints.folders import STATISTICS
from sb3_cesd.common.rules import plain
from sb3_cesd.common.untrusted_yml import read_entry
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg.saved_files import read_saved_data, with_lists
from sb3_cesd.skill_ddpg.search_space import Params
from sb3_cesd.zoo.nested import has, leaves, look_up

#: Hyperparameters of RL Zoo that change the environment
OF_ENV = ("normalize", "frame_stack", "env_wrapper", "vec_env_wrapper")
#: Hyperparameters of RL Zoo from which it makes the action noise
OF_NOISE = ("noise_type", "noise_std")
#: Hyperparameters of RL Zoo that may be others when a run is resumed
CHANGING = ("n_timesteps", "callback")


def folder_of_run(agent: str) -> Path | None:
    """
    Find the run that wrote a checkpoint.

    :param agent: path of the model of the checkpoint
    :return: folder with ``args.yml`` and ``config.yml`` of the run; ``None`` if there is none above that of the checkpoint,
        since ``ResumableCheckpoint`` was given another path
    """
    above = Path(agent).resolve().parents[2:3]
    runs = [path.parent for folder in above for path in folder.glob("*/args.yml")]
    return runs[0] if len(runs) == 1 else None


def keep_best_model(run: Path, save_path: str) -> None:
    """
    Copy the best model of a run that is resumed in another folder, with its statistics: a later one has to be better.

    :param run: folder with ``args.yml`` of the run
    :param save_path: folder of the resumed run
    """
    best = run.parent / "best_model.zip"
    if best.is_file():
        shutil.copy2(best, save_path)
        if (statistics := run / STATISTICS).is_file():
            (Path(save_path) / run.name).mkdir(exist_ok=True)
            shutil.copy2(statistics, Path(save_path) / run.name)


def keep_config(save_config: Any) -> Any:
    """
    Make RL Zoo write the hyperparameters of a resumed run to its ``config.yml``, not those of an entry, which are not used,
    and print which these are.

    :param save_config: ``ExperimentManager._save_config``
    :return: the extended method
    """

    @wraps(save_config)
    def save_kept(self: Any, saved_hyperparams: Params) -> None:
        run = getattr(self, "resumed_run", None)
        config = {} if run is None else config_of(run)
        if config:
            tell_what_is_not_used(config, saved_hyperparams)
            changing = {name: value for name, value in saved_hyperparams.items() if name in CHANGING}
            saved_hyperparams = OrderedDict({**config, **changing})
        save_config(self, saved_hyperparams)

    return save_kept


def tell_what_is_not_used(config: Params, entry: Params) -> None:
    """
    Print which hyperparameters a resumed run does not take from an entry.

    :param config: ``config.yml`` of the run, see :func:`config_of`
    :param entry: hyperparameters from the entry and ``-params``
    """
    others = [
        f"{'.'.join(path)}={value!r}"
        for path, value in leaves(entry).items()
        if path[0] not in CHANGING and not (has(config, path) and with_lists(look_up(config, path)) == with_lists(value))
    ]
    if others:
        print(f"The run goes on with its own hyperparameters, instead of these of the yml file: {', '.join(others)}")


def config_of(run: Path) -> Params:
    """
    Read the hyperparameters of a run, as RL Zoo does.

    :param run: folder of the run with ``config.yml``
    :return: hyperparameters by name, without those that may change; none if the file is missing or damaged
    """
    try:
        config = yaml.unsafe_load((run / "config.yml").read_text(encoding="utf-8"))
    except (OSError, yaml.YAMLError):
        return {}
    return {name: value for name, value in dict(config or {}).items() if name not in CHANGING}


def check_same_run(manager: Any) -> None:
    """
    Check that a checkpoint is resumed by the same run.

    :param manager: RL Zoo's ``ExperimentManager``, of a method, with ``-i``
    :raises ValueError: if the checkpoint is of another method or environment, or ``-params`` gives other hyperparameters
    """
    folder = Path(manager.trained_agent).parent
    method, name = METHODS[manager.algo], read_saved_data(manager.trained_agent)["lineage"][0]
    if name != method.__name__:
        raise ValueError(
            f"{folder} is a checkpoint of {name}, not of {method.__name__}: pass its name in lower case to --algo."
        )
    run = folder_of_run(manager.trained_agent)
    saved = read_saved_data(manager.trained_agent)
    given = plain(manager.custom_hyperparams or {})
    if run is not None:
        check_same_env(manager, run)
        compared = (*inspect.signature(method).parameters, *OF_ENV, *OF_NOISE)
        changed = changed_in_config(config_of(run), saved, given, compared)
    else:
        changed = changed_in_model(saved, given)
    if changed:
        raise ValueError(
            f"A resumed run keeps its hyperparameters ({', '.join(changed)}): leave that out of -params, or start from the "
            "model that a run saves at its end."
        )


def check_same_env(manager: Any, run: Path) -> None:
    """
    Check that a run is resumed in its environment.

    :param manager: RL Zoo's ``ExperimentManager``
    :param run: folder with ``args.yml`` and ``config.yml`` of the run
    :raises ValueError: if the id or the arguments of the environment are others
    """
    env_id, kwargs = (_entry(run / "args.yml", name) for name in ("env", "env_kwargs"))
    kwargs = with_lists(kwargs or _entry(run / "config.yml", "env_kwargs") or {})
    if (env_id or manager.env_name.gym_id) == manager.env_name.gym_id and kwargs == with_lists(manager.env_kwargs or {}):
        return
    listed = "".join(f" {name}:{value!r}" for name, value in kwargs.items())
    raise ValueError(
        f"The run was of --env {env_id} {'with' if kwargs else 'without'} --env-kwargs{listed}: resume it with the same, or "
        "start from the model that a run saves at its end."
    )


def changed_in_config(config: Params, saved: Params, given: Params, compared: tuple[str, ...]) -> list[str]:
    """
    Compare hyperparameters with those that a run was started with.

    :param config: ``config.yml`` of the run, see :func:`config_of`
    :param saved: what is saved in its model, for hyperparameters that the file does not name
    :param given: hyperparameters from ``-params``
    :param compared: names of those to compare
    :return: a phrase for each that differs
    """
    plain_ones = {name: value for name, value in saved.items() if not (isinstance(value, dict) and ":serialized:" in value)}
    entries = {name: config.get(name) for name in given}
    # The file of a run that was itself resumed without these lacks them
    entries = {name: value for name, value in entries.items() if value is not None and not _same_kind(saved.get(name), value)}
    known = {**plain_ones, **entries}
    paths = {path: value for path, value in leaves(given).items() if path[0] in compared}
    return [
        f"{'.'.join(path)} was {look_up(known, path)!r}" if has(known, path) else f"{'.'.join(path)} was not given"
        for path, value in paths.items()
        if not has(known, path) or with_lists(look_up(known, path)) != with_lists(value)
    ]


def changed_in_model(saved: Params, given: Params) -> list[str]:
    """
    Compare hyperparameters with those of a saved model, as far as the two can be compared: a model stores a number for the
    skill ``"best"``, and for some other strings and ``None``.

    :param saved: what is saved in the model
    :param given: hyperparameters from ``-params``
    :return: a phrase for each that differs
    """
    return [
        f"{'.'.join(path)} was {look_up(saved, path)!r}"
        for path, value in leaves(given).items()
        if has(saved, path) and _differs(look_up(saved, path), value)
    ]


def _differs(saved: Any, given: Any) -> bool:
    """Whether both are numbers or both are strings, and they differ."""
    return _same_kind(saved, given) and saved != given


def _same_kind(saved: Any, given: Any) -> bool:
    """Whether both are numbers or both are strings, so that a model and an entry can be compared in them."""
    return any(isinstance(saved, kind) and isinstance(given, kind) for kind in (int | float, str))


def _entry(path: Path, name: str) -> Any:
    """Read an entry of a yml file; ``None`` if there is none, or it is not made of plain data."""
    try:
        return read_entry(path, name)
    except (ValueError, OSError):
        return None
