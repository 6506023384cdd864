"""Arguments of the benchmarks: bad ones are refused before anything is trained, and all that matters tells runs apart."""

import json
import os
import signal
import subprocess
import sys
import time
import zipfile
from contextlib import nullcontext
from pathlib import Path

import pandas as pd
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks"


def main_of(script, arguments, monkeypatch):
    """Call a script in this process."""
    monkeypatch.setattr(sys, "argv", [script, *arguments.split()])
    monkeypatch.setattr("joblib.Parallel.__call__", lambda *args, **kwargs: pytest.fail("something was trained"))
    __import__(script).main()


@pytest.mark.parametrize(
    ("script", "arguments", "message"),
    [
        ("urlb", "--eval-freq 50001", "tasks end after 50000 steps, pass no more"),
        ("urlb", "--eval-freq 2000 --finetune-steps 1000", "tasks end after 1000 steps, pass no more"),
        ("urlb", "--eval-freq 0", "pass 1 or more"),
        ("urlb", "--finetune-steps 25000", "the last one would be before the end, pass a divisor of 25000"),
        ("urlb", "--n-eval-episodes 0", "pass 1 or more"),
        ("urlb", "--device nonsense", "pass cpu"),
        ("urlb", "--env-threads 0", "pass 1 or more"),
        ("urlb", "--jobs 0", "pass 1 or more"),
        ("urlb", "--jobs x", "pass 1 or more"),
        ("urlb", "--pretrain-steps 0", "pass 1 or more"),
        ("urlb", "--finetune-steps -5", "pass 1 or more"),
        ("urlb", "--seeds -1", "pass 0 or more"),
        ("urlb", "--seeds 0", "pass the number of seeds, or the first"),
        ("urlb", "--seeds 3 3", "pass the number of seeds, or the first"),
        ("urlb", "--seeds 1 2 3", "pass the number of seeds, or the first"),
        ("urlb", "--skill 99", "cesd has 8 skills, pass at most 7"),
        ("urlb", "--skill 8 --methods apt", "apt has 8 skills, pass at most 7"),
        ("urlb", "--skill -1", "pass random, best or the index of a skill"),
        ("urlb", "--skill-episodes 0", "pass 1 or more"),
        ("urlb", "--save-at 0", "pass 1 or more"),
        ("urlb", "--save-at 300001", "pre-training ends after 300000 steps, pass no more"),
        ("urlb", "--from-steps 100", "pass --save-at 100 as well"),
        ("urlb", "--task-params warm_up:'skills'", "--task-params warm_up: there is an option for it, pass --warm-up instead"),
        ("urlb", "--task-params tau:0.1 transfer:['actor']", "pass --transfer instead"),
        ("urlb", "--task-params skill:3", "pass --skill instead"),
        ("urlb", "--methods scratch --task-params seed:3", "pass --seeds instead"),
        ("urlb", "--task-params policy_kwargs:{}", "tasks of cesd keep it from their pre-trained model, leave it out or pass"),
        ("urlb", "--methods scratch apt --task-params ent_coef:0.1", "tasks of apt keep it from their pre-trained model"),
        ("urlb", "--methods apt --task-params learning_start:4000", "did you mean 'learning_starts'?"),
        ("urlb", "--task-params intrinsic_kwargs:{} --dry-run", "tasks of cesd keep it from their pre-trained model"),
        ("maze", "--steps 0", "pass 20 or more"),
        ("maze", "--steps -400", "pass 20 or more"),
        ("maze", "--seeds 0", "pass 1 or more"),
        ("maze", "--first-seed -1", "pass 0 or more"),
        ("maze", "--jobs 0", "pass 1 or more"),
        ("maze", "--mine-iterations 0", "pass 1 or more"),
        ("speed", "--threads 0", "pass 1 or more"),
        ("speed", "--repeats 0", "pass 1 or more"),
        ("speed", "--n-envs -8", "pass 1 or more"),
        ("speed", "--n-skills 1", "pass 2 or more"),
        ("speed", "--training-steps 0", "pass 1 or more"),
        ("speed", "--device nonsense", "pass cpu"),
    ],
)
def test_bad_arguments_are_refused_at_once(script, arguments, message, monkeypatch, capsys, tmp_path):
    with pytest.raises(SystemExit) as end:
        main_of(script, f"{arguments} --output {tmp_path / 'results'}", monkeypatch)
    assert end.value.code == 2 and message in capsys.readouterr().err
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize(
    "arguments",
    [
        "--skill 7",
        "--eval-freq 50000",
        "--seeds 1 3",
        "--save-at 300000",
        "--tasks --eval-freq 60000 --skill 50",
        "--task-params bc_coef:1.0 actor_learning_starts:0.15 learning_starts:4000 train_freq:1 tau:0.02",
        "--methods scratch random --task-params policy_kwargs:{'n_critics':3} warm_up:'random' n_skills:4",
    ],
)
def test_good_ones_are_not(arguments, monkeypatch, tmp_path, capsys):
    main_of("urlb", f"{arguments} --dry-run --output {tmp_path / 'results'}", monkeypatch)
    assert "runs, 0 of them done already" in capsys.readouterr().out


@pytest.mark.parametrize(
    ("arguments", "refused"),
    [("--pretrain-steps 100", True), ("--pretrain-steps 300 --save-at 100 --from-steps 100", False)],
)
def test_a_model_saved_on_the_way_is_none_of_a_shorter_training(arguments, refused, monkeypatch, tmp_path, capsys):
    (tmp_path / "models").mkdir()
    with zipfile.ZipFile(tmp_path / "models" / "cesd_Walker-v0_laptop_0_100.zip", "w") as archive:
        archive.writestr("data", json.dumps({"_total_timesteps": 300}))
    with pytest.raises(SystemExit) if refused else nullcontext():
        main_of("urlb", f"--methods cesd --seeds 1 {arguments} --dry-run --output {tmp_path}", monkeypatch)
    message = "laptop_0_100.zip is of a training of 300 steps, which starts the constraint elsewhere, not of one of 100"
    assert (message in capsys.readouterr().err) == refused


def test_ablations_join_methods_that_are_named(monkeypatch, tmp_path, capsys):
    main_of("maze", f"--methods apt --ablations --mazes tree --seeds 1 --dry-run --output {tmp_path / 'results'}", monkeypatch)
    listed = capsys.readouterr().out
    assert "method=apt " in listed and "method=alpha=0.1 " in listed and "method=cesd " not in listed


@pytest.mark.parametrize("script", ["maze", "speed", "urlb"])
def test_results_that_ship_are_not_the_default_output(script, monkeypatch, capsys):
    with pytest.raises(SystemExit):
        main_of(script, "--help", monkeypatch)
    text = (FOLDER / f"{script}.py").read_text()
    assert f'default=Path("results/{script}")' in text and 'Path("benchmarks' not in text


def done(output):
    """Count the runs that are done, as a dry run says it."""
    lines = [line.split(": ")[-1].split() for line in output.splitlines() if "done already" in line]
    return [(int(words[0]), int(words[2])) for words in lines]


OF_THE_TABLE = "--domains Quadruped-v0 --methods cesd apt --seeds 1 --warm-up skills"


@pytest.mark.parametrize(
    ("script", "folder", "arguments", "expected"),
    [
        ("maze", "maze", "--methods cesd --mine", [(15, 15), (15, 3)]),
        ("maze", "maze", "--methods cesd --steps 36000", [(15, 15)]),
        ("maze", "maze", "--methods cesd --steps 800", [(15, 0)]),
        ("maze", "maze", "--methods cesd --mine --mine-iterations 10", [(15, 15), (15, 0)]),
        ("urlb", "urlb/one_robot", "--pretrain-steps 200000 --methods cesd scratch random", [(3, 0), (36, 24)]),
        ("urlb", "urlb/one_robot", "--methods scratch random --eval-freq 5000", [(24, 12)]),
        ("urlb", "urlb/one_robot", "--methods scratch random --n-eval-episodes 5", [(24, 0)]),
        ("urlb", "urlb/one_robot", "--methods scratch random", [(24, 24)]),
        ("urlb", "urlb/one_robot", "--methods scratch random --finetune-steps 20000", [(24, 0)]),
        ("urlb", "urlb", f"{OF_THE_TABLE} --skill best", [(2, 2), (8, 8)]),
        ("urlb", "urlb", f"{OF_THE_TABLE} --skill best --transfer critic_trunk actor actor", [(2, 2), (8, 8)]),
        ("urlb", "urlb", OF_THE_TABLE, [(2, 2), (8, 0)]),
    ],
)
def test_rows_that_ship_keep_their_meaning_and_others_are_other_runs(script, folder, arguments, expected, monkeypatch, capsys):
    main_of(script, f"{arguments} --dry-run --output {FOLDER / 'results' / folder}", monkeypatch)
    assert done(capsys.readouterr().out) == expected


def test_a_report_holds_runs_of_one_length(tmp_path, capsys):
    from maze_report import write

    rows = pd.read_csv(FOLDER / "results/maze/runs.csv")
    rows = rows[(rows.method == "cesd") & (rows.maze == "square_a")]
    rows = pd.concat([rows, rows.assign(n_timesteps=800, total_coverage=0.123456)])
    rows.to_csv(tmp_path / "runs.csv", index=False)
    pd.read_csv(FOLDER / "results/maze/mine.csv").to_csv(tmp_path / "mine.csv", index=False)
    write(tmp_path, 36_000)
    assert "Runs of 800 steps are left out: pass --steps to report them." in capsys.readouterr().out
    assert "0.123" not in (tmp_path / "table.md").read_text() and "36000 steps" in (tmp_path / "table.md").read_text()
    write(tmp_path, 800)
    assert "0.123" in (tmp_path / "table.md").read_text() and "36000 steps" not in (tmp_path / "table.md").read_text()
    (tmp_path / "table.md").unlink()
    write(tmp_path, 900)
    assert "There are no runs of 900 steps yet." in capsys.readouterr().out and not (tmp_path / "table.md").exists()


def test_a_run_that_a_killed_call_had_moved_is_not_moved_again(tmp_path):
    """Killed between the row and the removal of the file that it is made of."""
    from runs import Finished, read_rows, run_missing

    path = tmp_path / "runs.csv"
    run_missing([{"seed": 0, "steps": 5}], lambda run: {"score": 1.0}, path, n_jobs=1)
    Finished(path).add({"seed": 0, "steps": 5}, {"score": 1.0}, "")
    Finished(path).add({"seed": 1, "steps": 5}, {"score": 3.0}, "")
    Finished(path).add({"seed": 1, "steps": 5}, {"score": 4.0}, "")
    rows = run_missing([{"seed": 0, "steps": 5}, {"seed": 1, "steps": 5}], pytest.fail, path, n_jobs=1)
    assert rows.score.tolist() == [1.0, 3.0] and read_rows(path).seed.tolist() == [0, 1]


DRIVER = """
import os, sys, time
from pathlib import Path
sys.path.insert(0, {folder!r})
from runs import run_missing
output = Path(sys.argv[1])

def do(run):
    import os, time
    (output / f"worker_{{os.getpid()}}").touch()
    time.sleep(300)

run_missing([{{"seed": seed}} for seed in range(2)], do, output / "runs.csv", n_jobs=2)
"""


def alive(process):
    """Whether a process runs (a zombie does not)."""
    try:
        state = Path(f"/proc/{process}/stat").read_text().rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


def wait_for(condition, seconds=120):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "in vain"
        time.sleep(0.1)


def descendants(process):
    """All processes that a process started, itself or through others."""
    children = Path(f"/proc/{process}/task/{process}/children").read_text().split()
    return [*map(int, children), *(grandchild for child in children for grandchild in descendants(child))]


@pytest.mark.slow
@pytest.mark.skipif(not Path("/proc/self/stat").exists(), reason="reads /proc")
@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM, signal.SIGINT])
def test_no_worker_survives_its_parent(tmp_path, number):
    script = tmp_path / "driver.py"
    script.write_text(DRIVER.format(folder=str(FOLDER)))
    with subprocess.Popen([sys.executable, str(script), str(tmp_path)], stderr=subprocess.DEVNULL) as driver:
        wait_for(lambda: len(list(tmp_path.glob("worker_*"))) == 2)
        started = descendants(driver.pid)
        workers = [int(file.name.removeprefix("worker_")) for file in tmp_path.glob("worker_*")]
        assert set(workers) <= set(started) and all(map(alive, workers))
        os.kill(driver.pid, number)
        code = driver.wait(60)
    assert code == {signal.SIGKILL: -9, signal.SIGTERM: 143, signal.SIGINT: -2}[number]
    wait_for(lambda: not any(map(alive, started)), 30)
    assert number == signal.SIGKILL or not (tmp_path / "runs.lock").exists()


def test_sigterm_is_as_before_afterwards():
    from runs import sigterm_exits

    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as end, sigterm_exits():
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
    assert end.value.code == 143 and signal.getsignal(signal.SIGTERM) is before


def test_a_gap_in_a_column_makes_no_other_run(tmp_path):
    from runs import append_row, run_missing

    path = tmp_path / "runs.csv"
    append_row(path, {"seed": 0, "score": 1.0})
    append_row(path, {"seed": 1, "eval_freq": 10, "score": 1.0})
    runs = [{"seed": seed, "eval_freq": frequency} for seed, frequency in ((0, 0), (1, 10))]
    rows = run_missing(runs, pytest.fail, path, n_jobs=1, defaults={"eval_freq": 0})
    assert len(rows) == 2 and json.loads(rows.to_json(orient="records"))[1]["eval_freq"] == 10
