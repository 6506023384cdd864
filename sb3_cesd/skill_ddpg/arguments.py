"""Arguments of the constructors: other defaults for a method, and what makes one model like another."""

import inspect
from functools import wraps
from typing import Any

from sb3_cesd.common.arguments import check_names, check_values

#: Arguments of a constructor that belong to a run, not to a model
OF_THE_RUN = ("self", "policy", "env", "reward", "tensorboard_log", "verbose", "seed", "device", "_init_setup_model")


def with_defaults(init: Any, defaults: dict[str, Any]) -> Any:
    """Wrap a constructor, with other defaults, which its signature shows."""
    signature = inspect.signature(init)
    parameters = [each.replace(default=defaults.get(each.name, each.default)) for each in signature.parameters.values()]

    @wraps(init)
    def __init__(*args: Any, **kwargs: Any) -> None:
        given = signature.bind_partial(*args, **kwargs).arguments
        init(*args, **{**{name: value for name, value in defaults.items() if name not in given}, **kwargs})

    __init__.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return __init__


def constructor_names(model_class: type) -> list[str]:
    """List the arguments of a constructor, also those that it passes on to those above as ``**kwargs``."""
    ours = [each for each in model_class.__mro__ if each.__module__.split(".")[0] != "stable_baselines3"]
    inits = [each.__init__ for each in ours]  # type: ignore[misc]
    names = dict.fromkeys(name for init in inits for name in inspect.signature(init).parameters)
    return [name for name in names if name not in ("args", "kwargs")]


def constructor_arguments(model: Any) -> dict[str, Any]:
    """Collect the arguments that make another model like this one, except those of the run (environment, seed, logs, ...)."""
    names = [name for name in constructor_names(type(model)) if name not in OF_THE_RUN]
    arguments = {name: getattr(model, name if hasattr(model, name) else f"_{name}") for name in names}
    if model.updates_follow_steps:
        arguments["gradient_steps"] = None
    return arguments


def check_changes(model_class: Any, function: str, arguments: dict[str, Any]) -> None:
    """
    Check arguments that change a saved model, which SB3 would set without a check.

    :raises ValueError: if there is no such argument, or it is out of range
    """
    check_names(
        function, arguments, [name for name in constructor_names(model_class) if name not in ("self", "policy", "env")]
    )
    check_values(model_class.__init__, arguments)
