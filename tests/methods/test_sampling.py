"""Sampling and relabelling have no side effects, and training samples by the method that users may override."""

import torch as th
from every_method import every_method
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


@every_method
def test_sampling_and_learning_a_reward_change_nothing_else(method):
    model = make_small(method, VecNormalize(make_vec_env("Pendulum-v1", 2))).learn(100)
    model.policy.set_training_mode(True)
    model.intrinsic.train()
    before, torch_generator = everything(model), th.get_rng_state()
    samples = model.replay_buffer.as_states(model.replay_buffer.sample(32, model._vec_normalize_env))
    assert not differences(before, everything(model))
    assert (th.get_rng_state() == torch_generator).all(), "batches are drawn by numpy"
    # Rewards are computed after an update; in evaluation they change nothing, in training statistics alone
    model.intrinsic.update(samples)
    updated = everything(model)
    assert all(name.startswith(".intrinsic") for name in differences(before, updated))
    model.intrinsic.eval()
    reward = model.intrinsic.reward(samples)
    assert reward.shape == (32,) and th.isfinite(reward).all() and len(reward.unique()) > 1
    assert not differences(updated, everything(model))
    model.intrinsic.train()
    model.intrinsic.relabel(samples)
    assert differences(updated, everything(model)) <= {f".intrinsic.{name}" for name, _ in model.intrinsic.named_buffers()}


class Recorder(SkillReplayBuffer):
    """Tells what training learned from, and changes it."""

    def sample(self, batch_size, env=None):
        samples = super().sample(batch_size, env)
        self.n_sampled = getattr(self, "n_sampled", 0) + 1
        return samples._replace(actions=th.zeros_like(samples.actions), dones=th.ones_like(samples.dones))


@every_method
def test_a_buffer_that_overrides_sample_is_what_training_uses(method):
    model, usual = make_small(method, replay_buffer_class=Recorder).learn(70), make_small(method).learn(70)
    assert model._n_updates == 15 and model.replay_buffer.n_sampled == 15 * model.intrinsic.n_batches
    assert differences(model, usual)


class StepReward(METHODS["diayn"].reward_class):
    needs_one_step = True


class StepDIAYN(METHODS["diayn"]):
    reward_class = StepReward


def test_a_reward_that_asks_for_single_steps_gets_them():
    samples = make_small(StepDIAYN, n_steps=3).learn(100).replay_buffer.sample(32)
    assert (samples.one_step_observations != samples.next_observations).any(), "windows have three steps"
    assert not make_small(METHODS["diayn"]).replay_buffer.one_step
