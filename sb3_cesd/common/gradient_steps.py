"""Gradient steps that keep the weights finite."""

import math
from collections.abc import Iterator, Mapping
from typing import Any

import torch as th
from torch import nn

from sb3_cesd.common.cuda import shapes_may_vary


class TrainingDiverged(ValueError):
    """Raised when something that is learned, or follows from it, is not finite."""


class GradientSteps:
    """
    Take gradient steps, but leave out those whose loss or gradient, or the square of one, is not finite: weights and the state
    of the optimizer then stay as they were.

    On the CPU, it is known at once which step was left out. A GPU leaves steps out and counts them by itself, so that the host
    does not wait and a captured graph does not need it; :meth:`left_out` reads the counts. An optimizer that is not fused and
    counts its steps on the host counts the left-out ones, too.

    :param modules: modules that learn, by name, to name the tensor that is not finite
    """

    def __init__(self, modules: Mapping[str, nn.Module] | None = None) -> None:
        self.modules = {} if modules is None else modules
        self._left_out: list[str] = []
        #: Steps that a GPU left out, by name of the loss; their addresses stay the same
        self._counts: dict[str, th.Tensor] = {}

    def take(self, name: str, optimizer: th.optim.Optimizer, loss: th.Tensor) -> None:
        """
        Take a step, unless its loss or gradient is not finite.

        :param name: name of the loss
        :param optimizer: optimizer of the parameters to change
        :param loss: a scalar, or a tensor with one entry
        """
        optimizer.zero_grad()
        loss.backward()
        gradients = [parameter.grad for parameter in parameters_of(optimizer) if parameter.grad is not None]
        # A sum is finite only if all terms are; squared, as Adam squares gradients
        total = th.stack([loss.detach().reshape(()), *(th._foreach_norm(gradients) if gradients else ())]).sum().square()
        if not shapes_may_vary(loss.device):
            self._step_on_device(name, optimizer, total)
        elif math.isfinite(total.item()):
            optimizer.step()
        else:
            self._left_out.append(self._describe(name, optimizer, loss))

    def left_out(self) -> list[str]:
        """
        Describe the steps that were left out since the last call. The host waits for a GPU here.

        :return: what was not finite in each of them, in words
        """
        found, self._left_out = self._left_out, []
        if self._counts:
            counts = th.stack(list(self._counts.values())).long().tolist()
            if any(counts):
                for name, count in zip(self._counts, counts, strict=True):
                    found += [f"the {name} or its gradient"] * count
                    self._counts[name].zero_()
        return found

    def _step_on_device(self, name: str, optimizer: th.optim.Optimizer, total: th.Tensor) -> None:
        is_bad = (total - total) != 0  # NaN for what is not finite
        if name not in self._counts:
            self._counts[name] = th.zeros((), device=total.device)
        self._counts[name].add_(is_bad)
        if optimizer.defaults.get("fused"):
            # As for gradients scaled by torch.amp: the kernel does nothing where this is 1
            optimizer.found_inf = is_bad.float()  # type: ignore[attr-defined]
            optimizer.step()
            del optimizer.found_inf  # type: ignore[attr-defined]
        else:
            before = {id(tensor): tensor.detach().clone() for tensor in _changed_by(optimizer)}
            optimizer.step()
            for tensor in _changed_by(optimizer):
                # A counter on the host still counts, as the host does not wait
                if tensor.device == is_bad.device:
                    # The first step creates states, as zeros
                    old = before.get(id(tensor), th.zeros((), dtype=tensor.dtype, device=tensor.device))
                    tensor.detach().copy_(th.where(is_bad, old, tensor))

    def _describe(self, name: str, optimizer: th.optim.Optimizer, loss: th.Tensor) -> str:
        if not loss.isfinite():
            return f"the {name} ({loss.item()})"
        if not loss.square().isfinite():
            return f"the square of the {name} ({loss.item():.0e})"
        names = {
            id(parameter): f"{module}.{path}"
            for module, parent in self.modules.items()
            for path, parameter in parent.named_parameters()
        }
        for parameter in parameters_of(optimizer):
            if parameter.grad is not None and not parameter.grad.norm().square().isfinite():
                square = "the square of " if parameter.grad.isfinite().all() else ""
                return f"{square}the gradient of {names.get(id(parameter), 'a weight')} by the {name}"
        return f"the square of the gradient of the {name}"


def parameters_of(optimizer: th.optim.Optimizer) -> list[nn.Parameter]:
    """
    List the parameters of an optimizer.

    :param optimizer: any optimizer
    :return: its parameters, of all groups
    """
    return [parameter for group in optimizer.param_groups for parameter in group["params"]]


def _changed_by(optimizer: th.optim.Optimizer) -> list[th.Tensor]:
    """List what a step changes: the parameters, and the state that the optimizer keeps for each."""
    states = [value for state in optimizer.state.values() for value in state.values() if isinstance(value, th.Tensor)]
    return [*parameters_of(optimizer), *states]


class RunningStatistics:
    """
    Running statistics of batch normalisation and intrinsic rewards, which change with each batch, without a gradient.

    :param modules: modules with these buffers, by name
    """

    def __init__(self, modules: Mapping[str, nn.Module]) -> None:
        self.tensors = {
            f"{name}.{path}": tensor
            for name, module in modules.items()
            for path, tensor in module.named_buffers()
            if tensor.is_floating_point()
        }

    def copy(self) -> list[th.Tensor]:
        """
        Remember the statistics.

        :return: copies
        """
        return [tensor.clone() for tensor in self.tensors.values()]

    def restore(self, copies: list[th.Tensor]) -> list[str]:
        """
        Restore statistics that are not finite any more.

        :param copies: copies that :meth:`copy` returned
        :return: what was not finite, in words
        """
        sums = [tensor.double().sum() for tensor in self.tensors.values()]
        if not sums or math.isfinite(th.stack(sums).sum().item()):
            return []
        found = [name for name, tensor in self.tensors.items() if not tensor.isfinite().all()]
        for name, before in zip(self.tensors, copies, strict=True):
            if name in found:
                self.tensors[name].copy_(before)
        return [f"the running statistics {name}" for name in found]


def not_finite(state: Any, name: str) -> Iterator[str]:
    """
    Find tensors that are not finite.

    :param state: tensors in dictionaries and lists, as ``state_dict`` returns them
    :param name: name of the state, with which the paths start
    :return: path of each tensor that holds NaN or infinity
    """
    if isinstance(state, th.Tensor):
        if not state.isfinite().all():
            yield name
    elif isinstance(state, Mapping):
        for key, value in state.items():
            yield from not_finite(value, f"{name}.{key}")
    elif isinstance(state, list | tuple):
        for idx, value in enumerate(state):
            yield from not_finite(value, f"{name}[{idx}]")
