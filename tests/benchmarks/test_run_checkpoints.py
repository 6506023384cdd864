"""A run of the benchmark of robots that was stopped goes on where it was, to the same row."""

import json

import numpy as np
import pytest

from sb3_cesd import DIAYN

PRETRAINING = {"method": "diayn", "domain": "Walker-v0", "scale": "laptop", "seed": 0, "pretrain_steps": 2304, "n_envs": 1}
TASK = {
    "method": "diayn",
    "domain": "Walker-v0",
    "task": "WalkerRun-v0",
    "scale": "laptop",
    "seed": 0,
    "pretrain_steps": 2304,
    "pretrain_envs": 1,
    "finetune_steps": 2300,
    "skill_choice": "random",
    "warm_up": "skills",
    "transfer": "actor+critic_trunk",
    "eval_freq": 700,
    "n_eval_episodes": 1,
    "n_skill_episodes": 1,
    "repeat": 0,
    "task_params": 0,
}


class Stopped(Exception):
    """What ends a run in its midst."""


def measured(_model, _domain, coverage, _n_task_episodes, _n_env_threads):
    return {"total": coverage.total, "queue": coverage.queue}


@pytest.fixture
def urlb_run(monkeypatch):
    import run_checkpoints
    import urlb_run

    monkeypatch.setattr(run_checkpoints, "SAVE_FREQ", 900)
    monkeypatch.setattr(urlb_run, "measure", measured)
    return urlb_run


def stop_after(monkeypatch, n_checkpoints):
    from run_checkpoints import RunCheckpoint

    write, written = RunCheckpoint.write, []

    def write_and_stop(self):
        write(self)
        written.append(self.model.num_timesteps)
        if len(written) == n_checkpoints:
            raise Stopped

    monkeypatch.setattr(RunCheckpoint, "write", write_and_stop)
    return written


def without_time(row):
    return {name: value for name, value in row.items() if name != "seconds"}


@pytest.mark.slow
def test_stopped_runs_go_on(urlb_run, monkeypatch, tmp_path):
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    expected = urlb_run.pretrain(PRETRAINING, whole, save_at=[500])
    expected_task = urlb_run.learn_task(TASK, whole, whole / "evaluations")

    with monkeypatch.context() as patched:
        assert stop_after(patched, 2) == []
        with pytest.raises(Stopped):
            urlb_run.pretrain(PRETRAINING, stopped, save_at=[500])
    [checkpoints] = stopped.glob("*.checkpoints")
    assert [file.name for file in checkpoints.glob("*.pkl")] == ["gathered_1808.pkl"], "what older checkpoints had is deleted"
    with monkeypatch.context() as patched:
        written = stop_after(patched, 9)
        row = urlb_run.pretrain(PRETRAINING, stopped, save_at=[500])
        assert written == [2304], "it does not begin again"
    assert without_time(row) == without_time(expected) and row["seconds"] > 0
    curves = [json.loads(row[name]) for name in ("coverage_steps", "total_coverage_curve", "queue_coverage_curve")]
    assert curves[0] == list(range(115, 2301, 115)) and {len(curve) for curve in curves} == {20}
    assert curves[1] == sorted(curves[1]) and curves[1][-1] == row["total"] and curves[2][-1] == row["queue"]
    assert not checkpoints.exists()
    names = sorted(path.name for path in whole.glob("*.zip"))
    assert len(names) == 2 and names == sorted(path.name for path in stopped.glob("*.zip"))
    models = [DIAYN.load(folder / names[0], device="cpu") for folder in (whole, stopped)]
    for value, other in zip(*(model.policy.parameters() for model in models), strict=True):
        assert (value == other).all()

    with monkeypatch.context() as patched:
        stop_after(patched, 2)
        with pytest.raises(Stopped):
            urlb_run.learn_task(TASK, stopped, stopped / "evaluations")
    assert without_time(urlb_run.learn_task(TASK, stopped, stopped / "evaluations")) == without_time(expected_task)
    evaluations = [np.load(next(folder.glob("evaluations/*/evaluations.npz"))) for folder in (whole, stopped)]
    assert evaluations[0]["timesteps"].tolist() == [700, 1400, 2100]
    for name in ("timesteps", "results", "ep_lengths"):
        np.testing.assert_array_equal(evaluations[0][name], evaluations[1][name])
    assert not list(stopped.rglob("checkpoints"))


@pytest.mark.slow
def test_a_stopped_run_of_many_robots_goes_on(urlb_run, monkeypatch, tmp_path):
    run = {**PRETRAINING, "domain": "SkillHalfCheetah-v0", "n_envs": 8}
    read = urlb_run.METHODS["diayn"].arguments("laptop", run["domain"])
    assert read["n_envs"] == 8
    monkeypatch.setattr(type(urlb_run.METHODS["diayn"]), "arguments", lambda *_: {**read, "learning_starts": 500})
    expected = urlb_run.pretrain(run, tmp_path / "whole")
    with monkeypatch.context() as patched:
        stop_after(patched, 1)
        with pytest.raises(Stopped):
            urlb_run.pretrain(run, tmp_path / "stopped")
    row = urlb_run.pretrain(run, tmp_path / "stopped")
    assert without_time(row) == without_time(expected)
    assert (row["n_envs"], row["n_updates"]) == (8, 64), "as many updates as with one robot"


def test_a_task_says_that_its_model_is_gone(urlb_run, tmp_path):
    with pytest.raises(
        FileNotFoundError, match=r"the model is not there: delete its row of pretraining.csv .*, or pass another"
    ):
        urlb_run.learn_task(TASK, tmp_path, tmp_path / "evaluations")
