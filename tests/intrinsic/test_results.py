"""What a user's own reward returns is checked before anything learns from it."""

import itertools

import numpy as np
import pytest
from small import make_small
from torch import nn

from sb3_cesd import SkillDDPG
from sb3_cesd.common.gradient_steps import TrainingDiverged
from sb3_cesd.intrinsic.base import IntrinsicReward


def train(reward, loss=lambda self, samples: None, network=False):
    """Train with functions of the reward and the samples."""

    def init(self, obs_dim, action_dim, skill_space):
        IntrinsicReward.__init__(self, obs_dim, action_dim, skill_space)
        self.network = nn.Linear(obs_dim, 1) if network else None

    own = type("OwnReward", (IntrinsicReward,), {"__init__": init, "reward": reward, "loss": loss})
    return make_small(type("Own", (SkillDDPG,), {"reward_class": own}), learning_starts=32, skill_duration=None).learn(40)


def first(self, samples):
    return samples.observations[:, 0]


def test_a_reward_that_is_not_finite_is_named():
    with pytest.raises(TrainingDiverged, match=r"what OwnReward\.reward returned, .* See that OwnReward\.reward is finite"):
        train(lambda self, samples: first(self, samples) * float("nan"))


@pytest.mark.parametrize(
    ("reward", "said"),
    [
        (lambda self, samples: samples.observations[:, :1], r"shape \(32, 1\) for 32 transitions: .*shape \(32,\)\.$"),
        (lambda self, samples: samples.observations.mean(), r"shape \(\) for 32 transitions: .*shape \(32,\)\.$"),
        (lambda self, samples: samples.observations[0, :1], r"shape \(1,\) for 32 transitions: .*shape \(32,\)\.$"),
        (lambda self, samples: first(self, samples) > 0, r"torch\.bool: .*reward\.float\(\)\.$"),
        (lambda self, samples: samples.skills, r"torch\.int64: .*reward\.float\(\)\.$"),
        (lambda self, samples: first(self, samples).numpy(), r"ndarray: return a tensor of shape \(batch_size,\)\.$"),
        (lambda self, samples: None, r"NoneType: return a tensor of shape \(batch_size,\)\.$"),
    ],
)
def test_a_reward_is_one_number_per_transition(reward, said):
    with pytest.raises(ValueError, match=rf"^OwnReward\.reward returned {said}"):
        train(reward)


@pytest.mark.parametrize(
    ("loss", "network", "said"),
    [
        (lambda self, samples: self.network(samples.observations), True, r"shape \(32, 1\): return a scalar tensor"),
        (lambda self, samples: 1.0, True, "float: return a scalar tensor"),
        (lambda self, samples: first(self, samples).mean(), True, "a loss that no parameter can lower: set the networks"),
        (lambda self, samples: first(self, samples).mean(), False, "a loss that no parameter can lower: set the networks"),
    ],
)
def test_a_loss_is_a_scalar_that_depends_on_a_network(loss, network, said):
    with pytest.raises(ValueError, match=rf"^OwnReward\.loss returned {said}.*None"):
        train(first, loss, network)


def test_a_loss_with_one_entry_learns():
    biases = []

    def loss(self, samples):
        biases.append(self.network.bias.item())
        return self.network(samples.observations).square().mean(dim=0)  # (1,)

    model = train(first, loss, network=True)
    assert len({*biases, model.intrinsic.network.bias.item()}) == len(biases) + 1 > 2, "each update changes it"
    assert np.isfinite(model.logger.name_to_value["train/intrinsic_loss"])


def test_a_network_outside_of_the_reward_is_refused():
    outside = nn.Linear(3, 1)
    with pytest.raises(ValueError, match="no parameter can lower: set the networks of the loss as attributes in __init__"):
        train(first, lambda self, samples: outside(samples.observations).mean())


def log_of_training(note):
    """Train with a loss that logs what a function of it and of its number returns; return what is logged last."""
    numbers = itertools.count(1)

    def loss(self, samples):
        value = self.network(samples.observations).square().mean()
        self.logs["train/own"] = note(value, next(numbers))
        return value

    return train(first, loss, network=True).logger.name_to_value["train/own"]


@pytest.mark.parametrize(
    "note",
    [
        lambda loss, n: n,
        lambda loss, n: np.float64(n),
        lambda loss, n: 0 * loss.item() + n,
        lambda loss, n: 0 * loss + n,
        lambda loss, n: 0 * loss.detach() + n,
    ],
)
def test_logs_are_numbers_or_tensors_also_with_a_gradient(note):
    assert log_of_training(note) == 4


@pytest.mark.parametrize("note", [lambda loss, n: "high", lambda loss, n: [1.0], lambda loss, n: None])
def test_other_logs_are_refused(note):
    with pytest.raises(ValueError, match=r"^OwnReward\.logs\['train/own'\] is of type .*: log a scalar tensor or a number\.$"):
        log_of_training(note)


def test_a_log_keeps_its_shape():
    with pytest.raises(ValueError, match=r"The log 'train/own' has shape \(2,\), and had \(1,\) before: log a scalar"):
        log_of_training(lambda loss, n: loss.expand(n))
