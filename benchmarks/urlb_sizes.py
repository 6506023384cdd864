"""Other sizes of networks and batches than in the laptop entries of the quadruped, with as many updates as there."""

from typing import Any


def _sizes(width: int, batch_size: int, k: int, **encoders: dict[str, Any]) -> dict[str, Any]:
    """
    Set the sizes of a method.

    :param width: width of actor and critic, in the proportions of the published ones
    :param batch_size: transitions per update
    :param k: number of neighbors of the particle entropy
    :param encoders: arguments of the encoders
    :return: arguments of the constructor
    """
    return {
        "batch_size": batch_size,
        "policy_kwargs": {"net_arch": {"pi": [width, width], "qf": [width // 2, width]}},
        "intrinsic_kwargs": {"entropy_kwargs": {"k": k}, **encoders},
    }


def _of_dynamics(width: int) -> dict[str, Any]:
    """
    Set the sizes of features of the dynamics.

    :param width: width of their networks
    :return: arguments of the encoder
    """
    return {"features_dim": max(256, width // 2), "net_arch": [width]}


def _of_cesd(width: int, batch_size: int, k: int) -> dict[str, Any]:
    """Set the sizes of CeSD, see :func:`_sizes`."""
    encoder = {"net_arch": [width, width]}
    return _sizes(width, batch_size, k, encoder_kwargs=encoder, distance_encoder_kwargs=_of_dynamics(width))


def _of_apt(width: int, batch_size: int, k: int) -> dict[str, Any]:
    """Set the sizes of APT, see :func:`_sizes`."""
    return _sizes(width, batch_size, k, encoder_kwargs=_of_dynamics(width))


#: Name of the variant -> arguments; "large" is as published
CESD_SIZES: dict[str, dict[str, Any]] = {
    "width=512": _of_cesd(512, 256, 8),
    "batch=1024": _of_cesd(256, 1024, 16),
    "large": _of_cesd(1024, 1024, 16),
}
APT_SIZES: dict[str, dict[str, Any]] = {"apt,batch=1024": _of_apt(256, 1024, 12), "apt,large": _of_apt(1024, 1024, 12)}
