import numpy as np
import pytest
import torch as th
from dots import make_small
from torch.testing import assert_close

from sb3_cesd import APTDreamer, CeSDDreamer
from sb3_cesd.common.skills import DiscreteSkills, SphereSkills
from sb3_cesd.common.type_aliases import SkillPairs, SkillReplayBufferSamples
from sb3_cesd.dreamer.imagination import imagined_rewards, lambda_returns, own_rewards
from sb3_cesd.dreamer.world_model import Latent, kl_loss
from sb3_cesd.intrinsic.base import IntrinsicReward


def tensor(*values):
    return th.tensor(values, dtype=th.float64)


def test_lambda_returns():
    rewards, values, discounts = tensor([1.0], [2.0]), tensor([9.0], [4.0], [8.0]), tensor([0.5], [0.25])
    # The value of a state includes its own reward, so that of the first does not matter
    last = 2 + 0.25 * 8
    assert_close(lambda_returns(rewards, values, discounts, 0.75), tensor([1 + 0.5 * (0.25 * 4 + 0.75 * last)], [last]))
    assert_close(lambda_returns(rewards, values, discounts, 0.0), tensor([1 + 0.5 * 4], [last]))
    assert_close(lambda_returns(rewards, values, discounts, 1.0), tensor([1 + 0.5 * last], [last]))


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
    assert bool((found[0][1] == 0).all()) == (free_nats == 1)


def test_what_imagined_steps_are_worth_to_the_skill_that_acts():
    skills, nothing = th.tensor([0, 1, 2]), th.zeros(3, 1)
    batch = SkillReplayBufferSamples(*[nothing] * 6, skills)

    def worth(*pairs):
        return own_rewards(batch._replace(pairs=SkillPairs(*pairs)), skills).tolist()

    # By clusters alone: the second step is in the cluster of another skill
    assert worth(None, th.tensor([0, 2, 2]), skills, tensor([1.0], [2.0], [3.0])) == [1.0, 0.0, 3.0]
    # Pairs of other skills don't count, in whatever order
    rows, of_pairs = th.tensor([2, 1, 0, 1]), th.tensor([2, 0, 0, 1])
    assert worth(rows, of_pairs, of_pairs, tensor([3.0], [7.0], [1.0], [5.0])) == [1.0, 5.0, 3.0]
    vectors = th.from_numpy(SphereSkills(2, 3).vectors)
    continuous = batch._replace(
        skills=vectors, pairs=SkillPairs.one_per_transition(vectors, vectors, tensor([1.0], [2.0], [3.0]))
    )
    assert own_rewards(continuous, vectors).tolist() == [1.0, 2.0, 3.0]


class FirstEntry(IntrinsicReward):
    def reward(self, samples):
        self.sizes.append(len(samples.skills))
        return samples.next_observations[:, 0]


def test_rewards_of_subsamples_keep_their_places():
    reward, states = FirstEntry(1, 1, DiscreteSkills(2)), th.arange(5000.0)[:, None]
    reward.sizes = []
    batch = SkillReplayBufferSamples(*[states] * 6, th.zeros(5000, dtype=th.long))
    assert th.equal(imagined_rewards(reward, batch), states[:, 0])
    assert sum(reward.sizes) == 5000 and max(reward.sizes) <= 2048


def test_each_imagined_skill_has_a_value_of_its_own():
    model = make_small(CeSDDreamer, n_skills=3)
    critic = model.critic.double()
    last = critic.q_networks[0].layers[-1]
    with th.no_grad():
        last.bias.copy_(tensor(10.0, 20.0, 30.0).view(3, 1, 1))
    skills = th.tensor([2, 0, 1, 2])
    features = th.randn(5, 4, model.policy.world_model.features_dim, dtype=th.float64)
    shared = critic.shared_networks[0]
    values = model._values(critic, features, skills)
    for step in range(5):
        embedded = th.cat([features[step], th.eye(3, dtype=th.float64)[skills]], dim=1)
        expected = shared(critic.trunk(embedded)).squeeze(1) + tensor(30.0, 10.0, 20.0, 30.0)
        assert_close(values[step], expected)
    # Its head learns from its own steps alone
    values[:, skills == 2].sum().backward()
    assert [bool(each.abs().sum() > 0) for each in last.bias.grad] == [False, False, True]


def test_actor_learns_where_imagined_actions_lead():
    """With a critic that sees one entry of the latent state, the gradient is that through the whole imagination."""
    model = make_small(APTDreamer, target_policy_noise=0.0)
    start = Latent(*(each.expand(3, -1) for each in model.policy.world_model.zeros(1)[:2]))
    actor_loss, critic_loss = model._imagined_losses(start)
    actor_loss.backward()
    assert all(each.grad is not None and each.grad.abs().sum() > 0 for each in model.actor.parameters())
    assert all(each.grad is None for each in (*model.policy.world_model.parameters(), *model.critic.parameters()))
    critic_loss.backward()
    assert all(each.grad is None for each in model.critic_target.parameters())
    assert any(each.grad is not None for each in model.critic.parameters())


def test_a_skill_is_drawn_anew_for_each_start():
    model, seen = make_small(APTDreamer, n_skills=5), []
    model.intrinsic.relabel = lambda samples: (
        seen.append(samples.skills) or type(model.intrinsic).relabel(model.intrinsic, samples)
    )
    start = Latent(*(each.expand(200, -1) for each in model.policy.world_model.zeros(1)[:2]))
    model._imagined_losses(start)
    counts = np.bincount(th.cat(seen).numpy(), minlength=5) / model.policy.horizon
    assert counts.sum() == 200 and (counts > 10).all() and (counts % 1 == 0).all()
