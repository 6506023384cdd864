"""CSF: against its formulas, and the constants of its authors' code (Princeton-RL/contrastive-successor-features)."""

import inspect
import math

import pytest
import torch as th
from batches import learn, make_reward, make_samples
from small import make_small
from torch import nn
from tuning import saved

from sb3_cesd import CSF, METRA
from sb3_cesd.common.skills import DiscreteSkills, SphereSkills
from sb3_cesd.methods.csf import CSFReward

every_space = pytest.mark.parametrize("space", [DiscreteSkills(3), SphereSkills(2)], ids=["discrete", "sphere"])


def make(space, **kwargs):
    return make_reward(CSFReward, space, **{"net_arch": [8], **kwargs}).double()


def make_batch(space, n=12):
    th.manual_seed(0)
    obs, one_step, next_obs = th.randn(3, n, 4, dtype=th.float64)
    skills = th.arange(n) % 3 if space.discrete else space.draw_tensor(n, th.device("cpu")).double()
    return make_samples(obs, next_obs, skills)._replace(one_step_observations=one_step)


@every_space
def test_loss_and_reward_are_those_of_the_paper(space):
    reward, batch = make(space, n_negatives=7, negatives_weight=2.5, scale=3.0), make_batch(space)
    th.manual_seed(5)
    loss = reward.loss(batch).item()
    th.manual_seed(5)
    others = reward.draw_directions(th.device("cpu"), th.float64)
    assert others.shape == (7, space.dim)
    directions = space.directions(batch.skills, th.float64)
    rewards, terms = [], []
    with th.no_grad():
        for s, one, s_next, z in zip(
            batch.observations, batch.one_step_observations, batch.next_observations, directions, strict=True
        ):
            moved = reward.features(one) - reward.features(s)
            contrast = math.log(sum(math.exp(sum(moved * other)) for other in others))
            terms.append(sum(moved * z).item() - 2.5 * contrast)
            rewards.append(3 * (reward.features(s_next) - reward.features(s)))
    assert loss == pytest.approx(-sum(terms) / len(terms), rel=1e-9)
    # The rewards are vectors, which successor features sum up
    relabelled = reward.relabel(batch)
    th.testing.assert_close(relabelled.rewards, th.stack(rewards), rtol=1e-9, atol=1e-12)
    expected = (th.stack(rewards) * directions).sum(dim=1)
    th.testing.assert_close(reward.reward(batch), expected)
    assert reward.logs["intrinsic/reward"].item() == pytest.approx(expected.mean().item())
    # Other skills are drawn for each batch
    assert reward.loss(batch) != reward.loss(batch)


def test_drawn_directions_are_those_of_skills():
    sphere = make(SphereSkills(2)).draw_directions(th.device("cpu"), th.float32)
    th.testing.assert_close(sphere.norm(dim=1), th.ones(256))
    discrete = make(DiscreteSkills(3)).draw_directions(th.device("cpu"), th.float32)
    assert discrete.unique(dim=0).tolist() == DiscreteSkills(3).directions(th.tensor([2, 1, 0])).tolist()


class WrongSign(CSFReward):
    """A negative control: features that tell other skills."""

    def loss(self, samples):
        return -super().loss(samples)


def bound(reward, batch):
    """A lower bound of the mutual information of skill and step, with all four skills in the denominator, in nats."""
    moved = reward.step_displacements(batch).detach()
    scores = moved @ reward.skill_space.directions(th.arange(4)).T
    return (reward.progress(moved, batch.skills) - (scores.logsumexp(dim=1) - math.log(4))).mean().item()


def steps(tell=1.0, n=400):
    """Skills move to one of four sides, in a share ``tell`` of the steps."""
    states, skills = th.randn(n, 4), th.arange(n) % 4
    sides = th.where(th.rand(n) < tell, skills, th.randint(4, (n,)))
    moves = th.tensor([[1.0, 0, 0, 0], [-1.0, 0, 0, 0], [0, 1.0, 0, 0], [0, -1.0, 0, 0]])[sides]
    return make_samples(states, states + moves, skills)._replace(one_step_observations=states + moves)


def learned(reward_class=CSFReward, tell=1.0, n_updates=150, **kwargs):
    """A reward, and steps that it has not seen."""
    th.manual_seed(0)
    reward = make_reward(reward_class, DiscreteSkills(4), net_arch=[32], **{"negatives_weight": 1.0, **kwargs})
    reward.train()
    for _ in range(n_updates):
        reward.update(steps(tell))
    return reward, steps(tell, n=4000)


def test_contrastive_bound_approaches_mutual_information_from_below():
    # The skill names the move: log 4 nats
    assert 0.85 * math.log(4) < bound(*learned()) < math.log(4)
    # In half of the moves, it does not: p = 5/8 for its own side, 1/8 for the others
    information = 5 / 8 * math.log(4 * 5 / 8) + 3 / 8 * math.log(4 / 8)
    assert 0.75 * information < bound(*learned(tell=0.5)) < information + 0.03
    assert bound(*learned(tell=0.0)) < 0.03


def test_published_weight_keeps_features_from_growing():
    """Where METRA needs a constraint: with a weight of 1, features grow as long as the bound does."""
    lengths = {}
    for weight in (1.0, 5.0):
        reward, batch = learned(negatives_weight=weight)
        lengths[weight] = reward.step_displacements(batch).norm(dim=1).mean().item()
    assert lengths[5.0] < 0.5 * lengths[1.0]
    assert (reward.reward(batch) > 0).float().mean() > 0.95, "and still tell the skill"


def test_a_wrong_sign_would_be_noticed():
    reward, batch = learned(WrongSign, n_updates=40)
    assert bound(reward, batch) < -1 and reward.reward(batch).mean() < 0


@every_space
def test_successor_features_learn_from_the_critic_with_the_smaller_value(space):
    """The TD target of each transition, by hand."""
    kwargs = {"skill_type": "discrete", "n_skills": 3} if space.discrete else {"skill_type": "sphere", "skill_dim": 2}
    model = make_small(CSF, ent_coef=None, target_policy_noise=0.0, gamma=0.9, **kwargs)
    th.manual_seed(2)
    n = 10
    obs, next_obs = th.randn(2, n, 3)
    skills = th.arange(n) % 3 if space.discrete else space.draw_tensor(n, th.device("cpu"))
    batch = make_samples(obs, next_obs, skills, th.rand(n, 1) * 2 - 1)
    batch = batch._replace(rewards=th.randn(n, space.dim), dones=(th.arange(n) % 4 == 0).float()[:, None])
    for parameter in model.critic_target.parameters():
        parameter.data += 0.3 * th.randn_like(parameter)  # so that the two critics differ
    with th.no_grad():
        next_actions = model.actor.act(next_obs, skills)
        psi = model.critic_target.outputs(next_obs, next_actions, skills)
        current = model.critic.outputs(obs, batch.actions, skills)
    total, picked = 0.0, set()
    for i, z in enumerate(space.directions(skills)):
        values = [sum(features[i] * z).item() for features in psi]
        picked.add(values.index(min(values)))
        for j in range(space.dim):
            target = batch.rewards[i, j] + 0.97 * (1 - batch.dones[i, 0]) * psi[values.index(min(values))][i, j]
            total += sum((features[i, j] - target).item() ** 2 for features in current)
    assert picked == {0, 1}
    assert model.critic_loss(batch).item() == pytest.approx(total / (n * space.dim), rel=1e-5)


def task_of_csf(**kwargs):
    pretrained = make_small(CSF, **kwargs).learn(80)
    task = CSF.from_pretrained(saved(pretrained), "Pendulum-v1", skill=1, learning_starts=40, device="cpu", seed=1).learn(60)
    return task, task.replay_buffer.sample(16)


def test_a_task_is_learned_from_its_scalar_reward():
    model, batch = task_of_csf()
    values = th.cat(model.critic.q_values(batch.observations, batch.actions, batch.skills), dim=1)
    assert values.shape == (16, 2) and batch.rewards.shape == (16, 1)
    assert model.critic_loss(batch).isfinite() and model._n_updates > 0


def test_critic_of_a_task_has_the_loss_of_sac():
    """Twin critics of a scalar reward, whose target has the entropy that successor features go without."""
    model, batch = task_of_csf(ent_coef=0.5)
    for parameter in model.critic_target.parameters():
        parameter.data += 0.1 * th.randn_like(parameter)  # so that the two critics differ
    th.manual_seed(3)
    loss = model.critic_loss(batch)
    th.manual_seed(3)
    with th.no_grad():
        actions, log_densities = model.actor.sample(batch.next_observations, batch.skills)
        next_values = th.minimum(*model.critic_target.q_values(batch.next_observations, actions, batch.skills))
        target = batch.rewards + (1 - batch.dones) * batch.discounts * (next_values - 0.5 * log_densities)
    values = model.critic.q_values(batch.observations, batch.actions, batch.skills)
    th.testing.assert_close(loss, sum((q - target).square().mean() for q in values))


def test_constants_are_those_of_the_released_code():
    ours, theirs = (inspect.signature(method).parameters for method in (CSF, METRA))
    assert {name: value.default for name, value in ours.items()} == {name: value.default for name, value in theirs.items()}
    reward = make_reward(CSFReward, SphereSkills(2))
    assert [layer.out_features for layer in reward.features if isinstance(layer, nn.Linear)] == [1024, 1024, 2]
    assert (reward.n_negatives, reward.negatives_weight, reward.scale) == (256, 5.0, 1.0)
    learn(make(SphereSkills(2)), make_batch(SphereSkills(2)), 2)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"intrinsic_kwargs": {"n_negatives": 0}}, "set n_negatives above 0"),
        ({"intrinsic_kwargs": {"negatives_weight": -1.0}}, "negatives_weight=-1.0 .*: pass 0 or more"),
        ({"intrinsic_kwargs": {"scale": 0.0}}, "set scale above 0"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_small(CSF, **kwargs)
