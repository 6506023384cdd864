"""The stochastic policy of SAC, with ``ent_coef``."""

import numpy as np
import pytest
import torch as th
from batches import random_samples
from small import make_small
from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution

from sb3_cesd import APT, CSD, CSF, LSD, METRA, CeSD
from sb3_cesd.skill_ddpg.networks import SkillActor, StochasticSkillActor

OBSERVATION = np.array([0.6, 0.8, -0.5], dtype=np.float32)


def distribution(actor, observations, skills):
    """The same policy, of torch's own distributions."""
    means, log_stds = actor.outputs(observations, skills).chunk(2, dim=1)
    return TransformedDistribution(Independent(Normal(means, log_stds.clamp(-5, 2).exp()), 1), TanhTransform(cache_size=1))


def test_density_of_actions(monkeypatch):
    actor = make_small(APT, ent_coef=0.2).actor.double()
    observations, skills = th.randn(6, 3, dtype=th.float64), th.arange(6) % 4
    th.manual_seed(0)
    actions, log_densities = actor.sample(observations, skills)
    th.manual_seed(0)
    reference = distribution(actor, observations, skills)
    expected = reference.rsample()
    th.testing.assert_close(actions, expected)
    th.testing.assert_close(log_densities.squeeze(1), reference.log_prob(expected))
    # Also of saturated actions; deviations are bounded
    monkeypatch.setattr(actor, "outputs", lambda *args: th.tensor([[30.0, 0.0], [0.1, 50.0]], dtype=th.float64))
    assert actor.sample(None, None)[1].isfinite().all()


@pytest.mark.parametrize("method", [APT, CeSD])
def test_losses_are_those_of_sac(method):
    """Target ``r + gamma (min Q'(s', a') - alpha log pi(a'))``; the actor minimises ``alpha log pi(a) - min Q(s, a)``."""
    model = make_small(method, ent_coef=0.3)
    model.policy.double()
    batch = random_samples(th.arange(6) % 4, 4)
    pairs, n_heads = batch.pairs, model.critic.n_heads

    def drawn(observations, skills):
        reference = distribution(model.actor, observations, skills)
        actions = reference.rsample()
        return actions, reference.log_prob(actions)[:, None]

    th.manual_seed(3)
    critic_loss, actor_loss = model.critic_loss(batch), model.actor_loss(batch)
    th.manual_seed(3)
    with th.no_grad():
        actions, log_densities = drawn(batch.next_observations, pairs.target_skills)
        next_values = th.minimum(*model.critic_target.q_values(batch.next_observations, actions, pairs.skills))
        target = pairs.rewards + (1 - batch.dones) * batch.discounts * (next_values - 0.3 * log_densities)
    values = model.critic.q_values(batch.observations, batch.actions, pairs.skills)
    th.testing.assert_close(critic_loss, sum((q - target).square().mean() for q in values) / n_heads)
    actions, log_densities = drawn(batch.observations, batch.actor_skills)
    values = th.minimum(*model.critic.q_values(batch.observations, actions, batch.actor_skills))
    # A constant coefficient has a loss, but nothing learns from it
    constant = model.actor.ent_coef_loss(log_densities)
    th.testing.assert_close(actor_loss - constant, (0.3 * log_densities - values).mean() / n_heads)
    actor_loss.backward()
    assert model.actor.log_ent_coef.grad is None


def test_coefficient_follows_the_entropy():
    """``-mean[log alpha (log pi + target)]``: it rises while the entropy is below ``-action_dim / 2``, and falls above."""
    actor = make_small(APT, ent_coef="auto_0.5").actor
    log_densities = th.tensor([[1.0], [3.0]], requires_grad=True)
    loss = actor.ent_coef_loss(log_densities)
    loss.backward()
    assert loss.item() == pytest.approx(-np.log(0.5) * (2 - 0.5))
    assert actor.log_ent_coef.grad.item() == pytest.approx(-(2 - 0.5)) and log_densities.grad is None
    assert make_small(APT, "MazeSquareA-v0", ent_coef="auto").actor.target_entropy == -1.0
    with pytest.raises(ValueError, match="pass None"):
        make_small(APT, ent_coef=0)


@pytest.mark.parametrize("ent_coef", ["auto_0.1", "0.1", 0.1])
def test_training_changes_the_coefficient_unless_it_is_a_number(ent_coef):
    model = make_small(APT, ent_coef=ent_coef).learn(100)
    assert (model.actor.log_ent_coef.item() != np.float32(np.log(0.1))) == (ent_coef == "auto_0.1")
    assert model.intrinsic.logs["train/ent_coef"].item() == pytest.approx(0.1, rel=0.2)
    drawn = {float(model.predict(OBSERVATION, skill=1)[0][0]) for _ in range(5)}
    means = {float(model.predict(OBSERVATION, skill=1, deterministic=True)[0][0]) for _ in range(5)}
    assert len(drawn) == 5 and len(means) == 1


def test_no_noise_is_added():
    """The actions of training are those that were drawn: noise of this size would clip nearly all."""
    model = make_small(APT, ent_coef=0.1, exploration_noise=100.0, warm_up="policy").learn(100)
    assert (np.abs(model.replay_buffer.actions[:100]) < 1).all()


def test_it_is_saved_and_learns_a_task(tmp_path):
    model = make_small(CeSD, ent_coef="auto_0.1").learn(80)
    model.save(tmp_path / "model")
    task = CeSD.from_pretrained(tmp_path / "model", "Pendulum-v1", skill=2, learning_starts=40, batch_size=32)
    for other in (CeSD.load(tmp_path / "model", env="Pendulum-v1"), task):
        action, _ = other.predict(OBSERVATION, skill=2, deterministic=True)
        np.testing.assert_array_equal(action, model.predict(OBSERVATION, skill=2, deterministic=True)[0])
        assert other.actor.log_ent_coef == model.actor.log_ent_coef
    before = task.actor.log_ent_coef.item()
    assert task.learn(80).actor.log_ent_coef.item() != before


@pytest.mark.parametrize("method", [METRA, LSD, CSD, CSF], ids=lambda method: method.__name__)
def test_metra_and_its_relatives_are_stochastic_as_published(method):
    assert isinstance(make_small(method).actor, StochasticSkillActor)
    assert type(make_small(method, ent_coef=None).actor) is SkillActor


@pytest.mark.parametrize("ent_coef", [None, "auto_0.5"])
def test_actor_alone_is_saved_and_loaded(tmp_path, ent_coef):
    actor = make_small(APT, ent_coef=ent_coef).actor
    actor.save(tmp_path / "actor.pth")
    loaded = type(actor).load(tmp_path / "actor.pth", device="cpu")
    for name, value in actor.state_dict().items():
        th.testing.assert_close(loaded.state_dict()[name], value)
