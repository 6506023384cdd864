"""What a model has learned, as it stands now, and what it logs on the way."""

import numpy as np
import torch as th
from stable_baselines3.common.logger import KVWriter, Logger

from sb3_cesd.common.observations import add_skill, entries_of, plain_form


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


def assert_predict_alike(model, loaded, observations):
    """Compare actions of three observations with different skills, which may be in them, and of the first alone."""
    skills = [0, 3, 1]
    expected, _ = model.predict(observations, skill=skills, deterministic=True)
    assert expected.shape == (3, 1) and np.isfinite(expected).all() and len(np.unique(expected)) == 3
    assert (loaded.predict(observations, skill=skills, deterministic=True)[0] == expected).all()
    with_skills = add_skill(observations, model.skill_space.vectors[skills])
    assert all((each.predict(with_skills, deterministic=True)[0] == expected).all() for each in (model, loaded))
    first = plain_form({name: values[0] for name, values in entries_of(observations).items()})
    for each in (model, loaded):
        np.testing.assert_allclose(each.predict(first, skill=0, deterministic=True)[0], expected[0], atol=1e-5)


def _same(first, second):
    return th.equal(first, second) if isinstance(first, th.Tensor) and isinstance(second, th.Tensor) else first == second
