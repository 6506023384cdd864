"""CSD: against its formulas, and the constants of its authors' code (seohongpark/CSD-locomotion, seohongpark/METRA)."""

import inspect
import math

import pytest
import torch as th
from batches import learn, make_reward, make_samples
from small import make_small
from torch import nn
from torch.distributions import Independent, Normal
from tuning import saved

from sb3_cesd import CSD, METRA
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.methods.csd import CSDReward

SKILLS = DiscreteSkills(3)


def make(**kwargs):
    return make_reward(CSDReward, SKILLS, **{"net_arch": [8], **kwargs}).double()


def make_batch(n=12, seed=0):
    th.manual_seed(seed)
    obs, one_step, next_obs = th.randn(3, n, 4, dtype=th.float64)
    return make_samples(obs, next_obs, th.arange(n) % 3)._replace(one_step_observations=one_step)


@th.no_grad()
def by_hand(reward, batch, weights, lambda_, slack):
    """Loss of the features, loss of the dual variable and loss of the density, one transition after another."""
    gains, penalties, errors = [], [], []
    for s, one_step, skill in zip(batch.observations, batch.one_step_observations, batch.skills, strict=True):
        mean, std = reward.density.mean(s).tolist(), reward.density.log_std(s).exp().tolist()
        change = (one_step - s).tolist()
        scales = [1 / sigma for sigma in std]
        geometric = math.prod(scales) ** (1 / len(scales)) if weights == "normalized" else 1.0
        bound = sum((x - mu) ** 2 * (scale / geometric) ** 2 for x, mu, scale in zip(change, mean, scales, strict=True)) / len(
            change
        )
        moved = (reward.features(one_step) - reward.features(s)).tolist()
        z = [1.0 if each == skill else -0.5 for each in range(3)]
        penalties.append(min(bound - sum(value**2 for value in moved) / len(moved), slack))
        gains.append(sum(a * b for a, b in zip(moved, z, strict=True)) + lambda_ * penalties[-1])
        errors.append(
            sum(
                0.5 * ((x - mu) / sigma) ** 2 + math.log(sigma) + 0.5 * math.log(2 * math.pi)
                for x, mu, sigma in zip(change, mean, std, strict=True)
            )
        )
    n = len(gains)
    return -sum(gains) / n, math.log(lambda_) * sum(penalties) / n, sum(errors) / n


@pytest.mark.parametrize(("weights", "slack"), [("normalized", 1e-6), ("precision", 0.5)])
def test_losses_are_those_of_the_paper(weights, slack):
    reward, batch = make(weights=weights, slack=slack, lambda_init=7.0), make_batch()
    loss, dual_loss, density_loss = by_hand(reward, batch, weights, 7.0, slack)
    found = reward.losses(batch)
    assert found[0].item() == pytest.approx(loss, rel=1e-6) and found[1].item() == pytest.approx(dual_loss, rel=1e-6)
    changes = batch.one_step_observations - batch.observations
    assert reward.density.loss(batch.observations, changes).item() == pytest.approx(density_loss, rel=1e-9)
    mean, log_std = reward.density(batch.observations)
    likelihood = Independent(Normal(mean, log_std.exp()), 1).log_prob(changes)
    assert -likelihood.mean().item() == pytest.approx(density_loss, rel=1e-9)


def test_reward_is_ten_times_the_displacement():
    reward, batch = make(), make_batch()
    z = 1.5 * (th.eye(3, dtype=th.float64)[batch.skills] - 1 / 3)
    moved = reward.features(batch.next_observations) - reward.features(batch.observations)
    th.testing.assert_close(reward.relabel(batch).rewards.squeeze(1), 10 * (moved * z).sum(1).detach())


def test_density_learns_from_its_likelihood_alone():
    reward, batch = make(), make_batch()
    loss, dual_loss = reward.losses(batch)
    density = list(reward.density.parameters())
    assert all(gradient is None for gradient in th.autograd.grad(loss + dual_loss, density, allow_unused=True))
    before = [parameter.clone() for parameter in density]
    groups = [reward.optimizer, reward.dual_optimizer, reward.density_optimizer]
    trained = [id(parameter) for group in groups for parameter in group.param_groups[0]["params"]]
    assert sorted(trained) == sorted(map(id, reward.parameters())), "each parameter has one optimizer"
    reward.update(batch)
    assert all((now != then).any() for now, then in zip(density, before, strict=True))
    assert reward.logs["train/density_loss"].item() == pytest.approx(by_hand(make(), batch, "normalized", 7.0, 0)[2])


class WrongSign(CSDReward):
    """A negative control: changes that are common count more."""

    def change_weights(self, log_std):
        return super().change_weights(-log_std)


def learned(reward_class=CSDReward, n_updates=400):
    """Skills move a heavy thing by a little; what is easy to move, moves a lot on its own."""
    th.manual_seed(0)
    states, skills = th.randn(512, 4), th.arange(512) % 3
    moves = 0.05 * th.eye(4)[skills] * th.tensor([1.0, 1.0, 1.0, 0.0]) + th.tensor([0.05, 0.05, 0.05, 2.0]) * th.randn(512, 4)
    batch = make_samples(states, states + moves, skills)._replace(one_step_observations=states + moves)
    reward = make_reward(reward_class, SKILLS, net_arch=[32])
    learn(reward, batch, n_updates)
    return reward, batch


def test_weights_are_those_of_the_deviation_of_changes():
    """What seldom moves counts more: by the square of the ratio of deviations."""
    reward, batch = learned()
    _, log_std = reward.density(batch.observations)
    deviations = log_std.exp().mean(0).tolist()
    assert deviations[:3] == pytest.approx([0.05] * 3, rel=0.35) and deviations[3] == pytest.approx(2.0, rel=0.2)
    weights = reward.change_weights(log_std)
    th.testing.assert_close(weights.log().mean(dim=1), th.zeros(512), atol=1e-4, rtol=0)  # their geometric mean is 1
    ratio = (weights[:, 0] / weights[:, 3]).median().item()
    assert ratio == pytest.approx((2.0 / 0.05) ** 2, rel=0.8)
    # A move of the heavy thing has room in the features, the same move of the other one has not
    still = batch._replace(one_step_observations=batch.observations + reward.density(batch.observations)[0].detach())
    bounds = []
    for dim in (0, 3):
        moved = still.one_step_observations.clone()
        moved[:, dim] += 0.5
        bounds.append(reward.bounds(still._replace(one_step_observations=moved)).median().item())
    assert bounds[0] > 200 * bounds[1]


def test_a_wrong_sign_would_be_noticed():
    reward, batch = learned(WrongSign, 200)
    weights = reward.change_weights(reward.density(batch.observations)[1])
    assert (weights[:, 0] < weights[:, 3]).all()


def test_deviations_are_limited():
    reward = make()
    for value, limit in ((1e9, 1e6), (-1e9, 1e-6)):
        with th.no_grad():
            reward.density.log_std[-1].bias.fill_(value)
        _, log_std = reward.density(make_batch().observations)
        th.testing.assert_close(log_std.exp(), th.full_like(log_std, limit))


def test_constants_are_those_of_the_released_code():
    ours, theirs = (
        {name: value.default for name, value in inspect.signature(each).parameters.items()} for each in (CSD, METRA)
    )
    different = {name for name in ours if ours[name] != theirs[name]}
    assert different == {"skill_type", "skill_dim"} and (ours["skill_type"], ours["n_skills"]) == ("discrete", 16)
    reward = make_reward(CSDReward, SKILLS)
    for network, out in ((reward.features, 3), (reward.density.mean, 4), (reward.density.log_std, 4)):
        assert [layer.out_features for layer in network if isinstance(layer, nn.Linear)] == [512, 512, out]
    assert reward.log_lambda.exp().item() == pytest.approx(3000) and (reward.slack, reward.scale) == (1e-6, 10.0)
    assert (reward.norm, reward.weights) == ("mean", "normalized")


def test_density_and_its_optimizer_are_saved_and_loaded():
    model = make_small(CSD).learn(80)
    loaded = CSD.load(saved(model), device="cpu").intrinsic
    for name, value in model.intrinsic.state_dict().items():
        assert (value == loaded.state_dict()[name]).all(), name
    moments = [each.density_optimizer.state_dict()["state"] for each in (model.intrinsic, loaded)]
    assert moments[0].keys() == moments[1].keys() != set()
    assert all((moments[0][key]["exp_avg"] == moments[1][key]["exp_avg"]).all() for key in moments[0])


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"intrinsic_kwargs": {"weights": "none"}}, "weights 'none': choose 'normalized' or 'precision'"),
        ({"intrinsic_kwargs": {"lambda_init": -1.0}}, "set lambda_init above 0"),
        ({"intrinsic_kwargs": {"slack": "small"}}, "slack='small' .*: pass 0 or more"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_small(CSD, **kwargs)
