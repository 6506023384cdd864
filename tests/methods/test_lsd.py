"""LSD: against its formulas, and the constants of its authors' code (seohongpark/LSD, and as METRA's repository runs it)."""

import inspect
import pickle

import pytest
import torch as th
from batches import learn, make_reward, make_samples
from corridor import follow
from small import make_small
from torch import nn
from torch.nn.utils.parametrizations import spectral_norm
from tuning import saved

from sb3_cesd import LSD, METRA
from sb3_cesd.common.skills import DiscreteSkills, SphereSkills
from sb3_cesd.common.torch_layers import SpectralLinear, create_spectral_mlp
from sb3_cesd.methods.lsd import LSDReward

SKILLS = SphereSkills(2)


def make(space=SKILLS, **kwargs):
    return make_reward(LSDReward, space, **{"net_arch": [8, 8], **kwargs}).double()


def make_batch(space=SKILLS, n=12):
    th.manual_seed(0)
    obs, one_step, next_obs = th.randn(3, n, 4, dtype=th.float64)
    skills = th.arange(n) % 3 if space.discrete else space.draw_tensor(n, th.device("cpu")).double()
    return make_samples(obs, next_obs, skills)._replace(one_step_observations=one_step)


def phi(reward, state):
    """The network layer by layer, each weight over its largest singular value by an SVD."""
    layers = [layer for layer in reward.features if isinstance(layer, SpectralLinear)]
    for layer in layers:
        state = layer.weight @ state / th.linalg.svdvals(layer.weight)[0]
        if layer is not layers[-1]:
            state = (state + layer.bias).clamp(min=0)
    return state


@pytest.mark.parametrize("space", [SKILLS, DiscreteSkills(3)], ids=["sphere", "discrete"])
def test_loss_and_reward_are_those_of_the_paper(space):
    reward, batch = make(space, scale=3.0), make_batch(space)
    for _ in range(200):  # of power iteration
        reward.features(batch.observations)
    vectors = batch.skills if not space.discrete else 1.5 * (th.eye(3, dtype=th.float64)[batch.skills] - 1 / 3)
    rows = list(zip(batch.observations, batch.one_step_observations, batch.next_observations, vectors, strict=True))
    loss = -sum((phi(reward, one) - phi(reward, s)) @ z for s, one, _, z in rows) / len(rows)
    assert reward.loss(batch).item() == pytest.approx(loss.item(), rel=1e-6)
    expected = th.stack([3 * (phi(reward, s_next) - phi(reward, s)) @ z for s, _, s_next, z in rows])
    th.testing.assert_close(reward.relabel(batch).rewards.squeeze(1), expected.detach(), rtol=1e-6, atol=1e-9)


def test_layer_is_that_of_pytorch():
    """Which can't be pickled: the same steps of power iteration, values and gradients."""
    th.manual_seed(0)
    ours = SpectralLinear(5, 3).double()
    plain = nn.Linear(5, 3).double()
    with th.no_grad():
        plain.weight.copy_(ours.weight), plain.bias.copy_(ours.bias)
    theirs = spectral_norm(plain)
    theirs.parametrizations.weight[0]._u.copy_(ours.left)
    theirs.parametrizations.weight[0]._v.copy_(ours.right)
    inputs = th.randn(7, 5, dtype=th.float64)
    for _ in range(3):
        outputs = ours(inputs), theirs(inputs)
        th.testing.assert_close(*outputs)
    for output in outputs:
        output.square().sum().backward()
    th.testing.assert_close(ours.weight.grad, theirs.parametrizations.weight.original.grad)
    th.testing.assert_close(pickle.loads(pickle.dumps(ours))(inputs), theirs(inputs))
    # Evaluation changes nothing
    ours.eval()
    before = ours.left.clone()
    ours(inputs)
    assert (ours.left == before).all()


def longest_stretch(reward, n=4000):
    """The largest ``|phi(s') - phi(s)| / |s' - s|`` between states near each other, and far from each other."""
    reward.eval()
    stretches = []
    for width in (1e-2, 3.0):
        states = 3 * th.randn(n, reward.obs_dim)
        others = states + width * th.randn_like(states)
        with th.no_grad():
            stretch = reward.displacements(states, others).norm(dim=1) / (others - states).norm(dim=1)
        stretches.append(stretch.max().item())
    return max(stretches)


class Unlimited(LSDReward):
    """A negative control: the same without spectral normalisation."""

    def make_features(self, net_arch):
        return nn.Sequential(nn.Linear(self.obs_dim, net_arch[0]), nn.ReLU(), nn.Linear(net_arch[0], self.skill_space.dim))


class WrongSign(LSDReward):
    """A negative control: features that lead skills astray."""

    def loss(self, samples):
        return -super().loss(samples)


def learned(reward_class, n_updates=300):
    th.manual_seed(0)
    states, skills = th.randn(256, 4), SKILLS.draw_tensor(256, th.device("cpu"))
    # Skills move the first two of four dimensions, the last one a lot, but not as they please
    moves = th.cat([skills, th.zeros(256, 1), 5 * th.randn(256, 1)], dim=1)
    batch = make_samples(states, states + moves, skills)._replace(one_step_observations=states + moves)
    reward = make_reward(reward_class, SKILLS, net_arch=[32])
    reward.set_optimizers(lambda parameters: th.optim.Adam(parameters, lr=2e-3))
    learn(reward, batch, n_updates)
    return reward, batch


def test_features_are_lipschitz_and_follow_the_skills():
    reward, batch = learned(LSDReward)
    assert 0.5 < longest_stretch(reward) < 1.15, "but for what one step of power iteration misses"
    reward.train()
    for _ in range(500):
        reward.features(batch.observations)
    assert 0.5 < longest_stretch(reward) < 1.001
    assert reward.reward(batch).mean() > 0.4, "of 1, the length of the moves"


def test_what_is_wrong_would_be_noticed():
    assert longest_stretch(learned(Unlimited)[0]) > 2
    reward, batch = learned(WrongSign)
    assert reward.reward(batch).mean() < -0.4


def test_it_measures_positions_and_not_steps():
    """Unlike METRA's: the ends of the corridor, a step apart, have features that are no further apart."""
    th.manual_seed(0)
    reward = make_reward(LSDReward, DiscreteSkills(2), obs_dim=2, net_arch=[32])
    for _ in range(200):
        reward.update(follow(th.randint(2, (128,))))
    reward.eval()
    with th.no_grad():
        assert reward.displacements(th.zeros(1, 2), th.tensor([[0.0, 1.0]])).norm() < 1.01


def test_singular_vectors_are_saved_and_loaded():
    model = make_small(LSD).learn(80)
    loaded = LSD.load(saved(model), device="cpu").intrinsic
    fresh = make_small(LSD).intrinsic
    for layer, other, first in zip(model.intrinsic.features, loaded.features, fresh.features, strict=True):
        if isinstance(layer, SpectralLinear):
            assert (layer.left == other.left).all() and (layer.right == other.right).all()
            assert (layer.left != first.left).any()


def test_constants_are_those_of_metra():
    ours, theirs = (inspect.signature(method).parameters for method in (LSD, METRA))
    assert {name: value.default for name, value in ours.items()} == {name: value.default for name, value in theirs.items()}
    reward = make_reward(LSDReward, SKILLS)
    assert [layer.out_features for layer in reward.features if isinstance(layer, SpectralLinear)] == [1024, 1024, 2]
    assert reward.scale == 1.0
    network = create_spectral_mlp(4, 2, [16])
    for layer in (network[0], network[2]):
        assert (layer.left @ layer.weight @ layer.right).item() == pytest.approx(
            th.linalg.matrix_norm(layer.weight, 2).item(), rel=0.02
        ), "from the start"


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"intrinsic_kwargs": {"scale": 0.0}}, "set scale above 0"),
        ({"intrinsic_kwargs": {"net_arch": "big"}}, "net_arch=.*: pass a list of positive integers"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_small(LSD, **kwargs)
