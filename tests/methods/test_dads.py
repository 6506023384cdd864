import inspect
import math

import pytest
import torch as th
from batches import learn, make_reward, make_samples
from small import make_small
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from sb3_cesd import DADS
from sb3_cesd.common.skills import CubeSkills, DiscreteSkills
from sb3_cesd.methods.dads import DADSReward

N_SKILLS = 3
SKILLS = DiscreteSkills(N_SKILLS)


def make_batch(n=64, obs_dim=4):
    th.manual_seed(0)
    skills = th.arange(n) % N_SKILLS
    return make_samples(th.randn(n, obs_dim), th.randn(n, obs_dim), skills, th.rand(n, 2))


def test_reward_is_the_log_ratio_to_the_mean_over_skills():
    reward, batch = make_reward(DADSReward, SKILLS, net_arch=[8], n_experts=2, scale=3.0), make_batch()
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


def test_pays_skills_whose_outcomes_are_predictable_and_differ():
    th.manual_seed(0)
    obs, skills = th.randn(300, 4), th.arange(300) % N_SKILLS
    moves = 3 * th.eye(4)[:N_SKILLS]
    distinct = make_samples(obs, obs + moves[skills], skills)
    reward = make_reward(DADSReward, SKILLS, net_arch=[32])
    learn(reward, distinct, 150)
    assert reward.reward(distinct).mean().item() > 0.8  # of log 3 = 1.1
    another = make_samples(obs, obs + moves[(skills + 1) % N_SKILLS], skills)
    assert reward.reward(another).mean().item() < -1

    random = make_samples(obs, obs + th.randn(300, 4), skills)
    reward = make_reward(DADSReward, SKILLS, net_arch=[32])
    learn(reward, random, 20)
    unseen = make_samples(obs, obs + th.randn(300, 4), skills)
    assert reward.reward(unseen).mean().item() < 0.1


def test_reward_of_a_transition_does_not_depend_on_the_rest_of_the_batch():
    reward, batch = make_reward(DADSReward, SKILLS, net_arch=[8]), make_batch()
    learn(reward, batch, 3)
    alone = batch._replace(**{name: getattr(batch, name)[:1] for name in ("observations", "next_observations", "skills")})
    th.testing.assert_close(reward.train().reward(alone), reward.eval().reward(batch)[:1])


@pytest.mark.parametrize("space", [SKILLS, CubeSkills(2, 4)], ids=["discrete", "continuous"])
def test_log_ratios_are_bounded_as_in_the_released_code(space, monkeypatch):
    """log(L + 1) - log(1 + sum_i exp(clip(log q_i - log q, -50, 50))) over L other skills."""
    reward = make_reward(DADSReward, space, net_arch=[8], n_prior_samples=N_SKILLS - 1).double()
    # An ordinary change, one far from what every skill does, and two that tell skills apart by more than the bound
    log_q = th.tensor([[-3.0, -5.0, -40.0], [-9e5, -9e5 + 2, -9e5 - 2], [-400.0, -20.0, -30.0], [-1.0, -90.0, -3e3]]).double()
    own, others = log_q[:, 0], log_q[:, 1:]
    monkeypatch.setattr(reward, "_log_densities", lambda *args: log_q if space is SKILLS else others)
    monkeypatch.setattr(reward, "_log_density", lambda *args: own)
    skills = th.zeros(4, dtype=th.long) if space is SKILLS else th.rand(4, 2, dtype=th.float64)
    rewards = reward.reward(make_samples(th.randn(4, 4).double(), th.randn(4, 4).double(), skills))

    ratios = others - own[:, None]
    expected = math.log(N_SKILLS) - ratios.clamp(-50, 50).exp().sum(dim=1).log1p()
    th.testing.assert_close(rewards, expected)
    assert rewards[2].item() == pytest.approx(math.log(N_SKILLS) - math.log(2) - 50), "-379 without the bound"
    assert rewards[3].item() == pytest.approx(math.log(N_SKILLS)), "as high as it can be"
    # Within the bound to the last bit what it is without
    unbounded = own - log_q.logsumexp(dim=1) + math.log(N_SKILLS)
    assert (rewards[:2] == unbounded[:2]).all()


# Continuous skills


CUBE = CubeSkills(2, 4)


def continuous_batch(n=12, dtype=th.float64):
    th.manual_seed(0)
    obs, next_obs = th.randn(2, n, 4, dtype=dtype)
    return make_samples(obs, next_obs, th.rand(n, 2, dtype=dtype) * 2 - 1)


@th.no_grad()
def mixture_density(reward, obs, skill, delta):
    """The density of one change under one skill, of two experts, as the paper writes it: a sum of weighted Gaussians."""
    outputs = reward.dynamics(th.cat([obs, skill])).view(2, 5)
    weights = outputs[:, 0].exp() / outputs[:, 0].exp().sum()
    gaussians = [math.exp(-0.5 * ((delta - mean) ** 2).sum()) / (2 * math.pi) ** 2 for mean in outputs[:, 1:]]
    return sum(weight.item() * gaussian for weight, gaussian in zip(weights, gaussians, strict=True))


def test_skills_are_those_of_the_paper():
    """Uniform vectors from [-1, 1]^16."""
    parameters = inspect.signature(DADS).parameters
    assert (parameters["skill_type"].default, parameters["skill_dim"].default) == ("cube", 16)
    assert make_small(DADS).skill_space == CubeSkills(16, 4)
    assert make_small(DADS, skill_type="discrete").skill_space == DiscreteSkills(4)


def test_reward_of_continuous_skills_is_the_log_ratio_to_the_mean_over_drawn_ones(monkeypatch):
    """log q(s' | s, z) - log (q(s' | s, z) + sum_i q(s' | s, z_i)) / (L + 1), the paper's eq. 6 with z among the skills."""
    reward = make_reward(DADSReward, CUBE, net_arch=[8], n_experts=2, scale=3.0, n_prior_samples=5).double()
    batch = continuous_batch()
    learn(reward, batch, 3)  # so that the running statistics are not 0 and 1
    drawn, draw_tensor = [], CUBE.draw_tensor
    monkeypatch.setattr(CUBE, "draw_tensor", lambda n, device: drawn.append(draw_tensor(n, device)) or drawn[-1])
    rewards = reward.reward(batch)
    others = drawn[0].double()
    assert len(drawn) == 1 and others.shape == (5, 2), "the same for the whole batch"

    obs = (batch.observations - reward.obs_norm.running_mean) / (reward.obs_norm.running_var + 1e-5).sqrt()
    deltas = batch.next_observations - batch.observations
    deltas = (deltas - reward.delta_norm.running_mean) / (reward.delta_norm.running_var + 1e-5).sqrt()
    for j in range(len(obs)):
        densities = [mixture_density(reward, obs[j], skill, deltas[j]) for skill in [batch.skills[j], *others]]
        expected = 3.0 * math.log(densities[0] / (sum(densities) / 6))
        assert rewards[j].item() == pytest.approx(expected, rel=1e-9)
    assert rewards.max() <= 3.0 * math.log(6) and rewards.std() > 0.01


def test_loss_of_continuous_skills_is_the_mean_negative_log_likelihood():
    reward = make_reward(DADSReward, CUBE, net_arch=[8], n_experts=2).double()
    batch = continuous_batch()
    loss = reward.loss(batch)
    # Normalised by the batch in training
    obs = (batch.observations - batch.observations.mean(0)) / (batch.observations.var(0, unbiased=False) + 1e-5).sqrt()
    deltas = batch.next_observations - batch.observations
    deltas = (deltas - deltas.mean(0)) / (deltas.var(0, unbiased=False) + 1e-5).sqrt()
    log_densities = [math.log(mixture_density(reward, *row)) for row in zip(obs, batch.skills, deltas, strict=True)]
    # Up to the constant of a Gaussian in four dimensions
    expected = -sum(log_densities) / 12 - 2 * math.log(2 * math.pi)
    assert loss.item() == pytest.approx(expected, rel=1e-9)


def test_prior_is_drawn_anew_for_each_batch():
    reward, batch = make_reward(DADSReward, CUBE, net_arch=[8], n_prior_samples=5).double(), continuous_batch()
    learn(reward, batch, 3)
    assert (reward.reward(batch) != reward.reward(batch)).all()
    rewards = []
    for _ in range(2):
        th.manual_seed(5)
        rewards.append(reward.reward(batch))
    assert (rewards[0] == rewards[1]).all()


def test_pays_continuous_skills_whose_outcomes_differ():
    th.manual_seed(0)
    obs, skills = th.randn(400, 4), th.rand(400, 2) * 2 - 1
    moves = th.cat([4 * skills, th.zeros(400, 2)], dim=1)
    distinct = make_samples(obs, obs + moves, skills)
    reward = make_reward(DADSReward, CUBE, net_arch=[32])
    learn(reward, distinct, 150)
    own = reward.reward(distinct).mean().item()
    another = reward.reward(distinct._replace(skills=skills.flip(0))).mean().item()
    assert own > 0.5 and another < own - 1


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"intrinsic_kwargs": {"n_experts": 0}}, "set n_experts above 0"),
        ({"intrinsic_kwargs": {"n_prior_samples": 0}}, "set n_prior_samples above 0"),
        ({"intrinsic_kwargs": {"scale": 0.0}}, "set scale above 0"),
        ({"batch_size": 1}, "batch_size=1 .*: raise batch_size"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_small(DADS, **kwargs)
