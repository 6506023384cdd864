"""Mutual information of paths and skills by MINE."""

import numpy as np
import torch as th
from torch import nn
from torch.nn import functional as F

#: As in the published comparison: samples in a batch, decay of the running mean of exp T, last iterations that are averaged
BATCH_SIZE, DECAY, WINDOW = 128, 0.99, 50


def mine_mutual_information(states: np.ndarray, skills: np.ndarray, n_iterations: int = 20_000, seed: int = 0) -> float:
    """
    Estimate the mutual information by MINE (Belghazi et al., 2018): a network T maximises the Donsker-Varadhan bound

        I(S; Z) >= E[T(s, z)] - log E[exp T(s, z')],  z' drawn independently of s.

    In the published comparison a sample is a whole rollout, not a state: 51 concatenated states of 2 coordinates, 100 rollouts
    of each of 10 skills. A network can memorise so few samples: with enough iterations, the bound approaches log(n_skills) for
    any skills, and noise of the batches may push it above. Compare it with the estimate for the same states and shuffled
    skills, whose mutual information is 0.

    :param states: samples, shape ``(n, d)``
    :param skills: skill of each, any integers, shape ``(n,)``
    :param n_iterations: number of steps of Adam
    :param seed: seed of weights and batches
    :return: mean of the bound over the last iterations [nats]
    :raises ValueError: if the estimate is not finite
    """
    generator = th.Generator().manual_seed(int(seed))
    inputs = th.as_tensor(states, dtype=th.float32)
    one_hot = F.one_hot(th.as_tensor(np.unique(skills, return_inverse=True)[1])).float()
    layers = [nn.Linear(inputs.shape[1] + one_hot.shape[1], 256), nn.Linear(256, 128), nn.Linear(128, 1)]
    for layer in layers:
        nn.init.normal_(layer.weight, std=0.02, generator=generator)
        nn.init.zeros_(layer.bias)
    network = nn.Sequential(layers[0], nn.ELU(), layers[1], nn.ELU(), layers[2])
    optimizer = th.optim.Adam(network.parameters(), lr=1e-3)
    mean_exp = th.ones(())
    bounds = np.empty(n_iterations)
    for iteration in range(n_iterations):
        rows, others = th.randint(len(inputs), (2, BATCH_SIZE), generator=generator)
        pairs = th.cat([inputs[rows].repeat(2, 1), th.cat([one_hot[rows], one_hot[others]])], dim=1)
        joint, marginal = network(pairs).squeeze(1).chunk(2)  # (BATCH_SIZE,) each
        exp_marginal = marginal.exp().mean()
        mean_exp = DECAY * mean_exp + (1 - DECAY) * exp_marginal.detach()
        # The gradient of log E[exp T] is that of E[exp T] over E[exp T], whose running mean has less bias
        loss = exp_marginal / mean_exp - joint.mean()
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()
        bounds[iteration] = (joint.mean() - exp_marginal.log()).item()
    if not np.isfinite(bounds).all():
        raise ValueError("MINE's estimate is not finite: pass states of the order of 1.")
    return float(bounds[-WINDOW:].mean())
