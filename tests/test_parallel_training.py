"""RL Zoo's callback that acts and learns in two threads."""

import threading

import numpy as np
import pytest
import torch as th
from rl_zoo3.callbacks import ParallelTrainCallback
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import CheckpointCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import DIAYN, CeSD

EPISODES = {"train_freq": (1, "episode")}


def parameters_of(model):
    return [parameter.detach().clone() for part in (model.policy, model.intrinsic) for parameter in part.parameters()]


def test_a_thread_learns(make_model):
    model = make_model(**EPISODES)
    before = parameters_of(model)
    threads = set()
    update = CeSD._update

    def note(self, drawn):
        threads.add(threading.current_thread())
        update(self, drawn)

    with pytest.MonkeyPatch.context() as context:
        context.setattr(CeSD, "_update", note)
        model.learn(1000, callback=ParallelTrainCallback(gradient_steps=7))
    assert model.num_timesteps == 1000 and model._n_updates > 0 and model._n_updates % 7 == 0
    assert threads and threading.main_thread() not in threads
    assert any((a != b).any() for a, b in zip(before, parameters_of(model), strict=True))
    assert {"train/critic_loss", "intrinsic/reward"} <= set(model.logger.name_to_value)

    n_updates = model._n_updates
    model.learn(400, reset_num_timesteps=False)
    assert model._n_updates > n_updates, "afterwards the model learns by itself again"


def test_progress_reaches_the_learner(make_model):
    model = make_model(**EPISODES, constraint_kwargs={"start": 0.5})
    phases = []
    train = CeSD.train

    def note(self, gradient_steps, batch_size):
        train(self, gradient_steps, batch_size)
        phases.append(self.intrinsic.phase)

    with pytest.MonkeyPatch.context() as context:
        context.setattr(CeSD, "train", note)
        model.learn(2000, callback=ParallelTrainCallback(gradient_steps=2))
    assert phases[0] is False and phases[-1] is True


def test_what_is_saved_meanwhile_loads_and_goes_on(make_model, tmp_path):
    callbacks = [ParallelTrainCallback(gradient_steps=3), CheckpointCallback(700, str(tmp_path), save_replay_buffer=True)]
    make_model(**EPISODES).learn(1000, callback=callbacks)
    loaded = CeSD.load(tmp_path / "rl_model_700_steps", make_vec_env("Pendulum-v1"))
    assert loaded.num_timesteps == 700
    loaded.load_replay_buffer(tmp_path / "rl_model_replay_buffer_700_steps")
    n_updates = loaded._n_updates
    loaded.learn(300, reset_num_timesteps=False)
    assert loaded._n_updates > n_updates


def test_with_normalisation_and_another_method(tiny):
    tiny = {name: value for name, value in tiny.items() if name not in ("encoder_kwargs", "entropy_kwargs")}
    env = VecNormalize(make_vec_env("Pendulum-v1"))
    model = DIAYN("MlpPolicy", env, **EPISODES, **tiny).learn(800, callback=ParallelTrainCallback(gradient_steps=3))
    assert model._n_updates > 0 and all(th.isfinite(parameter).all() for parameter in parameters_of(model))


def test_an_error_in_the_thread_is_raised(make_model):
    model = make_model(**EPISODES)
    with pytest.MonkeyPatch.context() as context, pytest.raises(ZeroDivisionError):
        context.setattr(CeSD, "critic_loss", lambda self, data: 1 / 0)
        model.learn(1000, callback=ParallelTrainCallback(gradient_steps=3))


def test_other_algorithms_are_left_alone():
    model = SAC("MlpPolicy", "Pendulum-v1", learning_starts=50, batch_size=16, buffer_size=1000, train_freq=(1, "episode"))
    callback = ParallelTrainCallback(gradient_steps=2)
    model.learn(500, callback=callback)
    assert isinstance(callback._model, SAC) and callback.learner is None
    assert np.isfinite(callback._model.predict(np.zeros(3, np.float32))[0]).all()
