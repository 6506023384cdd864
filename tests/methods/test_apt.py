import pytest
import torch as th
from batches import make_reward, make_samples
from small import make_small

from sb3_cesd import APT
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.methods.apt import APTReward

SKILLS = DiscreteSkills(3)


def test_reward_is_the_particle_entropy_of_the_whole_batch():
    reward = make_reward(APTReward, SKILLS, encoder="identity", entropy_kwargs={"k": 3, "scale": "none", "clip": 0.0})
    th.manual_seed(0)
    batch = make_samples(th.randn(20, 4), th.randn(20, 4), th.arange(20) % 3)
    distances = th.cdist(batch.next_observations, batch.next_observations).sort(dim=1).values[:, :3]
    th.testing.assert_close(reward.reward(batch), distances.mean(dim=1).log1p())
    assert not hasattr(reward, "optimizer"), "nothing is learned"
    other_skills = batch._replace(skills=batch.skills.flip(0))
    assert (reward.reward(other_skills) == reward.reward(batch)).all()


def test_defaults_of_the_entropy_are_those_of_urlb():
    entropy = make_reward(APTReward, SKILLS).entropy
    assert (entropy.k, entropy.clip, entropy.scale, entropy.aggregate, entropy.log1p) == (12, 0.0001, "mean", "mean", True)
    entropy = make_reward(APTReward, SKILLS, entropy_kwargs={"scale": "std"}).entropy
    assert (entropy.k, entropy.clip, entropy.scale) == (12, 0.0001, "std"), "the rest stays"


def test_there_are_no_clusters():
    assert make_small(APT).predict_clusters(th.zeros(2, 3).numpy()) is None


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"intrinsic_kwargs": {"encoder": "pca"}}, "Unknown encoder 'pca': choose one of .*'icm'"),
        ({"batch_size": 3}, "batch_size=3 is not larger than k=3.*: raise batch_size, or lower k"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_small(APT, **kwargs)
