import sys

import numpy as np
import pytest
import torch as th
from dots import make_small
from gymnasium import spaces
from torch.testing import assert_close

from sb3_cesd import APTDreamer, CeSDDreamer, DIAYNDreamer
from sb3_cesd.common.observations import skill_observation_space
from sb3_cesd.common.skills import DiscreteSkills, SphereSkills
from sb3_cesd.common.type_aliases import SkillPairs, SkillReplayBufferSamples
from sb3_cesd.dreamer.sequences import SequenceReplayBuffer
from sb3_cesd.dreamer.skill_dreamer import imagined_rewards, lambda_returns, own_rewards
from sb3_cesd.dreamer.world_model import Latent, WorldModel, kl_loss
from sb3_cesd.intrinsic.base import IntrinsicReward

IMAGE = spaces.Box(0, 255, (1, 16, 16), np.uint8)


def tensor(*values):
    return th.tensor(values, dtype=th.float64)


def small(space=IMAGE):
    th.manual_seed(0)
    return WorldModel(space, 2, deter_dim=8, n_categoricals=4, n_classes=4, hidden_dim=8, depth=2)


def test_lambda_returns():
    rewards, values, discounts = tensor([1.0], [2.0]), tensor([9.0], [4.0], [8.0]), tensor([0.5], [0.25])
    # The value of a state includes its own reward, so that of the first does not matter
    last = 2 + 0.25 * 8
    for decay in (0.0, 0.75, 1.0):
        expected = tensor([1 + 0.5 * ((1 - decay) * 4 + decay * last)], [last])
        assert_close(lambda_returns(rewards, values, discounts, decay), expected)


@pytest.mark.parametrize("free_nats", [0.0, 1.0])
def test_kl_balance_and_free_nats(free_nats):
    logits = tensor([[3.0, 0.0, -1.0], [0.0, 0.0, 0.0]], [[0.1, 0.0, 0.0], [0.0, 0.0, 0.1]]).requires_grad_()
    prior_logits = tensor([[-2.0, 0.0, 1.0], [1.0, 0.0, 0.0]], [[0.0, 0.0, 0.0], [0.0, 0.0, 0.0]]).requires_grad_()
    q, p = (0.99 * each.softmax(dim=-1) + 0.01 / 3 for each in (logits, prior_logits))
    divergences = (q * (q / p).log()).sum(dim=(1, 2))  # over both categoricals of each latent state
    assert divergences[0] > 1 > divergences[1]
    expected = th.autograd.grad((divergences * (divergences > free_nats)).mean(), (logits, prior_logits))
    loss = kl_loss(logits, prior_logits, 0.8, free_nats)
    assert_close(loss, divergences.clamp(min=free_nats).mean())
    found = th.autograd.grad(loss, (logits, prior_logits))
    assert_close(found, (0.2 * expected[0], 0.8 * expected[1]))


def test_episodes_of_a_sequence_do_not_know_each_other():
    model, is_first = small(), th.zeros(2, 6, dtype=th.bool)
    is_first[:, 0] = is_first[0, 3] = True
    pictures, actions = th.rand(2, 6, 1, 16, 16, requires_grad=True), th.randn(2, 6, 2, requires_grad=True)
    observed = model.observe(pictures, actions, is_first)
    for outputs in (observed.logits, observed.prior_logits, observed.latents.deter, observed.reached):
        for row, reaches_back in ((0, False), (1, True)):
            for gradient in th.autograd.grad(outputs[row, 3:].sum(), (pictures, actions), retain_graph=True):
                assert bool(gradient[row, :3].abs().sum() > 0) == reaches_back
    # An episode begins as a sequence does, and what its last action led to is another state
    assert th.equal(observed.latents.deter[0, 3], observed.latents.deter[0, 0])
    assert not th.equal(observed.reached[0, 2], observed.latents.deter[0, 3])
    assert th.equal(observed.reached[1, 2], observed.latents.deter[1, 3])
    # As when acting
    before = [observed.latents.deter[:, 2], observed.latents.stoch[:, 2], actions[:, 2]]
    assert_close(model.step(before, pictures[:, 3], is_first[:, 3]).deter, observed.latents.deter[:, 3])


def test_sequences_of_a_ring():
    """Consecutive transitions of one environment, from the oldest to the newest; episodes begin after others have ended."""
    skills, action_space = DiscreteSkills(4), spaces.Box(-1.0, 1.0, (1,), np.float32)
    space = skill_observation_space(spaces.Box(-np.inf, np.inf, (1,), np.float32), skills)
    kwargs = {"n_envs": 2, "device": "cpu", "skill_space": skills, "sequence_length": 3}
    buffer = SequenceReplayBuffer(14, space, action_space, **kwargs)
    assert buffer.begins().all()
    for step in range(10):
        dones = np.array([step in (4, 9), step == 6])  # the second one by a timeout
        obs = {"observation": np.array([[step], [100.0 + step]], np.float32), "skill": skills.vectors[[step % 4, 0]]}
        following = {"observation": obs["observation"] + 1, "skill": obs["skill"]}
        infos = [{}, {"TimeLimit.truncated": bool(dones[1])}]
        buffer.add(obs, following, np.full((2, 1), step / 10), np.array([step, step]), dones, infos)
    assert buffer.full and buffer.begins().tolist() == [True, False]
    batch = buffer.sample(300)
    steps = batch.observations[:, :1, 0] % 100 + th.arange(3)
    assert set(steps[:, 0].tolist()) == {3.0, 4.0, 5.0, 6.0, 7.0}
    of_first = (batch.observations[:, :1, 0] < 100).expand(-1, 3)
    assert th.equal(batch.observations[..., 0] % 100, steps) and th.equal(batch.rewards, steps)
    assert th.allclose(batch.actions[..., 0], steps / 10)
    ended = th.where(of_first, (steps == 4) | (steps == 9), steps == 6)
    assert th.equal(batch.terminated, (ended & of_first).float())
    assert batch.is_first[:, 0].all() and th.equal(batch.is_first[:, 1:], ended[:, :-1])
    assert th.equal(batch.skills, th.where(of_first, steps.long() % 4, 0))


def test_what_imagined_steps_are_worth_to_the_skill_that_acts():
    skills, values = th.tensor([0, 1, 2]), tensor([1.0], [2.0], [3.0])
    batch = SkillReplayBufferSamples(*[values] * 6, skills)
    # By clusters alone: the second step is in the cluster of another skill
    pairs = SkillPairs(None, th.tensor([0, 2, 2]), skills, values)
    assert own_rewards(batch._replace(pairs=pairs), skills).tolist() == [1.0, 0.0, 3.0]
    # Pairs of other skills don't count, in whatever order
    rows, of_pairs = th.tensor([2, 1, 0, 1]), th.tensor([2, 0, 0, 1])
    pairs = SkillPairs(rows, of_pairs, of_pairs, tensor([3.0], [7.0], [1.0], [5.0]))
    assert own_rewards(batch._replace(pairs=pairs), skills).tolist() == [1.0, 5.0, 3.0]
    vectors = th.from_numpy(SphereSkills(2, 3).vectors)
    pairs = SkillPairs(None, vectors, vectors, values)
    assert own_rewards(batch._replace(pairs=pairs), vectors).tolist() == [1.0, 2.0, 3.0]


def test_rewards_of_subsamples_keep_their_places():
    class FirstEntry(IntrinsicReward):
        def reward(self, samples):
            sizes.append(len(samples.skills))
            return samples.next_observations[:, 0]

    reward, states, sizes = FirstEntry(1, 1, DiscreteSkills(2)), th.arange(5000.0)[:, None], []
    batch = SkillReplayBufferSamples(*[states] * 6, th.zeros(5000, dtype=th.long))
    assert th.equal(imagined_rewards(reward, batch, 240), states[:, 0])
    assert sum(sizes) == 5000 and max(sizes) <= 240


def test_each_imagined_skill_has_a_value_of_its_own():
    model, skills = make_small(CeSDDreamer, n_skills=3), th.tensor([2, 0, 1, 2])
    critic = model.critic.double()
    last, shared = critic.q_networks[0].layers[-1], critic.shared_networks[0]
    last.bias.data.copy_(tensor(10.0, 20.0, 30.0).view(3, 1, 1))
    features = th.randn(5, 4, model.policy.world_model.features_dim, dtype=th.float64)
    values = model._values(critic, features, skills)
    vectors = th.eye(3, dtype=th.float64)[skills].expand(5, -1, -1)
    expected = shared(critic.trunk(th.cat([features, vectors], dim=2))).squeeze(2) + tensor(30.0, 10.0, 20.0, 30.0)
    assert_close(values, expected)
    # Its head learns from its own steps alone
    values[:, skills == 2].sum().backward()
    assert [bool(each.abs().sum() > 0) for each in last.bias.grad] == [False, False, True]


def test_who_learns_from_imagined_steps():
    """Each start is given a skill of its own; rewards see what is drawn; the world model and the target learn nothing."""
    model, seen = make_small(APTDreamer), []
    relabel, networks = model.intrinsic.relabel, (model.policy.world_model, model.actor, model.critic, model.critic_target)
    model.intrinsic.relabel = lambda samples: seen.append(samples) or relabel(samples)
    losses = model._imagined_losses(Latent(*(each.expand(200, -1) for each in networks[0].zeros(1)[:2])), 250)
    counts = th.cat([each.skills for each in seen]).bincount() / model.policy.horizon
    assert all(th.allclose(each.next_observations.sum(dim=1), th.tensor(4.0)) for each in seen)
    assert counts.sum() == 200 and (counts > 20).all() and (counts % 1 == 0).all()
    for loss, learns in zip(losses, ([False, True, False, False], [False, True, True, False]), strict=True):
        loss.backward()
        assert [any(each.grad is not None for each in network.parameters()) for network in networks] == learns


@pytest.mark.parametrize(("method", "follows"), [(DIAYNDreamer, True), (APTDreamer, False)])
def test_the_actor_follows_rewards_of_single_states(method, follows):
    """Where no state has a value and episodes always go on, what is left of the returns are the rewards."""
    model = make_small(method)
    for network in (model.critic_target, model.policy.world_model.continue_net):
        for parameter in network.parameters():
            parameter.data.zero_()
    actor_loss, _ = model._imagined_losses(Latent(*model.policy.world_model.zeros(50)[:2]), 50)
    actor_loss.backward()
    assert any(bool(each.grad.abs().sum() > 0) for each in model.actor.parameters()) == follows
    assert all(each.grad is None for each in model.intrinsic.parameters())


def test_what_can_be_observed(monkeypatch):
    vectors = small(spaces.Box(-1.0, 1.0, (3,), np.float32))
    assert vectors.decode(Latent(*vectors.zeros(2)[:2])).shape == (2, 3)
    # An entry that has not changed yet, and numbers as Gymnasium's robots observe them
    vectors.fit_scale(th.tensor([[0.0, 2.3, 5.0], [4.0, 2.3, 5.0], [2.0, 2.3, 5.0]]))
    standardized = vectors.standardized(tensor([2.0, 3.3, 5.0]))
    assert_close(standardized, th.tensor([[0.0, 1.0, 0.0]]))
    assert vectors.embed(tensor([4.0, 3.0, 5.0])).dtype == th.float32
    refused = {"ResizeObservation": spaces.Box(0, 255, (3, 84, 84), np.uint8), "FlattenObservation": spaces.Dict(a=IMAGE)}
    for remedy, space in refused.items():
        with pytest.raises(ValueError, match=remedy):
            small(space)
    for name in [name for name in sys.modules if name.startswith("torchrl")]:
        monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "torchrl", None)
    with pytest.raises(ImportError, match=r"pip install 'sb3_cesd\[dreamer\]'"):
        small()
