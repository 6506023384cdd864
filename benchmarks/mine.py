"""Mutual information of paths and skills by MINE."""

import warnings
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import torch as th
from torch import nn
from torch.nn import functional as F


class MineEstimate(NamedTuple):
    """
    An estimate of the mutual information, and its convergence.

    :param mutual_information: mean of the bound over the last iterations [nats]
    :param bounds: the bound on the batch of each iteration, to check convergence, shape ``(n_iterations,)``
    :param entropy: entropy of the skills [nats], which the mutual information can't exceed: log(n_skills) if all have equally
        many samples
    """

    mutual_information: float
    bounds: np.ndarray
    entropy: float


def mine_mutual_information(
    states: np.ndarray,
    skills: np.ndarray,
    n_iterations: int = 20_000,
    batch_size: int = 128,
    learning_rate: float = 1e-3,
    net_arch: tuple[int, ...] = (256, 128),
    ema: float = 0.99,
    window: int = 50,
    seed: int = 0,
) -> MineEstimate:
    """
    Estimate the mutual information by MINE (Belghazi et al., 2018): a network T maximises the Donsker-Varadhan bound

        I(S; Z) >= E[T(s, z)] - log E[exp T(s, z')],  z' drawn independently of s.

    In the published comparison a sample is a whole rollout, not a state: 51 concatenated states of 2 coordinates, 100 rollouts
    of each of 10 skills. A network can memorise so few samples:
    with enough iterations, the bound approaches log(n_skills) for any skills. Compare it with the estimate for the same states
    and shuffled skills, whose mutual information is 0. Noise of the batches may even push it above the maximum, which raises a
    warning.

    :param states: samples, shape ``(n, d)``
    :param skills: skill of each, any integers, shape ``(n,)``
    :param n_iterations: number of steps of Adam
    :param batch_size: number of samples with their own skill, and of samples with the skill of another sample
    :param learning_rate: learning rate of Adam
    :param net_arch: sizes of the hidden layers
    :param ema: decay of the running mean of exp T, which replaces the batch mean in the gradient to reduce its bias
    :param window: number of last iterations that are averaged
    :param seed: seed of weights and batches
    :return: the estimate
    :raises ValueError: if all samples have the same skill, or the estimate is not finite
    """
    names, skills = np.unique(skills, return_inverse=True)
    if len(names) < 2:
        raise ValueError(
            f"All samples have skill {names[0]}, so that no skills can be told apart: pass those of several skills."
        )
    generator = th.Generator().manual_seed(int(seed))
    inputs = th.as_tensor(states, dtype=th.float32)
    one_hot = F.one_hot(th.as_tensor(skills, dtype=th.int64)).float()
    network = _make_network(inputs.shape[1] + one_hot.shape[1], net_arch, generator)
    optimizer = th.optim.Adam(network.parameters(), lr=learning_rate)
    mean_exp = th.ones(())
    bounds = np.empty(n_iterations)
    for iteration in range(n_iterations):
        rows, others = th.randint(len(inputs), (2, batch_size), generator=generator)
        pairs = th.cat([inputs[rows].repeat(2, 1), th.cat([one_hot[rows], one_hot[others]])], dim=1)
        joint, marginal = network(pairs).squeeze(1).chunk(2)  # (batch_size,) each
        exp_marginal = marginal.exp().mean()
        mean_exp = ema * mean_exp + (1 - ema) * exp_marginal.detach()
        # The gradient of log E[exp T] is that of E[exp T] over E[exp T]
        loss = exp_marginal / mean_exp - joint.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bounds[iteration] = (joint.mean() - exp_marginal.log()).item()
    if not np.isfinite(bounds).all():
        raise ValueError("MINE's estimate is not finite: pass states of the order of 1, or a lower learning_rate.")
    shares = np.bincount(skills) / len(skills)
    estimate = MineEstimate(float(bounds[-window:].mean()), bounds, float(-(shares * np.log(shares)).sum()))
    if estimate.mutual_information > estimate.entropy:
        warnings.warn(
            f"MINE's estimate of {estimate.mutual_information:.3f} nats is above the entropy of the skills "
            f"({estimate.entropy:.3f}), which is impossible: its network has memorised the samples. Pass more rollouts, or "
            "fewer iterations.",
            stacklevel=2,
        )
    return estimate


def _make_network(input_dim: int, net_arch: tuple[int, ...], generator: th.Generator) -> nn.Sequential:
    """
    Make the network T.

    :param input_dim: size of a state and a one-hot skill
    :param net_arch: sizes of the hidden layers
    :param generator: source of the weights, N(0, 0.02)
    :return: ELU network with one output
    """
    sizes = (input_dim, *net_arch, 1)
    layers: list[nn.Module] = []
    for in_features, out_features in pairwise(sizes):
        linear = nn.Linear(in_features, out_features)
        nn.init.normal_(linear.weight, std=0.02, generator=generator)
        nn.init.zeros_(linear.bias)
        layers += [linear, nn.ELU()]
    return nn.Sequential(*layers[:-1])
