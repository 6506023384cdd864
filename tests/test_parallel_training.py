"""RL Zoo's callback that acts and learns in two threads."""

import subprocess
import sys
import threading

import numpy as np
import pytest
import torch as th
import yaml
from gymnasium import spaces
from learned import parameters_of
from rl_zoo3.callbacks import ParallelTrainCallback
from stable_baselines3 import SAC
from stable_baselines3.common.callbacks import BaseCallback, CheckpointCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import DIAYN, CeSD
from sb3_cesd.common.buffers import SkillReplayBuffer
from sb3_cesd.common.gradient_steps import TrainingDiverged
from sb3_cesd.common.observations import add_skill, skill_observation_space
from sb3_cesd.common.skills import DiscreteSkills
from sb3_cesd.skill_ddpg.parallel import LearnerThread

#: The callback does as many updates as it is told, the model by itself a few
EPISODES = {"train_freq": (1, "episode"), "gradient_steps": 5}


def test_a_thread_learns(make_model):
    model = make_model(**EPISODES)
    before = parameters_of(model)
    threads = set()
    update = CeSD._update

    def note(self, replay_data):
        threads.add(threading.current_thread())
        update(self, replay_data)

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


@pytest.mark.parametrize("start", [0.5, 1000])
def test_progress_reaches_the_learner(make_model, start):
    model = make_model(**EPISODES, constraint_kwargs={"start": start})
    phases = []
    train = CeSD.train

    def note(self, gradient_steps, batch_size):
        train(self, gradient_steps, batch_size)
        phases.append(self.intrinsic.is_constrained)

    with pytest.MonkeyPatch.context() as context:
        context.setattr(CeSD, "train", note)
        model.learn(2000, callback=ParallelTrainCallback(gradient_steps=2))
    assert phases[0] is False and phases[-1] is True


@pytest.mark.parametrize("skill", ["best", 2])
def test_the_skill_that_is_chosen_reaches_the_learner(finetune, skill):
    """It learns from what all skills did in the warm-up."""
    model = finetune(skill=skill, warm_up="skills", learning_starts=80, **EPISODES)
    skills = []
    update = CeSD._update

    def note(self, replay_data):
        update(self, replay_data)
        skills.append(set(self.intrinsic.relabel(replay_data).skills.tolist()))

    callback = ParallelTrainCallback(gradient_steps=2)
    with pytest.MonkeyPatch.context() as context:
        context.setattr(CeSD, "_update", note)
        model.learn(600, callback=callback)
    assert len(set(model.replay_buffer.skills[:80].ravel().tolist())) == 4
    assert callback.learner.learner.skill == model.skill is not None
    assert skills and all(each == {model.skill} for each in skills)


@pytest.mark.slow
def test_what_is_saved_meanwhile_loads_and_goes_on(make_model, tmp_path):
    callbacks = [ParallelTrainCallback(gradient_steps=3), CheckpointCallback(700, str(tmp_path), save_replay_buffer=True)]
    make_model(**EPISODES).learn(1000, callback=callbacks)
    loaded = CeSD.load(tmp_path / "rl_model_700_steps", make_vec_env("Pendulum-v1"))
    assert loaded.num_timesteps == 700
    loaded.load_replay_buffer(tmp_path / "rl_model_replay_buffer_700_steps")
    n_updates = loaded._n_updates
    loaded.learn(300, reset_num_timesteps=False)
    assert loaded._n_updates > n_updates


def test_one_thread_adds_while_another_samples():
    """Among them ends of episodes, for which the buffer makes room."""
    skill_space = DiscreteSkills(3)
    space = skill_observation_space(spaces.Box(-np.inf, np.inf, (2,), np.float32), skill_space)
    buffer = SkillReplayBuffer(5000, space, spaces.Box(-1, 1, (1,)), "cpu", skill_space=skill_space)

    def add(n):
        for time in range(n):
            obs, next_obs = (add_skill(np.full((1, 2), time + ahead, np.float32), np.eye(3)[:1]) for ahead in (0, 0.5))
            buffer.add(obs, next_obs, np.zeros((1, 1)), np.ones(1), np.ones(1, bool), [{}])

    add(1)
    adding = threading.Thread(target=add, args=(20_000,))
    adding.start()
    buffer.prepare()
    while adding.is_alive():
        samples = buffer.gather(buffer.draw(64))
        assert (samples.next_observations == samples.observations + 0.5).all()


def test_with_normalisation_and_another_method(tiny):
    del tiny["intrinsic_kwargs"]
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


@pytest.mark.slow
def test_through_rl_zoo(tmp_path):
    entry = {
        "policy": "MlpPolicy", "n_timesteps": 1200, "n_skills": 4, "batch_size": 32, "learning_starts": 100,
        "train_freq": [1, "episode"], "policy_kwargs": "dict(net_arch=[16, 16])",
        "intrinsic_kwargs": {"encoder_kwargs": {"net_arch": [16]}},
        "callback": [{"rl_zoo3.callbacks.ParallelTrainCallback": {"gradient_steps": 5}}],
    }  # fmt: skip
    (tmp_path / "parallel.yml").write_text(yaml.safe_dump({"Pendulum-v1": entry}))
    command = f"{sys.executable} -m rl_zoo3.train --algo cesd --env Pendulum-v1 --conf-file parallel.yml --eval-freq -1"
    result = subprocess.run(command.split(), cwd=tmp_path, capture_output=True, text=True, timeout=200)
    assert result.returncode == 0, result.stderr
    assert CeSD.load(tmp_path / "logs/cesd/Pendulum-v1_1/Pendulum-v1.zip")._n_updates >= 5


class Interrupt(BaseCallback):
    """Interrupt training while a thread learns, as Ctrl-C or an error of an environment does."""

    def __init__(self, error, when):
        super().__init__()
        self.error, self.when = error, when

    def _on_step(self):
        if self.num_timesteps == self.when:
            raise self.error
        return True


def learns_again(model):
    """Whether the next ``learn``, without the callback, does updates."""
    assert "train" not in vars(model) and model.train.__func__ is CeSD.train
    n_updates, n_timesteps = model._n_updates, model.num_timesteps
    before = [parameter.clone() for parameter in parameters_of(model)]
    model.learn(400, reset_num_timesteps=False)
    assert model.num_timesteps >= n_timesteps + 400
    return model._n_updates > n_updates and any((a != b).any() for a, b in zip(before, parameters_of(model), strict=True))


@pytest.mark.slow
@pytest.mark.parametrize("error", [KeyboardInterrupt(), SystemExit(143), ZeroDivisionError("of an environment")])
def test_the_last_round_is_kept_whatever_ends_training(make_model, error):
    model = make_model(**EPISODES)
    callback = ParallelTrainCallback(gradient_steps=7)
    with pytest.raises(type(error)) as raised:
        model.learn(1000, callback=[callback, Interrupt(error, 610)])
    assert raised.value is error
    learner = callback.learner.learner
    assert learner._n_updates % 7 == 0 and model._n_updates == learner._n_updates > 0, "rounds are over, and none is lost"
    assert all((a == b).all() for a, b in zip(parameters_of(model), parameters_of(learner), strict=True))
    assert learns_again(model)


def test_the_last_round_of_all_is_kept(make_model):
    model = make_model(**EPISODES)
    callback = ParallelTrainCallback(gradient_steps=7)
    model.learn(600, callback=callback)
    assert model._n_updates == callback.learner.learner._n_updates > 0
    assert learns_again(model)


def test_the_thread_leaves_the_logger_of_the_model_alone(make_model, monkeypatch):
    """The model writes and clears it meanwhile."""
    recorded, train = [], CeSD.train

    def note(self, gradient_steps, batch_size):
        train(self, gradient_steps, batch_size)
        recorded.append((self.logger is not model.logger, dict(self.logger.name_to_value)))

    monkeypatch.setattr(CeSD, "train", note)
    model = make_model(**EPISODES)
    model.learn(1000, callback=ParallelTrainCallback(gradient_steps=2), log_interval=None)
    assert recorded and all(is_own for is_own, _ in recorded)
    assert set(recorded[-1][1]) >= {"train/n_updates"} and set(recorded[-1][1]) <= set(model.logger.name_to_value)


def test_the_next_round_leaves_the_moments_of_the_model_alone(make_model, monkeypatch):
    """A checkpoint of this moment would have the weights of one round and moments of another."""
    shared, bring_back = [], LearnerThread._bring_back

    def note(self):
        bring_back(self)
        moments = [
            {value.data_ptr() for state in model.critic.optimizer.state.values() for value in state.values()}
            for model in (self.model, self.learner)
        ]
        shared.append(set.intersection(*moments))
        assert all(moments) or self.learner._n_updates == 0

    monkeypatch.setattr(LearnerThread, "_bring_back", note)
    make_model(**EPISODES).learn(1000, callback=ParallelTrainCallback(gradient_steps=2))
    assert len(shared) > 1 and not any(shared)


def test_after_an_error_in_the_thread_the_model_learns_again(make_model):
    model = make_model(**EPISODES)
    with pytest.MonkeyPatch.context() as context, pytest.raises(ZeroDivisionError):
        context.setattr(CeSD, "critic_loss", lambda self, data: 1 / 0)
        model.learn(1000, callback=ParallelTrainCallback(gradient_steps=3))
    assert learns_again(model)


@pytest.mark.parametrize("last", [False, True])
def test_divergence_in_the_thread_is_raised_and_the_model_stays_finite(make_model, last):
    model = make_model(**EPISODES)
    loss, n_calls = CeSD.critic_loss, []

    def spoilt(self, data):
        n_calls.append(None)
        return loss(self, data) * (float("nan") if len(n_calls) >= 10 else 1.0)

    with pytest.MonkeyPatch.context() as context, pytest.raises(TrainingDiverged, match="update 10: the critic loss"):
        context.setattr(CeSD, "critic_loss", spoilt)
        # The error comes up at the start of a round, or when training is over
        model.learn(400 if last else 2000, callback=ParallelTrainCallback(gradient_steps=40 if last else 7))
    assert model._n_updates == 10 and all(parameter.isfinite().all() for parameter in parameters_of(model))
    assert learns_again(model)


@pytest.mark.slow
def test_ctrl_c_counts_more_than_an_error_in_the_thread(make_model):
    model = make_model(**EPISODES)
    with pytest.MonkeyPatch.context() as context:
        context.setattr(CeSD, "critic_loss", lambda self, data: 1 / 0)
        # The thread fails in its first round, which starts at the end of the first episode
        with pytest.warns(UserWarning, match="The thread that learns failed as well: ZeroDivisionError"):
            with pytest.raises(KeyboardInterrupt):
                model.learn(1000, callback=[ParallelTrainCallback(gradient_steps=3), Interrupt(KeyboardInterrupt(), 210)])
    assert learns_again(model)


@pytest.mark.slow
def test_a_second_ctrl_c_while_the_thread_ends_leaves_the_model_as_it_was(make_model, monkeypatch):
    model = make_model(**EPISODES)
    callback = ParallelTrainCallback(gradient_steps=3)
    join = threading.Thread.join

    def interrupted(self, timeout=None):
        join(self, timeout)
        raise KeyboardInterrupt

    class Patched(Interrupt):
        def _on_step(self):
            if self.num_timesteps == self.when:
                monkeypatch.setattr(threading.Thread, "join", interrupted)
            return super()._on_step()

    with pytest.raises(KeyboardInterrupt), pytest.warns(UserWarning, match="failed as well: KeyboardInterrupt"):
        model.learn(1000, callback=[callback, Patched(KeyboardInterrupt(), 610)])
    monkeypatch.undo()
    assert learns_again(model)


def test_the_learner_sees_what_the_model_sees(make_model, monkeypatch):
    """Batches of the thread are normalised by the statistics of training."""
    env = VecNormalize(make_vec_env("Pendulum-v1"))
    normalized_by, sample = [], SkillReplayBuffer.sample

    def note(self, batch_size, env=None):
        normalized_by.append(env)
        return sample(self, batch_size, env)

    monkeypatch.setattr(SkillReplayBuffer, "sample", note)
    model = make_model(env, **EPISODES).learn(600, callback=ParallelTrainCallback(gradient_steps=2))
    assert model._n_updates > 0 and normalized_by and all(each is env for each in normalized_by)
