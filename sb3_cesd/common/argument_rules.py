"""Rules of the arguments of this package: environments, devices, files, skills and the like."""

import io
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, get_args

import gymnasium as gym
import numpy as np
import torch as th
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.type_aliases import TrainFreq
from stable_baselines3.common.vec_env import VecEnv, VecNormalize

from sb3_cesd.common import choices
from sb3_cesd.common.rules import (
    N_SKILLS,
    POSITIVE_INTEGER,
    Rule,
    array,
    as_array,
    instance,
    is_array,
    is_integer,
    is_number,
    is_sizes,
    is_whole,
    optional,
)

#: Devices that models run on; Apple's (mps) has no float64, which discounts and running statistics need
DEVICES = ("cpu", "cuda", "xpu")


def named(*names: str) -> Rule:
    """
    Make a rule that requires an instance of a class of this package, by its name, as such classes import the table.

    :param names: names of classes
    :return: the rule that a value is an instance of one of them
    """
    return Rule(
        f"a {' or '.join(names)}",
        f"pass an object of {'a subclass of ' if len(names) == 1 else ''}{' or '.join(names)}",
        lambda value: any(ancestor.__name__ in names for ancestor in type(value).__mro__),
    )


def _is_device(value: Any) -> bool:
    if isinstance(value, str) and value != "auto":
        try:
            value = th.device(value)
        except RuntimeError:
            return False
    return value == "auto" if isinstance(value, str) else isinstance(value, th.device) and value.type in DEVICES


def _is_ent_coef(value: Any) -> bool:
    if isinstance(value, str):
        word, _, start = value.partition("_")
        return word == "auto" and (value == "auto" or _is_positive_word(start))
    return is_number(value) and 0 < value < float("inf")


def _is_positive_word(word: str) -> bool:
    try:
        return 0 < float(word) < float("inf")
    except ValueError:
        return False


def _is_train_freq(value: Any) -> bool:
    if isinstance(value, TrainFreq):
        return True
    if isinstance(value, tuple):
        is_pair = len(value) == 2 and isinstance(value[1], str) and value[1] in ("step", "episode")
        return is_pair and is_integer(value[0]) and value[0] > 0
    return is_integer(value) and value > 0


def _is_net_arch(value: Any) -> bool:
    if isinstance(value, Mapping):
        return set(value) == {"pi", "qf"} and all(map(is_sizes, value.values()))
    return is_sizes(value)


def _is_learning_rate(value: Any) -> bool:
    if callable(value) and not isinstance(value, type):
        try:
            value = float(value(1.0))
        except (TypeError, ValueError):
            return False
    return is_number(value) and value >= 0


def _is_truth_values(value: Any) -> bool:
    if not isinstance(value, np.ndarray | list):
        return False
    values = as_array(value)
    return (
        values.ndim < 2
        and values.size > 0
        and (values.dtype.kind == "b" or (values.dtype.kind in "iuf" and bool(np.isin(values, (0, 1)).all())))
    )


def _is_callback(value: Any) -> bool:
    if isinstance(value, list):
        return all(isinstance(each, BaseCallback) for each in value)  # SB3 takes a function only alone
    return value is None or isinstance(value, BaseCallback) or (callable(value) and not isinstance(value, type))


def _is_skill(value: Any) -> bool:
    vector = as_array(value)
    return is_whole(value) or (vector.ndim == 1 and isinstance(value, np.ndarray | list | tuple) and is_array(vector))


def _are_skills(value: Any) -> bool:
    if isinstance(value, np.ndarray):
        is_list = value.ndim > 0
    else:
        is_list = isinstance(value, Sequence) and not isinstance(value, str | bytes)
    return _is_skill(value) or (is_list and len(value) > 0 and all(map(_is_skill, value)))


ENV = Rule(
    "an environment or the id of one",
    "pass an environment of Gymnasium, a VecEnv of Stable-Baselines3, or a registered id",
    lambda value: isinstance(value, gym.Env | VecEnv) or (isinstance(value, str) and len(value) > 0),
)
DEVICE = Rule("a device", "pass 'auto', 'cpu' or 'cuda'", _is_device)
LEARNING_RATE = Rule(
    "zero or a positive number, or a function of the remaining progress",
    "pass a number such as 1e-4, or a schedule",
    _is_learning_rate,
)
ENT_COEF = Rule(
    "a positive number, 'auto' or e.g. 'auto_0.1'",
    "pass 'auto_0.1' to learn the coefficient from an initial value of 0.1, a number to keep it constant",
    _is_ent_coef,
)
TRAIN_FREQ = Rule(
    "a number of steps or a pair such as (5, 'step')",
    "pass a positive integer, (n, 'step') or (n, 'episode')",
    _is_train_freq,
)
GRADIENT_STEPS = Rule(
    "a number of updates",
    "pass 0 or a positive integer, -1 for one per transition, or None",
    lambda value: value is None or (is_integer(value) and value >= -1),
)
LOG_INTERVAL = Rule(
    "'auto' or a number of episodes",
    "pass 'auto', a positive integer or None",
    lambda value: value is None or (isinstance(value, str) and value == "auto") or POSITIVE_INTEGER.accepts(value),
)
NET_ARCH = Rule(
    "sizes of hidden layers",
    "pass a list of positive integers, or dict(pi=[...], qf=[...])",
    _is_net_arch,
)
CALLBACK = Rule("a callback", "pass a BaseCallback, a list of callbacks, a function or None", _is_callback)
BUFFER_CLASS = Rule(
    "a replay buffer class",
    "leave replay_buffer_class out, or subclass SkillReplayBuffer",
    lambda value: value is None or isinstance(value, type),
)
EVAL_ENV = Rule(
    "environments, an environment or the id of one",
    "pass such environments, or leave it out",
    lambda value: value is None or ENV.accepts(value),
)
SKILLS = Rule(
    "a space of skills or a number of them",
    "pass n_skills >= 2, or a SkillSpace",
    lambda value: named("SkillSpace").accepts(value) or N_SKILLS.accepts(value),
)
SKILL = Rule("the index or the vector of a skill", "pass an index of at least 0, a vector of finite numbers", _is_skill)
SEVERAL_SKILLS = Rule("a skill or several", "pass an index, a vector, a list of these,", _are_skills)
SKILL_TYPE = Rule(
    "the name of a kind of skills",
    f"choose one of {', '.join(map(repr, get_args(choices.SkillType)))}",
    lambda value: isinstance(value, str),
)
SKILL_DIM = optional(
    Rule("a positive number", "", lambda value: value > 0, Rule("an integer", "pass {name}, e.g. {name}=2", is_integer)),
    "set {name} above 0",
)
#: Files as Stable-Baselines3 takes them
OPEN_FILES = (Path, io.BufferedReader, io.BufferedWriter, io.BufferedRandom, io.BytesIO)
FILE = Rule(
    "a path or an open file",
    "pass the path of a file, or a file that is open for bytes",
    lambda value: (isinstance(value, str) and len(value) > 0) or isinstance(value, OPEN_FILES),
)
PARAMETERS = Rule(
    "parameters of a model",
    "pass what get_parameters() returned, or the file of a model",
    lambda value: isinstance(value, Mapping) or FILE.accepts(value),
)
FOLDER = Rule(
    "the path of a folder",
    "pass the path of a folder",
    lambda value: (isinstance(value, str) and len(value) > 0) or hasattr(value, "__fspath__"),
)
PATH = Rule("a path", "pass the path of a file or folder", FOLDER.allows)
NAMES = optional(
    Rule(
        "a list of names",
        "pass a list of names of attributes",
        lambda value: isinstance(value, list | tuple | set | frozenset) and all(isinstance(name, str) for name in value),
    )
)
STATISTICS = instance(VecNormalize, "a VecNormalize", "pass that of training")
PARTS_OF_A_MODEL = Rule(
    "a list of parts of a model",
    f"choose some of {', '.join(map(repr, get_args(choices.Part)))}, as a list",
    lambda value: (
        isinstance(value, list | tuple | set | frozenset)
        and all(isinstance(part, str) and part in get_args(choices.Part) for part in value)
    ),
)
STATE = Rule(
    "the state that the previous call returned",
    "pass that, or leave it out",
    lambda value: value is None or (isinstance(value, tuple) and all(isinstance(part, np.ndarray) for part in value)),
)
STARTS = Rule(
    "an array of True and False",
    "pass one value per environment, True where an episode starts, or leave it out",
    lambda value: value is None or _is_truth_values(value),
)
STATES = array(2, "(n, d)")
LABELS = array(1, "(n,)", of_integers=True)
LAYOUT = named("MazeLayout")
NOT_SUPPORTED = Rule(
    "False", "leave it out, observations are stored once in any case", lambda value: isinstance(value, bool) and not value
)
POLICY = Rule(
    "the name or the class of a policy",
    "pass 'MlpPolicy', or a subclass of SkillPolicy",
    lambda value: isinstance(value, str) or (isinstance(value, type) and hasattr(value, "set_skill")),
)
MODEL = Rule(
    "a model with skills",
    "pass a pre-trained one, e.g. CeSD.load(path)",
    lambda value: hasattr(value, "predict") and hasattr(value, "n_skills"),
)
