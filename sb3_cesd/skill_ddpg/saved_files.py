"""Saved models and replay buffers: reading them, and the errors of those that do not fit."""

import inspect
import io
import json
import pathlib
import warnings
import zipfile
from typing import Any

from stable_baselines3.common.save_util import json_to_data, open_path

from sb3_cesd.common.arguments import merge
from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.files import explained
from sb3_cesd.common.observations import SKILL
from sb3_cesd.common.vec_env import env_spec


def lineage(model_class: type) -> list[str]:
    """Names of a method and of those it is a variant of; ``SkillDDPG`` itself is only named if it is the method."""
    names = [ancestor.__name__ for ancestor in model_class.__mro__]
    return names[: names.index("SkillDDPG")] or ["SkillDDPG"]


def read_saved_data(path: str | pathlib.Path | io.BufferedIOBase) -> dict[str, Any]:
    """Read the plain (JSON) attributes of a saved SB3 model without building it; others are left as SB3 stored them."""
    file = open_path(path, "r", verbose=0, suffix="zip")
    try:
        with explained(path, "saved model"), zipfile.ZipFile(file) as archive:  # type: ignore[arg-type]
            if (damaged := archive.testzip()) is not None:
                raise zipfile.BadZipFile(damaged)
            return dict(json.loads(archive.read("data")))
    finally:
        if file is path:
            file.seek(0)  # type: ignore[union-attr]
        else:
            file.close()


def check_fixed(model_class: Any, path: object, saved: dict[str, Any], arguments: dict[str, Any]) -> None:
    """Check that a class saved the model that it is to load, and that no argument changes what a saved model keeps."""
    ours, theirs = lineage(model_class), saved.get("lineage", ["another algorithm"])
    # A variant of a method may load what the method saved, and the other way round
    if ours[0] not in theirs and theirs[0] not in ours:
        raise ValueError(f"{path} was saved by {theirs[0]}, not by {ours[0]}: load it with the class that saved it.")
    for name in ("reward", *model_class.fixed_by_save):
        if name in arguments:
            _check_kept(path, name, arguments[name], saved.get(name, "intrinsic" if name == "reward" else None))


def merged_intrinsic_kwargs(model_class: Any, path: object, saved: dict[str, Any], wanted: dict[str, Any]) -> dict[str, Any]:
    """Merge changed arguments of the intrinsic reward into those of a saved model, if none shapes the networks."""
    kept, fixed = restored(saved["intrinsic_kwargs"]), model_class.reward_class.fixed_by_save
    parameters = inspect.signature(model_class.reward_class).parameters
    for name, value in wanted.items():
        if fixed is None or name in fixed:
            default = parameters[name].default if name in parameters else None
            _check_kept(path, name, value, kept.get(name, default))
    return merge(kept, wanted)


def restored(kept: Any) -> Any:
    """Arguments as :func:`read_saved_data` returns them, restored if a class in them kept them from being saved as JSON."""
    return json_to_data(json.dumps({"kept": kept}))["kept"] if isinstance(kept, dict) and ":serialized:" in kept else kept


def _check_kept(path: object, name: str, value: Any, kept: Any) -> None:
    if with_lists(value) != with_lists(kept):
        raise ValueError(f"{name}={value!r} does not fit {path}, which keeps {name}={kept!r}: leave {name} out.")


def with_lists(value: Any) -> Any:
    """Convert tuples to lists, at any depth, as JSON does."""
    if isinstance(value, list | tuple):
        return [with_lists(entry) for entry in value]
    if isinstance(value, dict):
        return {key: with_lists(entry) for key, entry in value.items()}
    return value


def task_of(model: Any) -> str | None:
    """Id of the environment of a model that learns a task, if it is known."""
    if model.reward != "extrinsic" or model.env is None:
        return None
    spec = env_spec(model.env)
    return None if spec is None else spec.id


def is_of_other_rewards(model: Any, path: object, buffer: SkillReplayBuffer) -> bool:
    """Whether a model that learns a task is given the replay buffer of its pre-training, or of another task; warns then."""
    task = task_of(model)
    if model.reward != "extrinsic" or (buffer.reward == "extrinsic" and (task is None or buffer.task in (None, task))):
        return False
    # RL Zoo loads whatever lies beside a model
    warnings.warn(f"The replay buffer {path} was not loaded: it is of {buffer.task or 'the pre-training'}, not of this task.")
    return True


def check_buffer_fits(model: Any, path: object, buffer: SkillReplayBuffer) -> None:
    spaces = model.observation_space.spaces
    known = {
        "class": (type(buffer).__name__, model.replay_buffer_class.__name__),
        "skill_space": (buffer.skill_space, model.skill_space),
        "n_envs": (buffer.n_envs, model.n_envs),
        "buffer_size": (buffer.buffer_size * buffer.n_envs, max(model.buffer_size // model.n_envs, 1) * model.n_envs),
        "observations": (
            {name: array.shape[1:] for name, array in buffer.newest_next.items()},
            {name: space.shape for name, space in spaces.items() if name != SKILL},
        ),
        "action_dim": (buffer.action_dim, model.action_dim),
    }
    for name, (found, ours) in known.items():
        if found != ours:
            raise ValueError(
                f"The replay buffer {path} does not fit: its {name} is {found}, not {ours}. Load the model with the "
                "arguments of the buffer, or go on without it (in RL Zoo: move it away)."
            )
