"""What a model has learned, as it stands now, and what it logs on the way."""

import torch as th
from stable_baselines3.common.logger import KVWriter, Logger


class Memory(KVWriter):
    """Keeps the rows that a model logs."""

    def __init__(self, model):
        self.rows = []
        model.set_logger(Logger(None, [self]))

    def write(self, key_values, key_excluded, step=0):
        self.rows.append(dict(key_values))

    def close(self):
        pass


def parameters_of(model):
    """Copies of the parameters of the networks, in their order."""
    return [parameter.detach().clone() for part in (model.policy, model.intrinsic) for parameter in part.parameters()]


def state_of(model):
    """Everything that is saved, of optimizers too, by its path: copies of tensors, and plain values."""
    flat = {}

    def visit(name, value):
        if isinstance(value, dict | list):
            for key, child in value.items() if isinstance(value, dict) else enumerate(value):
                visit(f"{name}.{key}", child)
        else:
            flat[name] = value.clone() if isinstance(value, th.Tensor) else value

    visit("", model.get_parameters())
    return flat


def differences(first, second):
    """Paths of what differs between two models, or between what :func:`state_of` told of them, or is in one of them alone."""
    first, second = (each if isinstance(each, dict) else state_of(each) for each in (first, second))
    differing = {path for path in first.keys() & second.keys() if not _same(first[path], second[path])}
    return differing | (first.keys() ^ second.keys())


def _same(first, second):
    return th.equal(first, second) if isinstance(first, th.Tensor) and isinstance(second, th.Tensor) else first == second
