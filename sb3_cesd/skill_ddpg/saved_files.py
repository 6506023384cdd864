"""Reading saved models and replay buffers, and checks that they fit."""

import inspect
import io
import json
import pathlib
import warnings
import zipfile
from typing import Any

import torch as th
from stable_baselines3.common.base_class import BaseAlgorithm
from stable_baselines3.common.save_util import json_to_data, open_path

from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.env_specs import env_spec
from sb3_cesd.common.merging import merge
from sb3_cesd.common.observations import SKILL
from sb3_cesd.common.skill_clock import SkillTurns
from sb3_cesd.skill_ddpg.load_errors import explain_no_file

#: What to do if a replay buffer can't be loaded
BUFFER_REMEDY = "Save it again with save_replay_buffer, load that of another checkpoint, or go on without a replay buffer."
#: What ``None`` stands for in the constructor
DEFAULTS = {"policy_kwargs": {}, "replay_buffer_kwargs": {}, "replay_buffer_class": SkillReplayBuffer}
#: Attributes of a saved model that are read before it is built
NEEDED = (
    "n_skills",
    "skill_type",
    "skill_dim",
    "skill",
    "skill_duration",
    "intrinsic_kwargs",
    "buffer_size",
    "policy_class",
    "verbose",
)


def lineage(model_class: type[BaseAlgorithm]) -> list[str]:
    """
    List the names of a method and of those it is a variant of.

    :param model_class: class of a method
    :return: names of the class and its bases below ``SkillDDPG``, or that one alone
    """
    names = [ancestor.__name__ for ancestor in model_class.__mro__]
    return names[: names.index("SkillDDPG")] or ["SkillDDPG"]


def read_saved_data(path: str | pathlib.Path | io.BufferedIOBase) -> dict[str, Any]:
    """
    Read the plain (JSON) attributes of a saved SB3 model without building it.

    :param path: the zip file
    :return: attributes by name; those that JSON can't express are left as SB3 stored them
    :raises ValueError: if it is not a saved model
    """
    with explain_no_file(path, "of a model"):
        file = open_path(path, "r", verbose=0, suffix="zip")
    try:
        with zipfile.ZipFile(file) as archive:  # type: ignore[arg-type]
            if archive.testzip() is not None:
                raise zipfile.BadZipFile
            data = json.loads(archive.read("data").decode())
            if not isinstance(data, dict):
                raise TypeError
            return data
    except Exception as error:  # a changed byte may be taken for another kind of compression, a password, ...
        raise ValueError(
            f"{path} is not a complete saved model (truncated, or not written by model.save): "
            "save it again, or load another checkpoint."
        ) from error
    finally:
        if file is path:
            file.seek(0)  # type: ignore[union-attr]
        else:
            file.close()


def share_equal_tensors(parameters: dict[str, Any], copies: str, originals: str) -> None:
    """
    Replace tensors of one network by those of another where they are equal, so that both share them.

    :param parameters: tensors by name, changed in place
    :param copies: prefix of the names of the tensors to replace
    :param originals: prefix of the names of the tensors that replace them
    """
    for name, value in parameters.items():
        original = parameters.get(originals + name.removeprefix(copies)) if name.startswith(copies) else None
        if original is not None and value.dtype == original.dtype and th.equal(value, original):
            parameters[name] = original


def check_fixed(model_class: Any, path: object, saved: dict[str, Any], arguments: dict[str, Any]) -> None:
    """
    Check that a class can load a saved model with given arguments.

    :param model_class: class that loads it
    :param path: the file
    :param saved: what is saved in it
    :param arguments: arguments that the user passed
    :raises ValueError: if another class saved it, or an argument would change what a saved model keeps
    """
    ours, theirs = lineage(model_class), saved.get("lineage", [])
    # A variant of a method may load what the method saved, and the other way round
    if not (set(ours[:1]) & set(theirs) or set(theirs[:1]) & set(ours)):
        saved_by = theirs[0] if theirs else "another algorithm"
        raise ValueError(
            f"{path} was not saved by {model_class.__name__} but by {saved_by}: load it with the class that saved it"
            + (f", {theirs[0]}.load(path)." if theirs else ".")
        )
    missing = [name for name in (*NEEDED, *model_class.fixed_by_save) if name not in saved]
    if missing:
        raise ValueError(
            f"{path} lacks {', '.join(dict.fromkeys(missing))}, which every saved model has: save it again, without excluding "
            "that, or load another checkpoint."
        )
    for name in ("reward", *model_class.fixed_by_save):
        kept = saved.get(name, "intrinsic") if name == "reward" else saved[name]
        if name in arguments:
            _check_kept(path, name, arguments[name], kept)


def merged_intrinsic_kwargs(model_class: Any, path: object, saved: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """
    Merge changed arguments of the intrinsic reward into those of a saved model, nested ones too.

    :param model_class: class that loads it
    :param path: the file
    :param saved: what is saved in it
    :param wanted: arguments to change
    :return: all arguments
    :raises ValueError: if one shapes the networks and differs from the saved one
    """
    kept, fixed = restored(saved["intrinsic_kwargs"]), model_class.reward_class.fixed_by_save
    parameters = inspect.signature(model_class.reward_class).parameters
    for name, value in wanted.items():
        if fixed is None or name in fixed:
            default = parameters[name].default if name in parameters else None
            _check_kept(path, name, value, kept.get(name, default))
    return merge(kept, wanted)


def restored(kept: Any) -> Any:
    """
    Restore arguments that something in them, such as a class, kept from being saved as JSON.

    :param kept: arguments of a saved model, as :func:`read_saved_data` returns them
    :return: the arguments
    """
    return json_to_data(json.dumps({"kept": kept}))["kept"] if isinstance(kept, dict) and ":serialized:" in kept else kept


def adds_nothing(arguments: dict[str, Any] | None, kept: Any) -> bool:
    """
    Check whether arguments are among those of a saved model.

    :param arguments: arguments by name
    :param kept: those of a saved model, as :func:`read_saved_data` returns them
    :return: whether they are the same there; a tuple is the same as the list that is saved of it
    """
    kept = with_lists(restored(kept or {}))
    return merge(kept, with_lists(arguments or {})) == kept


def check_warm_up(path: object, saved: dict[str, Any], arguments: dict[str, Any]) -> None:
    """
    Check that arguments do not change the warm-up of a task once skills act in it, or leave out one that chooses a skill.

    :param path: the file
    :param saved: what is saved in it
    :param arguments: what to change when it is loaded
    :raises ValueError: if they do
    """
    changed = [name for name in ("warm_up", "learning_starts") if name in arguments]
    turns = restored(saved.get("skill_turns") or {}) if changed else {}
    if not isinstance(turns, SkillTurns) or turns.over:
        return
    if turns.n_done == 0:
        changed = ["warm_up"] if "warm_up" in arguments and turns.then is None else []
    for name in changed:
        _check_kept(path, name, arguments[name], saved[name])


def _check_kept(path: object, name: str, value: Any, kept: Any) -> None:
    if with_lists(value) != with_lists(kept):
        raise ValueError(
            f"{name}={value!r} does not fit {path}, which was trained with {name}={kept!r} and can't change it: pass "
            f"{name}={kept!r} or leave it out."
        )


def with_lists(value: Any) -> Any:
    """
    Convert tuples to lists, as JSON does.

    :param value: anything
    :return: the same, or a copy with lists
    """
    if isinstance(value, list | tuple):
        return [with_lists(entry) for entry in value]
    if isinstance(value, dict):
        return {key: with_lists(entry) for key, entry in value.items()}
    return value


def without_none(arguments: dict[str, Any]) -> dict[str, Any]:
    """
    Replace ``None`` by the default it stands for, as the constructor does not see arguments that are changed by loading.

    :param arguments: arguments of the constructor by name
    :return: the arguments, with defaults in place of ``None`` where there are any
    """
    return {name: DEFAULTS.get(name) if value is None else value for name, value in arguments.items()}


def task_of(model: Any) -> str | None:
    """
    Return the task that a model learns.

    :param model: the model
    :return: id of its environment; ``None`` if it learns no task, or the id is not known
    """
    if model.reward != "extrinsic" or model.env is None:
        return None
    spec = env_spec(model.env)
    return None if spec is None else spec.id


def is_of_other_rewards(model: Any, path: object, loaded: object) -> bool:
    """
    Check whether a replay buffer of the pre-training, or of another task, is loaded for a model that learns a task, and warn.

    :param model: the model
    :param path: file of the replay buffer
    :param loaded: the replay buffer
    :return: whether it is one, which the model should not use
    """
    if model.reward != "extrinsic" or not isinstance(loaded, SkillReplayBuffer):
        return False
    task = task_of(model)
    if loaded.reward != "extrinsic":
        what = "the pre-training, not the task"
    elif task is not None and loaded.task not in (None, task):
        what = f"the task {loaded.task}, not {task}"
    else:
        return False
    # RL Zoo loads whatever lies beside a model
    warnings.warn(
        f"The replay buffer {path} holds {what}: it was not loaded, the buffer stays "
        "empty. Move the file away to silence this."
    )
    return True


def check_buffer_fits(model: Any, path: object, loaded: object) -> None:
    """
    Check that a replay buffer fits a model.

    :param model: the model
    :param path: file of the replay buffer
    :param loaded: the replay buffer
    :raises ValueError: if it does not
    """
    if not isinstance(loaded, SkillReplayBuffer):
        raise ValueError(
            f"The replay buffer {path} is a {type(loaded).__name__}, which does not store skills: it was saved by another "
            f"algorithm. {BUFFER_REMEDY}"
        )
    known = {
        "class": model.replay_buffer_class.__name__,
        "skill_space": model.skill_space,
        "n_envs": model.n_envs,
        "shapes of observations": {
            name: space.shape for name, space in model.observation_space.spaces.items() if name != SKILL
        },
        "action_dim": model.action_dim,
    }
    found = {name: getattr(loaded, name, None) for name in known}
    found["class"] = type(loaded).__name__
    found["shapes of observations"] = {name: array.shape[2:] for name, array in loaded.observations.items()}
    for name, ours in known.items():
        if ours != found[name]:
            raise ValueError(
                f"The replay buffer {path} does not fit the model: its {name} is {found[name]}, the model's is {ours}. "
                "Load the model with the environment the buffer was filled from, or go on without this buffer (in RL Zoo: "
                "move the file away)."
            )
    room = max(model.buffer_size // model.n_envs, 1)
    if loaded.buffer_size != room:
        raise ValueError(
            f"The replay buffer {path} has room for {loaded.buffer_size * loaded.n_envs} transitions, that of the model for "
            f"{room * model.n_envs}: load the model with buffer_size={loaded.buffer_size * loaded.n_envs}, or go on without "
            "this buffer."
        )
