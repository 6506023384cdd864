"""Checks of what an intrinsic reward returns, which may be a user's own."""

from collections.abc import Mapping
from numbers import Real
from typing import Any

import torch as th


def check_reward(reward: Any, batch_size: int, source: object) -> None:
    """
    Check intrinsic rewards, which would otherwise be broadcast to the batch without a word.

    :param reward: what ``reward`` returned
    :param batch_size: number of transitions
    :param source: the intrinsic reward, which the message names
    :raises ValueError: if it is no floating-point tensor with one entry per transition
    """
    name = f"{type(source).__name__}.reward"
    if not isinstance(reward, th.Tensor):
        raise ValueError(f"{name} returned {type(reward).__name__}: return a tensor of shape (batch_size,).")
    if not reward.is_floating_point():
        raise ValueError(f"{name} returned {reward.dtype}: return floating-point numbers, for instance reward.float().")
    if reward.shape != (batch_size,):
        raise ValueError(
            f"{name} returned shape {tuple(reward.shape)} for {batch_size} transitions: return one number per transition, "
            f"shape ({batch_size},)."
        )


def check_loss(loss: Any, source: object) -> None:
    """
    Check the loss of an intrinsic reward.

    :param loss: what ``loss`` returned
    :param source: the intrinsic reward, which the message names
    :raises ValueError: if it is no scalar that depends on a parameter of ``source``
    """
    name = f"{type(source).__name__}.loss"
    if not isinstance(loss, th.Tensor) or loss.numel() != 1:
        what = f"shape {tuple(loss.shape)}" if isinstance(loss, th.Tensor) else type(loss).__name__
        raise ValueError(
            f"{name} returned {what}: return a scalar tensor, for instance loss.mean(), or None if nothing is learned."
        )
    if not loss.requires_grad or not hasattr(source, "optimizer"):
        raise ValueError(
            f"{name} returned a loss that no parameter can lower: set the networks of the loss as attributes in __init__, "
            "or return None."
        )


def as_logs(logs: Mapping[str, Any], source: object, device: th.device) -> dict[str, th.Tensor]:
    """
    Convert what an intrinsic reward logs, without the graphs of its gradients, which would be kept until logs are written.

    :param logs: tensors or numbers by name
    :param source: the intrinsic reward, which the message names
    :param device: where numbers go
    :return: tensors by name
    :raises ValueError: if one is neither
    """
    converted = {}
    for name, value in logs.items():
        if isinstance(value, th.Tensor):
            converted[name] = value.detach()
        elif isinstance(value, Real):
            converted[name] = th.full((), float(value), device=device)
        else:
            raise ValueError(
                f"{type(source).__name__}.logs[{name!r}] is of type {type(value).__name__}: log a scalar tensor or a number."
            )
    return converted
