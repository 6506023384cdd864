import inspect

import pytest
import torch as th
from batches import learn, make_reward, make_samples
from small import make_small

from sb3_cesd import CIC
from sb3_cesd.common.skills import CubeSkills, DiscreteSkills
from sb3_cesd.methods.cic import CICReward

SKILLS = DiscreteSkills(3)


def test_skills_are_those_of_the_released_code():
    """Uniform vectors from [0, 1]^64."""
    parameters = inspect.signature(CIC).parameters
    assert (parameters["skill_type"].default, parameters["skill_dim"].default) == ("unit_cube", 64)
    assert make_small(CIC).skill_space == CubeSkills(64, 4, low=0.0)
    assert make_small(CIC, skill_type="discrete").skill_space == DiscreteSkills(4)


def test_defaults_of_the_entropy_are_those_of_urlb():
    entropy = make_reward(CICReward, SKILLS).entropy
    assert (entropy.k, entropy.clip, entropy.scale, entropy.aggregate, entropy.log1p) == (16, 0.0005, "variance", "mean", True)
    entropy = make_reward(CICReward, SKILLS, entropy_kwargs={"scale": "std"}).entropy
    assert (entropy.k, entropy.clip, entropy.scale) == (16, 0.0005, "std"), "the rest stays"


def test_contrastive_loss_is_the_released_one_by_default():
    assert make_reward(CICReward, SKILLS).encoder.objective == "released"
    assert make_reward(CICReward, SKILLS, objective="infonce").encoder.objective == "infonce"


def test_features_learn_to_tell_skills():
    th.manual_seed(0)
    obs, skills = th.randn(192, 4), th.arange(192) % 3
    batch = make_samples(obs, obs + th.eye(4)[skills], skills)
    reward = make_reward(CICReward, SKILLS, net_arch=[32], features_dim=4, entropy_kwargs={"k": 4})
    before = reward.loss(batch).item()
    learn(reward, batch, 100)
    assert reward.loss(batch).item() < before - 0.5


def test_features_learn_to_tell_continuous_skills():
    """The move is the skill, in two of four directions."""
    th.manual_seed(0)
    obs, skills = th.randn(192, 4), th.rand(192, 2)
    batch = make_samples(obs, obs + th.cat([2 * skills - 1, th.zeros(192, 2)], dim=1), skills)
    reward = make_reward(CICReward, CubeSkills(2, 3, low=0.0), net_arch=[32], features_dim=4, entropy_kwargs={"k": 4})
    before = reward.loss(batch).item()
    learn(reward, batch, 100)
    assert reward.loss(batch).item() < before - 0.5
    shuffled = batch._replace(skills=skills.roll(1, 0))
    assert reward.loss(shuffled).item() > reward.loss(batch).item() + 0.5, "of other skills it can't be told"


def test_reward_is_the_entropy_of_the_features_whatever_the_skills():
    reward = make_reward(
        CICReward, CubeSkills(2, 3), net_arch=[8], entropy_kwargs={"k": 3, "scale": "none", "clip": 0.0}
    ).double()
    th.manual_seed(0)
    obs, next_obs = th.randn(2, 20, 4, dtype=th.float64)
    batch = make_samples(obs, next_obs, th.rand(20, 2))
    features = reward.encoder(next_obs)
    distances = th.cdist(features, features).sort(dim=1).values[:, :3]
    th.testing.assert_close(reward.reward(batch), distances.mean(dim=1).log1p())
    assert (reward.reward(batch._replace(skills=th.rand(20, 2))) == reward.reward(batch)).all()


def test_bad_arguments():
    with pytest.raises(ValueError, match=r"batch_size=2 is not larger than k=3.*: raise batch_size, or lower k"):
        make_small(CIC, batch_size=2)
