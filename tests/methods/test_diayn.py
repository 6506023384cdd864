import math

import pytest
import torch as th
from batches import learn, make_batch, make_reward
from torch.distributions import Categorical
from torch.nn import functional as F

from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.methods.diayn import DIAYNReward

SKILLS = DiscreteSkills(3)


def test_reward_is_the_log_ratio_of_skill_given_state_and_prior():
    reward, batch = make_reward(DIAYNReward, SKILLS, net_arch=[8], scale=2.0).double(), make_batch(SKILLS)
    log_q = Categorical(logits=reward.discriminator(batch.next_observations)).log_prob(batch.skills)
    th.testing.assert_close(reward.reward(batch), 2.0 * (log_q - math.log(1 / 3)))
    expected = F.cross_entropy(reward.discriminator(batch.next_observations), batch.skills)
    assert reward.loss(batch).item() == pytest.approx(expected.item())


def test_learns_to_tell_skills_and_pays_at_most_log_n():
    reward, batch = make_reward(DIAYNReward, SKILLS, net_arch=[128]).double(), make_batch(SKILLS, n=64)
    assert reward.reward(batch).mean().item() < 0.1
    learn(reward, batch)
    after = reward.reward(batch)
    assert after.mean().item() == pytest.approx(math.log(3), abs=0.1) and after.max().item() <= math.log(3) + 1e-6
    assert (reward.predict_clusters(batch.next_observations) == batch.skills).float().mean() > 0.95
