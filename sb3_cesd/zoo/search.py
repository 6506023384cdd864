"""What a study searches: not what the user has fixed, nothing much larger than the entry, and less for a task."""

import inspect
import json
from collections.abc import Iterator, Mapping
from typing import Any

from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import NET_ARCHS, TASK_ARGUMENTS, Params, convert_backbone, draw_backbone
from sb3_cesd.zoo.hyperparams import merge

#: How much larger than in the entry a draw may be
GROWTH = 2
#: Widest layer of an entry without ``net_arch``
DEFAULT_WIDTH = 1024
#: What a task has no use for
ONLY_SKILLS = ("n_skills", "skill_duration")


class SearchSpace:
    """
    The search space of a study.

    :param method: class of the method
    :param entry: arguments of the constructor that are not drawn, as the yml file and the user say
    :param given: those of them that the user gave with ``-params``: they are not drawn, neither as a whole nor, within
        ``policy_kwargs`` and ``intrinsic_kwargs``, one by one
    :param is_task: whether a task is learned, rather than skills
    :param is_pretrained: whether a pre-trained model is loaded, which has its networks and skills
    """

    def __init__(
        self, method: type[SkillDDPG], entry: Params, given: Params, is_task: bool = False, is_pretrained: bool = False
    ) -> None:
        self.method = method
        self.given = given
        self.is_for_task = is_task or is_pretrained
        of_saved = ("net_arch",) if is_pretrained else ()
        self.names = [name for name in TASK_ARGUMENTS if name not in of_saved]
        defaults = inspect.signature(method).parameters
        known = {name: entry.get(name, defaults[name].default) for name in ("n_skills", "batch_size", "skill_duration")}
        net_arch = (entry.get("policy_kwargs") or {}).get("net_arch")
        self.limits = {
            "n_skills": GROWTH * known["n_skills"],
            "batch_size": GROWTH * known["batch_size"],
            "net_arch": GROWTH * (DEFAULT_WIDTH if net_arch is None else width(net_arch)),
        }
        #: What is not drawn, by name of the argument
        self.fixed: Params = {}
        if known["skill_duration"] is None:
            self.fixed["skill_duration"] = None
        if self.is_for_task:
            self.fixed.update(dict.fromkeys((*ONLY_SKILLS, *of_saved)))
        self.fixed.update(self._given_draws())

    @property
    def most_skills(self) -> int:
        """The largest number of skills that a trial may have."""
        return self.fixed.get("n_skills") or max(self.limits["n_skills"], 2)

    def draw(self, trial: Any) -> Params:
        """
        Draw arguments of the constructor.

        :param trial: Optuna trial
        :return: what was drawn, with what the user gave for the same arguments
        """
        bounded = BoundedTrial(trial, self.fixed, self.limits)
        if self.is_for_task:
            drawn = draw_backbone(bounded)
            arguments = convert_backbone({name: drawn[name] for name in self.names})
        else:
            arguments = self.method.convert_hyperparams(self.method.draw_hyperparams(bounded))
        for name, value in self.given.items():
            if name in arguments:
                arguments[name] = merge(arguments[name], value) if isinstance(value, Mapping) else value
        return arguments

    def _given_draws(self) -> Params:
        """Find draws whose argument the user gave."""
        probe = Corner(largest=False)
        drawn = draw_backbone(probe) if self.is_for_task else self.method.draw_hyperparams(probe)
        arguments = convert_backbone(drawn) if self.is_for_task else self.method.convert_hyperparams(dict(drawn))
        found = {}
        for path, value in walk(arguments):
            name = path[-1]
            is_draw = path == ("policy_kwargs", "net_arch") or (name in drawn and name != "net_arch" and value == drawn[name])
            if is_draw and has(self.given, path):
                found[name] = look_up(self.given, path)
        return found


class BoundedTrial:
    """
    An Optuna trial that leaves out what is fixed or too large.

    :param trial: the trial, or another one of these
    :param fixed: values of what is not drawn, by name
    :param limits: largest values of some draws, by name
    """

    def __init__(self, trial: Any, fixed: Params, limits: Mapping[str, float]) -> None:
        self._trial = trial
        self._fixed = fixed
        self._limits = limits

    def suggest_categorical(self, name: str, choices: list[Any]) -> Any:
        """Draw one of the choices that are not too large; see Optuna."""
        if name in self._fixed:
            return self._fixed[name]
        if name in self._limits:
            sizes = [width(NET_ARCHS[choice]) if choice in NET_ARCHS else choice for choice in choices]
            allowed = [choice for choice, size in zip(choices, sizes, strict=True) if size <= self._limits[name]]
            choices = allowed or choices[:1]
        return self._trial.suggest_categorical(name, choices)

    def suggest_int(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Draw an integer; see Optuna."""
        return self._fixed[name] if name in self._fixed else self._trial.suggest_int(name, *args, **kwargs)

    def suggest_float(self, name: str, *args: Any, **kwargs: Any) -> Any:
        """Draw a number; see Optuna."""
        return self._fixed[name] if name in self._fixed else self._trial.suggest_float(name, *args, **kwargs)


class Corner:
    """
    Takes the place of an Optuna trial, to draw a corner of the search space: all that is smallest, or largest.

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
    An Optuna trial that knows the search space of its study, and keeps the arguments it was trained with.

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
        """Draw arguments of the constructor, and keep them as a user attribute."""
        arguments = self._space.draw(self._trial)
        self._trial.set_user_attr("arguments", {name: value for name, value in arguments.items() if _is_json(value)})
        return arguments


def width(net_arch: Any) -> int:
    """
    Tell the widest layer of an architecture.

    :param net_arch: sizes of the hidden layers, by network or of all networks
    :return: size of the largest; 1 if there is none
    """
    layers = net_arch.values() if isinstance(net_arch, Mapping) else [net_arch]
    return max((size for sizes in layers for size in sizes), default=1)


def walk(arguments: Params, start: tuple[str, ...] = ()) -> Iterator[tuple[tuple[str, ...], Any]]:
    """
    Go through arguments, and through those within them.

    :param arguments: arguments by name
    :param start: path that leads to them
    :return: paths and values
    """
    for name, value in arguments.items():
        yield (*start, name), value
        if isinstance(value, Mapping):
            yield from walk(dict(value), (*start, name))


def has(arguments: Params, path: tuple[str, ...]) -> bool:
    """
    Tell whether there is an argument at a path.

    :param arguments: arguments by name
    :param path: names that lead to it
    :return: whether it is there
    """
    for name in path:
        if not isinstance(arguments, Mapping) or name not in arguments:
            return False
        arguments = arguments[name]
    return True


def look_up(arguments: Any, path: tuple[str, ...]) -> Any:
    """
    Look up an argument.

    :param arguments: arguments by name
    :param path: names that lead to it
    :return: its value
    """
    for name in path:
        arguments = arguments[name]
    return arguments


def _is_json(value: Any) -> bool:
    try:
        json.dumps(value)
    except TypeError:
        return False
    return True
