"""DIAYN, DADS, CIC and APT on hand-made batches."""

import math

import pytest
import torch as th
from batches import make_samples
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal
from torch.nn import functional as F

from sb3_cesd.intrinsic import APTReward, CICReward, DADSReward, DIAYNReward

N_SKILLS = 3


def make_batch(n=64, obs_dim=4):
    th.manual_seed(0)
    skills = th.arange(n) % N_SKILLS
    return make_samples(th.randn(n, obs_dim), th.randn(n, obs_dim), skills, th.rand(n, 2))


def make(reward_class, **kwargs):
    th.manual_seed(1)
    reward = reward_class(4, 2, N_SKILLS, **kwargs)
    reward.set_optimizer(lambda parameters: th.optim.Adam(parameters, lr=1e-2))
    return reward


def learn(reward, batch, n_updates=200):
    reward.train()
    for _ in range(n_updates):
        relabelled = reward.relabel(batch)
    reward.eval()
    return relabelled


def test_diayn_reward_is_the_log_ratio_of_skill_given_state_and_prior():
    reward, batch = make(DIAYNReward, net_arch=[8], scale=2.0), make_batch()
    expected = [
        2.0 * (Categorical(logits=reward.discriminator(s)).log_prob(z) - math.log(1 / N_SKILLS)).item()
        for s, z in zip(batch.next_observations, batch.skills, strict=True)
    ]
    assert reward.reward(batch).tolist() == pytest.approx(expected, rel=1e-4)
    expected = F.cross_entropy(reward.discriminator(batch.next_observations), batch.skills)
    assert reward.loss(batch).item() == pytest.approx(expected.item())


def test_diayn_learns_to_tell_skills_and_pays_at_most_log_n():
    reward, batch = make(DIAYNReward, net_arch=[128]), make_batch()
    before = reward.reward(batch).mean().item()
    learn(reward, batch)
    after = reward.reward(batch)
    assert before < 0.1 and after.mean().item() == pytest.approx(math.log(N_SKILLS), abs=0.1)
    assert after.max().item() <= math.log(N_SKILLS) + 1e-6
    assert (reward.predict_clusters(batch.next_observations) == batch.skills).float().mean() > 0.95


def test_dads_reward_is_the_log_ratio_to_the_mean_over_skills():
    reward, batch = make(DADSReward, net_arch=[8], n_experts=2, scale=3.0), make_batch()
    learn(reward, batch, 3)  # so that the running statistics are not 0 and 1
    obs = (batch.observations - reward.obs_norm.running_mean) / (reward.obs_norm.running_var + 1e-5).sqrt()
    deltas = batch.next_observations - batch.observations
    deltas = (deltas - reward.delta_norm.running_mean) / (reward.delta_norm.running_var + 1e-5).sqrt()
    for j in range(len(obs)):
        densities = []
        for skill in th.eye(N_SKILLS):
            weights, *means = reward.dynamics(th.cat([obs[j], skill])).view(2, 5).split([1, 4], dim=1)
            experts = Independent(Normal(means[0], 1.0), 1)
            densities.append(MixtureSameFamily(Categorical(logits=weights.flatten()), experts).log_prob(deltas[j]).exp())
        expected = 3.0 * th.log(densities[batch.skills[j]] / (sum(densities) / N_SKILLS))
        assert reward.reward(batch)[j].item() == pytest.approx(expected.item(), rel=1e-3, abs=1e-5)


def test_dads_pays_skills_whose_outcomes_are_predictable_and_differ():
    th.manual_seed(0)
    obs, skills = th.randn(300, 4), th.arange(300) % N_SKILLS
    moves = 3 * th.eye(4)[:N_SKILLS]
    distinct = make_samples(obs, obs + moves[skills], skills)
    reward = make(DADSReward, net_arch=[32])
    learn(reward, distinct, 150)
    assert reward.reward(distinct).mean().item() > 0.8  # of log 3 = 1.1
    another = make_samples(obs, obs + moves[(skills + 1) % N_SKILLS], skills)
    assert reward.reward(another).mean().item() < -1

    random = make_samples(obs, obs + th.randn(300, 4), skills)
    reward = make(DADSReward, net_arch=[32])
    learn(reward, random, 20)
    unseen = make_samples(obs, obs + th.randn(300, 4), skills)
    assert reward.reward(unseen).mean().item() < 0.1


def test_dads_reward_of_a_transition_does_not_depend_on_the_rest_of_the_batch():
    reward, batch = make(DADSReward, net_arch=[8]), make_batch()
    learn(reward, batch, 3)
    alone = batch._replace(**{name: getattr(batch, name)[:1] for name in ("observations", "next_observations", "skills")})
    th.testing.assert_close(reward.train().reward(alone), reward.eval().reward(batch)[:1])


def test_apt_reward_is_the_particle_entropy_of_the_whole_batch():
    reward = make(APTReward, encoder="identity", entropy_kwargs={"k": 3, "scale": "none"})
    batch = make_batch(20)
    distances = th.cdist(batch.next_observations, batch.next_observations).sort(dim=1).values[:, :3]
    th.testing.assert_close(reward.reward(batch), distances.mean(dim=1).log1p())
    assert not hasattr(reward, "optimizer"), "nothing is learned"
    other_skills = batch._replace(skills=batch.skills.flip(0))
    assert (reward.reward(other_skills) == reward.reward(batch)).all()


@pytest.mark.parametrize(("reward_class", "k", "clip"), [(APTReward, 12, 0.0), (CICReward, 16, 0.0005)])
def test_defaults_of_the_entropy_are_those_of_urlb(reward_class, k, clip):
    entropy = make(reward_class).entropy
    assert (entropy.k, entropy.clip, entropy.scale, entropy.aggregate, entropy.log1p) == (k, clip, "variance", "mean", True)
    entropy = make(reward_class, entropy_kwargs={"scale": "std"}).entropy
    assert (entropy.k, entropy.clip, entropy.scale) == (k, clip, "std"), "the rest stays"


def test_cic_features_learn_to_tell_skills():
    th.manual_seed(0)
    obs, skills = th.randn(192, 4), th.arange(192) % N_SKILLS
    batch = make_samples(obs, obs + th.eye(4)[skills], skills)
    reward = make(CICReward, net_arch=[32], features_dim=4, entropy_kwargs={"k": 4})
    before = reward.loss(batch).item()
    learn(reward, batch, 100)
    assert reward.loss(batch).item() < before - 0.5


@pytest.mark.parametrize("reward_class", [DIAYNReward, DADSReward, CICReward, APTReward])
def test_relabelling_learns_in_training_only_and_pays_the_collecting_skill(reward_class):
    reward, batch = make(reward_class, **({} if reward_class is APTReward else {"net_arch": [8]})), make_batch()
    reward.eval()
    before = {name: value.clone() for name, value in reward.state_dict().items()}
    relabelled = reward.relabel(batch)
    assert all((value == before[name]).all() for name, value in reward.state_dict().items())
    th.testing.assert_close(relabelled.rewards.squeeze(1), reward.reward(batch).detach())
    assert relabelled.pairs.rewards is relabelled.rewards and not relabelled.rewards.requires_grad
    assert (relabelled.pairs.skills == batch.skills).all() and (relabelled.pairs.target_skills == batch.skills).all()

    reward.train().relabel(batch)
    changed = {name for name, value in reward.state_dict().items() if (value != before[name]).any()}
    assert {name for name, _ in reward.named_parameters()} <= changed
    assert reward.logs["train/intrinsic_loss"].item() > 0 and not reward.logs["train/intrinsic_loss"].requires_grad
