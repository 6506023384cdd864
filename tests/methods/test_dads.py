"""DADS: against its formulas, with discrete and continuous skills."""

import math

import pytest
import torch as th
from batches import learn, make_batch, make_reward, make_samples
from torch.distributions import Categorical, Independent, MixtureSameFamily, Normal

from sb3_cesd.common.skills import CubeSkills, DiscreteSkills
from sb3_cesd.methods.dads import DADSReward

SPACES = [DiscreteSkills(3), CubeSkills(2, 4)]


@th.no_grad()
def densities(reward, observations, skills, deltas):
    """The density of each change under each skill, by distributions of PyTorch, up to a constant."""
    found = []
    for obs, delta in zip(observations, deltas, strict=True):
        outputs = reward.dynamics(th.cat([obs.expand(len(skills), -1), skills], dim=1)).view(len(skills), 2, 5)
        experts = Independent(Normal(outputs[:, :, 1:], 1.0), 1)
        found.append(MixtureSameFamily(Categorical(logits=outputs[:, :, 0]), experts).log_prob(delta).exp())
    return th.stack(found)


def normalised(values, norm):
    return (values - norm.running_mean) / (norm.running_var + 1e-5).sqrt()


@pytest.mark.parametrize("space", SPACES, ids=["discrete", "continuous"])
def test_reward_is_the_log_ratio_to_the_mean_over_skills(space, monkeypatch):
    """log q(s' | s, z) - log (sum_i q(s' | s, z_i)) / L, the paper's eq. 6: all skills, or z and those drawn for the batch."""
    reward = make_reward(DADSReward, space, net_arch=[8], n_experts=2, scale=3.0, n_prior_samples=5).double()
    batch = make_batch(space)
    learn(reward, batch, 3)  # so that the running statistics are not 0 and 1
    others = th.rand(5, 2, dtype=th.float64)
    monkeypatch.setattr(space, "draw_tensor", lambda n, device: others)
    rewards = reward.reward(batch).detach()
    obs = normalised(batch.observations, reward.obs_norm)
    deltas = normalised(batch.next_observations - batch.observations, reward.delta_norm)
    if space.discrete:
        all_of = densities(reward, obs, th.eye(3, dtype=th.float64), deltas)
        own = all_of[th.arange(12), batch.skills]
    else:
        own = densities(reward, obs, batch.skills, deltas).diagonal()
        all_of = th.cat([own[:, None], densities(reward, obs, others, deltas)], dim=1)
    th.testing.assert_close(rewards, 3.0 * (own / all_of.mean(dim=1)).log(), rtol=1e-6, atol=1e-9)
    # It does not depend on the rest of the batch
    alone = {name: getattr(batch, name)[:1] for name in ("observations", "next_observations", "skills")}
    th.testing.assert_close(reward.train().reward(batch._replace(**alone)).detach(), rewards[:1])


def test_loss_is_the_mean_negative_log_likelihood():
    """Normalised by the batch in training."""
    space = SPACES[1]
    reward, batch = make_reward(DADSReward, space, net_arch=[8], n_experts=2).double(), make_batch(space)
    loss = reward.loss(batch).item()
    obs, deltas = (
        (values - values.mean(0)) / (values.var(0, unbiased=False) + 1e-5).sqrt()
        for values in (batch.observations, batch.next_observations - batch.observations)
    )
    own = densities(reward, obs, batch.skills, deltas).diagonal()
    # Up to the constant of a Gaussian in four dimensions
    assert loss == pytest.approx(-own.log().mean().item() - 2 * math.log(2 * math.pi), rel=1e-9)


def test_log_ratios_are_bounded_as_in_the_released_code(monkeypatch):
    """log(L + 1) - log(1 + sum_i exp(clip(log q_i - log q, -50, 50))) over L other skills."""
    reward = make_reward(DADSReward, SPACES[0], net_arch=[8]).double()
    log_q = th.tensor([[-3.0, -5.0, -40.0], [-400.0, -20.0, -30.0], [-1.0, -90.0, -3e3]], dtype=th.float64)
    monkeypatch.setattr(reward, "_log_densities", lambda *args: log_q)
    rewards = reward.reward(make_samples(th.randn(3, 4).double(), th.randn(3, 4).double(), th.zeros(3, dtype=th.long)))
    ratios = log_q[:, 1:] - log_q[:, :1]
    th.testing.assert_close(rewards, math.log(3) - ratios.clamp(-50, 50).exp().sum(dim=1).log1p())
