"""METRA, LSD and CSD: against their formulas, and the constants of their authors' code (seohongpark/METRA, LSD, CSD)."""

import inspect
import math
import pickle

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from batches import make_batch, make_reward
from corridor import correlations, follow
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from torch import nn
from torch.distributions import Independent, Normal
from torch.nn.utils.parametrizations import spectral_norm

from sb3_cesd import CSD, CSF, DIAYN, LSD, METRA, preset
from sb3_cesd.common.skills import DiscreteSkills, SphereSkills
from sb3_cesd.common.torch_layers import SpectralLinear
from sb3_cesd.methods.csd import CSDReward
from sb3_cesd.methods.lsd import LSDReward
from sb3_cesd.methods.metra import METRAReward

every_space = pytest.mark.parametrize("space", [DiscreteSkills(3), SphereSkills(2)], ids=["discrete", "sphere"])


def make(reward_class, space, **kwargs):
    return make_reward(reward_class, space, **{"net_arch": [8], **kwargs}).double()


def directions(batch, space):
    """z of the papers: a point on the sphere, or (one-hot - mean) n / (n - 1)."""
    return batch.skills if not space.discrete else 1.5 * (th.eye(3, dtype=th.float64)[batch.skills] - 1 / 3)


@th.no_grad()
def moved(reward, start, end):
    return reward.features(end) - reward.features(start)


@every_space
@pytest.mark.parametrize(("norm", "slack"), [("mean", 1e-3), ("sum", 0.5)])
def test_losses_and_reward_of_metra(space, norm, slack):
    reward, batch = make(METRAReward, space, norm=norm, slack=slack, lambda_init=7.0, scale=3.0), make_batch(space)
    z, step = directions(batch, space), moved(reward, batch.observations, batch.one_step_observations)
    squares = step.square().mean(dim=1) if norm == "mean" else step.square().sum(dim=1)
    penalty = th.minimum(1 - squares, th.tensor(slack, dtype=th.float64))
    loss, dual_loss = reward.losses(batch)
    # lambda is kept as its logarithm in single precision
    assert loss.item() == pytest.approx(-((step * z).sum(dim=1) + 7 * penalty).mean().item(), rel=1e-6)
    assert dual_loss.item() == pytest.approx(math.log(7) * penalty.mean().item(), rel=1e-6)
    expected = 3 * (moved(reward, batch.observations, batch.next_observations) * z).sum(dim=1)
    th.testing.assert_close(reward.reward(batch).detach(), expected)
    # Each learns from its own loss alone
    assert th.autograd.grad(loss, [reward.log_lambda], allow_unused=True, retain_graph=True) == (None,)
    assert th.autograd.grad(dual_loss, [reward.features[0].weight], allow_unused=True) == (None,)


def test_features_of_metra_measure_steps_in_a_corridor():
    """Its ends are a step apart as the crow flies."""
    th.manual_seed(0)
    reward = METRAReward(2, 2, DiscreteSkills(2), net_arch=[64, 64])
    reward.set_optimizers(lambda parameters: th.optim.Adam(parameters, lr=1e-3))
    for _ in range(600):
        reward.update(follow(th.randint(2, (256,))))
    with_features, with_positions = correlations(reward)
    assert with_features > 0.95 and with_positions < 0.6
    batch = follow(th.randint(2, (1000,)))
    assert 0.6 < reward.step_displacements(batch).square().mean().item() < 1.05, "a step is 1 long"
    assert (reward.reward(batch) > 0.5).float().mean() > 0.8, "and earns its skill what it is long"
    start, end = th.tensor([[0.0, 0.0]]), th.tensor([[0.0, 1.0]])
    assert reward.goal_skill(start, end).item() == 1 and reward.goal_skill(end, start).item() == 0


@every_space
def test_loss_and_reward_of_lsd(space):
    """With each weight over its largest singular value by an SVD."""
    reward, batch = make(LSDReward, space, scale=3.0), make_batch(space)
    for _ in range(200):  # of power iteration
        reward.features(batch.observations)

    @th.no_grad()
    def phi(states):
        first, last = (layer for layer in reward.features if isinstance(layer, SpectralLinear))
        hidden = (states @ first.weight.T / th.linalg.svdvals(first.weight)[0] + first.bias).clamp(min=0)
        return hidden @ last.weight.T / th.linalg.svdvals(last.weight)[0]

    start, step, end = (phi(s) for s in (batch.observations, batch.one_step_observations, batch.next_observations))
    z = directions(batch, space)
    assert reward.loss(batch).item() == pytest.approx(-((step - start) * z).sum(dim=1).mean().item(), rel=1e-6)
    th.testing.assert_close(reward.reward(batch).detach(), 3 * ((end - start) * z).sum(dim=1), rtol=1e-6, atol=1e-9)


def test_spectral_layer_is_that_of_pytorch():
    """Which can't be pickled: the same steps of power iteration, values and gradients."""
    th.manual_seed(0)
    ours, plain = SpectralLinear(5, 3).double(), nn.Linear(5, 3).double()
    plain.load_state_dict({name: value for name, value in ours.state_dict().items() if name in ("weight", "bias")})
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


@pytest.mark.parametrize(("weights", "slack"), [("normalized", 1e-6), ("precision", 0.5)])
def test_losses_and_reward_of_csd(weights, slack):
    space = DiscreteSkills(3)
    reward, batch = make(CSDReward, space, weights=weights, slack=slack, lambda_init=7.0), make_batch(space)
    change = batch.one_step_observations - batch.observations
    mean, log_std = (value.detach() for value in reward.density(batch.observations))
    scales = (-log_std).exp()
    if weights == "normalized":
        scales = scales / scales.prod(dim=1, keepdim=True) ** (1 / 4)
    bound = ((change - mean) * scales).square().mean(dim=1)
    z, step = directions(batch, space), moved(reward, batch.observations, batch.one_step_observations)
    penalty = (bound - step.square().mean(dim=1)).clamp(max=slack)
    loss, dual_loss = reward.losses(batch)
    assert loss.item() == pytest.approx(-((step * z).sum(dim=1) + 7 * penalty).mean().item(), rel=1e-6)
    assert dual_loss.item() == pytest.approx(math.log(7) * penalty.mean().item(), rel=1e-6)
    likelihood = Independent(Normal(mean, log_std.exp()), 1).log_prob(change)
    assert reward.density.loss(batch.observations, change).item() == pytest.approx(-likelihood.mean().item(), rel=1e-9)
    expected = 10 * (moved(reward, batch.observations, batch.next_observations) * z).sum(dim=1)
    th.testing.assert_close(reward.reward(batch).detach(), expected)


def test_constants_are_those_of_the_released_code():
    metra, lsd, csd, csf = (
        {name: parameter.default for name, parameter in inspect.signature(each).parameters.items()}
        for each in (METRA, LSD, CSD, CSF)
    )
    assert (metra["skill_type"], metra["skill_dim"], metra["skill_duration"]) == ("sphere", 2, None)
    assert (metra["tau"], metra["gamma"], metra["n_steps"], metra["gradient_steps"]) == (0.005, 0.99, 1, None)
    for name in ("metra", "lsd", "csd", "csf"):
        published = preset("published", method=name)
        assert (published["learning_rate"], published["batch_size"], published["learning_starts"]) == (1e-4, 256, 10_000)
        # 50 updates after 8 episodes of 200 steps, for any number of environments
        assert published["train_freq"] == 8 * 200 // 50
    assert lsd == csf == metra and csd == {**metra, "skill_type": "discrete", "skill_dim": None}
    for reward_class, width, lambda_, slack, scale in ((METRAReward, 1024, 30, 1e-3, 1.0), (CSDReward, 512, 3000, 1e-6, 10.0)):
        sizes = preset("published", method=reward_class.__name__.removesuffix("Reward").lower())["intrinsic_kwargs"]
        reward = make_reward(reward_class, DiscreteSkills(16), **sizes)
        assert [layer.out_features for layer in reward.features if isinstance(layer, nn.Linear)] == [width, width, 16]
        assert reward.log_lambda.exp().item() == pytest.approx(lambda_)
        assert (reward.slack, reward.norm, reward.scale) == (slack, "mean", scale)


@pytest.mark.parametrize(("skill_type", "dim"), [("discrete", None), ("sphere", 5), ("unit_cube", 2)])
def test_a_goal_names_the_skill_that_leads_there(skill_type, dim):
    model = make_small(METRA, skill_type=skill_type, skill_dim=dim)
    obs, goals = np.random.default_rng(0).normal(size=(2, 30, 3)).astype(np.float32)
    skills = model.goal_skill(obs, goals)
    way = moved(model.intrinsic, th.as_tensor(obs), th.as_tensor(goals)).numpy()
    if skill_type == "discrete":
        assert (skills == way.argmax(axis=1)).all()
    elif skill_type == "sphere":
        np.testing.assert_allclose(skills, way / np.linalg.norm(way, axis=1, keepdims=True), rtol=1e-4, atol=1e-5)
    else:
        expected = np.clip(way / np.abs(way).max(axis=1, keepdims=True), 0, 1)
        np.testing.assert_allclose(skills, expected, rtol=1e-4, atol=1e-5)
    assert model.predict(obs, skill=skills)[0].shape == (30, 1)
    assert make_small(DIAYN).goal_skill(obs, goals) is None


class Plane(gym.Env):
    """A point that moves by up to 0.3 along both axes in each of 20 steps."""

    observation_space = gym.spaces.Box(-50, 50, (2,))
    action_space = gym.spaces.Box(-1, 1, (2,))

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.position, self.n_steps = np.zeros(2, np.float32), 0
        return self.position.copy(), {}

    def step(self, action):
        self.position += 0.3 * np.asarray(action, np.float32)
        self.n_steps += 1
        return self.position.copy(), 0.0, False, self.n_steps == 20, {}


@pytest.mark.slow
def test_policy_goes_where_it_is_told_after_learning_without_any_reward():
    """Reward, critic, actor and goals together."""
    kwargs = {"train_freq": 1, "gradient_steps": 2, "learning_starts": 400, "batch_size": 128, "learning_rate": 1e-3}
    networks = {"policy_kwargs": {"net_arch": [64, 64]}, "intrinsic_kwargs": {"net_arch": [64, 64]}}
    model = make_small(METRA, make_vec_env(Plane, 10), buffer_size=10_000, **kwargs, **networks).learn(4000)
    goals = np.array([[4.0, 0.0], [0.0, 4.0], [-3.0, -3.0]], np.float32)
    env = make_vec_env(Plane, len(goals))
    obs = env.reset()
    for _ in range(19):  # the last step resets
        obs, *_ = env.step(model.predict(obs, skill=model.goal_skill(obs, goals), deterministic=True)[0])
    assert np.linalg.norm(obs - goals, axis=1).max() < 0.8
