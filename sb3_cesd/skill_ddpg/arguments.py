"""Arguments of the constructors: one list for all methods, whose defaults a method may change."""

import difflib
import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from inspect import Parameter
from types import FunctionType
from typing import Any

from stable_baselines3.common.base_class import BaseAlgorithm

from sb3_cesd.skill_ddpg.checks import OF_THE_BUFFER

#: Arguments of a constructor that belong to a run, not to a model
OF_THE_RUN = ("self", "policy", "env", "reward", "tensorboard_log", "verbose", "seed", "device", "_init_setup_model")
#: Arguments that SB3's ``load`` passes to a constructor
SET_BY_LOADERS = ("policy", "env", "device", "_init_setup_model")


def with_defaults(function: Callable[..., Any], defaults: Mapping[str, Any]) -> Callable[..., Any]:
    """
    Copy a function, with other defaults.

    :param function: a function written in Python
    :param defaults: the new defaults by the name of the argument
    :return: a function with the same code, whose signature shows the new defaults
    :raises TypeError: if the function has no such argument, or that has no default
    """
    parameters = inspect.signature(function).parameters
    check_defaults(parameters, defaults)
    assert isinstance(function, FunctionType)
    copy = FunctionType(function.__code__, function.__globals__, function.__name__, None, function.__closure__)
    with_default = [parameter for parameter in parameters.values() if parameter.default is not Parameter.empty]
    values = {parameter.name: defaults.get(parameter.name, parameter.default) for parameter in with_default}
    keyword_only = [parameter.name for parameter in with_default if parameter.kind is Parameter.KEYWORD_ONLY]
    copy.__kwdefaults__ = {name: values.pop(name) for name in keyword_only}
    copy.__defaults__ = tuple(values.values())
    copy.__doc__, copy.__annotations__, copy.__qualname__ = function.__doc__, function.__annotations__, function.__qualname__
    copy.__module__ = function.__module__
    return copy


def check_defaults(parameters: Mapping[str, Parameter], defaults: Iterable[str]) -> None:
    """
    Check that a constructor has optional arguments of these names.

    :param parameters: its parameters by name
    :param defaults: names of arguments
    :raises TypeError: if there is no such argument, or it has no default
    """
    unknown = [name for name in defaults if name not in parameters or parameters[name].default is Parameter.empty]
    if unknown:
        raise TypeError(
            f"defaults names {', '.join(unknown)}, which is not an optional argument of the constructor: use those that are."
        )


def passes_on(init: Callable[..., Any]) -> bool:
    """
    Check whether a constructor passes on arguments that it does not name.

    :param init: a constructor written in Python
    :return: whether it takes ``**kwargs``
    """
    assert isinstance(init, FunctionType)
    return bool(init.__code__.co_flags & inspect.CO_VARKEYWORDS)


def constructor_signature(mro: tuple[type, ...]) -> inspect.Signature:
    """
    Collect all arguments of a constructor: those that it names and, if it takes ``**kwargs``, those of the constructors that
    these are passed on to. The names are read to make one model like another, so none may be missing.

    :param mro: the ``__mro__`` of a class, or the rest of it
    :return: a signature without ``*args`` and ``**kwargs``
    :raises TypeError: if a constructor takes ``*args`` without ``**kwargs``, or lacks an argument that ``load`` passes
    """
    place = next(place for place, each in enumerate(mro) if "__init__" in vars(each))
    signature = inspect.signature(vars(mro[place])["__init__"])
    kinds = {parameter.kind for parameter in signature.parameters.values()}
    if Parameter.VAR_KEYWORD not in kinds:
        if Parameter.VAR_POSITIONAL in kinds:
            raise TypeError(
                f"The constructor of {mro[place].__name__} takes *args without **kwargs, so that its models can't be loaded: "
                "take both, and pass them on by super().__init__(*args, **kwargs)."
            )
        missing = [name for name in SET_BY_LOADERS if name not in signature.parameters]
        if missing:
            raise TypeError(
                f"The constructor of {mro[place].__name__} takes no {missing[0]}, which load() passes: take **kwargs, and "
                "pass them on by super().__init__(**kwargs)."
            )
        return signature
    own = [
        each for each in signature.parameters.values() if each.kind not in (Parameter.VAR_POSITIONAL, Parameter.VAR_KEYWORD)
    ]
    positional = [parameter for parameter in own if parameter.kind is not Parameter.KEYWORD_ONLY]
    by_name = [parameter for parameter in own if parameter.kind is Parameter.KEYWORD_ONLY]
    above = list(constructor_signature(mro[place + 1 :]).parameters.values())
    # *args continue where the own positional arguments end, unless these are others
    n_own, names = len(positional), {parameter.name for parameter in own}
    continues = Parameter.VAR_POSITIONAL in kinds and [p.name for p in positional] == [p.name for p in above[:n_own]]
    for parameter in above[n_own:] if continues else above:
        if parameter.name in names:
            continues = False
        elif continues and parameter.kind is not Parameter.KEYWORD_ONLY:
            positional.append(parameter)
        else:
            by_name.append(parameter.replace(kind=Parameter.KEYWORD_ONLY))
    return signature.replace(parameters=[*positional, *by_name])


def with_passed_on_defaults(
    init: Callable[..., Any], signature: inspect.Signature, defaults: Mapping[str, Any]
) -> Callable[..., Any]:
    """
    Wrap a constructor that passes arguments on, with other defaults.

    :param init: a constructor that takes ``**kwargs``
    :param signature: all its arguments, see :func:`constructor_signature`
    :param defaults: the new defaults by the name of the argument
    :return: a constructor that shows this signature with the new defaults
    :raises TypeError: if there is no such argument, or that has no default
    """
    check_defaults(signature.parameters, defaults)
    names = list(signature.parameters)

    @wraps(init)
    def init_with_defaults(self: Any, *args: Any, **kwargs: Any) -> None:
        by_position = names[1 : len(args) + 1]
        others = {name: value for name, value in defaults.items() if name not in by_position}
        try:
            init(self, *args, **{**others, **kwargs})
        except TypeError as error:
            if "multiple values for keyword argument" not in str(error):
                raise
            raise TypeError(
                f"{error}, from a constructor of {type(self).__name__} and from outside: set it in the class variable "
                "'defaults' instead of the constructor."
            ) from error

    parameters = [
        each.replace(default=defaults[each.name]) if each.name in defaults else each for each in signature.parameters.values()
    ]
    init_with_defaults.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
    return init_with_defaults


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
            if name in _arguments_of_tasks(model_class):
                remedy = f"it is for tasks, so pass it to from_pretrained(path, env, {name}=...), or add -i FILE in RL Zoo."
            else:
                similar = difflib.get_close_matches(name, known, n=1)
                remedy = f"did you mean {similar[0]!r}?" if similar else f"use some of {', '.join(sorted(known))}."
            raise TypeError(f"{model_class.__qualname__}.__init__() got an unexpected keyword argument {name!r}: {remedy}")


def _arguments_of_tasks(model_class: type[BaseAlgorithm]) -> set[str]:
    """List the arguments of ``from_pretrained`` besides those of ``load``."""
    make = getattr(model_class, "from_pretrained", model_class.load)
    return set(inspect.signature(make).parameters) - set(inspect.signature(model_class.load).parameters)


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
