"""The losses for any list of (transition, skill) pairs and any number of heads, and an update that never waits for a GPU."""

import pytest
import torch as th
from batches import assert_same_gradients, random_samples
from dense_reference import q_values_dense
from torch.nn import functional as F

from sb3_cesd.cesd.constraint import CriticRelabelling
from sb3_cesd.common import ensembles
from sb3_cesd.common.type_aliases import SkillPairs

N_SKILLS = 6
# With 3 heads (skill % 3): 9 rows on head 0, one row on head 1, none on head 2
CLUSTERS = th.tensor([0] * 5 + [3] * 4 + [4])


def make_batch(clusters=CLUSTERS):
    return random_samples(clusters, N_SKILLS)


def double(model):
    model.policy.double()
    return model


def with_heads_that_differ(model):
    """Heads begin with a zero output where they share a value."""
    with th.no_grad():
        for q_network in [*model.critic.q_networks, *model.critic_target.q_networks]:
            for parameter in q_network.layers[-1].parameters():
                parameter.uniform_(-1, 1)
    return model


@pytest.mark.parametrize("ensemble_size", [1, 2, 3, 6])
@pytest.mark.parametrize("tile_size", [None, 1, 3, 64])
def test_fewer_heads_than_skills_equal_the_dense_masked_form(make_released, monkeypatch, ensemble_size, tile_size):
    """The mean runs over the masked zeros of the heads there are, n = ensemble_size."""
    plan = ensembles.route
    monkeypatch.setattr("sb3_cesd.cesd.policies.route", lambda heads, n_heads: plan(heads, n_heads, tile_size))
    model = double(make_released(n_skills=N_SKILLS, ensemble_size=ensemble_size, target_policy_noise=0.0))
    batch = make_batch()

    def mask_of(skills):
        return F.one_hot(skills % ensemble_size, ensemble_size).T[:, :, None].double()  # (ensemble_size, batch_size, 1)

    mask = mask_of(batch.clusters)
    with th.no_grad():
        next_actions = model.actor.act(batch.next_observations, batch.skills)
        next_q = th.minimum(*q_values_dense(model.critic_target, batch.next_observations, next_actions))
        target = batch.rewards + (1 - batch.dones) * batch.discounts * next_q
    q_values = q_values_dense(model.critic, batch.observations, batch.actions)
    assert q_values[0].shape == (ensemble_size, len(CLUSTERS), 1)
    dense_critic_loss = sum(F.mse_loss(q * mask, target * mask) for q in q_values)
    assert_same_gradients(model.critic_loss(batch), dense_critic_loss, list(model.critic.parameters()))

    actions = model.actor.act(batch.observations, batch.actor_skills)
    q = th.minimum(*q_values_dense(model.critic, batch.observations, actions))
    dense_actor_loss = -(q * mask_of(batch.actor_skills)).mean()
    assert_same_gradients(model.actor_loss(batch), dense_actor_loss, list(model.actor.parameters()))


def q_of_pair(critic, obs, action, skill):
    """Both Q-values of one transition and one skill, from the weights of its head alone."""
    inputs = [obs, action]
    if critic.shared_value:
        inputs.append(F.one_hot(skill, N_SKILLS).double())
    trunk = critic.trunk(th.cat(inputs))
    values = []
    for q_network in critic.q_networks:
        hidden = trunk
        for index, layer in enumerate(q_network.layers):
            head = skill % critic.n_heads
            hidden = (hidden if index == 0 else hidden.relu()) @ layer.weight[head] + layer.bias[head, 0]
        values.append(hidden[0])
    if critic.shared_value:
        values = [value + network(trunk)[0] for value, network in zip(values, critic.shared_networks, strict=True)]
    return values


def pair_by_pair(model, batch):
    """One pair after another, each evaluated alone."""
    loss, pairs = 0.0, batch.pairs
    rows = th.arange(len(pairs.skills)) if pairs.rows is None else pairs.rows
    for row, skill, target_skill, reward in zip(rows, pairs.skills, pairs.target_skills, pairs.rewards, strict=True):
        next_obs = batch.next_observations[row]
        with th.no_grad():
            next_action = model.actor.act(next_obs[None], target_skill[None])[0]
            next_q = min(q_of_pair(model.critic_target, next_obs, next_action, skill))
            target = reward + (1 - batch.dones[row]) * batch.discounts[row] * next_q
        for q in q_of_pair(model.critic, batch.observations[row], batch.actions[row], skill):
            loss = loss + (q - target).square().sum()
    return loss / (model.policy.n_heads * len(batch.observations))


@pytest.mark.parametrize("tile_size", [None, 3])
@pytest.mark.parametrize("critic", ["cluster", "union", "hindsight"])
@pytest.mark.parametrize("ensemble_size", [6, 2])
@pytest.mark.parametrize("shared_value", [False, True])
def test_losses_are_sums_over_pairs(make_model, monkeypatch, critic, tile_size, ensemble_size, shared_value):
    plan = ensembles.route
    monkeypatch.setattr("sb3_cesd.cesd.policies.route", lambda heads, n_heads: plan(heads, n_heads, tile_size))
    policy_kwargs = {"net_arch": [16, 16], "shared_value": shared_value}
    model = make_model(n_skills=N_SKILLS, ensemble_size=ensemble_size, target_policy_noise=0.0, policy_kwargs=policy_kwargs)
    model = with_heads_that_differ(double(model))
    batch = make_batch()
    entropy, bonus = th.rand(2, len(CLUSTERS), dtype=th.float64)
    relabelling = CriticRelabelling(critic, n_random_heads=2, kappa=0.5)
    batch = batch._replace(pairs=relabelling.pairs(batch.skills, batch.clusters, entropy, bonus, N_SKILLS))
    assert_same_gradients(model.critic_loss(batch), pair_by_pair(model, batch), list(model.critic.parameters()))

    actor_loss = 0.0
    for obs, skill in zip(batch.observations, batch.actor_skills, strict=True):
        action = model.actor.act(obs[None], skill[None])[0]
        actor_loss = actor_loss - th.minimum(*q_of_pair(model.critic, obs, action, skill))
    actor_loss = actor_loss / (ensemble_size * len(batch.observations))
    assert_same_gradients(model.actor_loss(batch), actor_loss, list(model.actor.parameters()))


def test_padding_counts_for_nothing(make_model):
    """On a GPU, pairs that do not count stay in the list with weight 0, so that its length does not depend on the data."""
    model = double(make_model(n_skills=N_SKILLS, target_policy_noise=0.0))
    batch = make_batch()
    rows = th.arange(len(batch.skills))
    counting = batch.pairs._replace(rows=rows, weights=th.ones_like(batch.rewards))
    padding = SkillPairs(rows, batch.skills, batch.skills, th.full_like(batch.rewards, 1e3), th.zeros_like(batch.rewards))
    padded = batch._replace(pairs=SkillPairs(*(th.cat(entries) for entries in zip(counting, padding, strict=True))))
    assert_same_gradients(model.critic_loss(padded), model.critic_loss(batch), list(model.critic.parameters()))


@pytest.mark.parametrize(("noise", "clip"), [(0.2, 0.3), (5.0, 0.1)])
def test_noise_of_the_target_is_clipped_and_the_action_stays_in_bounds(make_model, monkeypatch, noise, clip):
    model = double(make_model(n_skills=N_SKILLS, target_policy_noise=noise, target_noise_clip=clip))
    with th.no_grad():
        model.actor.mu[-1].bias.fill_(2.0)  # actions near 1, so that noise leaves the bounds
    batch = make_batch(th.arange(1200) % N_SKILLS)
    seen, q_values = [], model.critic_target.q_values
    monkeypatch.setattr(model.critic_target, "q_values", lambda *args: seen.append(args[1]) or q_values(*args))
    model.critic_loss(batch)
    without = model.actor.act(batch.next_observations, batch.skills)
    noise_seen = (seen[0] - without).detach()
    assert seen[0].abs().max() == 1.0
    assert noise_seen.abs().max() <= clip + 1e-9
    assert noise_seen.min() < -0.9 * clip, "there is noise"
    assert noise_seen.unique().numel() > 100


@pytest.mark.parametrize("ensemble_size", [4, 2])
def test_heads_add_nothing_to_the_value_that_skills_share_before_they_learn(make_model, ensemble_size):
    """Where the constraint sets in, the values that skills have explored with are still there."""
    model = make_model(ensemble_size=ensemble_size)
    batch = random_samples(th.arange(8) % 4, 4)
    for critic in (model.critic.double(), model.critic_target.double()):
        values = []
        for critic.use_heads in (True, False):
            values.append(critic.q_values(batch.observations, batch.actions, batch.skills))
        for with_heads, shared in zip(*values, strict=True):
            assert (with_heads == shared).all() and (shared != 0).any()
