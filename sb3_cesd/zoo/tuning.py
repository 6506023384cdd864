"""How ``-params`` and studies change entries of yml files; studies search what these leave open, and nothing much larger."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import numpy as np
import torch as th
from stable_baselines3.common.utils import ConstantSchedule

from sb3_cesd.common.arguments import build, merge, plain
from sb3_cesd.common.rng import preserve_random_state
from sb3_cesd.common.skills import make_skill_space
from sb3_cesd.dreamer import SkillDreamer
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import BACKBONE, NET_ARCHS, TASK_ARGUMENTS, Interval, Params, draw, nest

#: Names that lead to an argument
Path = tuple[str, ...]
NET_ARCH: Path = ("policy_kwargs", "net_arch")
#: Choice of ``net_arch`` that keeps all network sizes of the entry
ENTRY = "entry"
#: Maximum ratio of a draw to the value of the entry
GROWTH = 2
#: Arguments that neither a stochastic policy uses nor one with ``action_noise``
NOISE = ("exploration_noise", "noise_correlation")
MISSING = object()
#: Arguments whose entries ``-params`` and studies change one by one
NESTED = ("policy_kwargs", "intrinsic_kwargs", "replay_buffer_kwargs")
#: Encoders, each with arguments of its own
ENCODERS = ("encoder", "distance_encoder")


class SearchSpace:
    """
    The search space of a study: that of the method, without what is given.

    :param method: class of the method
    :param entry: arguments of the constructor and of RL Zoo, from the yml file and the user
    :param given: those of them that the user passed with ``-params``, which are not searched
    :param is_task: whether a task is learned, which is searched for what matters there alone
    :param is_pretrained: whether trials start from a saved model, which keeps its networks and skills
    """

    def __init__(
        self, method: type[SkillDDPG], entry: Params, given: Params, is_task: bool = False, is_pretrained: bool = False
    ) -> None:
        if issubclass(method, SkillDreamer):
            raise ValueError(f"{method.__name__} has no search space: leave -optimize out, and vary arguments with -params.")
        self.method, self.entry, self.given = method, entry, given
        self._of_backbone = is_task or is_pretrained
        space = BACKBONE if self._of_backbone else {**BACKBONE, **method.search_space}
        all_paths = {path[-1]: path for path, values in leaves(space) if not callable(values)}
        if self._of_backbone:
            used = {*TASK_ARGUMENTS} - ({"net_arch"} if is_pretrained else set())
            all_paths = {name: path for name, path in all_paths.items() if name in used}
        reward = None if self._of_backbone else build_reward(method, entry)
        of_entry = {name: value_of(method, entry, reward, path) for name, path in all_paths.items()}
        #: Draws that are not searched, by name
        self.fixed = {name: value for name, path in all_paths.items() if (value := look_up(given, path)) is not MISSING}
        known = {name: each.default for name, each in inspect.signature(method).parameters.items()} | {**entry}
        unused = [*NOISE] if any(known.get(name) is not None for name in ("ent_coef", "action_noise", "noise_type")) else []
        # Number of continuous skills that evaluations play, without an effect on training
        unused += [] if known["skill_type"] == "discrete" else ["n_skills"]
        self.fixed = {**{name: of_entry[name] for name in unused if name in of_entry}, **self.fixed}
        if entry.get("normalize") and "freeze_clusters" in all_paths:
            # Frozen clusters would follow the statistics, which go on to change
            self.fixed.setdefault("freeze_clusters", False)
        if entry.get("policy") == "CnnPolicy" and "cluster_window" in all_paths:
            # Images are not averaged
            self.fixed.setdefault("cluster_window", 1)
        #: What is searched, by name: choices or intervals
        self.searched: dict[str, Any] = {}
        #: Draws of the first trial, which trains with the entry as it is
        self.start: Params = {}
        for name, path in all_paths.items():
            if name not in self.fixed:
                self._add(name, look_up(space, path), of_entry[name])

    def _add(self, name: str, values: Any, value: Any) -> None:
        """Search an argument among values that contain its value in the entry, and nothing much larger, or leave it alone."""
        if name == "net_arch":
            own, value = self._net_arch(), ENTRY
            fitting = [each for each, sizes in NET_ARCHS.items() if sizes != own and width(sizes) <= GROWTH * width(own)]
            values = [ENTRY, *fitting]
        if name in ("n_skills", "batch_size"):
            values = [choice for choice in values if choice <= GROWTH * value] or [GROWTH * value]
        widened = widen(values, value)
        if widened is not None:
            self.searched[name], self.start[name] = widened, value
        elif value is not MISSING:
            self.fixed[name] = value

    def draw(self, trial: Any) -> Params:
        return self.arguments(draw(trial, self.searched))

    def arguments(self, drawn: Params) -> Params:
        """Convert draws of a trial to arguments of the constructor, with dictionaries merged with those of the entry."""
        params = {**drawn, **self.fixed}
        keeps_sizes = params.get("net_arch") == ENTRY or "net_arch" in self.fixed
        if keeps_sizes:
            params["net_arch"] = self._net_arch()
        converted = nest(params, BACKBONE) if self._of_backbone else self.method.convert_hyperparams(params)
        if "skill" in drawn:
            converted["skill"] = drawn["skill"]
        if keeps_sizes:
            del converted["policy_kwargs"]
            # Those of the reward follow those of the actor, except for an encoder that the entry has no sizes for
            of_reward = converted.get("intrinsic_kwargs", {})
            replaced = replaced_encoders(self.method, self.entry.get("intrinsic_kwargs") or {}, of_reward)
            for name, values in self.method.search_space.get("intrinsic_kwargs", {}).items():
                if callable(values) and name.removesuffix("_kwargs") not in replaced:
                    of_reward.pop(name, None)
        # RL Zoo has made objects of some of the others, such as schedules
        changed = {name: value for name, value in converted.items() if name not in self.fixed or name in NESTED}
        nested = {name: value for name, value in self.given.items() if name in NESTED}
        complete = with_params(self.method, with_params(self.method, self.entry, changed), nested)
        return {name: complete[name] for name in {**changed, **nested}}

    def _net_arch(self) -> Any:
        net_arch = look_up(self.entry, NET_ARCH)
        return NET_ARCHS["medium"] if net_arch in (MISSING, None) else net_arch


def widen(values: Any, value: Any) -> Any:
    """Add a value to choices or an interval; ``None`` if they cannot contain it, such as a schedule."""
    if not isinstance(values, Interval):
        kinds = bool if isinstance(values[0], bool) else bool | int | float | str
        return list(dict.fromkeys([*values, value])) if isinstance(value, kinds) else None
    kind = type(values.low)
    if not isinstance(value, int | float) or not np.isfinite(value) or kind(value) != value or (values.log and value <= 0):
        return None
    return values._replace(low=min(values.low, kind(value)), high=max(values.high, kind(value)))


def leaves(arguments: Mapping[str, Any], start: Path = ()) -> Iterator[tuple[Path, Any]]:
    """Iterate over the arguments that contain no others, with the names that lead to them."""
    for name, value in arguments.items():
        if isinstance(value, Mapping):
            yield from leaves(value, (*start, name))
        else:
            yield (*start, name), value


def look_up(arguments: Any, path: Path) -> Any:
    """Look up a nested argument; ``MISSING`` if there is none."""
    for name in path:
        if not isinstance(arguments, Mapping) or name not in arguments:
            return MISSING
        arguments = arguments[name]
    return arguments


def width(net_arch: Any) -> int:
    layers = net_arch.values() if isinstance(net_arch, Mapping) else [net_arch]
    return max((size for sizes in layers for size in sizes), default=1)


def value_of(method: type[SkillDDPG], entry: Params, reward: IntrinsicReward | None, path: Path) -> Any:
    """
    Find the value of an argument in the entry, or its default; ``MISSING`` if there is none.

    That of a part of the reward is looked up in the part, as methods have their own: ``entropy_kwargs`` in an attribute whose
    name begins with ``entropy``.
    """
    value, (*groups, name) = look_up(entry, path), path
    if value is not MISSING:
        return value.val if isinstance(value, ConstantSchedule) else plain(value)
    if not groups or groups == ["intrinsic_kwargs"]:
        return inspect.signature(method.reward_class if groups else method).parameters[name].default
    stem = groups[-1].removesuffix("_kwargs")
    parts = {**vars(reward), **dict(reward.named_children())} if reward is not None else {}
    return next((getattr(part, name) for key, part in parts.items() if key.startswith(stem) and hasattr(part, name)), MISSING)


def build_reward(method: type[SkillDDPG], entry: Params) -> IntrinsicReward:
    """Build the intrinsic reward of an entry without weights, for spaces of any size."""
    known = inspect.signature(method).parameters
    skill_type, skill_dim = (entry.get(name, known[name].default) for name in ("skill_type", "skill_dim"))
    with preserve_random_state(), th.device("meta"):
        skill_space = make_skill_space(skill_type, 2, skill_dim)
        return build("intrinsic_kwargs", method.reward_class, entry.get("intrinsic_kwargs"), 1, 1, skill_space)


def with_params(method: Any, entry: Mapping[str, Any], params: Mapping[str, Any]) -> dict[str, Any]:
    """
    Change arguments of an entry, those in ``policy_kwargs`` and other dictionaries one by one. With another encoder, the
    entry's arguments of its encoder are left out.
    """
    changed = {**entry, **params}
    for name in NESTED:
        kept, given = entry.get(name), params.get(name)
        if isinstance(kept, Mapping) and isinstance(given, Mapping):
            replaced = replaced_encoders(method, kept, given) if name == "intrinsic_kwargs" else ()
            kept = {key: value for key, value in kept.items() if key.removesuffix("_kwargs") not in replaced}
            changed[name] = merge(kept, given)
    return changed


def replaced_encoders(method: Any, kept: Mapping[str, Any], given: Mapping[str, Any]) -> list[str]:
    """List the encoders among arguments of a reward that others replace."""
    known = inspect.signature(method.reward_class).parameters
    return [
        name for name in ENCODERS if name in known and name in given and given[name] != kept.get(name, known[name].default)
    ]
