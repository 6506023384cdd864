"""What came of a call with a random value: refused clearly, taken with good reason, or one of the two that must not be."""

import inspect
import re
import traceback
import types
import typing
from collections.abc import Mapping
from numbers import Integral, Real
from pathlib import Path

import numpy as np
import torch as th

import sb3_cesd
from sb3_cesd.common.rules import shown

#: What a message that ends in the remedy says in the end
REMEDY = re.compile(
    r"[:;,.]\s(?:or )?(?:pass|set|choose|use|leave|raise|lower|load|play|wrap|divide|record|check|change|subclass|apply|"
    r"flatten|call|fine-tune|"
    r"let|convert|train|telling|restore|use)\b"
)
#: What messages call an argument, where that is not its name
NAMES = {
    "layout": "maze",
    "render_mode": "render mode",
    "policy": "Policy",
    "env": "environment",
    "env_id": "environment",
    "venv": "environment",
    "env_kwargs": "environment",
    "dim": "skill_dim",
    "duration": "skill_duration",
    "n_timesteps": "learning_starts",
    "episode_start": "episode",
    "name": "skill_type",
    "states": "states",
    "start": "start",
    "batch_size": "batch_size",
    "learning_starts": "learning_starts",
    "skill_space": "skill",
    "then": "skill",
    "vec_normalize": "VecNormalize",
    "load_path_or_dict": "path",
}
#: Whole numbers of which 0 makes sense, and those that may be floats
ZERO = {
    "learning_starts",
    "verbose",
    "seed",
    "gradient_steps",
    "n_random_heads",
    "total_timesteps",
    "camera",
    "skill",
    "skills",
    "then",
    "n_untrained",
    "n_trajectories",
    "n_frames",
}
WHOLE = {
    "then",
    "n_skills",
    "skill_duration",
    "duration",
    "learning_starts",
    "total_timesteps",
    "skill",
    "skills",
    "n_timesteps",
    "skill_space",
}
#: Those that may be lists or arrays of their own kind
ARRAYS = {"episode_start", "observation", "observations", "goals", "skill", "then"}
PACKAGE = str(Path(sb3_cesd.__file__).parent)


def outcome(function, call, name, value):
    """
    Call with one argument changed.

    :return: "clear", "sensible", "obscure: ..." or "nonsense"
    """
    try:
        call(**{name: value})
    except (ValueError, TypeError, FileNotFoundError) as error:
        return judge_refusal(error, name)
    except Exception as error:
        return f"obscure: {type(error).__name__}: {error}"
    annotation = inspect.signature(function).parameters[name].annotation
    # Skills are shown without metrics then
    without_metrics = (function.__name__, name, shown(value)) == ("show_skills", "n_rollouts", "0")
    return "sensible" if without_metrics or is_sensible(name, annotation, value) else "nonsense"


def judge_refusal(error, name):
    """Tell a clear message, which names the argument and ends in the remedy, from an obscure one."""
    message = str(error)
    innermost = traceback.extract_tb(error.__traceback__)[-1].filename
    is_named = name in message.lower() or NAMES.get(name, name) in message
    if innermost.startswith(PACKAGE) and is_named and REMEDY.search(message):
        return "clear"
    return f"obscure: {type(error).__name__}: {message}"


def is_sensible(name, annotation, value):
    """Judge a value by the type in the signature and common sense, without the table of the package."""
    if isinstance(annotation, types.UnionType) or typing.get_origin(annotation) is typing.Union:
        return any(is_sensible(name, part, value) for part in typing.get_args(annotation))
    if name == "log_interval" and value is None:
        return True  # as in Stable-Baselines3
    if annotation is None or annotation is type(None):
        return value is None
    if typing.get_origin(annotation) is typing.Literal:
        return isinstance(value, str) and value in typing.get_args(annotation)
    if name in ARRAYS and isinstance(value, list | tuple | range | np.ndarray):
        return _is_sensible_array(name, value)
    if isinstance(value, bool | np.bool_):
        return annotation is bool or annotation in (typing.Any, inspect.Parameter.empty)
    if annotation is bool:
        return False
    if annotation is int:
        whole = isinstance(value, Integral) or (name in WHOLE and isinstance(value, Real) and float(value).is_integer())
        lowest = -1 if name in ("gradient_steps", "camera") else 0 if name in ZERO else 1
        return whole and value >= lowest
    if annotation is float:
        return isinstance(value, Real) and np.isfinite(float(value)) and (value >= 0 or name == "low")
    if annotation is str:
        return isinstance(value, str) and value != ""
    if name == "skill" and isinstance(value, th.Tensor):
        return value.ndim == 0
    origin = typing.get_origin(annotation) or annotation
    if origin in (list, tuple):
        return isinstance(value, list | tuple) and all(isinstance(size, Integral) and size > 0 for size in value)
    if origin is dict:
        return isinstance(value, Mapping)
    if origin is np.ndarray:
        return isinstance(value, np.ndarray) and value.dtype.kind in "iuf" and bool(np.isfinite(value).all())
    # Classes, environments, functions: what is none of these has been ruled out by its type
    return not isinstance(value, str | bytes | Real | np.ndarray | Mapping | list | tuple) or _is_kind(origin, value)


def _is_sensible_array(name, value):
    try:
        values = np.asarray(value)
    except ValueError:
        return False
    if name == "episode_start":
        return not isinstance(value, tuple) and values.ndim < 2 and values.size > 0 and bool(np.isin(values, (0, 1)).all())
    # Which vectors are skills, the clock knows of the turns; else those of length 1
    is_vector = values.ndim == 1 and values.dtype.kind in "iuf" and bool(np.isfinite(values).all())
    if name in ("observation", "observations", "goals"):
        return is_vector and len(values) == 3
    return is_vector and (name == "then" or bool(np.isclose(np.linalg.norm(values), 1)))


def _is_kind(origin, value):
    return isinstance(origin, type) and origin is not object and isinstance(value, origin)
