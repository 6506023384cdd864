"""Draws of a study that correspond to an entry of a yml file: the first trial trains with the unchanged entry."""

import inspect
from collections.abc import Mapping
from typing import Any

import torch as th

from sb3_cesd.common.rng import preserve_random_state
from sb3_cesd.common.skills import make_skill_space
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import NET_ARCHS, Params
from sb3_cesd.zoo.nested import Path, has, look_up, plain_number

NET_ARCH: Path = ("policy_kwargs", "net_arch")
#: Draw for an architecture of the entry that is not in ``NET_ARCHS``
OWN_NET_ARCH = "entry"
#: Draw for an entry without an architecture, which has the default of the policy
UNNAMED_NET_ARCH = "big"


def entry_draws(method: type[SkillDDPG], entry: Params, paths: Mapping[str, Path]) -> Params:
    """
    Find what a trial would have to draw to train with the entry.

    :param method: class of the method
    :param entry: arguments of the constructor from the yml file and the user
    :param paths: path of the argument of each draw, by name of the draw
    :return: draws by name; those with neither a value in the entry nor a default are left out
    """
    draws: Params = {}
    reward = build_reward(method, entry)
    for name, path in paths.items():
        if path == NET_ARCH:
            draws[name] = net_arch_draw(look_up(entry, path) if has(entry, path) else None)
            continue
        value = plain_number(look_up(entry, path) if has(entry, path) else default(method, reward, path))
        if isinstance(value, bool | int | float | str):
            draws[name] = value
    return draws


def net_arch_draw(net_arch: Any) -> str:
    """
    Find the draw for an architecture.

    :param net_arch: sizes of the hidden layers, by network or of all networks; ``None`` for the default
    :return: name of the draw
    """
    if net_arch is None:
        return UNNAMED_NET_ARCH
    return next((name for name, known in NET_ARCHS.items() if known == net_arch), OWN_NET_ARCH)


def default(method: type[SkillDDPG], reward: IntrinsicReward, path: Path) -> Any:
    """
    Look up the default of an argument.

    Methods have their own published values for shared parts of the reward, so an argument of a part is looked up in the part
    itself: that of ``entropy_kwargs`` in an attribute of the reward whose name begins with ``entropy``.

    :param method: class of the method
    :param reward: its intrinsic reward
    :param path: names that lead to the argument
    :return: the default; ``None`` if there is none
    """
    *groups, name = path
    if not groups:
        return parameter_default(method, name)
    if groups == ["intrinsic_kwargs"]:
        return parameter_default(method.reward_class, name)
    stem = groups[-1].removesuffix("_kwargs")
    parts = [part for key, part in {**vars(reward), **dict(reward.named_children())}.items() if key.startswith(stem)]
    return next((getattr(part, name) for part in parts if hasattr(part, name)), None)


def parameter_default(factory: Any, name: str) -> Any:
    """
    Look up the default of a parameter.

    :param factory: class or function
    :param name: name of the parameter
    :return: the default; ``None`` if there is none
    """
    parameter = inspect.signature(factory).parameters.get(name)
    return None if parameter is None or parameter.default is parameter.empty else parameter.default


def build_reward(method: type[SkillDDPG], entry: Params) -> IntrinsicReward:
    """
    Build the intrinsic reward of an entry, for spaces of any size.

    :param method: class of the method
    :param entry: arguments of the constructor
    :return: the reward, without weights
    """
    skills = {key: entry.get(key, parameter_default(method, key)) for key in ("skill_type", "skill_dim")}
    with preserve_random_state(), th.device("meta"):
        space = make_skill_space(skills["skill_type"], 2, skills["skill_dim"])
        return method.reward_class(1, 1, space, **(entry.get("intrinsic_kwargs") or {}))
