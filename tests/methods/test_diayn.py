import math

import numpy as np
import pytest
import torch as th
from batches import learn, make_reward, make_samples
from small import make_small
from torch.distributions import Categorical
from torch.nn import functional as F

from sb3_cesd import DIAYN
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.methods.diayn import DIAYNReward

SKILLS = DiscreteSkills(3)


@pytest.fixture
def batch():
    th.manual_seed(0)
    return make_samples(th.randn(64, 4), th.randn(64, 4), th.arange(64) % 3)


def test_reward_is_the_log_ratio_of_skill_given_state_and_prior(batch):
    reward = make_reward(DIAYNReward, SKILLS, net_arch=[8], scale=2.0)
    expected = [
        2.0 * (Categorical(logits=reward.discriminator(s)).log_prob(z) - math.log(1 / 3)).item()
        for s, z in zip(batch.next_observations, batch.skills, strict=True)
    ]
    assert reward.reward(batch).tolist() == pytest.approx(expected, rel=1e-4)
    expected = F.cross_entropy(reward.discriminator(batch.next_observations), batch.skills)
    assert reward.loss(batch).item() == pytest.approx(expected.item())


def test_learns_to_tell_skills_and_pays_at_most_log_n(batch):
    reward = make_reward(DIAYNReward, SKILLS, net_arch=[128])
    before = reward.reward(batch).mean().item()
    learn(reward, batch)
    after = reward.reward(batch)
    assert before < 0.1 and after.mean().item() == pytest.approx(math.log(3), abs=0.1)
    assert after.max().item() <= math.log(3) + 1e-6
    assert (reward.predict_clusters(batch.next_observations) == batch.skills).float().mean() > 0.95


def test_clusters_are_the_guesses_of_the_discriminator():
    obs = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    model = make_small(DIAYN)
    assert (model.predict_clusters(obs) == model.intrinsic.discriminator(th.as_tensor(obs)).argmax(1).numpy()).all()


def test_bad_arguments():
    with pytest.raises(ValueError, match="set scale above 0"):
        make_small(DIAYN, intrinsic_kwargs={"scale": 0.0})
