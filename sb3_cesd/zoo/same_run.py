"""Checks that RL Zoo resumes a checkpoint by the run that wrote it."""

import inspect
from pathlib import Path
from typing import Any

from sb3_cesd.checkpoints.folders import read_manifest
from sb3_cesd.common.rules import plain
from sb3_cesd.common.untrusted_yml import read_entry
from sb3_cesd.registry import METHODS
from sb3_cesd.skill_ddpg.saved_files import read_saved_data, with_lists
from sb3_cesd.skill_ddpg.search_space import Params
from sb3_cesd.zoo.nested import has, leaves, look_up

#: Hyperparameters of RL Zoo that change the environment
OF_ENV = ("normalize", "frame_stack", "env_wrapper", "vec_env_wrapper")


def check_same_run(manager: Any) -> None:
    """
    Check that a checkpoint is resumed by the same run.

    :param manager: RL Zoo's ``ExperimentManager``, of a method, with ``-i``
    :raises ValueError: if the checkpoint is of another method or environment, or ``-params`` gives other hyperparameters
    """
    folder = Path(manager.trained_agent).parent
    method, module_and_name = METHODS[manager.algo], read_manifest(folder)["class"]
    if module_and_name != [method.__module__, method.__qualname__]:
        raise ValueError(
            f"{folder} is a checkpoint of {module_and_name[1]}, not of {method.__name__}: pass its name in lower case to "
            "--algo."
        )
    # RL Zoo's folder of the run holds that of its checkpoints, unless their callback was given another path
    runs = [path.parent for path in folder.parents[1].glob("*/args.yml")]
    saved = read_saved_data(manager.trained_agent)
    given = plain(manager.custom_hyperparams or {})
    if len(runs) == 1:
        check_same_env(manager, runs[0])
        changed = changed_in_config(runs[0] / "config.yml", saved, given, (*inspect.signature(method).parameters, *OF_ENV))
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


def changed_in_config(config: Path, saved: Params, given: Params, compared: tuple[str, ...]) -> list[str]:
    """
    Compare hyperparameters with those that a run was started with.

    :param config: ``config.yml`` of the run
    :param saved: what is saved in its model, for hyperparameters that the file does not name
    :param given: hyperparameters from ``-params``
    :param compared: names of those to compare
    :return: a phrase for each that differs
    """
    plain_ones = {name: value for name, value in saved.items() if not (isinstance(value, dict) and ":serialized:" in value)}
    entries = {name: _entry(config, name) for name in given}
    known = {**plain_ones, **{name: value for name, value in entries.items() if value is not None}}
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
    kinds = [kind for kind in (int | float, str) if isinstance(saved, kind) and isinstance(given, kind)]
    return bool(kinds) and saved != given


def _entry(path: Path, name: str) -> Any:
    """Read an entry of a yml file; ``None`` if there is none, or it is not made of plain data."""
    try:
        return read_entry(path, name)
    except (ValueError, OSError):
        return None
