"""What a user's own reward returns is checked before anything learns from it."""

import numpy as np
import pytest
from small import make_small
from torch import nn

from sb3_cesd import SkillDDPG
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.skill_ddpg.checks import TrainingDiverged


def train(reward, loss=lambda self, samples: None):
    """Train with functions of the reward and the samples."""

    def init(self, obs_dim, action_dim, skill_space):
        IntrinsicReward.__init__(self, obs_dim, action_dim, skill_space)
        self.network = nn.Linear(obs_dim, 1)

    own = type("OwnReward", (IntrinsicReward,), {"__init__": init, "reward": reward, "loss": loss})
    return make_small(type("Own", (SkillDDPG,), {"reward_class": own}), learning_starts=32, skill_duration=None).learn(40)


def first(self, samples):
    return samples.observations[:, 0]


@pytest.mark.parametrize(
    "reward", [lambda self, samples: samples.observations[:, :1], lambda self, samples: samples.observations.mean()]
)
def test_a_reward_is_one_number_per_transition(reward):
    with pytest.raises(ValueError, match=r"OwnReward\.reward"):
        train(reward)


def test_training_stops_where_a_reward_is_not_finite():
    with pytest.raises(TrainingDiverged):
        train(lambda self, samples: first(self, samples) * float("nan"))


def test_losses_and_logs_are_recorded():
    def loss(self, samples):
        value = self.network(samples.observations).square().mean()
        self.logs["train/own"] = 3
        return value

    logged = train(first, loss).logger.name_to_value
    assert logged["train/own"] == 3 and np.isfinite(logged["train/intrinsic_loss"])
