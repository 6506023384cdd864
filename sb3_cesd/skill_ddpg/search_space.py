"""Search spaces for RL Zoo's hyperparameter tuning."""

from collections.abc import Mapping
from typing import Any, NamedTuple

NET_ARCHS: dict[str, dict[str, list[int]]] = {
    "small": {"pi": [64, 64], "qf": [64, 64]},
    "medium": {"pi": [256, 256], "qf": [128, 256]},
    "big": {"pi": [1024, 1024], "qf": [512, 1024]},
}

Params = dict[str, Any]


class Interval(NamedTuple):
    """Numbers from ``low`` to ``high``: integers, if both are. With ``log``, small ones are drawn as often as large ones."""

    low: float
    high: float
    log: bool = True


#: Arguments by name, nested as the constructor takes them. Each has a list of choices, an interval, or a function of what was
#: drawn for the others
Space = Mapping[str, Any]

#: Arguments that all methods have
BACKBONE: Space = {
    "n_skills": [4, 8, 16, 32],
    "skill_duration": [25, 50, 100, 200],
    "learning_rate": Interval(1e-5, 0.002),
    "batch_size": [128, 256, 512, 1024],
    "gamma": [0.95, 0.97, 0.98, 0.99, 0.995, 0.999],
    "tau": Interval(0.001, 0.08),
    "n_steps": Interval(1, 5, log=False),
    "exploration_noise": Interval(0.05, 0.5, log=False),
    "noise_correlation": [0.0, 0.85],
    "policy_kwargs": {"net_arch": list(NET_ARCHS)},
}
#: Those that matter for a task, where the skills are given
TASK_ARGUMENTS = (*(name for name in BACKBONE if name not in ("n_skills", "skill_duration", "policy_kwargs")), "net_arch")


def draw(trial: Any, space: Space) -> Params:
    """Sample values from a space with an Optuna trial: by name, not nested."""
    drawn: Params = {}
    for name, values in space.items():
        if isinstance(values, Mapping):
            drawn.update(draw(trial, values))
        elif isinstance(values, Interval):
            suggest = trial.suggest_int if isinstance(values.low, int) else trial.suggest_float
            drawn[name] = suggest(name, values.low, values.high, log=values.log)
        elif not callable(values):
            drawn[name] = trial.suggest_categorical(name, values)
    return drawn


def nest(drawn: Params, space: Space) -> Params:
    """Convert all or some of what :func:`draw` sampled to arguments of the constructor."""
    params: Params = {}
    for name, values in space.items():
        if isinstance(values, Mapping):
            nested = nest(drawn, values)
            if nested:
                params[name] = nested
        elif callable(values):
            params[name] = values(drawn)
        elif name in drawn:
            params[name] = net_arch_of(drawn) if name == "net_arch" else drawn[name]
    return params


def net_arch_of(drawn: Params) -> Any:
    net_arch = drawn["net_arch"]
    return NET_ARCHS[net_arch] if isinstance(net_arch, str) else net_arch


def hidden_sizes(drawn: Params) -> list[int]:
    """Give the networks of an intrinsic reward the sizes of the actor."""
    net_arch = net_arch_of(drawn)
    return net_arch["pi"] if isinstance(net_arch, dict) else net_arch


def one_hidden_size(drawn: Params) -> list[int]:
    """Give them that of its first layer."""
    return hidden_sizes(drawn)[:1]


def encoder_kwargs(drawn: Params, encoder: str = "encoder") -> Params:
    """Give an encoder the sizes of the actor, if it has networks."""
    return {"net_arch": hidden_sizes(drawn)} if drawn[encoder] in ("contrastive", "icm", "temporal") else {}


#: Arguments of the particle entropy, and of the state representation that it is computed in
ENTROPY: Space = {"k": Interval(3, 24), "scale": ["variance", "std"], "log1p": [True, False]}
ENCODER: Space = {
    "encoder": ["contrastive", "fourier", "icm", "identity", "temporal"],
    "encoder_kwargs": encoder_kwargs,
    "entropy_kwargs": ENTROPY,
}
