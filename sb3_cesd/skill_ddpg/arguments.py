"""Arguments of the constructors: other defaults for a method, and what makes one model like another."""

import inspect
from functools import wraps
from typing import Any

from sb3_cesd.common.arguments import check_names, check_values, constructor_names, instead_of

#: Arguments of a constructor that belong to a run, not to a model
OF_THE_RUN = ("self", "policy", "env", "reward", "tensorboard_log", "verbose", "seed", "device", "_init_setup_model")


def with_defaults(init: Any, defaults: dict[str, Any]) -> Any:
    """Wrap a constructor, with other defaults, which its signature shows, and an error that helps with unknown arguments."""
    signature = inspect.signature(init)
    parameters = [each.replace(default=defaults.get(each.name, each.default)) for each in signature.parameters.values()]

    @wraps(init)
    def __init__(self: Any, *args: Any, **kwargs: Any) -> None:
        known = constructor_names(type(self))
        for name in kwargs:
            if name not in known:
                hint = instead_of(name, known, parts_of_model(type(self)))
                raise TypeError(f"{type(self).__name__}.__init__() got an unexpected argument {name!r}: {hint}")
        given = signature.bind_partial(self, *args, **kwargs).arguments
        init(self, *args, **{**{name: value for name, value in defaults.items() if name not in given}, **kwargs})

    __init__.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return __init__


def parts_of_model(model_class: Any) -> dict[str, type]:
    """Classes of the parts of a model, by the arguments that hold theirs."""
    return {
        "policy_kwargs": model_class.policy_aliases["MlpPolicy"],
        "intrinsic_kwargs": getattr(model_class, "reward_class", object),
    }


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
    known = [name for name in constructor_names(model_class) if name not in ("self", "policy", "env")]
    check_names(function, arguments, known, parts_of_model(model_class))
    check_values(model_class.__init__, arguments)
