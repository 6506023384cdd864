"""BeCL: against its formulas, and the constants of its code (Rooshy-yang/BeCL, agent/becl.py and becl.yaml)."""

import math

import numpy as np
import pytest
import torch as th
from batches import make_batch, make_reward
from small import make_small
from torch import nn

from sb3_cesd import BeCL, preset
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.methods.becl import BeCLReward

SKILLS = DiscreteSkills(3)


def make(**kwargs):
    return make_reward(BeCLReward, SKILLS, **{"net_arch": [8, 8], "features_dim": 5, **kwargs}).double()


@th.no_grad()
def losses_of(reward, batch, temperature):
    """-log(e_ip / (sum_{j != i} e_ij + 1e-6) + 1e-6) with e_ij over the largest of its row, one state after another."""
    features = [reward.network(obs) for obs in batch.next_observations]
    losses = []
    for i, skill in enumerate(batch.skills.tolist()):
        others = [j for j in range(len(features)) if j != i]
        cosines = {j: (features[i] @ features[j] / features[i].norm() / features[j].norm()).item() for j in others}
        exponentials = {j: math.exp((cosine - max(cosines.values())) / temperature) for j, cosine in cosines.items()}
        alike = [j for j in others if batch.skills[j] == skill]
        positive = exponentials[alike[0]] if alike else 0.0
        losses.append(-math.log(positive / (sum(exponentials.values()) + 1e-6) + 1e-6))
    return losses


@pytest.mark.parametrize(("temperature", "scale"), [(0.5, 1.0), (0.1, 3.0)])
def test_loss_and_reward_are_the_contrast_of_a_state_to_its_batch(temperature, scale):
    reward, batch = make(temperature=temperature, scale=scale), make_batch(SKILLS)
    expected = losses_of(reward, batch, temperature)
    assert reward.loss(batch).item() == pytest.approx(sum(expected) / 12, rel=1e-9)
    assert reward.reward(batch).tolist() == pytest.approx([scale * math.exp(-loss) for loss in expected], rel=1e-9)


def test_a_state_that_is_alone_with_its_skill_teaches_nothing_and_gets_nothing():
    reward, batch = make(scale=2.0), make_batch(SKILLS, 5)
    batch = batch._replace(skills=th.tensor([0, 1, 0, 2, 0]))
    assert reward.losses(batch).tolist() == pytest.approx(losses_of(reward, batch, 0.5), rel=1e-9)
    assert reward.reward(batch)[[1, 3]].tolist() == pytest.approx([2e-6] * 2)
    reward.losses(batch)[[1, 3]].sum().backward()
    assert all((parameter.grad == 0).all() for parameter in reward.parameters())


def test_constants_are_those_of_the_released_code():
    reward = make_reward(BeCLReward, SKILLS, **preset("published", method="becl")["intrinsic_kwargs"])
    for sequential, sizes in zip(reward.network, ([4, 1024, 1024, 16], [16, 1024, 16]), strict=True):
        linear = [layer for layer in sequential if isinstance(layer, nn.Linear)]
        assert [linear[0].in_features, *(layer.out_features for layer in linear)] == sizes
    assert (reward.temperature, reward.n_batches, reward.scale) == (0.5, 3, 1.0)


@pytest.mark.parametrize("n_batches", [1, 3])
def test_features_learn_from_several_batches_and_the_policy_from_the_last(monkeypatch, n_batches):
    model = make_small(BeCL, intrinsic_kwargs={"net_arch": [16], "n_batches": n_batches}).learn(60)
    seen, update = [], model.intrinsic.update
    monkeypatch.setattr(model.intrinsic, "update", lambda batch: seen.append(batch) or update(batch))
    np.random.seed(3)
    model.train(2, 32)
    np.random.seed(3)
    drawn = [model.replay_buffer.sample(32) for _ in range(2 * n_batches)]
    assert all((batch.actions == other.actions).all() for batch, other in zip(seen, drawn, strict=True))
