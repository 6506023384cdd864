"""Other sizes of networks and batches than in the laptop entries of the quadruped, with as many updates as there."""

from typing import Any

from sb3_cesd.common.merging import merge


def _of_agent(width: int, batch_size: int, k: int) -> dict[str, Any]:
    """
    Set the sizes that all methods have.

    :param width: width of actor and critic, in the proportions of the published ones
    :param batch_size: transitions per update
    :param k: number of neighbors of the particle entropy
    :return: arguments of the constructor
    """
    return {
        "batch_size": batch_size,
        "policy_kwargs": {"net_arch": {"pi": [width, width], "qf": [width // 2, width]}},
        "intrinsic_kwargs": {"entropy_kwargs": {"k": k}},
    }


def _of_dynamics(width: int) -> dict[str, Any]:
    """
    Set the sizes of features of the dynamics.

    :param width: width of their networks
    :return: arguments of the encoder
    """
    return {"features_dim": max(256, width // 2), "net_arch": [width]}


def of_cesd(width: int, batch_size: int, k: int) -> dict[str, Any]:
    """
    Set the sizes of CeSD.

    :param width: width of all networks
    :param batch_size: see :func:`_of_agent`
    :param k: see :func:`_of_agent`
    :return: arguments of the constructor
    """
    encoders = {"encoder_kwargs": {"net_arch": [width, width]}, "distance_encoder_kwargs": _of_dynamics(width)}
    return merge(_of_agent(width, batch_size, k), {"intrinsic_kwargs": encoders})


def of_apt(width: int, batch_size: int, k: int) -> dict[str, Any]:
    """
    Set the sizes of APT.

    :param width: width of all networks
    :param batch_size: see :func:`_of_agent`
    :param k: see :func:`_of_agent`
    :return: arguments of the constructor
    """
    return merge(_of_agent(width, batch_size, k), {"intrinsic_kwargs": {"encoder_kwargs": _of_dynamics(width)}})


#: Name of the variant -> arguments; "large" is as published
CESD_SIZES: dict[str, dict[str, Any]] = {
    "width=512": of_cesd(512, 256, 8),
    "batch=1024": of_cesd(256, 1024, 16),
    "large": of_cesd(1024, 1024, 16),
}
APT_SIZES: dict[str, dict[str, Any]] = {"apt,batch=1024": of_apt(256, 1024, 12), "apt,large": of_apt(1024, 1024, 12)}
