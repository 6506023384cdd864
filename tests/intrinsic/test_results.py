"""What a user's own reward returns is checked before anything learns from it."""

import pytest
from small import make_small
from torch import nn

from sb3_cesd import SkillDDPG
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


def test_a_network_outside_of_the_reward_is_refused():
    outside = nn.Linear(3, 1)
    with pytest.raises(ValueError, match="no parameter can lower: set the networks of the loss as attributes in __init__"):
        train(first, lambda self, samples: outside(samples.observations).mean())
