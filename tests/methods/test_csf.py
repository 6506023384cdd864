"""CSF: against its formulas, and the constants of its authors' code (Princeton-RL/contrastive-successor-features)."""

import math

import pytest
import torch as th
from batches import make_batch, make_reward, make_samples
from small import make_small

from sb3_cesd import CSF
from sb3_cesd.common.skills import DiscreteSkills, SphereSkills
from sb3_cesd.methods.csf import CSFReward

every_space = pytest.mark.parametrize("space", [DiscreteSkills(3), SphereSkills(2)], ids=["discrete", "sphere"])


@every_space
def test_loss_and_reward_are_those_of_the_paper(space):
    reward = make_reward(CSFReward, space, net_arch=[8], n_negatives=7, negatives_weight=2.5, scale=3.0).double()
    batch = make_batch(space)
    th.manual_seed(5)
    loss = reward.loss(batch).item()
    th.manual_seed(5)
    others = reward.draw_directions(th.device("cpu"), th.float64)
    assert others.shape == (7, space.dim)
    z = space.directions(batch.skills, th.float64)
    with th.no_grad():
        start, step, end = (
            reward.features(s) for s in (batch.observations, batch.one_step_observations, batch.next_observations)
        )
        terms = ((step - start) * z).sum(dim=1) - 2.5 * ((step - start) @ others.T).exp().sum(dim=1).log()
    assert loss == pytest.approx(-terms.mean().item(), rel=1e-9)
    th.testing.assert_close(reward.reward(batch).detach(), 3 * ((end - start) * z).sum(dim=1))
    assert reward.loss(batch) != reward.loss(batch), "other skills are drawn for each batch"


def steps(tell=1.0, n=512):
    """Skills move to one of four sides, in a share of the steps."""
    skills, states = th.randint(4, (n,)), th.randn(n, 4)
    sides = th.where(th.rand(n) < tell, skills, th.randint(4, (n,)))
    after = states + th.eye(4)[sides]
    return make_samples(states, after, skills)._replace(one_step_observations=after)


@th.no_grad()
def bound(tell):
    """The learned lower bound of the mutual information of skill and step, with all four skills, in nats."""
    th.manual_seed(0)
    reward = make_reward(CSFReward, DiscreteSkills(4), net_arch=[32], negatives_weight=1.0)
    for _ in range(150):
        with th.enable_grad():
            reward.update(steps(tell))
    batch = steps(tell, n=4000)
    moved = reward.step_displacements(batch)
    others = moved @ reward.skill_space.directions(th.arange(4)).T
    return (reward.progress(moved, batch.skills) - others.logsumexp(dim=1)).mean().item() + math.log(4)


def test_contrastive_bound_approaches_mutual_information_from_below():
    assert 0.85 * math.log(4) < bound(1.0) < math.log(4), "the skill names the move: log 4 nats"
    # In half of the moves, it does not: p = 5/8 for its own side, 1/8 for the others
    information = 5 / 8 * math.log(4 * 5 / 8) + 3 / 8 * math.log(4 / 8)
    assert 0.75 * information < bound(0.5) < information + 0.03


@every_space
def test_values_are_products_of_successor_features_and_skills(space):
    kwargs = {"skill_type": "discrete", "n_skills": 3} if space.discrete else {"skill_type": "sphere", "skill_dim": 2}
    model = make_small(CSF, **kwargs)
    batch = make_batch(space, obs_dim=3)
    obs, actions = batch.observations.float(), batch.actions[:, :1].float()
    skills = batch.skills if space.discrete else batch.skills.float()
    features = model.critic.outputs(obs, actions, skills)
    for psi, values in zip(features, model.critic.q_values(obs, actions, skills), strict=True):
        assert psi.shape == (12, space.dim) and values.shape == (12, 1)
        th.testing.assert_close(values, (psi * space.directions(skills)).sum(dim=1, keepdim=True))
