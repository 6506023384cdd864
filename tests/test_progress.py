"""What a run tells while it learns: logs by steps, and what it takes."""

from types import SimpleNamespace

import pytest
from learned import differences
from stable_baselines3.common.logger import HumanOutputFormat, KVWriter, Logger
from test_callbacks_and_logs import Memory

from sb3_cesd.checkpoints import ResumableCheckpoint, remaining_timesteps, resume
from sb3_cesd.checkpoints.folders import checkpoints_in
from sb3_cesd.common import logging
from sb3_cesd.common.logging import LogSchedule
from sb3_cesd.skill_ddpg import estimate, step_times
from sb3_cesd.skill_ddpg.estimate import CostPhase, remaining_time


class Table(HumanOutputFormat):
    """A table that is kept in place of printed."""

    def __init__(self):
        self.steps = []

    def write(self, key_values, key_excluded, step=0):
        self.steps.append(step)

    def close(self):
        pass


@pytest.fixture
def clock(monkeypatch):
    """The time, as logs see it."""
    now = [0.0]
    monkeypatch.setattr(logging.time, "monotonic", lambda: now[0])
    return now


def test_tables_by_steps(make_model):
    """By default tables come at equal intervals of steps, whatever the length of episodes (200)."""
    model, table = make_model(), Table()
    model.set_logger(Logger(None, [table]))
    model.learn(100)
    assert table.steps == list(range(5, 101, 5))
    table.steps.clear()
    # The intervals are those of the training that begins
    model.learn(40, reset_num_timesteps=False)
    assert table.steps == list(range(102, 141, 2))


def test_files_hold_more_rows_than_tables(make_model):
    model, memory = make_model(), Memory()
    model.set_logger(Logger(None, [Table(), memory]))
    model.learn(120)
    assert len(memory.rows) == 100 and memory.rows[-1]["time/total_timesteps"] == 120
    assert any("train/critic_loss" in row for row in memory.rows)


@pytest.mark.parametrize(("log_interval", "n_tables"), [(1, 2), (2, 1), (None, 0)])
def test_log_interval_counts_episodes_as_in_sb3(make_model, log_interval, n_tables):
    model, table = make_model(), Table()
    model.set_logger(Logger(None, [table]))
    model.learn(400, log_interval=log_interval)
    assert len(table.steps) == n_tables


@pytest.mark.parametrize("log_interval", ["never", 0, -1, 2.5, True, "4"])
def test_log_interval_of_another_kind(make_model, log_interval):
    with pytest.raises(ValueError, match=r"log_interval=.*pass 'auto', a positive integer or None"):
        make_model().learn(100, log_interval=log_interval)


def test_a_slow_run_logs_every_minute(clock):
    schedule = LogSchedule()
    schedule.begin(0, 2_000_000, 0)
    due = []
    for step in range(1, 1000):
        clock[0] += 0.5
        due.append(schedule.is_due(step))
    # After a minute, that is 120 steps
    assert [step for step, is_due in enumerate(due, start=1) if is_due] == list(range(120, 1000, 120))


def test_logs_of_a_resumed_run_come_where_they_would_have_come(clock):
    whole, resumed = LogSchedule(), LogSchedule()
    whole.begin(1000, 1990, 1000)
    steps = [step for step in range(1001, 1991) if whole.is_due(step)]
    resumed.begin(1000, 1990, 1333)
    assert len(steps) == 20 and steps[-1] == 1990
    assert [step for step in range(1334, 1991) if resumed.is_due(step)] == [step for step in steps if step > 1333]


def test_resumed_run_logs_the_same_at_the_same_steps(make_model, clock, tmp_path):
    whole, resumed = Memory(), Memory()
    model = make_model()
    model.set_logger(Logger(None, [whole]))
    model.learn(160, ResumableCheckpoint(tmp_path / "whole", 90, keep=3))
    again = resume(checkpoints_in(tmp_path / "whole")[0], "Pendulum-v1", device="cpu")
    start = again.num_timesteps
    again.set_logger(Logger(None, [resumed]))
    again.learn(remaining_timesteps(again), ResumableCheckpoint(tmp_path / "resumed", 90), reset_num_timesteps=False)
    rows = [row for row in whole.rows if row["time/total_timesteps"] > start]
    assert 0 < start < 160 and len(rows) > 20 and not differences(model, again)
    for ours, theirs in zip(rows, resumed.rows, strict=True):
        assert {**ours, "time/fps": 0, "time/time_elapsed": 0} == {**theirs, "time/fps": 0, "time/time_elapsed": 0}


@pytest.fixture
def quick(monkeypatch):
    """Estimates from few updates, however short they are."""
    monkeypatch.setattr(estimate, "SHORTEST", 0.0)
    monkeypatch.setattr(estimate, "MEASURED", 4)
    monkeypatch.setattr(estimate, "WARM_UP", 1)


def test_estimate(make_model, capsys, quick, tmp_path):
    model = make_model(verbose=1, constraint_kwargs={"start": 0.5})
    model.set_logger(Logger(None, []))
    capsys.readouterr()
    model.learn(200)
    first, *estimates = [line for line in capsys.readouterr().out.splitlines() if "wrap" not in line.lower()]
    # (200 - 40) / 2
    assert "CeSD learns for 200 environment steps and about 80 updates of 32 transitions." in first
    assert f"{model._n_updates}" == "80"
    # In exploring, the constraint is still to come; then it is measured
    estimated = [line for line in estimates if line.startswith("Estimated time")]
    assert len(estimated) == 2
    assert "the constraint from step 100 on is assumed to cost" in estimated[0] and "from step" not in estimated[1]
    assert all("measured over" in line and "seconds" in line for line in estimated)
    # The size that was told is that of the file
    model.save(tmp_path / "model.zip")
    told = estimate.model_bytes(model)
    assert f"up to {estimate.size(told)}" in first
    # Besides, a file holds names and small attributes
    assert told < (tmp_path / "model.zip").stat().st_size < told + 150_000


def test_phases_that_set_in_before_the_first_measurement_are_measured_not_guessed(make_model, capsys, quick, monkeypatch):
    monkeypatch.setattr(estimate, "WARM_UP", 40)
    model = make_model(verbose=1, constraint_kwargs={"start": 0.25})
    model.set_logger(Logger(None, []))
    capsys.readouterr()
    model.learn(200)
    estimated = [line for line in capsys.readouterr().out.splitlines() if line.startswith("Estimated time")]
    assert len(estimated) == 1 and "from step" not in estimated[0]


@pytest.mark.parametrize(("train_freq", "expected"), [(1, "11"), (2, "6"), (8, "2.25")])
@pytest.mark.parametrize("eval_freq", [3, 4, 1000])
def test_evaluations_are_no_part_of_the_estimate(make_model, monkeypatch, capsys, quick, train_freq, expected, eval_freq):
    """A step takes 1 ms, an update 10 ms, an evaluation a minute."""
    now = [0.0]
    monkeypatch.setattr(step_times, "time", SimpleNamespace(perf_counter=lambda: now[0]))
    model = make_model(verbose=1, train_freq=train_freq)
    model.set_logger(Logger(None, []))

    def train(gradient_steps, batch_size):
        model._n_updates += gradient_steps
        now[0] += 0.01 * gradient_steps

    def play(_locals, _globals):
        now[0] += 0.001 if model.num_timesteps % eval_freq else 60.0
        return True

    monkeypatch.setattr(model, "train", train)
    model.learn(200, play)
    assert f"({expected} ms per step, measured over 4 updates" in capsys.readouterr().out


def test_estimate_changes_nothing_and_is_for_verbose_runs(make_model, capsys, quick):
    printed, weights = [], []
    for verbose in (0, 1):
        model = make_model(verbose=verbose)
        model.set_logger(Logger(None, []))
        capsys.readouterr()
        model.learn(120)
        printed.append(capsys.readouterr().out)
        weights.append(model.policy.state_dict())
    silent, told = printed
    assert silent == "" and "Estimated time" in told
    assert all((weights[0][name] == weights[1][name]).all() for name in weights[0])


def test_time_of_phases():
    assert remaining_time(100, 1100, 0.5, []) == 500
    # 300 steps of 0.5 s, 700 of 1 s
    assert remaining_time(100, 1100, 0.5, [CostPhase(400, 2.0, "")]) == 150 + 700
    # It has begun
    assert remaining_time(500, 1100, 0.5, [CostPhase(400, 2.0, "")]) == 600


@pytest.mark.parametrize(
    ("seconds", "text"), [(3, "3 seconds"), (90, "90 seconds"), (600, "10 minutes"), (9000, "2.5 hours"), (864000, "10 days")]
)
def test_durations(seconds, text):
    assert estimate.duration(seconds) == text


def test_hint_at_fewer_threads(make_model, monkeypatch, capsys):
    model = make_model(verbose=1)
    for n_threads, is_told in ((1, False), (8, True)):
        monkeypatch.setattr(estimate.th, "get_num_threads", lambda n_threads=n_threads: n_threads)
        capsys.readouterr()
        model.learn(10)
        printed = capsys.readouterr().out
        hints = ["uses 8 threads", "--num-threads 1", "torch.set_num_threads(1)"]
        assert [hint in printed for hint in hints] == [is_told] * 3
    # Large networks gain from threads
    monkeypatch.setattr(estimate, "n_parameters", lambda _: 10_000_000)
    assert estimate.use_fewer_threads(model) == ""


@pytest.mark.parametrize("on_gpu", [True, False])
@pytest.mark.parametrize("cuda_graph", [True, False])
def test_hint_at_a_graph(make_model, monkeypatch, capsys, on_gpu, cuda_graph):
    model = make_model(verbose=1, cuda_graph=cuda_graph)
    monkeypatch.setattr(estimate, "can_capture", lambda device: on_gpu)
    model.learn(10)
    printed = capsys.readouterr().out
    is_told = on_gpu and not cuda_graph
    assert [hint in printed for hint in ("-params cuda_graph:True", "cuda_graph=True in Python")] == [is_told] * 2


@pytest.mark.parametrize(
    ("seconds", "n_parameters", "is_told"), [(86400.0, 10**7, True), (3600.0, 10**7, False), (86400.0, 10**5, False)]
)
def test_hint_at_the_laptop_scale(make_model, monkeypatch, capsys, quick, seconds, n_parameters, is_told):
    """Only a large model that takes hours has something to gain."""
    monkeypatch.setattr(estimate, "n_parameters", lambda _: n_parameters)
    monkeypatch.setattr(estimate, "remaining_time", lambda *_: seconds)
    model = make_model(verbose=1)
    model.set_logger(Logger(None, []))
    model.learn(80)
    printed = capsys.readouterr().out
    hint = "--conf-file cesd_laptop.yml in RL Zoo, **sb3_cesd.preset('laptop', env_id, 'cesd') in Python"
    assert (hint in printed) == is_told and "Estimated time" in printed


def test_unused_kinds_of_outputs():
    """A logger without outputs has no file to fill."""
    assert logging.n_logs_for(Logger(None, [])) == logging.N_TABLES
    assert logging.n_logs_for(Logger(None, [Table()])) == logging.N_TABLES
    assert isinstance(Memory(), KVWriter) and logging.n_logs_for(Logger(None, [Memory()])) == logging.N_ROWS
