"""RND: against its formulas, and the constants of URLB's code (rll-research/url_benchmark, agent/rnd.py and rnd.yaml)."""

import pytest
import torch as th
from batches import learn, make_reward, make_samples
from small import make_small
from torch import nn
from tuning import saved

from sb3_cesd import RND
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.methods.rnd import RNDReward

SKILLS = DiscreteSkills(3)


def make(reward_class=RNDReward, **kwargs):
    return make_reward(reward_class, SKILLS, **{"net_arch": [8], "features_dim": 5, **kwargs}).double()


def make_batch(n=12, seed=0, scale=1.0):
    th.manual_seed(seed)
    obs, next_obs = scale * th.randn(2, n, 4, dtype=th.float64) + 2
    return make_samples(obs, next_obs, th.arange(n) % 3)


class RunningStatistics:
    """Of URLB, in its words: mean M 0, variance S 1 and n 1e-4 at first, and the unbiased variance of each batch."""

    def __init__(self):
        self.mean, self.variance, self.n = 0.0, 1.0, 1e-4

    def add(self, values):
        size, delta = len(values), values.mean().item() - self.mean
        total = self.n + size
        squares = self.variance * self.n + values.var().item() * size + delta**2 * self.n * size / total
        self.mean, self.variance, self.n = self.mean + delta * size / total, squares / total, total


@th.no_grad()
def errors_of(reward, batch, clip=5.0):
    """mean_i (f_i(s) - g_i(s))^2 of each state, one after another, with states normalised by their batch."""
    obs = batch.observations
    obs = (obs - obs.mean(0)) / (obs.var(0, unbiased=False) + 1e-5).sqrt()
    outputs = [[network(state.clip(-clip, clip)) for network in (reward.predictor, reward.target)] for state in obs]
    return th.stack([sum((f - g) ** 2 for f, g in zip(*pair, strict=True)) / len(pair[0]) for pair in outputs])


@pytest.mark.parametrize(("scale", "clip"), [(1.0, 5.0), (3.0, 0.7)])
def test_reward_is_the_error_over_its_running_deviation(scale, clip):
    reward, statistics = make(scale=scale, clip=clip), RunningStatistics()
    for seed in range(4):
        batch = make_batch(seed=seed, scale=seed + 1)
        # The predictor learns from a batch before the rewards of the same batch are computed
        reward.update(batch)
        errors = errors_of(reward, batch, clip)
        statistics.add(errors)
        expected = scale * errors / (statistics.variance**0.5 + 1e-8)
        th.testing.assert_close(reward.relabel(batch).rewards.squeeze(1), expected, rtol=1e-9, atol=0)
    for name, value in {"mean": statistics.mean, "var": statistics.variance, "count": statistics.n}.items():
        assert getattr(reward.statistics, name).item() == pytest.approx(value, rel=1e-9)


def test_loss_is_the_mean_error_and_trains_the_predictor_alone():
    reward, batch = make(), make_batch()
    loss = reward.loss(batch)
    assert loss.item() == pytest.approx(errors_of(reward, batch).mean().item(), rel=1e-9)
    loss.backward()
    assert all(parameter.grad.abs().max() > 0 for parameter in reward.predictor.parameters())
    assert all(parameter.grad is None and not parameter.requires_grad for parameter in reward.target.parameters())


def test_it_looks_at_the_state_and_not_at_the_next_one_nor_at_the_skill():
    reward, batch = make(), make_batch()
    reward.update(batch)
    reward.eval()
    expected = reward.reward(batch)
    assert (reward.reward(batch._replace(next_observations=batch.next_observations + 1)) == expected).all()
    assert (reward.reward(batch._replace(skills=batch.skills.flip(0))) == expected).all()
    assert (reward.reward(batch._replace(observations=batch.next_observations)) != expected).any()


def test_as_in_the_paper_it_looks_at_the_next_state():
    reward, batch = make(state="next"), make_batch()
    assert reward.loss(batch).item() == pytest.approx(
        errors_of(reward, batch._replace(observations=batch.next_observations)).mean().item()
    )
    reward.update(batch)
    reward.eval()
    expected = reward.reward(batch)
    assert (reward.reward(batch._replace(observations=batch.observations + 1)) == expected).all()
    assert (reward.reward(batch._replace(next_observations=batch.observations)) != expected).any()


def test_states_can_be_normalised_by_running_statistics():
    """The predictor and the rewards of a batch go by statistics to which the batch is added once."""
    reward = make(obs_statistics="running", clip=1.5)
    mean, variance = th.zeros(4, dtype=th.float64), th.ones(4, dtype=th.float64)
    for seed in range(3):
        batch = make_batch(seed=seed, scale=seed + 1)
        mean, variance = 0.9 * mean + 0.1 * batch.observations.mean(0), 0.9 * variance + 0.1 * batch.observations.var(0)
        with th.no_grad():
            obs = ((batch.observations - mean) / (variance + 1e-5).sqrt()).clip(-1.5, 1.5)
            expected = (reward.predictor(obs) - reward.target(obs)).square().mean(dim=1)
        assert reward.loss(batch).item() == pytest.approx(expected.mean().item(), rel=1e-9)
        values = reward.reward(batch).detach()
        th.testing.assert_close(values * (reward.statistics.var.sqrt() + 1e-8), expected, rtol=1e-9, atol=0)
    assert (errors_of(reward, batch, 1.5) - expected).abs().max() > 1e-3, "not those of the batch"


def test_target_is_frozen():
    reward, batch = make(), make_batch()
    target = [parameter.clone() for parameter in reward.target.parameters()]
    predictor = [parameter.clone() for parameter in reward.predictor.parameters()]
    learn(reward, batch, 20)
    assert all((now == before).all() for now, before in zip(reward.target.parameters(), target, strict=True))
    assert all((now != before).any() for now, before in zip(reward.predictor.parameters(), predictor, strict=True))
    trained = {id(parameter) for group in reward.optimizer.param_groups for parameter in group["params"]}
    assert trained == {id(parameter) for parameter in reward.predictor.parameters()}

    model = make_small(RND)
    target = [parameter.clone() for parameter in model.intrinsic.target.parameters()]
    model.learn(120)
    assert model._n_updates > 20
    assert all((now == before).all() for now, before in zip(model.intrinsic.target.parameters(), target, strict=True))


class WrongSign(RNDReward):
    """A negative control: it learns to be surprised."""

    def loss(self, samples):
        return -super().loss(samples)


@th.no_grad()
def surprise(reward_class):
    """Mean error in states like those learned from, and in states elsewhere, before and after learning."""
    th.manual_seed(0)
    seen, unseen = th.randn(2, 256, 4, dtype=th.float64)
    unseen[:, 0] += 4
    reward = make(reward_class, net_arch=[64])
    errors = []
    for _ in range(2):
        reward.eval()
        errors.append([reward.errors(reward.obs_norm(observations)).mean().item() for observations in (seen, unseen)])
        with th.enable_grad():
            learn(reward, make_samples(seen, seen, th.zeros(256)), 150)
    return errors


def test_reward_falls_where_it_has_been():
    (seen_before, unseen_before), (seen, unseen) = surprise(RNDReward)
    assert seen < 0.05 * seen_before
    assert unseen > 10 * seen and unseen_before < 10 * seen_before, "and stays higher elsewhere"


def test_a_wrong_sign_would_be_noticed():
    (seen_before, _), (seen, unseen) = surprise(WrongSign)
    assert seen > 10 * seen_before and unseen < 10 * seen


def test_constants_are_those_of_urlb():
    reward = make_reward(RNDReward, SKILLS)
    for network in (reward.predictor, reward.target):
        linear = [layer for layer in network if isinstance(layer, nn.Linear)]
        assert [layer.out_features for layer in linear] == [1024, 1024, 512]
        assert [type(layer) for layer in network] == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
        for layer in linear:
            gram = layer.weight.T @ layer.weight if layer.out_features >= layer.in_features else layer.weight @ layer.weight.T
            th.testing.assert_close(gram, th.eye(len(gram)), atol=1e-4, rtol=0)  # orthogonal
            assert (layer.bias == 0).all()
    assert (reward.predictor[0].weight != reward.target[0].weight).any()
    assert (reward.scale, reward.clip) == (1.0, 5.0) and not reward.obs_norm.affine
    assert [getattr(reward.statistics, name).item() for name in ("mean", "var", "count")] == [0.0, 1.0, 1e-4]


def test_states_far_off_are_clipped():
    reward, batch = make(), make_batch(40)
    far, farther = (batch.observations.clone() for _ in range(2))
    far[0, 0], farther[0, 0] = 1e6, 1e9
    reward.update(batch)
    reward.eval()
    values = [reward.reward(batch._replace(observations=observations)) for observations in (far, farther)]
    assert (values[0] == values[1]).all() and (values[0][0] != reward.reward(batch)[0]).all()


def test_reward_in_evaluation_goes_by_the_running_statistics():
    reward, batch = make(), make_batch(40)
    learn(reward, batch, 60)
    alone = batch._replace(observations=batch.observations[:1])
    th.testing.assert_close(reward.reward(alone), reward.reward(batch)[:1])
    # One batch again and again: its running statistics are nearly its own
    deviation = reward.statistics.var.sqrt() + 1e-8
    normalised = (batch.observations - reward.obs_norm.running_mean) / (reward.obs_norm.running_var + 1e-5).sqrt()
    expected = (reward.predictor(normalised) - reward.target(normalised)).square().mean(dim=1) / deviation
    th.testing.assert_close(reward.reward(batch), expected)


def test_predictor_learns_before_rewards_of_the_same_batch_in_training_too(monkeypatch):
    model = make_small(RND).learn(60)
    seen, update, relabel = [], model.intrinsic.update, model.intrinsic.relabel

    def note(name, method):
        def noted(samples):
            seen.append((name, samples, model.intrinsic.predictor[0].weight.clone()))
            return method(samples)

        return noted

    monkeypatch.setattr(model.intrinsic, "update", note("update", update))
    monkeypatch.setattr(model.intrinsic, "relabel", note("relabel", relabel))
    model.train(2, 32)
    assert [name for name, *_ in seen] == ["update", "relabel"] * 2
    assert seen[0][1] is seen[1][1] and (seen[0][2] != seen[1][2]).any()


def test_statistics_and_target_are_saved_and_loaded():
    model = make_small(RND).learn(100)
    loaded = RND.load(saved(model), device="cpu").intrinsic
    assert model.intrinsic.statistics.count > 500 and model.intrinsic.statistics.var != 1
    names = [name for name, _ in model.intrinsic.named_buffers()]
    assert {"statistics.mean", "statistics.var", "statistics.count", "obs_norm.running_mean", "obs_norm.running_var"} <= {
        *names
    }
    for name, value in model.intrinsic.state_dict().items():
        assert (value == loaded.state_dict()[name]).all(), name
    fresh = make_small(RND, seed=1).intrinsic
    assert (fresh.target[0].weight != loaded.target[0].weight).any()


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"intrinsic_kwargs": {"features_dim": 0}}, "set features_dim above 0"),
        ({"intrinsic_kwargs": {"clip": 0.0}}, "set clip above 0"),
        ({"intrinsic_kwargs": {"scale": -1.0}}, "set scale above 0"),
        ({"intrinsic_kwargs": {"state": "last"}}, "state 'last': choose 'current' or 'next'"),
        ({"intrinsic_kwargs": {"obs_statistics": "none"}}, "obs_statistics 'none': choose 'batch' or 'running'"),
        ({"batch_size": 1}, "batch_size=1 .*: raise batch_size"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_small(RND, **kwargs)
