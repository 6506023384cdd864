import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from scripts import call
from torch.utils.tensorboard import SummaryWriter

FOLDER = Path(__file__).parents[2] / "benchmarks"


def test_aggregates_by_hand():
    from aggregates import iqm, mean, median, optimality_gap, performance_profile

    scores = [np.array([0.0, 0.2, 0.4, 0.6]), np.array([0.8, 1.0, 1.2, 1.4]), np.array([0.1, 0.1, 0.1, 0.1])]
    # Sorted: 0 .1 .1 .1 .1 .2 .4 .6 .8 1 1.2 1.4; the middle six
    assert iqm(*scores) == pytest.approx((0.1 + 0.1 + 0.2 + 0.4 + 0.6 + 0.8) / 6)
    assert mean(*scores) == pytest.approx((0.3 + 1.1 + 0.1) / 3)
    assert median(*scores) == pytest.approx(0.3)
    assert optimality_gap(*scores) == pytest.approx((0.7 + 0.05 + 0.9) / 3)
    assert performance_profile(scores, np.array([0.15, 1.0])) == pytest.approx([(3 / 4 + 1 + 0) / 3, (0 + 2 / 4 + 0) / 3])


def test_intervals_resample_within_tasks():
    from aggregates import Estimate, estimate, mean

    constant = estimate(mean, [np.full(5, 0.2), np.full(5, 0.8)])
    assert constant == pytest.approx((0.5, 0.5, 0.5)), "tasks are not exchanged for each other"
    rng = np.random.default_rng(0)
    tasks = [rng.normal(size=10) for _ in range(4)]
    value, low, high = estimate(mean, tasks)
    # The mean over tasks of means over seeds is close to normal
    error = np.sqrt(sum(task.var() / 10 for task in tasks)) / 4
    assert low == pytest.approx(value - 1.96 * error, abs=0.15 * error)
    assert high == pytest.approx(value + 1.96 * error, abs=0.15 * error)
    alone = estimate(mean, [np.array([0.5]), np.array([0.7])])
    assert alone.value == pytest.approx(0.6) and np.isnan(alone.low) and alone.text() == "0.60"
    assert Estimate(0.5, 0.25, 0.75).text(1) == "0.5 [0.2, 0.8]"


def test_probability_of_improvement_is_that_of_mann_and_whitney():
    from aggregates import probability_of_improvement
    from scipy.stats import mannwhitneyu

    rng = np.random.default_rng(0)
    ours, theirs = ([rng.integers(0, 6, size=n).astype(float) for _ in range(3)] for n in (5, 7))
    expected = np.mean([mannwhitneyu(x, y).statistic / (5 * 7) for x, y in zip(ours, theirs, strict=True)])
    value, low, high = probability_of_improvement(ours, theirs)
    assert value == pytest.approx(expected) and low < value < high
    assert probability_of_improvement(theirs, ours).value == pytest.approx(1 - expected)


def test_published_columns_give_the_published_aggregates():
    """The paper's come from single runs, these from the means of tasks: 75.18 % and 91.05 % there."""
    from aggregates import iqm
    from urlb_scores import published

    rows = published()
    assert set(rows.task) >= {"WalkerRun-v0", "QuadrupedJump-v0", "JacoReachTopLeft-v0"} and rows.task.nunique() == 12
    scores = {method: (group.return_mean / group.expert_return).to_numpy() for method, group in rows.groupby("method")}
    assert iqm(scores["CIC"]) == pytest.approx(0.753, abs=5e-4)
    assert iqm(scores["CeSD"]) == pytest.approx(0.912, abs=5e-4)


def test_published_tasks_are_environments():
    import gymnasium as gym
    from urlb_scores import expert_returns

    import sb3_cesd  # noqa: F401

    assert set(expert_returns()) <= set(gym.registry)


def zoo_folder(root, method, task, number, returns):
    folder = root / method / f"{task}_{number}"
    folder.mkdir(parents=True)
    results = np.array(returns, dtype=float)[:, None] + [-1.0, 1.0]
    np.savez(folder / "evaluations.npz", timesteps=np.arange(1, len(returns) + 1) * 10, results=results, ep_lengths=results)


def run(*arguments):
    return call("report", *arguments)


def test_report_of_rl_zoo_and_of_the_benchmark(tmp_path):
    for number, final in ((1, 398.0), (2, 796.0)):
        zoo_folder(tmp_path / "logs", "cesd", "WalkerRun-v0", number, [10, final])
    row = {"method": "scratch", "task": "WalkerRun-v0", "steps": "[10, 20]", "returns": "[5, 79.6]", "final_return": 79.6}
    pd.DataFrame([{**row, "seed": 0}, {**row, "seed": 1}]).to_csv(tmp_path / "runs.csv", index=False)
    command = [sys.executable, FOLDER / "report.py", tmp_path / "logs", tmp_path / "runs.csv", "--output", tmp_path / "report"]
    result = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert result.returncode == 0, result.stderr
    text = (tmp_path / "report/report.md").read_text()
    # Published: DDPG 325 and CeSD 337, of an expert's 796
    assert "| WalkerRun-v0 | 597 ± 281 | 80 ± 0 | 796 | 325 ± 25 |" in text and "337 ± " in text
    assert "| scratch | 2 | 0.10 [0.10, 0.10] | 0.10 [0.10, 0.10] | 0.10 [0.10, 0.10] | 0.90 [0.90, 0.90] |" in text
    assert "| cesd | 2 | 0.75 [0.50, 1.00] |" in text and "| cesd | scratch | 1.00 [1.00, 1.00] |" in text
    scores = pd.read_csv(tmp_path / "report/scores.csv")
    assert scores.score.tolist() == pytest.approx([0.5, 1.0, 0.1, 0.1])
    assert all((tmp_path / f"report/{name}.png").stat().st_size > 5000 for name in ("aggregates", "profiles", "curves"))


def test_a_run_counts_once_and_two_sources_are_two_methods(tmp_path):
    from urlb_scores import read_runs

    zoo_folder(tmp_path / "logs", "cesd", "WalkerRun-v0", 1, [10, 20])
    row = {"method": "cesd", "task": "WalkerRun-v0", "seed": 0, "steps": "[10]", "returns": "[5]", "final_return": 5.0}
    pd.DataFrame([row, {**row, "method": "apt"}]).to_csv(tmp_path / "runs.csv", index=False)
    paths = [tmp_path / "logs", tmp_path / "logs/cesd", tmp_path / "logs/../logs/cesd/WalkerRun-v0_1"]
    assert read_runs(paths).method.tolist() == ["cesd"]
    assert read_runs([*paths, tmp_path / "runs.csv"]).method.tolist() == ["cesd, RL Zoo", "cesd", "apt"]


def test_a_run_of_rl_zoo_that_ended_early_is_left_out(tmp_path):
    from urlb_scores import read_runs

    for task, number, returns in (("WalkerRun-v0", 1, [10, 20]), ("WalkerRun-v0", 2, [500]), ("WalkerWalk-v0", 1, [30])):
        zoo_folder(tmp_path, "cesd", task, number, returns)
    message = r"cesd/WalkerRun-v0_2 has evaluations up to step 10, .* left out\. Repeat it, .* -i .* \(keep both\)"
    with pytest.warns(UserWarning, match=message):
        runs = read_runs([tmp_path])
    assert runs.final_return.tolist() == [20, 30], "another task may take fewer steps"


def test_a_line_that_was_cut_is_no_result(tmp_path):
    from urlb_scores import read_runs

    row = {"method": "cesd", "task": "WalkerRun-v0", "steps": "[1]", "returns": "[1]", "final_return": 542.41}
    pd.DataFrame([{"seed": seed, **row} for seed in (0, 1)]).to_csv(tmp_path / "runs.csv", index=False)
    (tmp_path / "runs.csv").write_text((tmp_path / "runs.csv").read_text()[:-5])
    with pytest.warns(UserWarning, match="1 of 2 lines are not whole"):
        assert read_runs([tmp_path / "runs.csv"]).seed.tolist() == [0]


@pytest.mark.parametrize(
    ("cells", "message"),
    [
        ({"returns": "[1,2"}, r"The returns of cesd, WalkerRun-v0, seed 0 can't be read \('\[1,2'\): restore them, or delete"),
        ({"steps": None}, r"The steps of cesd, WalkerRun-v0, seed 0 can't be read \(nan\): restore them, or delete the row"),
        ({"final_return": "many"}, "1 runs have no finite return, the first is of cesd, WalkerRun-v0, seed 0: delete"),
        (None, r"runs.csv has no runs: pass the runs.csv of benchmarks/urlb.py, once"),
    ],
)
def test_damaged_cells_are_named(tmp_path, cells, message):
    from urlb_scores import normalise, read_runs

    row = {"method": "cesd", "task": "WalkerRun-v0", "seed": 0, "steps": "[1, 2]", "returns": "[1, 2]", "final_return": 2.0}
    rows = pd.DataFrame([{**row, **(cells or {})}])
    (rows if cells else rows[:0]).to_csv(tmp_path / "runs.csv", index=False)
    with pytest.raises(ValueError, match=message):
        normalise(read_runs([tmp_path / "runs.csv"]))


@pytest.mark.parametrize("damage", [lambda content: b"", lambda content: content[:40], lambda content: b"x" * 40])
def test_damaged_evaluations_are_named(tmp_path, damage):
    zoo_folder(tmp_path, "cesd", "WalkerRun-v0", 1, [10, 20])
    file = tmp_path / "cesd" / "WalkerRun-v0_1" / "evaluations.npz"
    file.write_bytes(damage(file.read_bytes()))
    message = " ".join(run(tmp_path).stderr.split())
    assert f"{file} is damaged" in message and "restore it, or delete its folder and repeat the run." in message


def test_a_method_that_is_left_out_has_no_say_in_intervals(tmp_path):
    for number in (1, 2):
        for task in ("WalkerRun-v0", "WalkerWalk-v0"):
            zoo_folder(tmp_path, "cesd", task, number, [10, 20])
    zoo_folder(tmp_path, "apt", "WalkerRun-v0", 1, [10, 20])
    text = run(tmp_path, "--output", tmp_path / "report").stdout
    assert "Without apt: not all tasks are done." in text and "there is no interval" not in text
    assert "there is no interval" in run(tmp_path / "apt", "--output", tmp_path / "report").stdout


def test_unequal_numbers_of_seeds_are_told(tmp_path):
    for method in ("cesd", "apt"):
        zoo_folder(tmp_path, method, "WalkerRun-v0", 1, [10, 20])
        zoo_folder(tmp_path, method, "WalkerWalk-v0", 1, [10, 20])
    zoo_folder(tmp_path, "cesd", "WalkerRun-v0", 2, [10, 20])
    text = run(tmp_path, "--output", tmp_path / "report").stdout
    assert "\ncesd: tasks have unequal numbers of seeds, and in the IQM" in text
    zoo_folder(tmp_path, "cesd", "WalkerWalk-v0", 2, [10, 20])
    assert "unequal" not in run(tmp_path, "--output", tmp_path / "report").stdout


def test_a_file_without_a_header_is_no_table(tmp_path):
    from urlb_scores import read_runs

    (tmp_path / "runs.csv").write_text("\n")
    with pytest.raises(ValueError, match=r"runs.csv contains no table: restore it, or pass another --output."):
        read_runs([tmp_path / "runs.csv"])


def test_a_return_that_is_not_finite_is_no_loss_in_all_comparisons():
    from urlb_scores import normalise

    rows = pd.DataFrame({"method": "cesd", "task": "WalkerRun-v0", "seed": [0, 1], "final_return": [1.0, np.nan]})
    with pytest.raises(ValueError, match="1 runs have no finite return, the first is of cesd, WalkerRun-v0, seed 1: delete"):
        normalise(rows)


def test_all_points_that_tensorboard_logged_are_read(tmp_path):
    from curves import read_tensorboard

    with SummaryWriter(tmp_path) as writer:
        for step in range(10_050):
            writer.add_scalar("rollout/ep_rew_mean", step / 2, step)
    steps, values = read_tensorboard(tmp_path)["rollout/ep_rew_mean"]
    assert steps == list(range(10_050)) and values[-1] == 10_049 / 2


def test_a_setting_that_robots_differ_in_is_no_variant(tmp_path):
    from urlb_scores import read_runs

    row = {"method": "cesd", "seed": 0, "steps": "[1]", "returns": "[1]", "final_return": 1.0}
    walker = {**row, "domain": "Walker-v0", "task": "WalkerRun-v0", "pretrain_steps": 10}
    arm = {**row, "domain": "Jaco-v0", "task": "JacoReachTopLeft-v0", "pretrain_steps": 20}
    path = tmp_path / "runs.csv"
    pd.DataFrame([walker, arm]).to_csv(path, index=False)
    assert read_runs([path]).method.tolist() == ["cesd", "cesd"]
    pd.DataFrame([walker, arm, {**walker, "pretrain_steps": 20}]).to_csv(path, index=False)
    expected = [f"cesd, pretrain_steps={steps}" for steps in (10, 20, 20)]
    assert read_runs([path]).method.tolist() == expected, "it differs with one of the robots"


@pytest.mark.parametrize(
    ("option", "values"),
    [
        ("skill_choice", ("random", "best")),
        ("warm_up", ("random", "skills")),
        ("transfer", ("actor", "actor+critic_trunk")),
        ("scale", ("laptop", "published")),
        ("task_params", (0, '{"tau": 0.1}')),
        ("eval_freq", (5000, 10_000)),
        ("n_eval_episodes", (10, 20)),
        ("n_skill_episodes", (1, 3)),
    ],
)
def test_an_option_that_robots_differ_in_is_a_variant(tmp_path, option, values):
    from urlb_scores import read_runs

    row = {"method": "cesd", "seed": 0, "steps": "[1]", "returns": "[1]", "final_return": 1.0}
    robots = [("Walker-v0", "WalkerRun-v0", 10), ("Jaco-v0", "JacoReachTopLeft-v0", 20)]
    runs = [
        {**row, "domain": domain, "task": task, "pretrain_steps": steps, option: value}
        for (domain, task, steps), value in zip(robots, values, strict=True)
    ]
    pd.DataFrame(runs).to_csv(tmp_path / "runs.csv", index=False)
    assert read_runs([tmp_path / "runs.csv"]).method.tolist() == [f"cesd, {option}={value}" for value in values]


def test_one_seed_and_unfinished_methods_are_told(tmp_path):
    zoo_folder(tmp_path, "cesd", "WalkerRun-v0", 1, [10, 20])
    zoo_folder(tmp_path, "cesd", "WalkerWalk-v0", 1, [10, 20])
    zoo_folder(tmp_path, "apt", "WalkerRun-v0", 1, [10, 20])
    text = run(tmp_path, "--output", tmp_path / "report").stdout
    assert "there is no interval" in text and "Without apt: not all tasks are done." in text


@pytest.mark.slow
def test_methods_are_chosen_and_ordered(tmp_path):
    for algo in ("apt", "cesd", "diayn"):
        zoo_folder(tmp_path, algo, "WalkerRun-v0", 1, [10, 20])
    result = run(tmp_path, "--methods", "diayn", "apt", "--output", tmp_path / "report")
    assert "| task | diayn | apt | expert |" in result.stdout, result.stderr
    assert "There are no runs of cic: choose from" in run(tmp_path, "--methods", "cic").stderr
    twice = run(tmp_path, "--methods", "apt", "diayn", "apt", "--output", tmp_path / "report")
    assert "| apt | 1 |" in twice.stdout, "a method that is named twice counts once"


def test_runs_of_other_settings_are_no_seeds(tmp_path):
    from urlb_scores import read_runs

    row = {"task": "WalkerRun-v0", "seed": 0, "steps": "[1]", "returns": "[1]", "final_return": 1.0, "pretrain_steps": 10}
    rows = [{**row, "method": "cesd", "skill_choice": choice} for choice in ("random", "best")]
    pd.DataFrame([*rows, {**row, "method": "scratch", "skill_choice": "0"}]).to_csv(tmp_path / "runs.csv", index=False)
    names = read_runs([tmp_path / "runs.csv"]).method.tolist()
    assert names == ["cesd, skill_choice=random", "cesd, skill_choice=best", "scratch"]

    # Rows from before tasks had arguments of their own have none
    old, new = {**row, "method": "apt"}, {**row, "method": "apt", "task_params": '{"tau": 0.1}'}
    pd.DataFrame([old, new]).to_csv(tmp_path / "runs.csv", index=False)
    assert read_runs([tmp_path / "runs.csv"]).method.tolist() == ["apt, task_params=0", 'apt, task_params={"tau": 0.1}']


def test_repeats_of_a_task_are_no_seeds(tmp_path):
    row = {"method": "cesd", "task": "WalkerRun-v0", "steps": "[1, 2]"}
    runs = [
        {**row, "seed": seed, "repeat": repeat, "returns": f"[0, {end}]", "final_return": end}
        for seed, repeat, end in ((0, 0, 100.0), (0, 1, 300.0), (1, 0, 400.0))
    ]
    path = tmp_path / "runs.csv"
    pd.DataFrame(runs).to_csv(path, index=False)
    run(path, "--output", tmp_path / "report")
    scores = pd.read_csv(tmp_path / "report/scores.csv")
    assert scores.seed.tolist() == [0, 1] and scores.final_return.tolist() == [200.0, 400.0]


def test_no_value_is_one_value_however_it_is_written(tmp_path):
    from urlb_scores import read_runs

    row = {"method": "cesd", "task": "WalkerRun-v0", "seed": 101, "steps": "[1, 2]", "warm_up": "skills", "pretrain_steps": 10}
    finals = (("0", 0, "0.0", 100.0), ("0.0", 1, "0", 300.0), ('{"tau": 0.1}', 0, "states", 500.0))
    runs = [
        {**row, "task_params": params, "repeat": repeat, "chosen_by": by, "returns": f"[0, {final}]", "final_return": final}
        for params, repeat, by, final in finals
    ]
    pd.DataFrame([*runs, {**row, "method": "scratch", "repeat": 0, "returns": "[0, 1]", "final_return": 1.0}]).to_csv(
        tmp_path / "runs.csv", index=False
    )
    rows = read_runs([tmp_path / "runs.csv"]).set_index("method")
    assert rows.final_return.to_dict() == {
        "cesd, chosen_by=0, task_params=0": 200.0,
        'cesd, chosen_by=states, task_params={"tau": 0.1}': 500.0,
        "scratch": 1.0,
    }
    assert read_runs([tmp_path / "runs.csv"], {"pretrain_steps": "10"}).seed.tolist() == [101, 101, 101]


def test_the_end_of_a_run_can_be_several_evaluations(tmp_path):
    zoo_folder(tmp_path / "logs", "cesd", "WalkerRun-v0", 1, [10, 20, 60])
    text = run(tmp_path / "logs", "--last", "2", "--output", tmp_path / "report").stdout
    assert "| WalkerRun-v0 | 40 | 796 |" in text and "Of each run the mean of the last 2 evaluations." in text
    assert "A run has only 3 evaluations: pass --last 3 at most." in run(tmp_path / "logs", "--last", "4").stderr


def test_runs_as_they_were_at_an_earlier_step(tmp_path):
    zoo_folder(tmp_path / "logs", "cesd", "WalkerRun-v0", 1, [10, 20, 60])
    (steps,) = np.load(next((tmp_path / "logs").rglob("evaluations.npz")))["timesteps"][None]
    text = run(tmp_path / "logs", "--at", str(steps[2] - 1), "--output", tmp_path / "report").stdout
    assert "| WalkerRun-v0 | 20 | 796 |" in text and f"Runs as they were at step {steps[2] - 1} of the task." in text
    text = run(tmp_path / "logs", "--at", str(steps[1]), "--last", "2", "--output", tmp_path / "report").stdout
    assert "| WalkerRun-v0 | 15 | 796 |" in text
    message = f"A run has no evaluation before step {steps[0]}: pass --at {steps[0]} at least."
    assert message in run(tmp_path / "logs", "--at", str(steps[0] - 1)).stderr


def test_random_actions_keep_their_evaluation_at_the_end_of_other_runs(tmp_path):
    row = {"task": "WalkerRun-v0", "seed": 0, "eval_freq": 10}
    learned = {**row, "method": "cesd", "steps": "[10, 20, 30]", "returns": "[9, 30, 60]", "final_return": 60.0}
    played = {"method": "random", "eval_freq": 0, "steps": "[0, 30]", "returns": "[7, 7]", "final_return": 7.0001}
    both = [{**row, **played, "n_eval_episodes": n_eval_episodes} for n_eval_episodes in (10, 20)]
    pd.DataFrame([learned, *both]).to_csv(tmp_path / "runs.csv", index=False)
    result = run(tmp_path / "runs.csv", "--at", "10", "--output", tmp_path / "report")
    assert result.returncode == 0, result.stderr
    assert pd.read_csv(tmp_path / "report/scores.csv").final_return.tolist() == [9.0, 7.0001, 7.0001]
    result = run(tmp_path / "runs.csv", "--last", "3", "--output", tmp_path / "report")
    assert result.returncode == 0, result.stderr
    assert pd.read_csv(tmp_path / "report/scores.csv").final_return.tolist() == [33.0, 7.0001, 7.0001]
    assert "A run has only 3 evaluations" in run(tmp_path / "runs.csv", "--last", "4").stderr


#: A run of a task for each method, with the values of urlb.py where a setting does not apply
OF_METHODS = [
    {"method": "cesd", "skill_choice": "best", "pretrain_steps": 10, "pretrain_envs": 8, "eval_freq": 5, "task_params": 0},
    {"method": "scratch", "skill_choice": 0, "pretrain_steps": 0, "pretrain_envs": 1, "eval_freq": 5, "task_params": 0},
    {"method": "random", "skill_choice": 0, "pretrain_steps": 0, "pretrain_envs": 1, "eval_freq": 0, "task_params": 0},
]


def kept(folder, where, *changes):
    """Write the runs of all methods, and more of the first one; return the values of the runs that are kept."""
    from urlb_scores import read_runs

    runs = [*OF_METHODS, *({**OF_METHODS[0], **change} for change in changes)]
    common = {"task": "WalkerRun-v0", "seed": 0, "steps": "[1]", "returns": "[1]", "final_return": 1.0}
    pd.DataFrame([{**common, **of_run} for of_run in runs]).to_csv(folder / "runs.csv", index=False)
    rows = read_runs([folder / "runs.csv"], where)
    (setting,) = where
    return [f"{run.method}: {run[setting]}" for _, run in rows.iterrows()]


def test_the_first_skill_is_chosen_by_its_index_alone(tmp_path):
    without = ["scratch: 0", "random: 0"]
    assert kept(tmp_path, {"skill_choice": "best"}, {"skill_choice": 0}) == ["cesd: best", *without]
    assert kept(tmp_path, {"skill_choice": "0"}, {"skill_choice": 0}) == [*without, "cesd: 0"]
    with pytest.raises(ValueError, match=r"No run has skill_choice=0: choose from best\."):
        kept(tmp_path, {"skill_choice": "0"})


def test_runs_without_arguments_of_tasks_are_not_those_with_some(tmp_path):
    changed = {"task_params": '{"tau": 0.1}'}
    assert kept(tmp_path, changed, changed) == ["random: 0", 'cesd: {"tau": 0.1}']
    assert kept(tmp_path, {"task_params": "0"}, changed) == ["cesd: 0", "scratch: 0", "random: 0"]


@pytest.mark.parametrize(
    ("where", "expected"),
    [
        ({"pretrain_steps": "20"}, ["scratch: 0", "random: 0", "cesd: 20"]),
        ({"pretrain_envs": "4"}, ["scratch: 1", "random: 1", "cesd: 4"]),
        ({"eval_freq": "50"}, ["random: 0", "cesd: 50"]),
    ],
)
def test_methods_without_a_setting_are_kept(tmp_path, where, expected):
    assert kept(tmp_path, where, where) == expected


@pytest.mark.slow
def test_runs_are_chosen_by_their_settings(tmp_path):
    row = {"seed": 0, "steps": "[1, 2]", "returns": "[1, 2]", "final_return": 79.6, "domain": "Walker-v0"}
    skills = [
        {**row, "method": "cesd", "task": "WalkerRun-v0", "warm_up": warm_up, "final_return": final}
        for warm_up, final in (("random", 398), ("policy", 796))
    ]
    scratch = {**row, "method": "scratch", "task": "WalkerRun-v0", "warm_up": "0"}
    other_domain = {**row, "method": "scratch", "task": "QuadrupedRun-v0", "domain": "Quadruped-v0", "warm_up": "0"}
    runs = tmp_path / "runs.csv"
    pd.DataFrame([*skills, scratch, other_domain]).to_csv(runs, index=False)
    text = run(runs, "--where", "warm_up=policy", "domain=Walker-v0", "--output", tmp_path / "report").stdout
    assert "| cesd | 1 | 1.00 |" in text and "| scratch | 1 | 0.10 |" in text and "Quadruped" not in text
    assert "No run has warm_up=none: choose from policy, random." in run(runs, "--where", "warm_up=none").stderr
    assert "no setting 'warmup': choose from domain, warm_up" in run(runs, "--where", "warmup=policy").stderr
    assert "write it like warm_up=policy" in run(runs, "--where", "warm_up").stderr


def test_misuse_names_the_remedy(tmp_path):
    assert "pass runs.csv, or a folder of RL Zoo" in run(tmp_path).stderr
    pd.DataFrame({"method": ["cesd"]}).to_csv(tmp_path / "runs.csv")
    assert "pass the runs.csv of benchmarks/urlb.py" in run(tmp_path / "runs.csv").stderr
    zoo_folder(tmp_path, "cesd", "Pendulum-v1", 1, [1.0])
    assert "There is no expert return of Pendulum-v1" in run(tmp_path / "cesd").stderr


def test_runs_of_several_files_are_joined(tmp_path):
    """A run that both have is one, and what differs between the files is part of the name."""
    from urlb_scores import read_runs

    row = {"method": "cesd", "task": "WalkerRun-v0", "steps": "[1]", "returns": "[1]", "final_return": 1.0}
    for name, finetune_steps, eval_freq in (("a", 50, 10), ("b", 100, 10), ("c", 50, 20)):
        rows = [{**row, "seed": seed, "finetune_steps": finetune_steps, "eval_freq": eval_freq} for seed in range(2)]
        pd.DataFrame(rows).to_csv(tmp_path / f"{name}.csv", index=False)
    files = [tmp_path / f"{name}.csv" for name in "abc"]
    assert len(read_runs([files[0], files[0]])) == 2
    assert read_runs(files[:2]).method.value_counts().to_dict() == {
        "cesd, finetune_steps=50": 2,
        "cesd, finetune_steps=100": 2,
    }
    assert set(read_runs([files[0], files[2]]).method) == {"cesd, eval_freq=10", "cesd, eval_freq=20"}
    changed = pd.read_csv(files[0]).assign(final_return=2.0)
    changed.to_csv(tmp_path / "changed.csv", index=False)
    with pytest.raises(ValueError, match=r"different returns in two rows .*: it was done twice, delete one of the rows"):
        read_runs([files[0], tmp_path / "changed.csv"])
    zoo_folder(tmp_path / "logs", "cesd", "WalkerRun-v0", 1, [10, 20])
    with pytest.raises(ValueError, match=r"is of RL Zoo, .*: leave eval_freq out, or pass --methods"):
        read_runs([files[0], tmp_path / "logs"], {"eval_freq": "10"})


def test_curves_of_other_evaluations_are_drawn_at_their_steps(tmp_path):
    from report import draw_curves

    runs = [{"steps": np.array([10.0, 20, 30, 40]), "returns": np.array([1.0, 2, 3, 4])}]
    runs += [{"steps": np.array([20.0, 40]), "returns": np.array([2.0, 4])}]
    rows = pd.DataFrame(
        [{"method": "cesd", "task": "WalkerRun-v0", "seed": seed, **of_run} for seed, of_run in enumerate(runs)]
    )
    axes = draw_curves(rows, ["cesd"], ["WalkerRun-v0"]).axes[0]
    steps, means = axes.lines[0].get_data()
    assert np.asarray(steps).tolist() == [20, 30, 40] and np.asarray(means).tolist() == [2, 3, 4]
