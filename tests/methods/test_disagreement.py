"""Disagreement: against its formulas, and the constants of URLB's code (agent/disagreement.py and disagreement.yaml)."""

import math
import statistics

import pytest
import torch as th
from batches import learn, make_reward, make_samples
from small import make_small

from sb3_cesd import Disagreement
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.methods.disagreement import DisagreementReward
from sb3_cesd.methods.icm import ICMReward

SKILLS = DiscreteSkills(3)


def make(reward_class=DisagreementReward, **kwargs):
    return make_reward(reward_class, SKILLS, **{"net_arch": [8], **kwargs}).double()


def make_batch(n=12, seed=0):
    th.manual_seed(seed)
    obs, next_obs = th.randn(2, n, 4, dtype=th.float64)
    return make_samples(obs, next_obs, th.arange(n) % 3, th.rand(n, 2, dtype=th.float64) * 2 - 1)


@th.no_grad()
def predictions_of(reward, batch):
    """What each model predicts for each transition, one after another."""
    first, _, last = reward.models
    predicted = []
    for inputs in th.cat([batch.observations, batch.actions], dim=1):
        hidden = [(inputs @ weight + bias[0]).clamp(min=0) for weight, bias in zip(first.weight, first.bias, strict=True)]
        models = zip(hidden, last.weight, last.bias, strict=True)
        predicted.append([(values @ weight + bias[0]).tolist() for values, weight, bias in models])
    return predicted


@pytest.mark.parametrize(("scale", "n_models"), [(1.0, 5), (3.0, 2)])
def test_reward_is_the_variance_between_models(scale, n_models):
    reward, batch = make(scale=scale, n_models=n_models), make_batch()
    expected = []
    for models in predictions_of(reward, batch):
        assert len(models) == n_models
        variances = [statistics.variance(values) for values in zip(*models, strict=True)]
        expected.append(scale * sum(variances) / len(variances))
    assert reward.reward(batch).tolist() == pytest.approx(expected, rel=1e-10)


def test_loss_is_the_mean_error_of_all_models():
    reward, batch = make(), make_batch()
    loss = reward.loss(batch)
    transitions = zip(predictions_of(reward, batch), batch.next_observations.tolist(), strict=True)
    errors = [math.dist(next_obs, predicted) for models, next_obs in transitions for predicted in models]
    assert len(errors) == 60 and loss.item() == pytest.approx(sum(errors) / 60, rel=1e-10)
    loss.backward()
    assert all(parameter.grad.abs().flatten(1).amax(1).min() > 0 for parameter in reward.parameters()), "of each model"


def test_loss_of_the_paper_is_half_a_square():
    reward, batch = make(error="square"), make_batch()
    transitions = zip(predictions_of(reward, batch), batch.next_observations.tolist(), strict=True)
    errors = [math.dist(next_obs, predicted) ** 2 / 2 for models, next_obs in transitions for predicted in models]
    assert reward.loss(batch).item() == pytest.approx(sum(errors) / 60, rel=1e-10)


def test_models_learn_from_a_share_of_a_batch_each():
    """A transition that a model leaves out has no gradient; on average the loss is that of all of them."""
    reward, batch = make(keep_share=0.25, n_models=3), make_batch(40)
    whole = make(n_models=3)
    whole.load_state_dict(reward.state_dict())
    batch.actions.requires_grad_()
    losses, kept = [], []
    for _ in range(300):
        (gradient,) = th.autograd.grad(loss := reward.loss(batch), batch.actions)
        losses.append(loss.item())
        kept.append((gradient != 0).any(dim=1).double().mean().item())
    assert statistics.mean(losses) == pytest.approx(whole.loss(batch).item(), rel=0.05)
    # By any of the three models
    assert statistics.mean(kept) == pytest.approx(1 - 0.75**3, abs=0.02)


def test_reward_depends_on_what_is_done_and_not_on_what_comes_of_it():
    reward, batch = make(), make_batch()
    assert (reward.reward(batch._replace(next_observations=batch.next_observations + 1)) == reward.reward(batch)).all()
    assert (reward.reward(batch._replace(actions=-batch.actions)) != reward.reward(batch)).all()


class WrongSign(DisagreementReward):
    """A negative control: its models learn to be wrong."""

    def loss(self, samples):
        return -super().loss(samples)


def data(noise):
    """Transitions of known dynamics, and as many elsewhere."""
    th.manual_seed(0)
    obs, actions = th.randn(512, 4, dtype=th.float64), th.rand(512, 2, dtype=th.float64) * 2 - 1
    moves = th.cat([actions, actions.flip(1)], dim=1) + noise * th.randn(512, 4, dtype=th.float64)
    return [make_samples(obs + far, obs + far + moves, th.zeros(512), actions) for far in (0, 8)]


def disagreement(reward_class, noise=0.0):
    """Mean reward for what was learned from, and elsewhere, before and after learning."""
    seen, unseen = data(noise)
    reward = make(reward_class, net_arch=[64])
    before = [reward.reward(batch).mean().item() for batch in (seen, unseen)]
    learn(reward, seen, 200)
    return before, [reward.reward(batch).mean().item() for batch in (seen, unseen)]


def test_vanishes_on_noise_free_data_it_has_seen_and_not_elsewhere():
    (seen_before, _), (seen, unseen) = disagreement(DisagreementReward)
    assert seen < 0.02 * seen_before and unseen > 50 * seen


def test_loses_interest_in_noise_where_an_error_does_not():
    (seen_before, _), (seen, _) = disagreement(DisagreementReward, noise=1.0)
    assert seen < 0.5 * seen_before
    batch, _ = data(1.0)
    icm = make(ICMReward, net_arch=[64])
    before = icm.reward(batch).mean().item()
    learn(icm, batch, 200)
    assert icm.reward(batch).mean().item() > 0.6 * before


def test_a_wrong_sign_would_be_noticed():
    (seen_before, _), (seen, _) = disagreement(WrongSign)
    assert seen > 2 * seen_before


def test_constants_are_those_of_urlb():
    """Models of PyTorch's default initialisation, unlike all other networks: that is what makes them differ."""
    reward = make_reward(DisagreementReward, SKILLS)
    first, _, last = reward.models
    assert first.weight.shape == (5, 6, 1024) and last.weight.shape == (5, 1024, 4) and reward.scale == 1.0
    for layer, fan_in in ((first, 6), (last, 1024)):
        bound = 1 / math.sqrt(fan_in)
        for values in (layer.weight, layer.bias):
            assert values.abs().max() <= bound
            assert values.std().item() == pytest.approx(bound / math.sqrt(3), rel=0.2)  # uniform
        assert all((layer.weight[0] != other).any() for other in layer.weight[1:])


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [({"n_models": 1}, "n_models=1 .* pass 2 or more"), ({"scale": -1.0}, "set scale above 0")],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_small(Disagreement, intrinsic_kwargs=kwargs)
