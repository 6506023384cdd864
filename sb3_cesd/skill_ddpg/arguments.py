"""Arguments of the constructors: one list for all methods, whose defaults a method may change."""

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from types import FunctionType
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm

from sb3_cesd.skill_ddpg.checks import OF_THE_BUFFER

#: Arguments of a constructor that belong to a run, not to a model
OF_THE_RUN = ("self", "policy", "env", "reward", "tensorboard_log", "verbose", "seed", "device", "_init_setup_model")


def with_defaults(function: Callable[..., Any], defaults: Mapping[str, Any]) -> Callable[..., Any]:
    """
    Copy a function, with other defaults.

    :param function: a function written in Python
    :param defaults: the new defaults by the name of the argument
    :return: a function with the same code, whose signature shows the new defaults
    :raises TypeError: if the function has no such argument, or that has no default
    """
    parameters = inspect.signature(function).parameters
    unknown = [name for name in defaults if name not in parameters or parameters[name].default is inspect.Parameter.empty]
    if unknown:
        raise TypeError(
            f"defaults names {', '.join(unknown)}, which is not an optional argument of the constructor: use those that are."
        )
    assert isinstance(function, FunctionType)
    copy = FunctionType(function.__code__, function.__globals__, function.__name__, None, function.__closure__)
    with_default = [parameter for parameter in parameters.values() if parameter.default is not inspect.Parameter.empty]
    values = {parameter.name: defaults.get(parameter.name, parameter.default) for parameter in with_default}
    keyword_only = [parameter.name for parameter in with_default if parameter.kind is inspect.Parameter.KEYWORD_ONLY]
    copy.__kwdefaults__ = {name: values.pop(name) for name in keyword_only}
    copy.__defaults__ = tuple(values.values())
    copy.__doc__, copy.__annotations__, copy.__qualname__ = function.__doc__, function.__annotations__, function.__qualname__
    copy.__module__ = function.__module__
    return copy


def check_constructor(model_class: type[BaseAlgorithm]) -> None:
    """
    Check that a constructor names all its arguments, as its signature is read to make one model like another.

    :param model_class: class of an algorithm
    :raises TypeError: if it takes ``*args`` or ``**kwargs``
    """
    for parameter in inspect.signature(model_class.__init__).parameters.values():
        if parameter.kind in (inspect.Parameter.VAR_KEYWORD, inspect.Parameter.VAR_POSITIONAL):
            raise TypeError(
                f"The constructor of {model_class.__name__} takes *args or **kwargs, so that arguments would be lost when a "
                "model is fine-tuned: name all of them, or change defaults in the class variable 'defaults'."
            )


class ConstructorSignature:
    """As ``__signature__`` of a class: the signature of its ``__init__``, which ``__new__`` would hide."""

    def __get__(self, instance: Any, owner: type) -> inspect.Signature:
        parameters = inspect.signature(owner.__init__).parameters  # type: ignore[misc]
        return inspect.Signature(list(parameters.values())[1:])


def check_argument_names(model_class: type[BaseAlgorithm], names: Iterable[str]) -> None:
    """
    Check that a constructor has arguments of these names.

    :param model_class: class of an algorithm
    :param names: names that the user passed
    :raises TypeError: if there is no such argument; worded as Python does, with the name that may have been meant
    """
    known = inspect.signature(model_class).parameters
    for name in names:
        if name not in known:
            similar = difflib.get_close_matches(name, known, n=1)
            remedy = f"did you mean {similar[0]!r}?" if similar else f"use some of {', '.join(sorted(known))}."
            raise TypeError(f"{model_class.__qualname__}.__init__() got an unexpected keyword argument {name!r}: {remedy}")


def constructor_arguments(model: BaseAlgorithm) -> dict[str, Any]:
    """
    Collect the arguments that make another model like this one, except those of the run (environment, seed, device, logs).

    :param model: a model
    :return: arguments by name
    :raises AttributeError: if an argument is not an attribute of the model
    """
    names = [name for name in inspect.signature(type(model).__init__).parameters if name not in OF_THE_RUN]
    missing = [name for name in names if not hasattr(model, name)]
    if missing:
        raise AttributeError(
            f"{type(model).__name__} does not keep {', '.join(missing)} as an attribute of that name: set "
            f"self.{missing[0]} in its constructor, so that it can be saved and passed on."
        )
    arguments = {name: getattr(model, name) for name in names}
    if "replay_buffer_kwargs" in names:
        # The algorithm adds the others
        kwargs = arguments["replay_buffer_kwargs"].items()
        arguments["replay_buffer_kwargs"] = {name: value for name, value in kwargs if name not in OF_THE_BUFFER}
    if "gradient_steps" in names and getattr(model, "updates_follow_steps", False):
        arguments["gradient_steps"] = None
    return arguments
