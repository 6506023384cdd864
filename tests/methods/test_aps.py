"""APS: against its formulas, and the constants of URLB's code (rll-research/url_benchmark, agent/aps.py and aps.yaml)."""

import numpy as np
import pytest
import torch as th
from batches import learn, make_batch, make_reward, make_samples
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from tuning import Push, saved

from sb3_cesd import APS
from sb3_cesd.common.skills import DiscreteSkills, SphereSkills
from sb3_cesd.methods.aps import APSReward

SKILLS = SphereSkills(3)


def make(space=SKILLS, **kwargs):
    return make_reward(APSReward, space, **{"net_arch": [8], "entropy_kwargs": {"k": 3}, **kwargs}).double()


@pytest.mark.parametrize("space", [SKILLS, DiscreteSkills(3)], ids=["sphere", "discrete"])
def test_loss_and_reward_are_those_of_urlb(space):
    """URLB's running mean of distances starts with mean 0 and weight 1e-4."""
    reward, mean, n = make(space), 0.0, 1e-4
    for seed in range(3):
        batch = make_batch(space, seed=seed)
        features = reward.features(batch.next_observations).detach()
        directions = batch.skills if space is SKILLS else 1.5 * (th.eye(3, dtype=th.float64)[batch.skills] - 1 / 3)
        agreement = (features / features.norm(dim=1, keepdim=True) * directions).sum(dim=1)
        th.testing.assert_close(reward.loss(batch), -agreement.mean())
        distances = th.cdist(features, features).sort(dim=1).values[:, :3]
        mean, n = (mean * n + distances.sum().item()) / (n + 36), n + 36
        entropy = (distances / mean - 1e-4).clamp(min=0).mean(dim=1).log1p()
        th.testing.assert_close(reward.reward(batch), entropy + agreement, rtol=1e-6, atol=1e-9)


@pytest.fixture(scope="module")
def learned():
    """Skills lead to the states that they name."""
    th.manual_seed(0)
    skills = SKILLS.draw_tensor(256, th.device("cpu"))
    states = th.cat([2 * skills, th.zeros(256, 1)], dim=1) + 0.1 * th.randn(256, 4)
    reward = make_reward(APSReward, SKILLS, net_arch=[32], entropy_kwargs={"k": 3})
    batch = make_samples(states, states, skills)
    learn(reward, batch, 150)
    return reward, batch


def test_features_point_to_skills_and_regression_recovers_the_skill_of_a_task(learned):
    reward, batch = learned
    features = reward.features(batch.observations).detach()
    assert reward.agreement(features, batch.skills).mean() > 0.97
    unit = features / features.norm(dim=1, keepdim=True)
    for skill in SKILLS.draw_tensor(5, th.device("cpu")):
        task = batch._replace(rewards=3.0 * (unit @ skill)[:, None] + 0.1 * th.randn(256, 1))
        # By the normal equations of the paper
        expected = th.linalg.solve(unit.T @ unit, unit.T @ task.rewards).squeeze(1)
        th.testing.assert_close(reward.regress(task), expected / expected.norm(), atol=1e-5, rtol=1e-4)
        assert reward.regress(task) @ skill > 0.99
        # A goal has the skill that its state names
        goal = th.cat([2 * skill, th.zeros(1)])[None]
        assert reward.goal_skill(goal, goal) @ skill > 0.95
    assert reward.regress(batch._replace(rewards=th.zeros(256, 1))) is None


def test_fine_tuning_finds_its_skill_in_the_warm_up():
    pretrained = make_small(APS, Push(), skill_dim=3).learn(200)
    kwargs = {"learning_starts": 60, "device": "cpu", "seed": 1}
    model = APS.from_pretrained(saved(pretrained), Push(), skill="best", **kwargs)
    ours, theirs = model.intrinsic.pretrained, pretrained.intrinsic
    assert all((a == b).all() and not a.requires_grad for a, b in zip(ours.parameters(), theirs.parameters(), strict=True))
    model.learn(90)
    assert np.linalg.norm(model.skill) == pytest.approx(1, abs=1e-5)
    assert (model.replay_buffer.skills[60:90] == np.float32(model.skill)).all(), "it acts from then on"
    assert APS.load(saved(model), device="cpu").skill == model.skill


def test_regression_sees_normalised_states(monkeypatch):
    """The features were learned from those."""
    env = VecNormalize(make_vec_env("Pendulum-v1", 2), training=False, norm_reward=False)
    env.obs_rms.mean[:], env.obs_rms.var[:], env.obs_rms.count = 100.0, 1e4, 100.0
    pretrained = make_small(APS, env, skill_dim=3).learn(60)
    seen, regress = [], APSReward.regress
    monkeypatch.setattr(APSReward, "regress", lambda self, samples: seen.append(samples) or regress(self, samples))
    APS.from_pretrained(saved(pretrained), env, skill="best", learning_starts=40, device="cpu", seed=1).learn(44)
    # Entries of Pendulum's observations are from -8 to 8
    assert len(seen) == 1 and (seen[0].observations + 1).abs().max() < 0.1
