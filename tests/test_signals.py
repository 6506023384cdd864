"""Ctrl-C and SIGTERM: training ends with a checkpoint and the usual exit code."""

import os
import signal
import subprocess
import sys
import threading

import pytest
from learned import parameters_of
from small import make_small
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv

from sb3_cesd import DIAYN
from sb3_cesd.checkpoints import ResumableCheckpoint, resume
from sb3_cesd.checkpoints.folders import checkpoints_in
from sb3_cesd.common.signals import DeferredSignals, deferred_signals

ENDS = {signal.SIGINT: KeyboardInterrupt, signal.SIGTERM: SystemExit}


class Signal(BaseCallback):
    """Send this process a signal at some steps."""

    def __init__(self, number, *steps):
        super().__init__()
        self.number, self.steps = number, steps

    def _on_step(self):
        if self.num_timesteps in self.steps:
            os.kill(os.getpid(), self.number)
        return True


def handlers():
    return [signal.getsignal(number) for number in ENDS]


@pytest.mark.parametrize("number", ENDS)
def test_training_ends_with_a_checkpoint_that_goes_on_as_if_nothing_had_happened(make_model, tmp_path, number):
    before = handlers()
    expected = make_model().learn(150, callback=ResumableCheckpoint(tmp_path / "whole", save_freq=1000))
    model = make_model()
    checkpoint = ResumableCheckpoint(tmp_path / "stopped", save_freq=1000)
    with pytest.raises(ENDS[number]) as end:
        # Within a rollout of two steps
        model.learn(150, callback=[checkpoint, Signal(number, 81)])
    assert getattr(end.value, "code", None) == (143 if number == signal.SIGTERM else None)
    assert model.num_timesteps == 82 and handlers() == before
    (folder,) = (tmp_path / "stopped").iterdir()
    resumed = resume(folder, model.env.venv if hasattr(model.env, "venv") else model.env)
    assert resumed.num_timesteps == 82
    resumed.learn(150 - 82, reset_num_timesteps=False)
    assert resumed.num_timesteps == 150 and resumed._n_updates == expected._n_updates
    assert all((a == b).all() for a, b in zip(parameters_of(resumed), parameters_of(expected), strict=True))


@pytest.mark.parametrize("number", ENDS)
def test_a_second_signal_does_not_wait(make_model, tmp_path, number):
    before = handlers()
    model = make_model(train_freq=(1, "episode"))
    with pytest.raises(ENDS[number]):
        model.learn(400, callback=[ResumableCheckpoint(tmp_path / "model", save_freq=1000), Signal(number, 50, 60)])
    assert model.num_timesteps == 60 and handlers() == before and not list((tmp_path / "model").iterdir())


@pytest.mark.parametrize("number", ENDS)
def test_a_signal_in_the_last_rollout_is_not_lost(make_model, tmp_path, number):
    model = make_model()
    with pytest.raises(ENDS[number]):
        model.learn(100, callback=[ResumableCheckpoint(tmp_path / "model", save_freq=1000), Signal(number, 99)])
    assert model.num_timesteps == 100 and len(list((tmp_path / "model").iterdir())) == 1


def test_after_an_error_signals_are_as_before(make_model, tmp_path):
    before = handlers()

    class Fails(BaseCallback):
        def _on_step(self):
            return 1 / 0

    with pytest.raises(ZeroDivisionError):
        make_model().learn(100, callback=[ResumableCheckpoint(tmp_path / "model"), Fails()])
    assert handlers() == before


def test_without_a_checkpoint_ctrl_c_is_that_of_sb3(make_model):
    model = make_model(train_freq=(1, "episode"))
    with pytest.raises(KeyboardInterrupt):
        model.learn(400, callback=Signal(signal.SIGINT, 50))
    assert model.num_timesteps == 50


def test_in_another_thread_nothing_is_deferred():
    before, seen = handlers(), []

    def run():
        with deferred_signals() as signals:
            seen.append((signals.received, handlers()))

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    assert seen == [(None, before)]


def test_what_did_not_come_is_not_delivered():
    DeferredSignals().deliver()
    with deferred_signals() as signals:
        assert signals.received is None


class Terminal(BaseCallback):
    """Ends the processes of environments, as a terminal does, with or without the process of training."""

    def __init__(self, at, number=None):
        super().__init__()
        self.at, self.number = at, number

    def _on_step(self):
        if self.num_timesteps == self.at:
            for process in self.training_env.unwrapped.processes:
                process.kill()
                process.join()
            if self.number is not None:
                os.kill(os.getpid(), self.number)
        return True


@pytest.mark.parametrize("at", [52, 60])
@pytest.mark.parametrize("number", [None, *ENDS])
def test_a_signal_of_a_terminal_ends_the_processes_of_environments_too(tmp_path, number, at):
    """Within a rollout and at its end, where a checkpoint is written."""
    env = make_vec_env("Pendulum-v1", 2, vec_env_cls=SubprocVecEnv, vec_env_kwargs={"start_method": "fork"})
    model = make_small(DIAYN, env, train_freq=5)
    callbacks = [ResumableCheckpoint(tmp_path, save_freq=10**6), Terminal(at, number)]
    with pytest.raises((EOFError, ConnectionError) if number is None else ENDS[number]):
        model.learn(400, callbacks)
    assert [int(path.name[-12:]) for path in checkpoints_in(tmp_path)] == ([60] if number is not None and at == 60 else [])
    if number is not None:
        model.env.close()
        model.save(tmp_path / "model")
    else:
        env.closed = True


SCRIPT = """
import sys
from stable_baselines3.common.callbacks import ConvertCallback
from sb3_cesd import DIAYN
from sb3_cesd.checkpoints import ResumableCheckpoint
small = dict(net_arch=[16])
model = DIAYN("MlpPolicy", "Pendulum-v1", n_skills=4, learning_starts=50, batch_size=32, buffer_size=1000,
              policy_kwargs=dict(net_arch=[16, 16]), intrinsic_kwargs=small, device="cpu", seed=0)
def tell(local_variables, global_variables):
    if model.num_timesteps == 100:
        print("ready", flush=True)
    return True
model.learn(10**9, callback=[ResumableCheckpoint(sys.argv[1], save_freq=10**8), ConvertCallback(tell)])
"""


@pytest.mark.parametrize("number", ENDS)
def test_a_process_ends_with_the_usual_exit_code(tmp_path, number):
    folder = tmp_path / "checkpoints"
    with subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(folder)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        process.send_signal(number)
        error = process.communicate(timeout=120)[1].decode()
    assert process.returncode == {signal.SIGTERM: 143, signal.SIGINT: -2}[number], error
    (checkpoint,) = folder.iterdir()
    assert resume(checkpoint, "Pendulum-v1").num_timesteps >= 100
