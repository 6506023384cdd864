"""Layers shared by actors, critics and encoders."""

from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import pairwise
from typing import Any

import torch as th
from stable_baselines3.common.policies import BasePolicy
from stable_baselines3.common.torch_layers import create_mlp
from torch import nn

#: Initialises a linear layer orthogonally and its bias with zeros, as in URLB; for use with ``nn.Module.apply``
orthogonal_init = BasePolicy.init_weights


def xavier_init(module: nn.Module) -> None:
    """Initialise a linear layer by Xavier's uniform distribution and its bias with zeros, as in METRA; for ``apply``."""
    if isinstance(module, nn.Linear):
        nn.init.xavier_uniform_(module.weight)
        nn.init.zeros_(module.bias)


def create_normalized_mlp(
    input_dim: int, output_dim: int, net_arch: Sequence[int], activation_fn: type[nn.Module] = nn.ReLU, layer_norm: bool = True
) -> nn.Sequential:
    """
    Make SB3's MLP, but with LayerNorm and Tanh after the first hidden layer (the "trunk" of URLB's DDPG) if ``layer_norm``.
    An output layer is added if ``output_dim`` is positive.
    """
    if not (layer_norm and net_arch):
        return create_orthogonal_mlp(input_dim, output_dim, net_arch, activation_fn)
    layers = create_mlp(input_dim, -1, [net_arch[0]], nn.Tanh, post_linear_modules=[nn.LayerNorm])
    layers += create_mlp(net_arch[0], output_dim, list(net_arch[1:]), activation_fn)
    return nn.Sequential(*layers).apply(orthogonal_init)


def create_orthogonal_mlp(
    input_dim: int, output_dim: int, net_arch: Sequence[int], activation_fn: type[nn.Module] = nn.ReLU
) -> nn.Sequential:
    """Make SB3's MLP, initialised as in URLB."""
    return nn.Sequential(*create_mlp(input_dim, output_dim, list(net_arch), activation_fn)).apply(orthogonal_init)


def create_xavier_mlp(input_dim: int, output_dim: int, net_arch: Sequence[int]) -> nn.Sequential:
    """Make SB3's MLP, initialised as in METRA."""
    return nn.Sequential(*create_mlp(input_dim, output_dim, list(net_arch))).apply(xavier_init)


class SpectralLinear(nn.Linear):
    """
    A linear layer whose weight is divided by its largest singular value (Miyato et al., "Spectral Normalization for Generative
    Adversarial Networks", 2018), so that it does not increase distances.

    Each forward pass in training takes one step of power iteration to follow the singular value, as in the paper. PyTorch's
    own parametrization can't be pickled, which models need.
    """

    left: th.Tensor
    right: th.Tensor

    def __init__(self, input_dim: int, output_dim: int) -> None:
        super().__init__(input_dim, output_dim)
        self.register_buffer("left", nn.functional.normalize(th.randn(output_dim), dim=0))
        self.register_buffer("right", nn.functional.normalize(th.randn(input_dim), dim=0))

    @th.no_grad()
    def iterate(self) -> None:
        """Take a step of power iteration towards the first singular vectors."""
        self.left.copy_(nn.functional.normalize(self.weight @ self.right, dim=0))
        self.right.copy_(nn.functional.normalize(self.weight.T @ self.left, dim=0))

    def forward(self, inputs: th.Tensor) -> th.Tensor:
        if self.training:
            self.iterate()
        # Copies, as the next pass changes the vectors before the gradient of this one is computed
        largest = self.left.clone() @ (self.weight @ self.right.clone())
        return nn.functional.linear(inputs, self.weight / largest, self.bias)


def create_spectral_mlp(input_dim: int, output_dim: int, net_arch: Sequence[int]) -> nn.Sequential:
    """Make a 1-Lipschitz MLP with ReLU, by spectral normalisation of every layer."""
    layers: list[nn.Module] = []
    for size_in, size_out in pairwise([input_dim, *net_arch, output_dim]):
        layers += [SpectralLinear(size_in, size_out), nn.ReLU()]
    network = nn.Sequential(*layers[:-1]).apply(xavier_init)
    for _ in range(15):
        for layer in network:
            if isinstance(layer, SpectralLinear):
                layer.iterate()
    return network


@contextmanager
def frozen(parameters: Iterable[th.Tensor]) -> Iterator[None]:
    """Compute no gradient of these parameters within the context, which saves its cost."""
    parameters = [parameter for parameter in parameters if parameter.requires_grad]
    for parameter in parameters:
        parameter.requires_grad_(False)
    try:
        yield
    finally:
        for parameter in parameters:
            parameter.requires_grad_(True)


def select(observations: Any, rows: th.Tensor | None) -> Any:
    """Select rows of a tensor, or of all tensors in a dictionary; ``None`` for all rows, without a copy."""
    if rows is None:
        return observations
    if isinstance(observations, dict):
        return {name: value.index_select(0, rows) for name, value in observations.items()}
    return observations.index_select(0, rows)


def minimum(tensors: list[th.Tensor]) -> th.Tensor:
    return th.stack(tensors).min(dim=0).values


@th.no_grad()
def polyak_update(params: Iterable[th.Tensor], target_params: Iterable[th.Tensor], tau: float) -> None:
    """Do the same as SB3's function of this name, in one fused operation: ``target += tau (params - target)``, in place."""
    target_params = list(target_params)
    if target_params:
        th._foreach_lerp_(target_params, list(params), tau)


def one_hot(indices: th.Tensor, n_classes: int, dtype: th.dtype) -> th.Tensor:
    """Make one-hot vectors, shape ``(n, n_classes)``, without PyTorch's check, which reads the indices back."""
    return (indices[:, None] == th.arange(n_classes, device=indices.device)).to(dtype)


def sample_categorical(probabilities: th.Tensor) -> th.Tensor:
    """Draw an index for each row of probabilities, shape ``(n,)``, without the check on the host that PyTorch makes."""
    # p / Exp(1) is largest at i with probability p_i
    return (probabilities / th.empty_like(probabilities).exponential_()).argmax(dim=1)
