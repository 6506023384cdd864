import inspect
import math
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import Any, TypeVar

import torch as th

T = TypeVar("T")


def check_positive(**values: float) -> None:
    """
    :param values: numbers by the name under which the user knows them
    :raises ValueError: if one is not a finite number above zero
    """
    for name, value in values.items():
        if not (math.isfinite(value) and value > 0):
            raise ValueError(f"{name}={value} must be a positive number: set {name} above 0.")


def build(group: str, factory: Callable[..., T], kwargs: Mapping[str, Any]) -> T:
    """
    Call ``factory(**kwargs)`` with a readable error for a misspelt argument.

    :param group: name of the argument that holds the kwargs, e.g. ``"entropy_kwargs"``
    :param factory: class or function
    :param kwargs: its arguments
    :return: what the factory returns
    :raises ValueError: if there is no such argument
    """
    known = inspect.signature(factory).parameters
    unknown = sorted(set(kwargs) - set(known))
    if unknown:
        raise ValueError(f"{group} has no {', '.join(map(repr, unknown))}: use some of {', '.join(sorted(known))}.")
    return factory(**kwargs)


def choose(name: str, choice: str, options: Mapping[str, Callable[..., T]], kwargs: Mapping[str, Any]) -> T:
    """
    Build one of several named options.

    :param name: name of the argument that chooses, whose arguments are in ``<name>_kwargs``
    :param choice: the chosen option
    :param options: factories by name
    :param kwargs: arguments of the chosen factory
    :return: what the factory returns
    :raises ValueError: if there is no such option or argument
    """
    if choice not in options:
        raise ValueError(f"Unknown {name} {choice!r}: choose one of {', '.join(map(repr, options))}.")
    return build(f"{name}_kwargs", options[choice], kwargs)


@contextmanager
def frozen(parameters: Iterable[th.Tensor]) -> Iterator[None]:
    """
    What is computed within sends no gradient to these parameters, and costs none.

    :param parameters: trainable parameters
    """
    parameters = list(parameters)
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


def minimum(tensors: list[th.Tensor]) -> th.Tensor:
    """
    :param tensors: of equal shape
    :return: their elementwise minimum
    """
    return th.stack(tensors).min(dim=0).values


@th.no_grad()
def polyak_update(params: Iterable[th.Tensor], target_params: Iterable[th.Tensor], tau: float) -> None:
    """
    SB3's function of this name in one fused operation: ``target += tau (params - target)``, in place.

    :param params: parameters of the online network
    :param target_params: parameters of the target network, in the same order
    :param tau: soft update coefficient, between 0 and 1
    """
    th._foreach_lerp_(list(target_params), list(params), tau)
