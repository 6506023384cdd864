"""The stochastic policy of SAC, with ``ent_coef``."""

import numpy as np
import pytest
import torch as th
from batches import random_samples
from small import make_small
from torch.distributions import Independent, Normal, TanhTransform, TransformedDistribution

from sb3_cesd import APT, CSD, CSF, LSD, METRA, CeSD
from sb3_cesd.export import export_policy, import_policy
from sb3_cesd.skill_ddpg.networks import SkillActor
from sb3_cesd.skill_ddpg.stochastic_actor import StochasticSkillActor

OBSERVATION = np.array([0.6, 0.8, -0.5], dtype=np.float32)


def make_double(method, **kwargs):
    """A model with weights in float64, of which the skills differ."""
    model = make_small(method, **kwargs)
    model.policy.double()
    return model


def batch_of(model, n=6):
    """Transitions of Pendulum-v1 with discrete skills."""
    return random_samples(th.arange(n) % model.n_skills, model.n_skills)


def distribution(actor, observations, skills):
    """The same policy, of torch's own distributions."""
    means, log_stds = actor.outputs_of(observations, skills).chunk(2, dim=1)
    return TransformedDistribution(Independent(Normal(means, log_stds.clamp(-5, 2).exp()), 1), TanhTransform(cache_size=1))


def test_density_of_actions():
    model = make_double(APT, ent_coef=0.2)
    batch = batch_of(model)
    th.manual_seed(0)
    actions, log_densities = model.actor.sample(batch.observations, batch.skills)
    th.manual_seed(0)
    reference = distribution(model.actor, batch.observations, batch.skills)
    expected = reference.rsample()
    th.testing.assert_close(actions, expected)
    th.testing.assert_close(log_densities.squeeze(1), reference.log_prob(expected))
    assert actions.abs().max() < 1 and actions.requires_grad


def test_density_of_saturated_actions_is_finite():
    model = make_double(APT, ent_coef=0.2)
    _, log_densities = model.actor.draw(th.tensor([[30.0, 0.0]], dtype=th.float64))
    assert log_densities.isfinite().all() and log_densities > 10


def test_losses_are_those_of_sac():
    """Target ``r + gamma (min Q'(s', a') - alpha log pi(a'))``; the actor minimises ``alpha log pi(a) - min Q(s, a)``."""
    model = make_double(APT, ent_coef=0.3)
    batch = batch_of(model)

    def drawn(observations):
        reference = distribution(model.actor, observations, batch.skills)
        actions = reference.rsample()
        return actions, reference.log_prob(actions)[:, None]

    th.manual_seed(3)
    critic_loss, actor_loss = model.critic_loss(batch), model.actor_loss(batch)
    th.manual_seed(3)
    actions, log_densities = drawn(batch.next_observations)
    next_values = (
        th.minimum(*model.critic_target.q_values(batch.next_observations, actions, batch.skills)) - 0.3 * log_densities
    )
    target = (batch.rewards + (1 - batch.dones) * batch.discounts * next_values).detach()
    expected = sum(
        (q - target).square().mean() for q in model.critic.q_values(batch.observations, batch.actions, batch.skills)
    )
    th.testing.assert_close(critic_loss, expected)
    actions, log_densities = drawn(batch.observations)
    values = th.minimum(*model.critic.q_values(batch.observations, actions, batch.skills))
    # A constant coefficient has a loss, but nothing learns from it
    constant = model.actor.ent_coef_loss(log_densities)
    th.testing.assert_close(actor_loss - constant, (0.3 * log_densities - values).mean())
    th.testing.assert_close(model.intrinsic.logs["train/entropy"], -log_densities.mean().detach())
    actor_loss.backward()
    assert model.actor.log_ent_coef.grad is None


def test_target_of_cesd_has_the_entropy():
    """For each pair of a transition and a skill, with the actions of the skill that acts in its target."""
    model = make_double(CeSD, ent_coef=0.3)
    batch = batch_of(model)
    pairs = batch.pairs
    th.manual_seed(3)
    critic_loss = model.critic_loss(batch)
    th.manual_seed(3)
    with th.no_grad():
        reference = distribution(model.actor, batch.next_observations, pairs.target_skills)
        actions = reference.rsample()
        next_values = th.minimum(*model.critic_target.q_values(batch.next_observations, actions, pairs.skills))
        next_values = next_values - 0.3 * reference.log_prob(actions)[:, None]
        target = pairs.rewards + (1 - batch.dones) * batch.discounts * next_values
    values = model.critic.q_values(batch.observations, batch.actions, pairs.skills)
    th.testing.assert_close(critic_loss, sum((q - target).square().mean() for q in values) / model.policy.n_heads)


@pytest.mark.parametrize(("log_density", "sign"), [(5.0, -1), (-5.0, 1)], ids=["too certain", "too random"])
def test_coefficient_follows_the_entropy(log_density, sign):
    """It rises while the entropy is below the target of ``-action_dim / 2``, and falls above."""
    actor = make_small(APT, ent_coef="auto_0.5").actor
    assert actor.log_ent_coef.item() == pytest.approx(np.log(0.5)) and actor.target_entropy == -0.5
    actor.ent_coef_loss(th.full((4, 1), log_density)).backward()
    assert actor.log_ent_coef.grad.sign() == sign


def test_loss_of_the_coefficient():
    """``-mean[log alpha (log pi + target)]``, from which the policy does not learn."""
    actor = make_small(APT, ent_coef="auto_0.5").actor
    log_densities = th.tensor([[1.0], [3.0]], requires_grad=True)
    loss = actor.ent_coef_loss(log_densities)
    loss.backward()
    assert loss.item() == pytest.approx(-np.log(0.5) * (2 - 0.5))
    assert actor.log_ent_coef.grad.item() == pytest.approx(-(2 - 0.5))
    assert log_densities.grad is None


def test_target_of_the_entropy_is_half_the_number_of_actions():
    assert make_small(APT, "MazeSquareA-v0", ent_coef="auto").actor.target_entropy == -1.0


def test_coefficient_does_not_learn_from_values():
    model = make_small(APT, ent_coef="auto")
    assert model.actor.log_ent_coef.item() == 0
    assert not model.actor.entropy_bonus(th.ones(2, 1)).requires_grad


@pytest.mark.parametrize("share", [False, True])
def test_training_changes_the_coefficient_unless_it_is_a_number(share):
    for ent_coef, changes in (("auto_0.1", True), (0.1, False)):
        policy_kwargs = {"net_arch": [16, 16], "share_features_extractor": share}
        model = make_small(APT, ent_coef=ent_coef, policy_kwargs=policy_kwargs).learn(100)
        before = np.float32(np.log(0.1))
        assert (model.actor.log_ent_coef.item() != before) == changes
        assert model.intrinsic.logs["train/ent_coef"].item() == pytest.approx(0.1, rel=0.2)
        assert model.intrinsic.logs["train/entropy"].isfinite()


def test_predictions_are_drawn_unless_they_are_deterministic():
    model = make_small(APT, ent_coef="auto").learn(60)
    drawn = {float(model.predict(OBSERVATION, skill=1)[0][0]) for _ in range(5)}
    means = {float(model.predict(OBSERVATION, skill=1, deterministic=True)[0][0]) for _ in range(5)}
    assert len(drawn) == 5 and len(means) == 1
    deterministic = make_small(APT).learn(60)
    assert len({float(deterministic.predict(OBSERVATION, skill=1)[0][0]) for _ in range(5)}) == 1


def test_no_noise_is_added():
    """The actions of training are those that were drawn: noise of this size would clip nearly all."""
    model = make_small(APT, ent_coef=0.1, exploration_noise=100.0, warm_up="policy").learn(100)
    assert (np.abs(model.replay_buffer.actions[:100]) < 1).all()
    noisy = make_small(APT, exploration_noise=100.0, warm_up="policy").learn(100)
    assert (np.abs(noisy.replay_buffer.actions[:100]) == 1).mean() > 0.9


def test_it_is_saved_exported_and_learns_a_task(tmp_path):
    model = make_small(CeSD, ent_coef="auto_0.1").learn(80)
    model.save(tmp_path / "model")
    loaded = CeSD.load(tmp_path / "model", env="Pendulum-v1")
    policy = import_policy(export_policy(model, tmp_path / "policy"))
    task = CeSD.from_pretrained(tmp_path / "model", "Pendulum-v1", skill=2, learning_starts=40, batch_size=32)
    for other in (loaded, policy, task):
        for skill in range(4):
            action, _ = other.predict(OBSERVATION, skill=skill, deterministic=True)
            np.testing.assert_array_equal(action, model.predict(OBSERVATION, skill=skill, deterministic=True)[0])
    assert type(policy.actor) is SkillActor
    assert loaded.actor.log_ent_coef == model.actor.log_ent_coef == task.actor.log_ent_coef
    before = task.actor.log_ent_coef.item()
    task.learn(80)
    assert task.ent_coef == "auto_0.1" and task.actor.log_ent_coef.item() != before
    with pytest.raises(ValueError, match="ent_coef"):
        CeSD.load(tmp_path / "model", ent_coef=None, env="Pendulum-v1")


def test_a_number_of_numpy_is_saved_as_a_number(tmp_path):
    model = make_small(APT, ent_coef=np.float32(0.5))
    model.save(tmp_path / "model")
    assert APT.load(tmp_path / "model").ent_coef == model.ent_coef == 0.5


@pytest.mark.parametrize("method", [METRA, LSD, CSD, CSF], ids=lambda method: method.__name__)
def test_metra_and_its_relatives_are_stochastic_as_published(method):
    assert isinstance(make_small(method).actor, StochasticSkillActor)
    assert type(make_small(method, ent_coef=None).actor) is SkillActor


@pytest.mark.parametrize("ent_coef", ["auto_", "auto_0", "auto_x", "automatic", 0.0, -1.0, float("inf"), True])
def test_a_coefficient_that_makes_no_sense_is_refused(ent_coef):
    with pytest.raises(ValueError, match=r"ent_coef=.* must be a positive number, 'auto'"):
        make_small(APT, ent_coef=ent_coef)


@pytest.mark.parametrize(("log_std", "bound"), [(50.0, 2.0), (-50.0, -5.0)])
def test_deviations_are_bounded(log_std, bound):
    """A network that is sure, or knows nothing, still explores by finite amounts and has finite densities."""
    actor = make_double(APT, ent_coef=0.2).actor
    drawn = []
    for each in (log_std, bound):
        th.manual_seed(0)
        drawn.append(actor.draw(th.tensor([[0.1, each]], dtype=th.float64)))
    (actions, log_densities), (expected, expected_densities) = drawn
    assert (actions == expected).all() and (log_densities == expected_densities).all() and log_densities.isfinite().all()
