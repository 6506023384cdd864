"""Search spaces of studies: what the settings leave open, and nothing much larger than the entry of the yml file."""

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import optuna
import torch as th
from optuna.distributions import CategoricalDistribution, FloatDistribution, IntDistribution
from stable_baselines3.common.utils import ConstantSchedule

from sb3_cesd.common.rng import preserve_random_state
from sb3_cesd.common.skills import make_skill_space
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import NET_ARCHS, TASK_ARGUMENTS, Params, convert_backbone, draw_backbone
from sb3_cesd.zoo.hyperparams import ENCODERS, NESTED, replaced_encoders, with_params

#: Names that lead to an argument
Path = tuple[str, ...]
NET_ARCH: Path = ("policy_kwargs", "net_arch")
#: Draw of ``net_arch`` that keeps all network sizes of the entry
ENTRY = "entry"
#: Maximum ratio of a draw to the value of the entry
GROWTH = 2
#: Explored with neither by a stochastic policy nor with ``action_noise``
NOISE = ("exploration_noise", "noise_correlation")
MISSING = object()


class SearchSpace:
    """
    The search space of a study: what a method draws (``draw_hyperparams``), without what is given.

    :param method: class of the method
    :param entry: arguments of the constructor and of RL Zoo, from the yml file and the user
    :param given: those of them that the user passed with ``-params``, which are not searched
    :param is_task: whether a task is learned, which is searched for what matters there alone
    :param is_pretrained: whether trials start from a saved model, which keeps its networks and skills
    """

    def __init__(
        self, method: type[SkillDDPG], entry: Params, given: Params, is_task: bool = False, is_pretrained: bool = False
    ) -> None:
        self.method, self.entry, self.given = method, entry, given
        self._draws_backbone = is_task or is_pretrained
        draw = draw_backbone if self._draws_backbone else method.draw_hyperparams
        sample, distributions = sample_from(draw)
        if self._draws_backbone:
            unused = {*sample} - {*TASK_ARGUMENTS} | ({"net_arch"} if is_pretrained else set())
            sample = {name: value for name, value in sample.items() if name not in unused}

        # Draws are named like the arguments that they become, except for network sizes
        paths = {path[-1]: path for path, _ in leaves(self._convert(sample)) if path[-1] in sample}
        self._paths: dict[str, Path] = {**paths, "net_arch": NET_ARCH} if "net_arch" in sample else paths
        reward = None if self._draws_backbone else build_reward(method, entry)
        of_entry = {name: value_of(method, entry, reward, path) for name, path in self._paths.items()}
        #: Draws that are not searched, by name
        self.fixed: Params = {
            name: value for name, path in self._paths.items() if (value := look_up(given, path)) is not MISSING
        }
        if of_entry.get("skill_duration", MISSING) is None:
            self.fixed.setdefault("skill_duration", None)
        if any(entry.get(name) is not None for name in ("ent_coef", "action_noise", "noise_type")):
            self.fixed = {**{name: of_entry[name] for name in NOISE}, **self.fixed}
        if entry.get("normalize") and "freeze_clusters" in sample:
            # Frozen clusters would follow the statistics, which go on to change
            self.fixed.setdefault("freeze_clusters", False)
        #: Draws of the first trial, which trains with the entry as it is
        self.start: Params = {}
        #: What is searched
        self.distributions: dict[str, Any] = {}
        for name, distribution in distributions.items():
            if name in sample and name not in self.fixed:
                self._add(name, distribution, ENTRY if name == "net_arch" else of_entry.get(name, MISSING))

    def _add(self, name: str, distribution: Any, value: Any) -> None:
        """Search an argument in a range or in choices that contain its value in the entry, and nothing much larger."""
        if name == "net_arch":
            own = self._net_arch()
            distribution = CategoricalDistribution(
                [ENTRY, *(name for name, sizes in NET_ARCHS.items() if sizes != own and width(sizes) <= GROWTH * width(own))]
            )
        elif isinstance(distribution, CategoricalDistribution):
            choices = list(distribution.choices)
            if name in ("n_skills", "batch_size"):
                choices = [choice for choice in choices if choice <= GROWTH * value]
            if isinstance(value, bool | int | float | str) and value not in choices:
                choices.append(value)
            distribution = CategoricalDistribution(choices)
        elif isinstance(value, int | float) and (value > 0 or not distribution.log):
            low, high = min(distribution.low, value), max(distribution.high, value)
            distribution = type(distribution)(low, high, log=distribution.log, step=distribution.step)
        else:
            value = None
        self.distributions[name] = distribution
        if isinstance(value, bool | int | float | str):
            self.start[name] = value

    @property
    def most_skills(self) -> int:
        """Return the largest number of skills that a trial may have; 0 if it is that of the model."""
        if "n_skills" in self.distributions:
            return max(self.distributions["n_skills"].choices)
        return self.fixed.get("n_skills", 0)

    def draw(self, trial: optuna.Trial) -> Params:
        """Draw arguments of the constructor."""
        return self.arguments({name: suggest(trial, name, each) for name, each in self.distributions.items()})

    def arguments(self, drawn: Params) -> Params:
        """
        Convert draws to arguments of the constructor.

        :param drawn: draws of a trial by name
        :return: what they change; dictionaries are merged with those of the entry
        """
        params = {**drawn, **self.fixed}
        keeps_sizes = params.get("net_arch") == ENTRY
        if keeps_sizes:
            params["net_arch"] = self._net_arch()
        converted = self._convert(params)
        if keeps_sizes:
            del converted["policy_kwargs"]
            kept, own = self.entry.get("intrinsic_kwargs") or {}, dict(converted.get("intrinsic_kwargs", {}))
            sizes = {"net_arch", *(f"{name}_kwargs" for name in {*ENCODERS} - {*replaced_encoders(self.method, kept, own)})}
            converted["intrinsic_kwargs"] = {name: value for name, value in own.items() if name not in sizes}
        changed = {name: value for name, value in converted.items() if name not in self.given or name in NESTED}
        nested = {name: value for name, value in self.given.items() if name in NESTED}
        complete = with_params(self.method, with_params(self.method, self.entry, changed), nested)
        return {name: complete[name] for name in {**changed, **nested}}

    def _convert(self, params: Params) -> Params:
        return convert_backbone(params) if self._draws_backbone else self.method.convert_hyperparams(params)

    def _net_arch(self) -> Any:
        net_arch = look_up(self.entry, NET_ARCH)
        return NET_ARCHS["big"] if net_arch in (MISSING, None) else net_arch


def sample_from(draw: Any) -> tuple[Params, dict[str, Any]]:
    """
    Ask Optuna for an example of draws.

    :param draw: function of a trial
    :return: values and distributions by name
    """
    verbosity = optuna.logging.get_verbosity()
    optuna.logging.set_verbosity(optuna.logging.WARNING)
    trial = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0)).ask()
    optuna.logging.set_verbosity(verbosity)
    return draw(trial), trial.distributions


def suggest(trial: optuna.Trial, name: str, distribution: Any) -> Any:
    """Draw from a distribution."""
    if isinstance(distribution, CategoricalDistribution):
        return trial.suggest_categorical(name, distribution.choices)
    if isinstance(distribution, IntDistribution):
        return trial.suggest_int(name, distribution.low, distribution.high, step=distribution.step, log=distribution.log)
    assert isinstance(distribution, FloatDistribution)
    return trial.suggest_float(name, distribution.low, distribution.high, step=distribution.step, log=distribution.log)


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
    """Return the size of the widest layer."""
    layers = net_arch.values() if isinstance(net_arch, Mapping) else [net_arch]
    return max((size for sizes in layers for size in sizes), default=1)


def value_of(method: type[SkillDDPG], entry: Params, reward: IntrinsicReward | None, path: Path) -> Any:
    """
    Find the value of an argument in the entry, or its default.

    Methods have their own published values for shared parts of the reward, so an argument of a part is looked up in the part
    itself: that of ``entropy_kwargs`` in an attribute of the reward whose name begins with ``entropy``.

    :param method: class of the method
    :param entry: arguments of the constructor
    :param reward: its intrinsic reward
    :param path: names that lead to the argument
    :return: its value; ``MISSING`` if there is none
    """
    value, (*groups, name) = look_up(entry, path), path
    if value is not MISSING:
        return value.val if isinstance(value, ConstantSchedule) else value
    if len(groups) < 2:
        owner = method.reward_class if groups == ["intrinsic_kwargs"] else method
        return inspect.signature(owner).parameters[name].default if groups != ["policy_kwargs"] else MISSING
    stem = groups[-1].removesuffix("_kwargs")
    parts = [part for key, part in {**vars(reward), **dict(reward.named_children())}.items() if key.startswith(stem)]  # type: ignore[union-attr]
    return next((getattr(part, name) for part in parts if hasattr(part, name)), MISSING)


def build_reward(method: type[SkillDDPG], entry: Params) -> IntrinsicReward:
    """Build the intrinsic reward of an entry without weights, for spaces of any size."""
    known = inspect.signature(method).parameters
    skill_type, skill_dim = (entry.get(name, known[name].default) for name in ("skill_type", "skill_dim"))
    with preserve_random_state(), th.device("meta"):
        space = make_skill_space(skill_type, 2, skill_dim)
        return method.reward_class(1, 1, space, **(entry.get("intrinsic_kwargs") or {}))
