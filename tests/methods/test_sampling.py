"""Sampling has no side effects, and training samples by the method that users may override."""

import numpy as np
import pytest
import torch as th
from every_method import every_method, every_method_with
from learned import differences, state_of
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.registry import METHODS


def everything(model):
    """Copies of all tensors that are saved, of optimizers too, and of the arrays of the replay buffer."""
    arrays = {f"replay buffer.{name}": th.from_numpy(array.copy()) for name, array in model.replay_buffer._arrays().items()}
    return {**state_of(model), **arrays}


def in_training_mode(model):
    model.policy.set_training_mode(True)
    model.intrinsic.train()
    return model


@every_method_with(normalized=[False, True])
def test_sampling_changes_no_tensor_even_in_training_mode(method, normalized):
    env = make_vec_env("Pendulum-v1", 2)
    model = in_training_mode(make_small(method, VecNormalize(env) if normalized else env).learn(100))
    before, torch_generator, numpy_generator = everything(model), th.get_rng_state(), np.random.get_state()[2]
    assert any("optimizer.state" in name for name in before)
    for _ in range(3):
        model.replay_buffer.sample(32, model._vec_normalize_env)
    assert not differences(before, everything(model))
    assert (th.get_rng_state() == torch_generator).all(), "batches are drawn by numpy"
    assert np.random.get_state()[2] != numpy_generator
    model.train(1, 32)
    assert differences(before, everything(model)), "that would be noticed"


@every_method
def test_relabelling_changes_nothing_in_evaluation_and_running_statistics_in_training(method):
    model = in_training_mode(make_small(method).learn(100))
    # Right after an update, when nothing is normalised for the next one
    model.train(1, 32)
    states = model._as_states(model.replay_buffer.sample(32))
    before = everything(model)
    model.intrinsic.eval()
    # Some rewards draw, clusters or other skills for instance
    th.manual_seed(0)
    expected = model.intrinsic.reward(states).detach()
    th.manual_seed(0)
    relabelled = model.intrinsic.relabel(states)
    assert not differences(before, everything(model))
    # CSF learns from the vectors whose products with the skills are the rewards
    of_features = method is METHODS["csf"]
    if of_features:
        th.testing.assert_close(model.intrinsic.progress(relabelled.rewards, states.skills), expected)
    else:
        assert (relabelled.rewards.squeeze(1) == expected).all()
    model.intrinsic.train()
    model.intrinsic.relabel(states)
    statistics = {f".intrinsic.{name}" for name, _ in model.intrinsic.named_buffers()}
    assert differences(before, everything(model)) <= statistics

    assert relabelled.rewards.shape == (32, model.skill_space.dim if of_features else 1)
    assert not relabelled.rewards.requires_grad
    assert th.isfinite(relabelled.rewards).all() and len(relabelled.rewards.unique()) > 1
    for name in ("observations", "actions", "next_observations", "dones", "discounts", "skills"):
        assert getattr(relabelled, name) is getattr(states, name), name


@every_method
def test_what_a_reward_learns_it_learns_from_the_batch_alone(method):
    """An update of the reward leaves policy and replay buffer alone."""
    model = in_training_mode(make_small(method).learn(100))
    before = everything(model)
    model.intrinsic.update(model._as_states(model.replay_buffer.sample(32)))
    changed = differences(before, everything(model))
    assert changed and all(name.startswith(".intrinsic") for name in changed)
    losses = {name: value for name, value in model.intrinsic.logs.items() if name.endswith("_loss")}
    assert losses and all(th.isfinite(value) and not value.requires_grad for value in losses.values())


class Recorder(SkillReplayBuffer):
    """Tells what training learned from, with rewards and discounts of its own."""

    def sample(self, batch_size, env=None):
        samples = super().sample(batch_size, env)
        self.sampled = [*getattr(self, "sampled", []), samples]
        return samples._replace(actions=th.zeros_like(samples.actions), dones=th.ones_like(samples.dones))


@every_method
def test_a_buffer_that_overrides_sample_is_what_training_uses(method, monkeypatch):
    model = make_small(method, replay_buffer_class=Recorder)
    losses, critic_loss = [], model.critic_loss
    monkeypatch.setattr(model, "critic_loss", lambda batch: losses.append(batch) or critic_loss(batch))
    model.learn(70)
    buffer = model.replay_buffer
    n_batches = model.intrinsic.n_batches
    assert model._n_updates == len(losses) == 15 and len(buffer.sampled) == 15 * n_batches
    assert all(len(samples.actions) == 32 for samples in buffer.sampled)
    # The last batch of each update is that of the critic
    for samples, batch in zip(buffer.sampled[n_batches - 1 :: n_batches], losses, strict=True):
        assert (batch.observations == samples.observations).all() and (samples.actions != 0).any()
        assert (batch.actions == 0).all() and (batch.dones == 1).all(), "what it returns is what is learned"
    usual = make_small(method).learn(70)
    assert any((value != usual.policy.state_dict()[name]).any() for name, value in model.policy.state_dict().items())


def test_a_buffer_that_overrides_what_is_never_called_is_refused():
    class OverridesGetSamples(SkillReplayBuffer):
        def _get_samples(self, batch_inds, env=None):
            return super()._get_samples(batch_inds, env)

    message = r"OverridesGetSamples overrides _get_samples\(\), which is never called: override sample\(\), or draw\(\) and"
    with pytest.raises(ValueError, match=message):
        make_small(METHODS["cesd"], replay_buffer_class=OverridesGetSamples)


def test_a_buffer_whose_samples_no_graph_captures_is_refused_with_one(tmp_path):
    message = r"Recorder overrides sample\(\), .*: override draw\(\) and gather\(\), or leave cuda_graph out"
    with pytest.raises(ValueError, match=message):
        make_small(METHODS["cesd"], replay_buffer_class=Recorder, cuda_graph=True)
    model = make_small(METHODS["cesd"], replay_buffer_class=Recorder)
    assert model.replay_buffer_class is Recorder
    model.save(tmp_path / "model")
    with pytest.raises(ValueError, match=message):
        METHODS["cesd"].load(tmp_path / "model", cuda_graph=True)


class Newest(SkillReplayBuffer):
    """Draws the newest transition alone."""

    def draw(self, batch_size):
        return super().draw(batch_size) * 0 + th.tensor([[self.newest[0]], [0]])


def test_drawing_can_be_overridden_in_a_graph_too(monkeypatch):
    model = make_small(METHODS["diayn"], replay_buffer_class=Newest, cuda_graph=True)
    seen, critic_loss = [], model.critic_loss
    monkeypatch.setattr(model, "critic_loss", lambda batch: seen.append(batch.observations) or critic_loss(batch))
    model.learn(50)
    assert len(seen) == 5 and all(len(observations.unique(dim=0)) == 1 for observations in seen)
    assert len(th.cat(seen).unique(dim=0)) == 5


def test_sampling_is_gathering_what_was_drawn():
    buffer = make_small(METHODS["diayn"]).learn(60).replay_buffer
    np.random.seed(2)
    sampled = buffer.sample(20)
    np.random.seed(2)
    gathered = buffer.gather(buffer.draw(20))
    for name in sampled._fields:
        expected = getattr(sampled, name)
        assert expected is None or (getattr(gathered, name) == expected).all(), name
    with pytest.raises(NotImplementedError, match=r"override sample\(\), or draw\(\) and gather\(\)"):
        buffer._get_samples(np.arange(3))


class StepReward(METHODS["diayn"].reward_class):
    """Keeps what it is asked to reward."""

    needs_one_step = True

    def reward(self, samples):
        self.seen = samples
        return super().reward(samples)


class StepDIAYN(METHODS["diayn"]):
    reward_class = StepReward


def test_a_reward_that_asks_for_single_steps_gets_them():
    model = make_small(StepDIAYN, n_steps=3).learn(100)
    seen = model.intrinsic.seen
    assert seen.one_step_observations.shape == seen.next_observations.shape
    assert (seen.one_step_observations != seen.next_observations).any(), "windows have three steps"
    assert not make_small(METHODS["diayn"]).replay_buffer.one_step
