"""SMM: against its formulas, and the constants of URLB's code (agent/smm.py and smm.yaml)."""

import inspect
import math

import numpy as np
import pytest
import torch as th
from batches import learn, make_reward, make_samples
from small import make_small
from torch import nn
from tuning import saved

from sb3_cesd import SMM
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.methods.smm import SMMReward

SKILLS = DiscreteSkills(3)


def make(reward_class=SMMReward, **kwargs):
    return make_reward(reward_class, SKILLS, **{"net_arch": [8], "vae_net_arch": [8], "code_dim": 3, **kwargs}).double()


def make_batch(n=12, seed=0):
    th.manual_seed(seed)
    obs, next_obs = th.randn(2, n, 4, dtype=th.float64)
    return make_samples(obs, next_obs, th.arange(n) % 3)


@th.no_grad()
def errors_of(reward, batch, noise):
    """Squared error of (s, z), summed, divergence of the code, and -log q(z | s), one state after another."""
    vae, found = reward.vae, []
    for obs, skill, epsilon in zip(batch.observations, batch.skills, noise, strict=True):
        inputs = th.cat([obs, th.eye(3, dtype=th.float64)[skill]])
        hidden = vae.encoder[0](inputs).clamp(min=0)
        mean, log_variance = vae.mean(hidden), vae.log_variance(hidden)
        code = mean + epsilon * log_variance.exp() ** 0.5
        output = vae.decoder[2](vae.decoder[0](code).clamp(min=0))
        divergence = -0.5 * sum(1 + lv - m**2 - math.exp(lv) for m, lv in zip(mean, log_variance, strict=True))
        logits = reward.discriminator[2](reward.discriminator[0](obs).clamp(min=0))
        surprisal = math.log(sum(math.exp(logit) for logit in logits)) - logits[skill].item()
        found.append((((inputs - output) ** 2).sum().item(), divergence.item(), surprisal))
    return np.array(found).T


def draw_noise(n=12, seed=5):
    """The noise of the next pass through the VAE."""
    th.manual_seed(seed)
    noise = th.randn(n, 3, dtype=th.float64)
    th.manual_seed(seed)
    return noise


@pytest.mark.parametrize(("state_coef", "skill_coef"), [(1.0, 1.0), (2.0, 0.3)])
def test_reward_is_that_of_the_paper_or_that_of_the_released_code(state_coef, skill_coef):
    """-log rho + log q + log n in the paper; URLB's code adds h_s_z, h_z and the cross-entropy h_z_s."""
    batch, found = make_batch(), {}
    for term, sign in (("paper", -1), ("released", 1)):
        reward = make(state_coef=state_coef, skill_coef=skill_coef, skill_term=term)
        noise = draw_noise()
        rewards = reward.reward(batch)
        density, _, cross_entropy = errors_of(reward, batch, noise)
        expected = state_coef * density + skill_coef * (math.log(3) + sign * cross_entropy)
        assert rewards.tolist() == pytest.approx(expected.tolist(), rel=1e-9)
        found[term] = rewards
    assert (found["paper"] - found["released"]).abs().min() > 1e-3, "a wrong sign would be noticed"


@pytest.mark.parametrize("beta", [0.5, 2.0])
def test_losses_are_those_of_vae_and_discriminator(beta):
    reward, batch = make(beta=beta), make_batch()
    noise = draw_noise()
    density, divergence, cross_entropy = errors_of(reward, batch, noise)
    reward.update(batch)
    expected = density.mean() / 7 + beta * divergence.mean()
    assert reward.logs["train/vae_loss"].item() == pytest.approx(expected, rel=1e-9)
    assert reward.logs["train/discriminator_loss"].item() == pytest.approx(cross_entropy.mean(), rel=1e-9)
    assert (divergence > 0).all()


def test_it_looks_at_the_state_with_its_skill():
    reward, batch = make(), make_batch()
    rewards = []
    for changed in ({}, {"next_observations": batch.observations}, {"skills": batch.skills.flip(0)}):
        draw_noise()
        rewards.append(reward.reward(batch._replace(**changed)))
    assert (rewards[0] == rewards[1]).all() and (rewards[0] != rewards[2]).any()


class WrongSign(SMMReward):
    """A negative control: its networks learn to be wrong."""

    def step(self, optimizer, loss, name="intrinsic loss"):
        super().step(optimizer, -loss, name)


def learned(reward_class, n_updates, **kwargs):
    """Skills in two crowds of states each, a large and a small one, a reward that learned from them, and its terms."""
    th.manual_seed(0)
    skills, is_rare = th.arange(300) % 3, th.arange(300) >= 285
    obs = 0.3 * th.randn(300, 4, dtype=th.float64)
    obs[:, 0] += 2 * skills
    obs[is_rare, 1] += 4
    batch = make_samples(obs, obs, skills)
    reward = make(reward_class, net_arch=[32], vae_net_arch=[32], code_dim=8, discriminator_learning_rate=1e-2, **kwargs)
    learn(reward, batch, n_updates)
    return reward, batch, is_rare


@th.no_grad()
def density(reward, batch):
    """Mean squared error of the VAE for each state, over several draws of the code."""
    inputs = th.cat([batch.observations, th.eye(3, dtype=th.float64)[batch.skills]], dim=1)
    return th.stack([reward.vae(inputs)[0].sum(dim=1) for _ in range(20)]).mean(dim=0)


def test_density_is_higher_and_the_reward_lower_where_states_are_frequent():
    reward, batch, is_rare = learned(SMMReward, 150, skill_coef=0.0)
    rewards = th.stack([reward.reward(batch) for _ in range(20)]).mean(dim=0)
    assert rewards[is_rare].mean() > 4 * rewards[~is_rare].mean()
    # It is that of each skill: what is frequent for one is rare for another
    other = batch._replace(skills=(batch.skills + 1) % 3)
    assert reward.reward(other)[~is_rare].mean() > 1.3 * rewards[~is_rare].mean()


def test_discriminator_tells_skills_and_pays_for_that_in_the_paper_alone():
    for term, sign in (("paper", 1), ("released", -1)):
        reward, batch, _ = learned(SMMReward, 150, state_coef=0.0, skill_term=term)
        assert (reward.predict_clusters(batch.observations) == batch.skills).float().mean() > 0.97
        own = reward.reward(batch).mean().item()
        another = reward.reward(batch._replace(skills=(batch.skills + 1) % 3)).mean().item()
        assert sign * (own - another) > 3
        if term == "paper":
            assert own == pytest.approx(math.log(3), abs=0.1), "at most log n"


def test_a_wrong_sign_would_be_noticed():
    reward, batch, is_rare = learned(WrongSign, 30)
    assert (reward.predict_clusters(batch.observations) == batch.skills).float().mean() < 0.5
    right, *_ = learned(SMMReward, 30)
    assert density(reward, batch)[~is_rare].mean() > 10 * density(right, batch)[~is_rare].mean()


def test_constants_are_those_of_urlb():
    reward = make_reward(SMMReward, SKILLS)
    vae = reward.vae
    shapes = {
        "encoder": [(150, 7), (150, 150)],
        "mean": [(128, 150)],
        "log_variance": [(128, 150)],
        "decoder": [(150, 128), (150, 150), (7, 150)],
    }
    for name, expected in shapes.items():
        linear = [layer for layer in getattr(vae, name).modules() if isinstance(layer, nn.Linear)]
        assert [tuple(layer.weight.shape) for layer in linear] == expected and all((layer.bias == 0).all() for layer in linear)
    assert isinstance(vae.encoder[-1], nn.ReLU) and isinstance(vae.decoder[-1], nn.Linear)
    assert [layer.out_features for layer in reward.discriminator if isinstance(layer, nn.Linear)] == [1024, 1024, 3]
    assert (reward.beta, reward.state_coef, reward.skill_coef) == (0.5, 1.0, 1.0)
    parameters = inspect.signature(SMM).parameters
    assert (parameters["n_skills"].default, parameters["skill_duration"].default) == (4, None)


def rates(model):
    optimizers = [model.intrinsic.vae_optimizer, model.intrinsic.discriminator_optimizer, model.actor.optimizer]
    return [optimizer.param_groups[0]["lr"] for optimizer in optimizers]


def test_learning_rates_are_its_own():
    """Those of URLB by default; the schedule of the algorithm leaves them alone, and they are saved."""
    model = make_small(SMM, learning_rate=lambda progress: 1e-4 * progress).learn(100)
    assert rates(model)[:2] == [1e-2, 1e-3] and rates(model)[2] < 1e-4
    small = {"net_arch": [16], "vae_net_arch": [16], "code_dim": 4}
    chosen = {"vae_learning_rate": 2e-3, "discriminator_learning_rate": 3e-4}
    model = make_small(SMM, intrinsic_kwargs={**small, **chosen}).learn(60)
    loaded = SMM.load(saved(model), "Pendulum-v1", device="cpu")
    assert rates(model)[:2] == rates(loaded)[:2] == [2e-3, 3e-4]
    loaded.learn(60)
    assert rates(loaded)[:2] == [2e-3, 3e-4]


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"skill_term": "code"}, "Unknown skill_term 'code': choose 'paper' or 'released'"),
        ({"vae_learning_rate": 0.0}, "set vae_learning_rate above 0"),
        ({"beta": -1.0}, "beta=-1.0 .* pass 0 or more"),
        ({"code_dim": 0}, "set code_dim above 0"),
    ],
)
def test_bad_arguments(kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_small(SMM, intrinsic_kwargs=kwargs)
