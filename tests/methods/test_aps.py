"""APS: against its formulas, and the constants of URLB's code (rll-research/url_benchmark, agent/aps.py and aps.yaml)."""

import copy
import inspect

import numpy as np
import pytest
import torch as th
from batches import learn, make_reward, make_samples
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from torch import nn
from tuning import Push, saved

from sb3_cesd import APS, APT
from sb3_cesd.common.skills import DiscreteSkills, SphereSkills
from sb3_cesd.methods.aps import APSReward
from sb3_cesd.skill_ddpg.networks import SkillCritic

SKILLS = SphereSkills(3)


def make(space=SKILLS, reward_class=APSReward, **kwargs):
    return make_reward(reward_class, space, **{"net_arch": [8], "entropy_kwargs": {"k": 3}, **kwargs}).double()


def make_batch(space=SKILLS, n=12, seed=0):
    th.manual_seed(seed)
    obs, next_obs = th.randn(2, n, 4, dtype=th.float64)
    skills = th.arange(n) % 3 if space.discrete else space.draw_tensor(n, th.device("cpu")).double()
    return make_samples(obs, next_obs, skills)


class RunningMean:
    """Of URLB, in its words: mean M 0 and n 1e-4 at first."""

    def __init__(self):
        self.mean, self.n = 0.0, 1e-4

    def add(self, values):
        self.mean += (values.mean().item() - self.mean) * len(values) / (self.n + len(values))
        self.n += len(values)


@th.no_grad()
def by_hand(reward, batch, statistics, k=3, clip=1e-4):
    """Loss and rewards, one state after another."""
    features = [reward.features(state) for state in batch.next_observations]
    vectors = batch.skills
    if reward.skill_space.discrete:
        vectors = 1.5 * (th.eye(3, dtype=th.float64)[batch.skills] - 1 / 3)
    agreements = [sum(z * u / u.norm()) for z, u in zip(vectors, features, strict=True)]
    # The state itself is one of its neighbours
    distances = th.stack([th.stack([(u - v).norm() for v in features]).sort().values[:k] for u in features])
    statistics.add(distances.flatten())
    entropies = [sum(max(d.item() / statistics.mean - clip, 0) for d in row) / k for row in distances]
    rewards = [np.log(1 + entropy) + agreement.item() for entropy, agreement in zip(entropies, agreements, strict=True)]
    return -sum(agreements).item() / len(agreements), th.tensor(rewards, dtype=th.float64)


@pytest.mark.parametrize("space", [SKILLS, DiscreteSkills(3)], ids=["sphere", "discrete"])
def test_loss_and_reward_are_those_of_urlb(space):
    reward, statistics = make(space), RunningMean()
    for seed in range(3):
        batch = make_batch(space, seed=seed)
        loss = reward.loss(batch).item()
        assert loss == pytest.approx(by_hand(reward, batch, RunningMean())[0], rel=1e-9)
        # The features learn from a batch before its rewards are computed
        reward.update(batch)
        _, expected = by_hand(reward, batch, statistics)
        th.testing.assert_close(reward.relabel(batch).rewards.squeeze(1), expected, rtol=1e-9, atol=1e-12)
    # In evaluation, by the mean of all that was seen
    reward.eval()
    kept = copy.copy(statistics)
    kept.add = lambda values: None
    th.testing.assert_close(reward.reward(batch), by_hand(reward, batch, kept)[1])


def test_states_that_are_all_the_same_have_no_entropy():
    reward, batch = make(), make_batch()
    same = batch._replace(next_observations=batch.next_observations[:1].expand(12, -1))
    expected = reward.agreement(reward.features(same.next_observations), same.skills)
    th.testing.assert_close(reward.reward(same), expected)


class WrongSign(APSReward):
    """A negative control: features point away from the skills."""

    def loss(self, samples):
        return -super().loss(samples)


def learned(reward_class=APSReward):
    """Skills lead to the states that they name."""
    th.manual_seed(0)
    skills = SKILLS.draw_tensor(256, th.device("cpu"))
    states = th.cat([2 * skills, th.zeros(256, 1)], dim=1) + 0.1 * th.randn(256, 4)
    reward = make_reward(reward_class, SKILLS, net_arch=[32], entropy_kwargs={"k": 3})
    batch = make_samples(states, states, skills)
    learn(reward, batch, 150)
    return reward, batch


def test_features_point_to_skills_and_regression_recovers_the_skill_of_a_task():
    reward, batch = learned()
    features = reward.features(batch.observations).detach()
    assert reward.agreement(features, batch.skills).mean() > 0.97
    unit = features / features.norm(dim=1, keepdim=True)
    wanted = SKILLS.draw_tensor(5, th.device("cpu"))
    for skill in wanted:
        task = batch._replace(rewards=3.0 * (unit @ skill)[:, None] + 0.1 * th.randn(256, 1))
        assert reward.regress(task) @ skill > 0.99
        # By the normal equations of the paper
        expected = th.linalg.solve(unit.T @ unit, unit.T @ task.rewards).squeeze(1)
        th.testing.assert_close(reward.regress(task), expected / expected.norm(), atol=1e-5, rtol=1e-4)
    # A goal has the skill that its state names
    goal = th.cat([2 * wanted, th.zeros(5, 1)], dim=1)
    assert (reward.goal_skill(goal, goal) * wanted).sum(dim=1).min() > 0.95
    assert reward.regress(batch._replace(rewards=th.zeros(256, 1))) is None


def test_released_regression_fits_features_to_the_reward():
    reward, batch = make(regression="released"), make_batch(n=40)
    rewards = th.randn(40, 1, dtype=th.float64)
    features = th.nn.functional.normalize(reward.features(batch.observations).detach(), dim=1)
    # The least squares of phi = r w: w is the sum of r phi, over that of r^2
    summed = (rewards * features).sum(dim=0)
    found = reward.regress(batch._replace(rewards=rewards))
    th.testing.assert_close(found.double(), summed / summed.norm(), atol=1e-6, rtol=1e-5)
    assert not th.allclose(found, make().regress(batch._replace(rewards=rewards)), atol=1e-2)
    assert make(DiscreteSkills(3)).regress(make_batch(DiscreteSkills(3))._replace(rewards=rewards[:12])) in (0, 1, 2)


def test_a_wrong_sign_would_be_noticed():
    reward, batch = learned(WrongSign)
    assert reward.agreement(reward.features(batch.observations), batch.skills).mean() < -0.9


@pytest.mark.parametrize("skill_type", ["sphere", "discrete"])
def test_critic_multiplies_successor_features_and_skill(skill_type):
    model = make_small(APS, skill_type=skill_type, skill_dim=3)
    critic, n = model.critic, 4 if skill_type == "discrete" else 3
    obs, actions = th.randn(6, 3), th.rand(6, 1)
    skills = th.arange(6) % 4 if skill_type == "discrete" else SKILLS.draw_tensor(6, th.device("cpu"))
    vectors = skills if skill_type == "sphere" else (th.eye(4)[skills] - 0.25) * 4 / 3
    hidden = critic.trunk(th.cat([obs, actions, model.skill_space.embed(skills)], dim=1))
    for network, values in zip(critic.q_networks, critic.q_values(obs, actions, skills), strict=True):
        assert network[-1].out_features == n and values.shape == (6, 1)
        expected = [sum(psi * z) for psi, z in zip(network(hidden), vectors, strict=True)]
        th.testing.assert_close(values.squeeze(1), th.stack(expected))
    # The other methods have values as before
    assert type(make_small(APT).critic) is SkillCritic and make_small(APT).critic.q_networks[0][-1].out_features == 1


def test_fine_tuning_finds_its_skill_in_the_warm_up():
    pretrained = make_small(APS, Push(), skill_dim=3).learn(200)
    model = APS.from_pretrained(saved(pretrained), Push(), skill="best", learning_starts=60, device="cpu", seed=1)
    features = model.intrinsic.pretrained.features
    for ours, theirs in zip(features.parameters(), pretrained.intrinsic.features.parameters(), strict=True):
        assert (ours == theirs).all() and not ours.requires_grad
    model.n_regression = 500
    found = []
    regress = model.intrinsic.pretrained.regress
    model.intrinsic.pretrained.regress = lambda samples: found.append(samples) or regress(samples)
    model.learn(61)
    (samples,) = found
    assert len(samples.rewards) == 500 and (samples.rewards != 0).all()
    assert model.skill == pytest.approx(regress(samples).tolist()) and model.skill_turns.over
    model.learn(30, reset_num_timesteps=False)
    assert (model.replay_buffer.skills[60:90] == np.float32(model.skill)).all(), "it acts from then on"
    # It is saved with the features it was found by
    loaded = APS.load(saved(model), device="cpu")
    assert loaded.skill == model.skill
    for name, value in model.intrinsic.state_dict().items():
        assert (value == loaded.intrinsic.state_dict()[name]).all(), name


def test_the_regression_can_be_chosen_when_a_task_is_learned():
    """It is of no use before; what else shaped the features stays, as a yml file of RL Zoo may name it."""
    pretrained = make_small(APS, Push(), skill_dim=3).learn(200)
    path = saved(pretrained)
    kwargs = {"regression": "released", "net_arch": [7]}
    model = APS.from_pretrained(path, Push(), skill="best", device="cpu", intrinsic_kwargs=kwargs)
    assert model.intrinsic.pretrained.regression == "released"
    assert APS.load(saved(model), device="cpu").intrinsic.pretrained.regression == "released"
    assert model.intrinsic_kwargs == {**pretrained.intrinsic_kwargs, "regression": "released"}
    assert APS.from_pretrained(path, Push(), skill="best", device="cpu").intrinsic.pretrained.regression == "paper"
    assert APS.load(path, device="cpu", intrinsic_kwargs={"regression": "released"}).intrinsic.regression == "released"
    with pytest.raises(ValueError, match="regression 'both': choose 'paper' or 'released'"):
        APS.from_pretrained(path, Push(), intrinsic_kwargs={"regression": "both"})
    with pytest.raises(ValueError, match="net_arch"):
        APS.load(path, device="cpu", intrinsic_kwargs={"net_arch": [7]})


def test_regression_sees_what_the_model_sees():
    """States normalised by the statistics of training, and tasks whose skill was chosen do without it."""
    env = VecNormalize(make_vec_env("Pendulum-v1", 2))
    pretrained = make_small(APS, env, skill_dim=3).learn(100)
    model = APS.from_pretrained(saved(pretrained), env, skill="best", learning_starts=40, device="cpu", seed=1).learn(80)
    assert isinstance(model.skill, list) and np.linalg.norm(model.skill) == pytest.approx(1, abs=1e-5)
    model = APS.from_pretrained(saved(pretrained), env, skill=2, learning_starts=40, device="cpu", seed=1).learn(80)
    assert model.skill == model.skill_space.name_of(2)
    discrete = make_small(APS, skill_type="discrete").learn(60)
    model = APS.from_pretrained(saved(discrete), "Pendulum-v1", skill="best", learning_starts=40, device="cpu").learn(60)
    assert model.skill in range(4)


def test_constants_are_those_of_urlb():
    defaults = {name: parameter.default for name, parameter in inspect.signature(APS).parameters.items()}
    assert (defaults["skill_type"], defaults["skill_dim"], defaults["skill_duration"]) == ("sphere", 10, 5)
    assert APS.n_regression == 4096
    reward = make_reward(APSReward, SphereSkills(10))
    linear = [layer for layer in reward.features if isinstance(layer, nn.Linear)]
    assert [layer.out_features for layer in linear] == [1024, 1024, 10] and reward.regression == "paper"
    for layer in linear:
        gram = layer.weight.T @ layer.weight if layer.out_features >= layer.in_features else layer.weight @ layer.weight.T
        th.testing.assert_close(gram, th.eye(len(gram)), atol=1e-4, rtol=0)  # orthogonal
    entropy = reward.entropy
    assert (entropy.k, entropy.clip, entropy.scale, entropy.aggregate, entropy.log1p) == (12, 1e-4, "mean", "mean", True)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"intrinsic_kwargs": {"regression": "both"}}, "regression 'both': choose 'paper' or 'released'"),
        ({"intrinsic_kwargs": {"entropy_kwargs": {"k": 0}}}, "set k above 0"),
        ({"intrinsic_kwargs": {}, "batch_size": 12}, "batch_size=12 is not larger than k=12"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_small(APS, **kwargs)


def test_regression_sees_normalised_states(monkeypatch):
    """The features were learned from those."""
    env = VecNormalize(make_vec_env("Pendulum-v1", 2), training=False, norm_reward=False)
    env.obs_rms.mean[:], env.obs_rms.var[:] = 100.0, 1e4
    env.obs_rms.count = 100.0
    pretrained = make_small(APS, env, skill_dim=3).learn(60)
    seen, regress = [], APSReward.regress
    monkeypatch.setattr(APSReward, "regress", lambda self, samples: seen.append(samples) or regress(self, samples))
    APS.from_pretrained(saved(pretrained), env, skill="best", learning_starts=40, device="cpu", seed=1).learn(44)
    assert len(seen) == 1
    # Entries of Pendulum's observations are from -8 to 8
    for states in (seen[0].observations, seen[0].next_observations):
        assert (states + 1).abs().max() < 0.1
