"""Fine-tuning as it is released: all heads regress the return of the task, with the actions of one skill."""

import numpy as np
import pytest
import torch as th
from batches import assert_same_gradients, make_samples
from dense_reference import q_values_dense
from torch.nn import functional as F
from tuning import saved

from sb3_cesd import CeSD

N_SKILLS, SKILL = 4, 2
RELEASED_TASK = {"net_arch": [16, 16], "shared_value": False, "task_ensemble_size": None}


@pytest.fixture
def pretrained(make_released):
    return make_released(policy_kwargs={"net_arch": [16, 16], "shared_value": False}).learn(100)


@pytest.fixture
def make_task(pretrained):
    """The released fine-tuning of one skill."""

    def make(**kwargs):
        arguments = {"skill": SKILL, "warm_up": "random", "policy_kwargs": RELEASED_TASK, "learning_starts": 40, "seed": 3}
        return CeSD.from_pretrained(saved(pretrained), "Pendulum-v1", device="cpu", **{**arguments, **kwargs})

    return make


@pytest.fixture
def samples():
    """In float64, collected by several skills, with ends of episodes."""
    th.manual_seed(1)
    observations, next_observations = th.randn(2, 10, 3, dtype=th.float64)
    batch = make_samples(observations, next_observations, th.arange(10) % N_SKILLS, th.rand(10, 1, dtype=th.float64) * 2 - 1)
    return batch._replace(
        rewards=th.rand(10, 1, dtype=th.float64),
        dones=(th.rand(10, 1) < 0.3).double(),
        discounts=0.97 ** th.randint(1, 4, (10, 1)).double(),
    )


def test_losses_equal_the_dense_form_in_which_all_heads_learn(make_task, samples):
    model = make_task(target_policy_noise=0.0)
    model.policy.double()
    batch = model.replay_buffer.relabel(samples)
    skill = th.full((10,), SKILL)

    # The mean over all heads and transitions, no mask: every head sees the return of every transition
    with th.no_grad():
        next_actions = model.actor.act(samples.next_observations, skill)
        next_q = th.minimum(*q_values_dense(model.critic_target, samples.next_observations, next_actions))
        target = samples.rewards + (1 - samples.dones) * samples.discounts * next_q  # (n_heads, batch_size, 1)
    q_values = q_values_dense(model.critic, samples.observations, samples.actions)
    assert q_values[0].shape == target.shape == (N_SKILLS, 10, 1)
    expected = sum(F.mse_loss(q, target) for q in q_values)
    assert_same_gradients(model.critic_loss(batch), expected, list(model.critic.parameters()))

    # The actor improves on the head of the skill alone, in the mean over all heads
    actions = model.actor.act(samples.observations, skill)
    mask = F.one_hot(skill, N_SKILLS).T[:, :, None].double()
    expected = -(th.minimum(*q_values_dense(model.critic, samples.observations, actions)) * mask).mean()
    parameters = [*model.actor.parameters(), *model.critic.parameters()]
    gradients = assert_same_gradients(model.actor_loss(batch), expected, parameters)
    heads = {id(parameter): gradient for parameter, gradient in zip(parameters, gradients, strict=True)}
    # Summed over both critics, as the minimum may be that of one of them
    of_heads = sum(heads[id(q_network.layers[0].weight)].abs().amax(dim=(1, 2)) for q_network in model.critic.q_networks)
    assert (of_heads > 0).tolist() == [head == SKILL for head in range(N_SKILLS)]


def test_by_default_the_head_of_the_skill_learns_alone(make_task, samples):
    """Algorithm 2 of the paper."""
    model = make_task(policy_kwargs={"net_arch": [16, 16], "shared_value": False}, target_policy_noise=0.0)
    assert model.policy.n_heads == 1
    model.policy.double()
    batch = model.replay_buffer.relabel(samples)
    assert batch.pairs.rows is None and (batch.pairs.skills == SKILL).all()
    with th.no_grad():
        next_actions = model.actor.act(samples.next_observations, th.full((10,), SKILL))
        next_q = th.minimum(*q_values_dense(model.critic_target, samples.next_observations, next_actions))[0]
        target = samples.rewards + (1 - samples.dones) * samples.discounts * next_q
    q_values = q_values_dense(model.critic, samples.observations, samples.actions)
    expected = sum(F.mse_loss(q[0], target) for q in q_values)
    assert_same_gradients(model.critic_loss(batch), expected, list(model.critic.parameters()))


@pytest.mark.parametrize("skill", [1, 3])
def test_the_skill_that_learns_the_task_is_one_of_those_that_its_critic_learns_with(make_released, samples, skill):
    """The trunk sees the skill, too: the actor follows the value of skill 3, not that of skill 1, which has the same head."""
    pretrained = make_released(policy_kwargs={"net_arch": [16, 16]}, shared_value=True).learn(60)
    policy_kwargs = {"net_arch": [16, 16], "shared_value": True, "task_ensemble_size": 2}
    model = CeSD.from_pretrained(saved(pretrained), "Pendulum-v1", skill, device="cpu", policy_kwargs=policy_kwargs)
    model.policy.double()
    assert model.critic.shared_value
    batch = model.replay_buffer.relabel(samples)
    assert (batch.actor_skills == skill).all()
    assert batch.pairs.skills.tolist() == [0] * 10 + [skill] * 10, "head 0, head 1"
    assert (batch.pairs.target_skills == skill).all()


# What is transferred


def trunks(model):
    return model.critic.trunk[0].weight, model.critic_target.trunk[0].weight


@pytest.mark.parametrize("no_target", [False, True])
def test_target_critic_is_a_copy_or_starts_fresh(make_task, pretrained, no_target):
    model = make_task(transfer=["actor", "critic_trunk", *["no_target"] * no_target])
    trunk, target_trunk = trunks(model)
    assert (trunk == pretrained.critic.trunk[0].weight).all()
    assert (target_trunk == trunk).all() == (not no_target)
    # Heads start fresh, those of the target like those of the critic
    fresh = make_task(transfer=["no_target"])
    assert (fresh.critic.trunk[0].weight != trunk).any()
    assert (fresh.critic_target.trunk[0].weight == fresh.critic.trunk[0].weight).all()
    if no_target:
        assert (target_trunk == fresh.critic_target.trunk[0].weight).all(), "as initialised"
    for ours, theirs in zip(model.critic.q_networks.parameters(), model.critic_target.q_networks.parameters(), strict=True):
        assert (ours == theirs).all()


def test_head_of_the_skill_goes_to_where_the_skill_finds_it(make_task, pretrained):
    """With one head per skill all heads are loaded, with one head that of the skill."""
    whole = make_task(transfer=["critic_trunk", "critic_head"])
    single = make_task(transfer=["critic_trunk", "critic_head"], policy_kwargs={"net_arch": [16, 16], "shared_value": False})
    obs, actions = th.randn(5, 3), th.rand(5, 1)
    expected = pretrained.critic.q_values(obs, actions, th.full((5,), SKILL))
    for model in (whole, single):
        for values, theirs in zip(model.critic.q_values(obs, actions, th.full((5,), SKILL)), expected, strict=True):
            th.testing.assert_close(values, theirs)
    assert (whole.critic.q_networks[0].layers[0].weight == pretrained.critic.q_networks[0].layers[0].weight).all()
    assert np.isfinite(whole.learn(60).actor.mu[0].weight.detach().numpy()).all()
