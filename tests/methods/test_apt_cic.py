"""APT and CIC: rewards of particle entropy, with the constants of URLB's code."""

import pytest
import torch as th
from batches import learn, make_batch, make_reward, make_samples

from sb3_cesd.common.skills import CubeSkills, DiscreteSkills
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


def test_features_of_cic_learn_to_tell_continuous_skills():
    """The move is the skill, in two of four directions."""
    th.manual_seed(0)
    obs, skills = th.randn(192, 4), th.rand(192, 2)
    batch = make_samples(obs, obs + th.cat([2 * skills - 1, th.zeros(192, 2)], dim=1), skills)
    reward = make_reward(CICReward, CubeSkills(2, 3, low=0.0), net_arch=[32], features_dim=4, entropy_kwargs={"k": 4})
    assert reward.encoder.objective == "released"
    before = reward.loss(batch).item()
    learn(reward, batch, 100)
    assert reward.loss(batch).item() < before - 0.5
    assert reward.loss(batch._replace(skills=skills.roll(1, 0))).item() > reward.loss(batch).item() + 0.5
