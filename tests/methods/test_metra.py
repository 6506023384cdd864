"""METRA: against its formulas, and the constants of its authors' code (seohongpark/METRA, iod/metra.py and README)."""

import copy
import inspect
import math

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from batches import make_reward, make_samples
from corridor import correlations, follow
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from torch import nn
from tuning import saved

from sb3_cesd import DIAYN, METRA, preset
from sb3_cesd.common.skills import CubeSkills, DiscreteSkills, SphereSkills
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.methods.metra import METRAReward

every_space = pytest.mark.parametrize("space", [DiscreteSkills(3), SphereSkills(2)], ids=["discrete", "sphere"])


def make(space, **kwargs):
    return make_reward(METRAReward, space, **{"net_arch": [8], **kwargs}).double()


def make_batch(space, n=12, seed=0, step=1.0):
    th.manual_seed(seed)
    obs, one_step, next_obs = th.randn(3, n, 4, dtype=th.float64)
    skills = th.arange(n) % 3 if space.discrete else space.draw_tensor(n, th.device("cpu")).double()
    return make_samples(obs, next_obs, skills)._replace(one_step_observations=obs + step * (one_step - obs))


def direction(skill, space):
    """z of the paper: a point on the sphere, or (one-hot - mean) n / (n - 1)."""
    if not space.discrete:
        return skill.tolist()
    n = space.n_skills
    return [((1.0 if each == skill else 0.0) - 1 / n) * n / (n - 1) for each in range(n)]


@th.no_grad()
def by_hand(reward, batch, norm, lambda_, slack):
    """Loss of the features, loss of the dual variable and reward, one transition after another."""
    gains, penalties, rewards = [], [], []
    for s, one_step, s_next, skill in zip(
        batch.observations, batch.one_step_observations, batch.next_observations, batch.skills, strict=True
    ):
        z = direction(skill, reward.skill_space)
        moved = (reward.features(one_step) - reward.features(s)).tolist()
        square = sum(value**2 for value in moved) / (len(moved) if norm == "mean" else 1)
        penalties.append(min(1 - square, slack))
        gains.append(sum(a * b for a, b in zip(moved, z, strict=True)) + lambda_ * penalties[-1])
        far = (reward.features(s_next) - reward.features(s)).tolist()
        rewards.append(sum(a * b for a, b in zip(far, z, strict=True)))
    n = len(gains)
    return -sum(gains) / n, math.log(lambda_) * sum(penalties) / n, rewards


@every_space
@pytest.mark.parametrize(("norm", "slack"), [("mean", 1e-3), ("sum", 0.5)])
def test_losses_and_reward_are_those_of_the_paper(space, norm, slack):
    reward, batch = make(space, norm=norm, slack=slack, lambda_init=7.0, scale=3.0), make_batch(space)
    loss, dual_loss, rewards = by_hand(reward, batch, norm, 7.0, slack)
    found = reward.losses(batch)
    # lambda is kept as its logarithm in single precision
    assert found[0].item() == pytest.approx(loss, rel=1e-6) and found[1].item() == pytest.approx(dual_loss, rel=1e-6)
    assert reward.loss(batch).item() == found[0].item()
    expected = 3.0 * th.tensor(rewards, dtype=th.float64)
    th.testing.assert_close(reward.relabel(batch).rewards.squeeze(1), expected, rtol=1e-9, atol=1e-12)


@every_space
def test_features_and_dual_variable_learn_from_their_own_loss_alone(space):
    reward, batch = make(space), make_batch(space)
    loss, dual_loss = reward.losses(batch)
    (gradient,) = th.autograd.grad(dual_loss, [reward.log_lambda], retain_graph=True)
    assert gradient.item() == pytest.approx(by_hand(reward, batch, "mean", 30.0, 1e-3)[1] / math.log(30), rel=1e-6)
    assert th.autograd.grad(dual_loss, list(reward.features.parameters()), allow_unused=True, retain_graph=True)[0] is None
    assert th.autograd.grad(loss, [reward.log_lambda], allow_unused=True) == (None,)


def test_dual_variable_follows_the_constraint_before_the_features_learn():
    space = SphereSkills(2)
    for step, sign in ((5.0, 1), (0.01, -1)):
        reward, batch = make(space), make_batch(space, step=step)
        reward.set_optimizers(lambda parameters: th.optim.SGD(parameters, lr=0.5))
        before, penalty = reward.log_lambda.item(), by_hand(reward, batch, "mean", 30.0, 1e-3)[1] / math.log(30)
        reward.update(batch)
        assert reward.log_lambda.item() == pytest.approx(before - 0.5 * penalty, rel=1e-9)
        assert math.copysign(1, reward.log_lambda.item() - before) == sign, "steps that are too long raise lambda"
        assert reward.logs["intrinsic/lambda"].item() == pytest.approx(math.exp(reward.log_lambda.item()))


def test_constraint_is_that_of_single_steps_and_the_reward_that_of_the_window():
    space = DiscreteSkills(3)
    reward, batch = make(space), make_batch(space)
    later = batch._replace(next_observations=batch.next_observations + 1)
    assert reward.loss(later) == reward.loss(batch) and (reward.reward(later) != reward.reward(batch)).all()
    step = batch._replace(one_step_observations=batch.one_step_observations + 1)
    assert reward.loss(step) != reward.loss(batch) and (reward.reward(step) == reward.reward(batch)).all()
    # Two windows in a row are worth as much as one
    on = batch._replace(observations=batch.next_observations, next_observations=batch.one_step_observations)
    whole = batch._replace(next_observations=batch.one_step_observations)
    th.testing.assert_close(reward.reward(batch) + reward.reward(on), reward.reward(whole))


class LambdaTheOtherWay(METRAReward):
    """A negative control: the dual variable gives way where the constraint is violated."""

    def losses(self, samples):
        loss, dual_loss = super().losses(samples)
        return loss, -dual_loss


class FeaturesTheOtherWay(METRAReward):
    """A negative control: features that make skills go astray."""

    def progress(self, displacements, skills):
        return -super().progress(displacements, skills)

    def reward(self, samples):
        return -super().reward(samples)


def learn_corridor(reward_class, n_updates, lr=1e-3, dual_lr=1e-3, **kwargs):
    th.manual_seed(0)
    reward = reward_class(2, 2, DiscreteSkills(2), net_arch=[64, 64], **kwargs)
    reward.set_optimizers(lambda parameters: th.optim.Adam(parameters, lr=lr if len(parameters) > 1 else dual_lr))
    for _ in range(n_updates):
        reward.update(follow(th.randint(2, (256,))))
    return reward


def test_features_measure_steps_in_a_corridor():
    """Its ends are a step apart as the crow flies."""
    reward = learn_corridor(METRAReward, 600)
    with_features, with_positions = correlations(reward)
    assert with_features > 0.95 and with_positions < 0.6
    batch = follow(th.randint(2, (1000,)))
    assert 0.6 < reward.step_displacements(batch).square().mean().item() < 1.05, "a step is 1 long"
    rewards = reward.reward(batch)
    assert (rewards > 0.5).float().mean() > 0.8, "and earns its skill what it is long"
    # The direction of a goal is that of the skill that leads there
    start, end = follow(th.ones(1).long()).observations, follow(th.ones(1).long()).observations
    start[:], end[:] = th.tensor([0.0, 0.0]), th.tensor([0.0, 1.0])
    assert reward.goal_skill(start, end).item() == 1 and reward.goal_skill(end, start).item() == 0


@pytest.mark.slow
def test_trained_features_measure_the_way_through_a_corridor():
    """As a user trains it, from what its own skills have seen."""
    settings = preset("laptop", "MazeCorridor-v0", "metra")
    settings.update(learning_starts=500, batch_size=128)
    model = METRA("MlpPolicy", MazeVecEnv("corridor", n_envs=20), seed=0, device="cpu", **settings)

    def correlation():
        states = th.as_tensor(model.replay_buffer.visited_observations()).float()
        start, end = states[th.randperm(len(states), generator=th.Generator().manual_seed(0))][:1000].chunk(2)
        with th.no_grad():
            displacements = model.intrinsic.displacements(start, end)
        ways = th.stack([displacements.norm(dim=1), (end - start)[:, 0].abs()])
        return th.corrcoef(ways)[0, 1].item(), states[:, 0].max().item()

    model.learn(4000)
    with_way, furthest = correlation()
    assert with_way > 0.95 and furthest > 5, "to the end of the corridor"


def test_a_wrong_sign_would_be_noticed():
    lost = learn_corridor(FeaturesTheOtherWay, 400)
    assert (lost.reward(follow(th.randint(2, (1000,)))) < 0).float().mean() > 0.8
    squares = {}
    for reward_class in (METRAReward, LambdaTheOtherWay):
        reward = learn_corridor(reward_class, 200, lr=3e-3, dual_lr=0.1, lambda_init=0.01)
        squares[reward_class] = reward.step_displacements(follow(th.randint(2, (1000,)))).square().mean().item()
    assert squares[METRAReward] < 2 and squares[LambdaTheOtherWay] > 20


def test_constants_are_those_of_the_released_code():
    defaults = {name: parameter.default for name, parameter in inspect.signature(METRA).parameters.items()}
    assert (defaults["skill_type"], defaults["skill_dim"], defaults["skill_duration"]) == ("sphere", 2, None)
    assert (defaults["learning_rate"], defaults["batch_size"], defaults["tau"], defaults["gamma"]) == (1e-4, 256, 0.005, 0.99)
    assert (defaults["buffer_size"], defaults["learning_starts"], defaults["n_steps"]) == (1_000_000, 10_000, 1)
    # 50 updates after 8 episodes of 200 steps, for any number of environments
    assert (defaults["train_freq"], defaults["gradient_steps"]) == (8 * 200 // 50, None)
    reward = make_reward(METRAReward, DiscreteSkills(16))
    linear = [layer for layer in reward.features if isinstance(layer, nn.Linear)]
    assert [layer.out_features for layer in linear] == [1024, 1024, 16]
    assert [type(layer) for layer in reward.features] == [nn.Linear, nn.ReLU, nn.Linear, nn.ReLU, nn.Linear]
    for layer in linear:
        bound = math.sqrt(6 / (layer.in_features + layer.out_features))  # Xavier's uniform distribution
        assert 0.95 * bound < layer.weight.abs().max() <= bound
    assert reward.log_lambda.exp().item() == pytest.approx(30) and (reward.slack, reward.norm) == (1e-3, "mean")


def test_batches_hold_single_steps_beside_windows():
    model = make_small(METRA, n_steps=3).learn(60)
    batch = model.replay_buffer.sample(200)
    assert (batch.one_step_observations != batch.next_observations).any()
    batch = make_small(METRA).learn(60).replay_buffer.sample(200)
    assert (batch.one_step_observations == batch.next_observations).all()


@pytest.mark.parametrize(("skill_type", "dim"), [("discrete", None), ("sphere", 5), ("cube", 2), ("unit_cube", 2)])
def test_a_goal_names_the_skill_that_leads_there(skill_type, dim):
    model = make_small(METRA, skill_type=skill_type, skill_dim=dim)
    obs, goals = np.random.default_rng(0).normal(size=(2, 30, 3)).astype(np.float32)
    skills, network = model.goal_skill(obs, goals), model.intrinsic.features
    with th.no_grad():
        moved = (network(th.as_tensor(goals)) - network(th.as_tensor(obs))).numpy()
    if skill_type == "discrete":
        assert (skills == moved.argmax(axis=1)).all()
    elif skill_type == "sphere":
        np.testing.assert_allclose(skills, moved / np.linalg.norm(moved, axis=1, keepdims=True), rtol=1e-4, atol=1e-5)
    else:
        longest = np.abs(moved).max(axis=1, keepdims=True)
        np.testing.assert_allclose(skills, np.clip(moved / longest, model.skill_space.low, 1), rtol=1e-4, atol=1e-5)
    # They are skills that the model follows
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


def test_policy_goes_where_it_is_told_after_learning_without_any_reward():
    """Reward, critic, actor and goals together."""

    def distances(model):
        """To each of three goals, after an episode in which the skill is that of the goal."""
        goals = np.array([[4.0, 0.0], [0.0, 4.0], [-3.0, -3.0]], np.float32)
        env = make_vec_env(Plane, len(goals))
        obs = env.reset()
        for _ in range(19):  # the last step resets
            obs, *_ = env.step(model.predict(obs, skill=model.goal_skill(obs, goals), deterministic=True)[0])
        return np.linalg.norm(obs - goals, axis=1)

    model = make_small(
        METRA,
        make_vec_env(Plane, 10),
        train_freq=1,
        gradient_steps=2,
        learning_starts=400,
        batch_size=128,
        buffer_size=10_000,
        learning_rate=1e-3,
        policy_kwargs={"net_arch": [64, 64]},
        intrinsic_kwargs={"net_arch": [64, 64]},
    )
    assert distances(model).min() > 1.5
    assert distances(model.learn(4000)).max() < 0.8


def test_directions_of_skills():
    th.testing.assert_close(
        DiscreteSkills(4).directions(th.tensor([2, 0])), th.tensor([[-1, -1, 3, -1], [3, -1, -1, -1]]) / 3.0
    )
    vectors = th.tensor([[0.6, -0.8], [0.0, 1.0]])
    for space in (SphereSkills(2), CubeSkills(2)):
        assert (space.directions(vectors) == vectors).all()


def test_dual_variable_and_its_optimizer_are_saved_and_loaded():
    model = make_small(METRA).learn(80)
    loaded = METRA.load(saved(model), device="cpu")
    assert loaded.intrinsic.log_lambda == model.intrinsic.log_lambda != math.log(30)
    (state,), (kept,) = (each.intrinsic.dual_optimizer.state.values() for each in (loaded, model))
    assert state["step"] == kept["step"] > 10 and (state["exp_avg"] == kept["exp_avg"]).all()
    trained = {id(parameter) for group in model.intrinsic.optimizer.param_groups for parameter in group["params"]}
    assert trained == {id(parameter) for parameter in model.intrinsic.features.parameters()}


def test_updates_keep_up_with_any_number_of_environments():
    for n_envs in (1, 2):
        model = make_small(METRA, make_vec_env("Pendulum-v1", n_envs), train_freq=32).learn(64 * n_envs)
        assert model.num_timesteps == 64 * n_envs
        assert model._n_updates == sum(n_envs for step in (32, 64) if step * n_envs > 40)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"intrinsic_kwargs": {"lambda_init": 0.0}}, "set lambda_init above 0"),
        ({"intrinsic_kwargs": {"slack": -1.0}}, "slack=-1.0 .*: pass 0 or more"),
        ({"intrinsic_kwargs": {"norm": "max"}}, "norm 'max': choose 'mean' or 'sum'"),
        ({"intrinsic_kwargs": {"scale": 0.0}}, "set scale above 0"),
        ({"intrinsic_kwargs": {"net_arch": [0]}}, "net_arch=.*: pass a list of positive integers"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_small(METRA, **kwargs)


def test_copies_do_not_share_the_dual_variable():
    reward = make(DiscreteSkills(3))
    twin = copy.deepcopy(reward)
    twin.update(make_batch(DiscreteSkills(3)))
    assert twin.log_lambda != reward.log_lambda
