"""BeCL: against its formulas, and the constants of its code (Rooshy-yang/BeCL, agent/becl.py and becl.yaml)."""

import math

import numpy as np
import pytest
import torch as th
from batches import learn, make_reward, make_samples
from learned import parameters_of
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from torch import nn

from sb3_cesd import DIAYN, METHODS, BeCL
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.methods.becl import BeCLReward

SKILLS = DiscreteSkills(3)


def make(reward_class=BeCLReward, **kwargs):
    return make_reward(reward_class, SKILLS, **{"net_arch": [8, 8], "features_dim": 5, **kwargs}).double()


def make_batch(n=12, seed=0):
    th.manual_seed(seed)
    obs, next_obs = th.randn(2, n, 4, dtype=th.float64)
    return make_samples(obs, next_obs, th.randint(3, (n,)))


@th.no_grad()
def losses_of(reward, batch, temperature=0.5):
    """-log(e_ip / (sum_{j != i} e_ij + 1e-6) + 1e-6) with e_ij over the largest of its row, one state after another."""
    features = [reward.network(obs) for obs in batch.next_observations]
    losses = []
    for i, skill in enumerate(batch.skills.tolist()):
        others = [j for j in range(len(features)) if j != i]
        cosines = {j: (features[i] @ features[j] / features[i].norm() / features[j].norm()).item() for j in others}
        largest = max(cosines.values())
        exponentials = {j: math.exp((cosine - largest) / temperature) for j, cosine in cosines.items()}
        alike = [j for j in others if batch.skills[j] == skill]
        positive = exponentials[alike[0]] if alike else 0.0
        losses.append(-math.log(positive / (sum(exponentials.values()) + 1e-6) + 1e-6))
    return losses


@pytest.mark.parametrize(("temperature", "scale"), [(0.5, 1.0), (0.1, 3.0)])
def test_loss_and_reward_are_the_contrast_of_a_state_to_its_batch(temperature, scale):
    reward, batch = make(temperature=temperature, scale=scale), make_batch()
    expected = losses_of(reward, batch, temperature)
    assert reward.losses(batch).tolist() == pytest.approx(expected, rel=1e-9)
    assert reward.loss(batch).item() == pytest.approx(sum(expected) / 12, rel=1e-9)
    rewards = reward.reward(batch)
    assert rewards.tolist() == pytest.approx([scale * math.exp(-loss) for loss in expected], rel=1e-9)
    assert 0 < rewards.min() and rewards.max() <= scale * (1 + 1e-6)
    reward.loss(batch).backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in reward.parameters())


def test_gradient_is_that_of_the_loss():
    """By finite differences: what is left out of the graph, the largest entry of a row, does not matter."""
    reward, batch = make(net_arch=[4]), make_batch(6)
    reward.loss(batch).backward()
    weight = reward.network[0][0].weight
    for idx in ((0, 0), (2, 3)):
        values = []
        for step in (1e-6, -1e-6):
            with th.no_grad():
                weight[idx] += step
                values.append(sum(losses_of(reward, batch)) / 6)
                weight[idx] -= step
        assert weight.grad[idx].item() == pytest.approx((values[0] - values[1]) / 2e-6, rel=1e-3, abs=1e-6)


def test_a_state_that_is_alone_with_its_skill_teaches_nothing_and_gets_nothing():
    reward, batch = make(scale=2.0), make_batch(5)
    batch = batch._replace(skills=th.tensor([0, 1, 0, 2, 0]))
    assert reward.losses(batch).tolist() == pytest.approx(losses_of(reward, batch), rel=1e-9)
    assert reward.reward(batch)[[1, 3]].tolist() == pytest.approx([2e-6] * 2)
    assert (reward.reward(batch)[[0, 2, 4]] > 0.1).all()
    reward.losses(batch)[[1, 3]].sum().backward()
    assert all((parameter.grad == 0).all() for parameter in reward.parameters())


def test_it_looks_at_the_next_state_alone():
    reward, batch = make(), make_batch()
    other = batch._replace(observations=-batch.observations, actions=batch.actions + 1)
    assert (reward.reward(other) == reward.reward(batch)).all()
    assert (reward.reward(batch._replace(next_observations=batch.observations)) != reward.reward(batch)).any()


class WrongSign(BeCLReward):
    """A negative control: it learns to take states of a skill apart."""

    def loss(self, samples):
        return -super().loss(samples)


@th.no_grad()
def separation(reward_class):
    """Mean similarity of features within skills less that between skills, and the mean reward, before and after learning."""
    th.manual_seed(0)
    skills = th.arange(96) % 3
    obs = 1.5 * th.randn(96, 4, dtype=th.float64)
    obs[:, 0] += 2 * skills  # states of skills overlap
    batch = make_samples(obs, obs, skills)
    reward, found = make(reward_class, net_arch=[64, 64]), []
    for _ in range(2):
        features = reward.network(obs)
        features = features / features.norm(dim=1, keepdim=True)
        same = skills[:, None] == skills
        cosines = features @ features.T
        found.append((cosines[same].mean().item() - cosines[~same].mean().item(), reward.reward(batch).mean().item()))
        with th.enable_grad():
            learn(reward, batch, 100)
    another = reward.reward(batch._replace(skills=skills[th.randperm(96)])).mean().item()
    return *found, another


def test_features_separate_skills():
    (apart_before, reward_before), (apart, reward), another = separation(BeCLReward)
    assert apart_before < 0.5 and apart > 1
    assert reward > 1.5 * reward_before and another < 0.7 * reward
    # Nearly what features get that are the same within skills, and as far apart as three can be
    assert reward > 0.9 / (31 + 64 * math.exp((-0.5 - 1) / 0.5))


def test_a_wrong_sign_would_be_noticed():
    (_, reward_before), (apart, reward), _ = separation(WrongSign)
    assert apart < 0.5 and reward < reward_before


def test_constants_are_those_of_the_released_code():
    reward = make_reward(BeCLReward, SKILLS)
    embedding, head = reward.network
    for sequential, sizes in ((embedding, [4, 1024, 1024, 16]), (head, [16, 1024, 16])):
        linear = [layer for layer in sequential if isinstance(layer, nn.Linear)]
        assert [linear[0].in_features, *(layer.out_features for layer in linear)] == sizes
        assert [type(layer) for layer in sequential[1::2]] == [nn.ReLU] * (len(linear) - 1)
        assert all((layer.bias == 0).all() for layer in linear)
    assert (reward.temperature, reward.n_batches, reward.scale) == (0.5, 3, 1.0)
    model = BeCL("MlpPolicy", "Pendulum-v1", buffer_size=10, device="cpu")
    assert (model.n_skills, model.skill_duration, model.skill_type) == (16, 50, "discrete")


def note_batches(model, monkeypatch):
    """What learns from which batch, in order."""
    seen, update, critic_loss = [], model.intrinsic.update, model.critic_loss
    monkeypatch.setattr(model.intrinsic, "update", lambda batch: seen.append(("features", batch)) or update(batch))
    monkeypatch.setattr(model, "critic_loss", lambda batch: seen.append(("critic", batch)) or critic_loss(batch))
    return seen


@pytest.mark.parametrize("n_batches", [1, 3])
def test_features_learn_from_several_batches_and_the_policy_from_the_last(monkeypatch, n_batches):
    model = make_small(BeCL, intrinsic_kwargs={"net_arch": [16], "n_batches": n_batches}).learn(60)
    seen, n_updates = note_batches(model, monkeypatch), model._n_updates
    np.random.seed(3)
    model.train(2, 32)
    assert [name for name, _ in seen] == (["features"] * n_batches + ["critic"]) * 2 and model._n_updates == n_updates + 2
    # Each of them is drawn from the buffer
    np.random.seed(3)
    drawn = [model.replay_buffer.sample(32) for _ in range(2 * n_batches)]
    batches = [batch for name, batch in seen if name == "features"]
    assert all((batch.actions == other.actions).all() for batch, other in zip(batches, drawn, strict=True))
    critics = [batch for name, batch in seen if name == "critic"]
    assert all(
        (batch.actions == other.actions).all() for batch, other in zip(critics, drawn[n_batches - 1 :: n_batches], strict=True)
    )


def test_a_task_and_other_methods_learn_from_a_single_batch(monkeypatch):
    task = make_small(BeCL, reward="extrinsic").learn(60)
    assert task.intrinsic.n_batches == 1
    assert {name for name, method in METHODS.items() if make_small(method).intrinsic.n_batches > 1} == {"becl"}
    model = make_small(DIAYN).learn(60)
    seen = note_batches(model, monkeypatch)
    model.train(1, 32)
    assert [name for name, _ in seen] == ["features", "critic"]


def test_updates_in_a_row_are_as_many_single_ones():
    in_a_row, single = (make_small(BeCL, make_vec_env("Pendulum-v1", 2)).learn(60) for _ in range(2))
    for model, n_calls, n_updates in ((in_a_row, 1, 4), (single, 4, 1)):
        np.random.seed(0), th.manual_seed(0)
        for _ in range(n_calls):
            model.train(n_updates, 32)
    assert all((a == b).all() for a, b in zip(parameters_of(in_a_row), parameters_of(single), strict=True))


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"intrinsic_kwargs": {"n_batches": 0}}, "set n_batches above 0"),
        ({"intrinsic_kwargs": {"temperature": 0.0}}, "set temperature above 0"),
        ({"batch_size": 1}, "batch_size=1 leaves no other state .*: raise batch_size"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_small(BeCL, **kwargs)
