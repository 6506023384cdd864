"""APT and CIC: rewards of particle entropy, with the constants of URLB's code."""

import pytest
import torch as th
from batches import make_batch, make_reward

from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.methods.apt import APTReward
from sb3_cesd.methods.cic import CICReward

SKILLS = DiscreteSkills(3)


@pytest.mark.parametrize(("reward_class", "kwargs"), [(APTReward, {"encoder": "identity"}), (CICReward, {"net_arch": [8]})])
def test_reward_is_the_particle_entropy_of_the_whole_batch(reward_class, kwargs):
    entropy_kwargs = {"k": 3, "scale": "none", "clip": 0.0}
    reward = make_reward(reward_class, SKILLS, entropy_kwargs=entropy_kwargs, **kwargs).double()
    batch = make_batch(SKILLS, n=20)
    features = reward.encoder(batch.next_observations)
    distances = th.cdist(features, features).sort(dim=1).values[:, :3]
    th.testing.assert_close(reward.reward(batch), distances.mean(dim=1).log1p())
    assert (reward.reward(batch._replace(skills=batch.skills.flip(0))) == reward.reward(batch)).all()


@pytest.mark.parametrize(
    ("reward_class", "expected"), [(APTReward, (8, 0.0001, "mean")), (CICReward, (8, 0.0005, "variance"))]
)
def test_defaults_of_the_entropy_are_those_of_urlb_but_for_k(reward_class, expected):
    entropy = make_reward(reward_class, SKILLS).entropy
    assert (entropy.k, entropy.clip, entropy.scale) == expected and (entropy.aggregate, entropy.log1p) == ("mean", True)
    entropy = make_reward(reward_class, SKILLS, entropy_kwargs={"scale": "std"}).entropy
    assert (entropy.k, entropy.clip, entropy.scale) == (*expected[:2], "std"), "the rest stays"
