"""Numbers that are not finite: training stops, files stay as they are, and the error says what to do."""

import math

import pytest
import torch as th
from small import make_small
from stable_baselines3.common.callbacks import BaseCallback

from sb3_cesd import CeSD, registry
from sb3_cesd.skill_ddpg.checks import TrainingDiverged


@pytest.mark.parametrize("name", ["critic_loss", "actor_loss"])
def test_a_loss_stops_training(make_model, monkeypatch, name, tmp_path):
    loss, n_calls = getattr(CeSD, name), []

    def spoilt(self, data):
        n_calls.append(None)
        return loss(self, data) * (math.nan if len(n_calls) == 20 else 1.0)

    monkeypatch.setattr(CeSD, name, spoilt)
    model = make_model()
    model.save(tmp_path / "model")
    saved = (tmp_path / "model.zip").read_bytes()
    with pytest.raises(TrainingDiverged, match=rf"{name}.*VecNormalize"):
        model.learn(400)
    assert len(n_calls) == 20 and not model.intrinsic.training
    with pytest.raises(TrainingDiverged):
        model.save(tmp_path / "model")
    assert (tmp_path / "model.zip").read_bytes() == saved, "what was saved before is untouched"


@pytest.mark.parametrize("name", sorted(registry.METHODS))
def test_the_intrinsic_losses_of_every_method_are_checked(name):
    model = make_small(registry.METHODS[name]).learn(60)
    for optimizer in model.intrinsic.optimizers.values():
        parameter = optimizer.param_groups[0]["params"][0]
        handle = parameter.register_hook(lambda gradient: gradient * math.nan)
        with pytest.raises(TrainingDiverged):
            model.train(2, model.batch_size)
        handle.remove()
        break


class Spoil(BaseCallback):
    def _on_step(self):
        if self.num_timesteps == 70:
            next(self.model.actor.parameters()).data.view(-1)[0] = math.inf
        return True


def test_actions_and_states_of_optimizers_are_checked_too(make_model, tmp_path):
    with pytest.raises(TrainingDiverged):
        make_model(train_freq=1000).learn(150, callback=Spoil())
    model = make_model().learn(60)
    next(iter(model.critic.optimizer.state.values()))["exp_avg"][0] = math.nan
    with pytest.raises(TrainingDiverged, match="exp_avg"):
        model.save(tmp_path / "model")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("train_freq", [16, (1, "episode")])
def test_a_rate_that_falls_to_0_may_do_so_within_the_last_rollout(make_model, train_freq):
    """A rollout goes on beyond the total, where the remaining progress would be negative."""
    seen = []
    model = make_model(learning_rate=lambda progress: seen.append(progress) or 1e-3 * progress, train_freq=train_freq)
    assert model.learn(150).num_timesteps > 150
    assert seen[-1] == min(seen) == model.policy.actor.optimizer.param_groups[0]["lr"] == 0.0
    assert all(parameter.isfinite().all() for parameter in model.policy.parameters())
    assert isinstance(model.actor.optimizer, th.optim.Adam)
