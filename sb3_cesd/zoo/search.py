"""Search space of a study: without what the user has fixed, nothing much larger than the entry, and smaller for a task."""

import inspect
import os
import socket
from collections.abc import Mapping
from typing import Any

from sb3_cesd.common.merging import merge
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import BACKBONE, NET_ARCHS, TASK_ARGUMENTS, Params, draw, nest
from sb3_cesd.zoo.defaults import NET_ARCH, OWN_NET_ARCH, entry_draws
from sb3_cesd.zoo.given import ENCODERS, replaced_encoders
from sb3_cesd.zoo.nested import Path, has, leaves, look_up, only_json, only_names, walk
from sb3_cesd.zoo.study_skill import skill_of

#: Maximum ratio of a draw to the value of the entry
GROWTH = 2
#: Widest layer of an entry without ``net_arch``
DEFAULT_WIDTH = 1024
#: Arguments that a task does not use
ONLY_SKILLS = ("n_skills", "skill_duration")
#: Arguments that neither a stochastic policy uses, which explores by itself, nor one with ``action_noise``
NOISE = ("exploration_noise", "noise_correlation")
#: Draws that would stop networks from learning while the statistics of ``VecNormalize`` still change their inputs
UNLIKE_NORMALIZE = {"freeze_clusters": False}
#: User attribute of the trial that trains with the unchanged entry
OF_ENTRY = "of_entry"
#: User attribute of a trial: name of the machine and id of the process that runs it
PROCESS = "process"
#: User attribute of a trial: its arguments that JSON can express
ARGUMENTS = "arguments"
#: User attribute of a trial: the classes and functions among its arguments, by name
NAMES = "arguments_by_name"
#: User attribute of a trial: names of its arguments that are neither
NOT_KEPT = "not_kept"


class SearchSpace:
    """
    The search space of a study.

    :param method: class of the method
    :param entry: arguments of the constructor from the yml file and the user
    :param given: those of them that the user passed by ``-params``: they are not drawn, neither as a whole nor, within
        ``policy_kwargs`` and ``intrinsic_kwargs``, one by one
    :param is_task: whether a task is learned, rather than skills
    :param is_pretrained: whether a pre-trained model is loaded, whose networks and skills are fixed
    :param is_normalized: whether ``VecNormalize`` normalises observations
    """

    def __init__(
        self,
        method: type[SkillDDPG],
        entry: Params,
        given: Params,
        is_task: bool = False,
        is_pretrained: bool = False,
        is_normalized: bool = False,
    ) -> None:
        self.method = method
        self.entry = entry
        self.given = given
        self.is_for_task = is_task or is_pretrained
        of_saved = ("net_arch",) if is_pretrained else ()
        self.names = [name for name in TASK_ARGUMENTS if name not in of_saved]
        defaults = inspect.signature(method).parameters
        names = ("n_skills", "batch_size", "skill_duration", "ent_coef", *NOISE)
        known = {name: entry.get(name, defaults[name].default) for name in names}
        net_arch = (entry.get("policy_kwargs") or {}).get("net_arch")
        self.limits = {
            "n_skills": GROWTH * known["n_skills"],
            "batch_size": GROWTH * known["batch_size"],
            "net_arch": GROWTH * (DEFAULT_WIDTH if net_arch is None else width(net_arch)),
        }
        #: Arguments that are not drawn, by name
        self.fixed: Params = {}
        if known["skill_duration"] is None:
            self.fixed["skill_duration"] = None
        if known["ent_coef"] is not None or entry.get("action_noise") is not None:
            self.fixed.update({name: known[name] for name in NOISE})
        if self.is_for_task:
            self.fixed.update(dict.fromkeys((*ONLY_SKILLS, *of_saved)))
        paths = self._paths()
        if is_normalized:
            self.fixed.update({name: value for name, value in UNLIKE_NORMALIZE.items() if name in paths})
        self.fixed.update({name: look_up(given, path) for name, path in paths.items() if has(given, path)})
        #: Draws of a trial that trains with the unchanged entry, by name
        self.entry_draws = entry_draws(method, entry, {name: path for name, path in paths.items() if name not in self.fixed})

    @property
    def most_skills(self) -> int:
        """The largest number of skills that a trial may have."""
        return self.fixed.get("n_skills") or max(self.limits["n_skills"], 2)

    def draw(self, trial: Any) -> Params:
        """
        Draw arguments of the constructor.

        :param trial: Optuna trial
        :return: drawn arguments; within dictionaries, merged with those of the entry and the user
        """
        bounded = BoundedTrial(trial, self)
        arguments = self._convert(self._draw(bounded))
        if "policy_kwargs" in arguments:
            arguments["policy_kwargs"] = merge(self.entry.get("policy_kwargs") or {}, arguments["policy_kwargs"])
        if "intrinsic_kwargs" in arguments:
            has_own_sizes = "net_arch" in bounded.drawn and bounded.drawn["net_arch"] == self.entry_draws.get("net_arch")
            arguments["intrinsic_kwargs"] = self._complete(arguments["intrinsic_kwargs"], has_own_sizes)
        for name, value in self.given.items():
            if name in arguments:
                arguments[name] = merge(arguments[name], value) if isinstance(value, Mapping) else value
        return arguments

    def _draw(self, trial: Any) -> Params:
        """Draw the hyperparameters that are searched."""
        if not self.is_for_task:
            return self.method.draw_hyperparams(trial)
        drawn = draw(trial, BACKBONE)
        return {name: drawn[name] for name in self.names}

    def _convert(self, drawn: Params) -> Params:
        """Convert draws to arguments of the constructor."""
        return nest(drawn, BACKBONE) if self.is_for_task else self.method.convert_hyperparams(drawn)

    def _complete(self, drawn: Params, has_own_sizes: bool) -> Params:
        """Add the arguments of the reward in the entry, including its network sizes if the actor has those of the entry."""
        kept, drawn = dict(self.entry.get("intrinsic_kwargs") or {}), dict(drawn)
        if has_own_sizes:
            drawn.pop("net_arch", None)
        replaced = replaced_encoders(self.method, kept, drawn)
        for name in ENCODERS:
            if name in replaced:
                kept.pop(f"{name}_kwargs", None)
            elif has_own_sizes:
                drawn.pop(f"{name}_kwargs", None)
        return merge(kept, drawn)

    def _paths(self) -> dict[str, Path]:
        """Find the path of the argument of each draw."""
        drawn = self._draw(Corner(largest=False))
        paths = {}
        for path, value in walk(self._convert(dict(drawn))):
            name = path[-1]
            if path == NET_ARCH or (name in drawn and name != "net_arch" and value == drawn[name]):
                paths[name] = path
        return paths


class BoundedTrial:
    """
    An Optuna trial that leaves out what is fixed or too large, and whose ranges contain the values of the entry.

    :param trial: the trial, or a substitute such as :class:`Corner`
    :param space: the search space
    """

    def __init__(self, trial: Any, space: SearchSpace) -> None:
        self._trial = trial
        self._space = space
        #: Draws by name
        self.drawn: Params = {}

    def suggest_categorical(self, name: str, choices: list[Any]) -> Any:
        """Draw one of the choices that are not too large; see Optuna."""
        limit = self._space.limits.get(name)
        if limit is not None:
            choices = [choice for choice in choices if self._size(choice) <= limit] or choices[:1]
        entry = self._space.entry_draws.get(name, choices[0])
        if entry not in choices:
            choices = sorted([*choices, entry], key=self._size) if limit is not None else [*choices, entry]
        return self._draw("suggest_categorical", name, choices)

    def suggest_int(self, name: str, low: int, high: int, **kwargs: Any) -> Any:
        """Draw an integer; see Optuna."""
        return self._draw("suggest_int", name, *self._widened(name, low, high), **kwargs)

    def suggest_float(self, name: str, low: float, high: float, **kwargs: Any) -> Any:
        """Draw a number; see Optuna."""
        return self._draw("suggest_float", name, *self._widened(name, low, high), **kwargs)

    def _draw(self, suggest: str, name: str, *args: Any, **kwargs: Any) -> Any:
        if name in self._space.fixed:
            return self._space.fixed[name]
        self.drawn[name] = getattr(self._trial, suggest)(name, *args, **kwargs)
        return look_up(self._space.entry, NET_ARCH) if self.drawn[name] == OWN_NET_ARCH else self.drawn[name]

    def _widened(self, name: str, low: float, high: float) -> tuple[float, float]:
        entry = self._space.entry_draws.get(name, low)
        return min(low, entry), max(high, entry)

    def _size(self, choice: Any) -> Any:
        if choice == OWN_NET_ARCH:
            return width(look_up(self._space.entry, NET_ARCH))
        return width(NET_ARCHS[choice]) if choice in NET_ARCHS else choice


class Corner:
    """
    Substitute for an Optuna trial that draws a corner of the search space: the smallest or the largest values.

    :param largest: whether to draw the last choices and the largest numbers, rather than the first and the smallest
    """

    def __init__(self, largest: bool) -> None:
        self._largest = largest
        #: Names of all draws
        self.names: list[str] = []

    def suggest_categorical(self, name: str, choices: list[Any]) -> Any:
        """Take a choice at the end."""
        self.names.append(name)
        return choices[-1 if self._largest else 0]

    def suggest_int(self, name: str, low: int, high: int, **kwargs: Any) -> int:
        """Take a bound."""
        self.names.append(name)
        return high if self._largest else low

    def suggest_float(self, name: str, low: float, high: float, **kwargs: Any) -> float:
        """Take a bound."""
        self.names.append(name)
        return high if self._largest else low


class SearchTrial:
    """
    An Optuna trial that knows the search space of its study, and stores the arguments it was trained with.

    :param trial: the trial
    :param space: the search space
    """

    def __init__(self, trial: Any, space: SearchSpace) -> None:
        self._trial = trial
        self._space = space
        self.most_skills = space.most_skills

    def __getattr__(self, name: str) -> Any:
        return getattr(self._trial, name)

    def draw(self) -> Params:
        """
        Draw arguments of the constructor (none in the trial of the entry), add the skill of the study, and store them with
        those of the user as a user attribute.
        """
        arguments = self._space.draw(self._trial)
        if self._trial.user_attrs.get(OF_ENTRY):
            arguments = {}
        arguments.update(skill_of(self._trial.study))
        given = {name: self._space.entry.get(name, value) for name, value in self._space.given.items()}
        self._keep({**given, **arguments})
        return arguments

    def _keep(self, arguments: Params) -> None:
        """Store arguments as user attributes."""
        self._trial.set_user_attr(PROCESS, [socket.gethostname(), os.getpid()])
        plain, names = only_json(arguments), only_names(arguments)
        not_kept = [path for path in leaves(arguments) if not has(plain, path) and not has(names, path)]
        self._trial.set_user_attr(ARGUMENTS, plain)
        if names:
            self._trial.set_user_attr(NAMES, names)
        if not_kept:
            self._trial.set_user_attr(NOT_KEPT, not_kept)


def width(net_arch: Any) -> int:
    """
    Return the width of an architecture.

    :param net_arch: sizes of the hidden layers, by network or of all networks
    :return: size of the largest layer; 1 if there is none
    """
    layers = net_arch.values() if isinstance(net_arch, Mapping) else [net_arch]
    return max((size for sizes in layers for size in sizes), default=1)
