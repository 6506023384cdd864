"""A task that clones its pre-trained skill where the critic prefers that (``bc_coef``)."""

import numpy as np
import pytest
import torch as th
from batches import random_samples
from learned import differences, state_of
from small import make_small
from tuning import saved

from sb3_cesd import APT, METRA, SMM, CeSD
from sb3_cesd.skill_ddpg.cloning import cloning_loss
from sb3_cesd.skill_ddpg.estimate import model_bytes

OBS = np.array([[0.1, -0.5, 2.0], [0.9, 0.3, -1.0]], np.float32)


def task_of(method, bc_coef, **kwargs):
    """A task for skill 1 of a model that was pre-trained, and that model."""
    pretrained = make_small(method).learn(80)
    arguments = {"skill": 1, "warm_up": "random", "seed": 0, "device": "cpu", "bc_coef": bc_coef, **kwargs}
    return method.from_pretrained(saved(pretrained), "Pendulum-v1", **arguments), pretrained


class ByFirstEntry(th.nn.Module):
    """A critic whose values grow with the first entry of the action, or fall."""

    def __init__(self, sign):
        super().__init__()
        self.sign = sign

    def q_values(self, observations, actions, skills):
        return [self.sign * actions[:, :1]] * 2


@pytest.mark.parametrize("sign", [1, -1])
def test_only_better_actions_are_cloned(sign, monkeypatch):
    model, _ = task_of(APT, 1.0)
    observations, skills = th.randn(64, 3), th.ones(64, dtype=th.long)
    reference = model.reference_actor
    with th.no_grad():
        reference.mu[-1].bias += 0.3
    monkeypatch.setattr(model.policy, "critic", ByFirstEntry(sign))
    loss, share = cloning_loss(model.policy, reference, observations, skills)
    if sign < 0:
        assert loss == 0 and share == 0
        return
    distances = model.actor.act(observations, skills) - reference.act(observations, skills)
    assert share == 1 and th.isclose(loss, distances.square().mean())
    loss.backward()
    assert model.actor.mu[-1].bias.grad < 0  # towards the larger actions of the reference
    assert all(parameter.grad is None for parameter in reference.parameters())


@pytest.mark.parametrize(("method", "n_heads"), [(APT, 1), (CeSD, 2)])
def test_cloning_is_weighted_by_the_size_of_values(method, n_heads):
    """``bc_coef mean|Q(s, a)|`` is a factor, not one more loss; it is divided by the number of heads as the values are."""
    policy_kwargs = {"policy_kwargs": {"task_ensemble_size": n_heads}} if method is CeSD else {}
    model, _ = task_of(method, 2.0, target_policy_noise=0.0, **policy_kwargs)
    for network in (model.policy, model.reference_actor):
        network.double()
    with th.no_grad():
        model.reference_actor.mu[-1].bias += 0.3
    skills = th.ones(64, dtype=th.long)
    batch = random_samples(skills, 4)._replace(skills=skills, actor_skills=skills)
    loss = model.actor_loss(batch)
    model.bc_coef = 0.0
    plain = model.actor_loss(batch)
    actions = model.actor.act(batch.observations, skills)
    values = th.minimum(*model.critic.q_values(batch.observations, actions, skills))
    cloning, share = cloning_loss(model.policy, model.reference_actor, batch.observations, skills)
    assert 0 < share < 1 and values.min() < 0 < values.max()
    expected = plain + 2 * values.abs().mean().item() * cloning / n_heads
    th.testing.assert_close(loss, expected)
    gradients, expected_gradients = (th.autograd.grad(each, list(model.actor.parameters())) for each in (loss, expected))
    th.testing.assert_close(gradients, expected_gradients)


@pytest.mark.parametrize("method", [CeSD, APT, METRA, SMM])
def test_a_task_stays_closer_to_the_skill(method):
    """The reference stays as it was pre-trained, while the actor learns."""
    distances = {}
    for bc_coef in (0.0, 1e4):
        model, pretrained = task_of(method, bc_coef, learning_starts=40)
        model.learn(500)
        now, before = (each.predict(OBS, skill=1, deterministic=True)[0] for each in (model, pretrained))
        distances[bc_coef] = np.abs(now - before).mean()
    for name, value in model.reference_actor.state_dict().items():
        assert th.equal(value, pretrained.actor.state_dict()[name])
    assert distances[1e4] < 0.75 * distances[0.0]


def test_it_is_saved_and_goes_on():
    model, _ = task_of(CeSD, 2.0)
    file = saved(model.learn(100))
    loaded = CeSD.load(file, "Pendulum-v1", device="cpu")
    assert loaded.bc_coef == 2.0 and "reference_actor" in loaded.get_parameters()
    assert not differences(loaded, model)
    reference = {name: value.clone() for name, value in loaded.reference_actor.state_dict().items()}
    loaded.learn(60, reset_num_timesteps=False)
    assert all(th.equal(value, reference[name]) for name, value in loaded.reference_actor.state_dict().items())
    # It may be turned off, and on again
    file.seek(0)
    off = CeSD.load(file, "Pendulum-v1", device="cpu", bc_coef=0.0).learn(60)
    CeSD.load(saved(off), "Pendulum-v1", device="cpu", bc_coef=1.0).learn(60)


def test_its_parameters_fit_a_task_without_it():
    parameters = task_of(APT, 1.0)[0].learn(60).get_parameters()
    model = task_of(APT, 0.0)[0]
    with pytest.raises(ValueError, match=r"reference_actor is only part of tasks with bc_coef: exact_match=False leaves it"):
        model.set_parameters(parameters)
    model.set_parameters(parameters, exact_match=False)
    for name, value in model.policy.state_dict().items():
        assert th.equal(value, parameters["policy"][name])


def test_the_estimated_size_counts_the_reference():
    sizes = [model_bytes(task_of(APT, bc_coef)[0]) for bc_coef in (1.0, 0.0)]
    actor = task_of(APT, 0.0)[0].actor
    assert sizes[0] - sizes[1] == 4 * sum(value.numel() for value in actor.state_dict().values())


def test_without_it_nothing_changes():
    """No random numbers are drawn for it, and nothing is saved."""
    (with_it, random_state), (without, same) = ((task_of(CeSD, each)[0], th.get_rng_state()) for each in (1.0, 0.0))
    assert th.equal(random_state, same)
    assert without.reference_actor is None and "reference_actor" not in without.get_parameters()
    of_both = {name: value for name, value in state_of(with_it).items() if not name.startswith(".reference_actor")}
    assert not differences(of_both, state_of(without))


def test_what_it_takes():
    with pytest.raises(ValueError, match=r"bc_coef=-1 must be zero or a positive number: pass 0 or more"):
        make_small(CeSD, reward="extrinsic", bc_coef=-1)
    with pytest.raises(ValueError, match=r"no pre-trained skill .* pass it to from_pretrained\(path, env, bc_coef="):
        make_small(CeSD, bc_coef=1.0)
    scratch = make_small(APT, reward="extrinsic", bc_coef=1.0)
    with pytest.raises(ValueError, match=r"this model has no pre-trained skill .* or leave bc_coef out"):
        scratch.learn(50)
    plain_task = task_of(APT, 0.0)[0]
    with pytest.raises(ValueError, match="this model has no pre-trained skill"):
        APT.load(saved(plain_task), "Pendulum-v1", device="cpu", bc_coef=1.0).learn(50)


def test_the_share_of_cloned_states_is_logged(monkeypatch):
    shares = []

    def cloning(*args):
        shares.append(len(shares) / 100)
        return cloning_loss(*args)[0], th.tensor(shares[-1])

    monkeypatch.setattr("sb3_cesd.skill_ddpg.skill_ddpg.cloning_loss", cloning)
    model, _ = task_of(CeSD, 1.0, learning_starts=20)
    model.learn(60, log_interval=None)  # the mean over all updates is written in the end
    assert model.logger.name_to_value["train/cloned_share"] == pytest.approx(np.mean(shares)) and len(shares) > 1
