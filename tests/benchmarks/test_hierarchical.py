"""METRA's robots in the benchmarks: pre-trained, measured by coverage and goals, and chosen among by an algorithm on top."""

import json
import sys
from functools import partial

import numpy as np
import pandas as pd
import pytest

from sb3_cesd.common.skills import DiscreteSkills, SphereSkills
from sb3_cesd.metrics import draw_goals, play_and_score, policy_coverage, zero_shot_goals


@pytest.fixture(scope="module")
def pretrained(tmp_path_factory):
    """A folder with models, and the row of one."""
    folder = tmp_path_factory.mktemp("results")
    run = {"method": "metra", "domain": "SkillAnt-v0", "scale": "laptop", "seed": 0, "pretrain_steps": 300, "n_envs": 8}
    with pytest.MonkeyPatch.context() as monkeypatch:
        import urlb_run

        # Short episodes and few goals
        monkeypatch.setattr(urlb_run, "N_STEPS", 60)
        monkeypatch.setattr(urlb_run, "play_and_score", partial(play_and_score, n_episodes=16, n_steps=20))
        monkeypatch.setattr(urlb_run, "policy_coverage", partial(policy_coverage, n_steps=20))
        monkeypatch.setattr(urlb_run, "draw_goals", partial(draw_goals, n_goals=4))
        monkeypatch.setattr(urlb_run, "zero_shot_goals", partial(zero_shot_goals, n_steps=20))
        return folder, urlb_run.pretrain(run, folder / "models")


def main_of(script, arguments, monkeypatch):
    """Call a script in this process."""
    monkeypatch.setattr(sys, "argv", [script, *arguments.split()])
    __import__(script).main()


def test_metras_robots_are_measured_by_coverage_and_goals(pretrained):
    _, row = pretrained
    names = [f"goal_{kind}_{radius}" for kind in ("hit", "end", "stay") for radius in (3, 1)]
    assert all(0 <= row[name] <= 1 for name in names) and row["goal_distance"] > 1
    assert row["policy_coverage_48"] >= 1 and row["total_coverage"] >= row["queue_coverage"] >= 1
    assert not [name for name in row if name.startswith("best_skill")]


def test_pretraining_of_metras_robots_has_no_tasks(monkeypatch, capsys, tmp_path):
    main_of("urlb", f"--domains SkillAnt-v0 Walker-v0 --methods cesd --seeds 1 --dry-run --output {tmp_path}", monkeypatch)
    lines = [line.split() for line in capsys.readouterr().out.splitlines() if "method=" in line]
    steps = {line[1]: line[4] for line in lines if len(line) == 6}
    assert steps == {"domain=SkillAnt-v0": "pretrain_steps=2000000", "domain=Walker-v0": "pretrain_steps=300000"}
    assert {line[1] for line in lines if len(line) > 6} == {"domain=Walker-v0"}


def test_estimates_do_not_mix_robots_with_other_ratios_of_updates():
    from urlb import LOCOMOTION_STEPS_PER_SECOND, estimate_pretraining

    rows = pd.DataFrame({"method": "apt", "domain": ["Walker-v0"], "scale": "laptop", "seconds": 5.0, "pretrain_steps": 10})
    run = {"method": "apt", "scale": "laptop", "pretrain_steps": 700}
    assert estimate_pretraining({**run, "domain": "Walker-v0"}, rows) == 350
    on_ant = {**run, "domain": "SkillAnt-v0"}
    assert estimate_pretraining(on_ant, rows) == 700 / LOCOMOTION_STEPS_PER_SECOND["laptop"]
    assert estimate_pretraining(on_ant, rows.assign(domain="SkillHalfCheetah-v0")) == 350


def test_estimates_do_not_mix_scales():
    from urlb import STEPS_PER_SECOND, estimate_pretraining

    rows = pd.DataFrame({"method": "apt", "domain": ["Walker-v0"], "scale": "laptop", "seconds": 5.0, "pretrain_steps": 10})
    run = {"method": "cesd", "domain": "Walker-v0", "scale": "laptop", "pretrain_steps": 700}
    assert estimate_pretraining(run, rows) == 350
    assert estimate_pretraining({**run, "scale": "published"}, rows) == 700 / STEPS_PER_SECOND["published"][0]


def test_a_method_is_transferred_as_it_was_published(monkeypatch, capsys, tmp_path):
    def transfers(options):
        main_of("urlb", f"--methods protorl apt --seeds 1 {options} --dry-run --output {tmp_path}", monkeypatch)
        words = [line.split() for line in capsys.readouterr().out.splitlines() if "transfer=" in line]
        return {(line[0], word) for line in words for word in line if word.startswith("transfer=")}

    assert transfers("") == {
        ("method=protorl", "transfer=actor+critic_head+critic_trunk"),
        ("method=apt", "transfer=actor+critic_trunk"),
    }
    assert transfers("--transfer actor") == {("method=protorl", "transfer=actor"), ("method=apt", "transfer=actor")}


def rows_of(folder):
    return pd.read_csv(folder / "hierarchical.csv").set_index(["method", "controller"])


def test_whole_benchmark_in_small(pretrained, monkeypatch, capsys):
    folder, _ = pretrained
    monkeypatch.setattr("hierarchical.run_missing", in_this_process)
    small = f"--seeds 1 --pretrain-steps 300 --steps 6400 --eval-freq 6400 --n-eval-episodes 1 --jobs 1 --output {folder}"
    main_of("hierarchical", f"--methods metra scratch random {small}", monkeypatch)
    main_of("hierarchical", f"--methods metra --controller dqn {small}", monkeypatch)
    rows = rows_of(folder)
    assert list(rows.index) == [("metra", "ppo"), ("scratch", "ppo"), ("random", "0"), ("metra", "dqn")]
    assert rows.pretrain_steps.tolist() == [300, 0, 0, 300] and rows.n_skills.tolist() == [8, 0, 0, 8]
    assert [json.loads(steps) for steps in rows.steps] == [[6400], [6400], [0, 6400], [6400]], "steps of the environment"
    assert rows.final_return.between(0, 200).all()
    for (method, controller), row in rows.iterrows():
        (file,) = folder.glob(f"hierarchical_evaluations/{method}_*_{controller}_*/evaluations.npz")
        evaluations = np.load(file)
        assert row.final_return == pytest.approx(evaluations["results"][-1].mean())
        assert evaluations["ep_lengths"][-1].tolist() == [8 if method == "metra" else 200], "8 choices of 25 steps"

    # Nothing is done again
    capsys.readouterr()
    main_of("hierarchical", f"--methods metra scratch random {small}", monkeypatch)
    assert "3 runs, 3 of them done already" in capsys.readouterr().out and len(rows_of(folder)) == 4


def test_paths_of_skills_are_drawn_of_the_models_that_are_there(pretrained, monkeypatch, capsys, tmp_path):
    folder, _ = pretrained
    monkeypatch.setattr("skill_paths.N_STEPS", 3)
    main_of("skill_paths", f"{folder} --pretrain-steps 300 --output {tmp_path}", monkeypatch)
    assert "Wrote" in capsys.readouterr().out and (tmp_path / "paths_SkillAnt-v0.png").stat().st_size > 5000
    drawn = (tmp_path / "paths_SkillAnt-v0.png").read_bytes()
    (tmp_path / "elsewhere").mkdir()
    main_of("skill_paths", f"{tmp_path / 'elsewhere'} --pretrain-steps 300 --output {tmp_path}", monkeypatch)
    assert (tmp_path / "paths_SkillAnt-v0.png").read_bytes() == drawn, "of the paths that were kept, without any model"
    kept = np.load(tmp_path / "paths_SkillAnt-v0.npz")
    assert all(kept[name].shape[2:] == (4, 3) and "SkillAnt-v0_laptop_0_300" in name for name in kept.files) and kept.files
    for arguments, message in (
        ("--methods lsd", "train it with urlb.py, or pass other --methods"),
        ("--seed 1", "train some with urlb.py, or pass another --seed"),
    ):
        with pytest.raises(SystemExit):
            main_of("skill_paths", f"{folder} --pretrain-steps 300 {arguments}", monkeypatch)
        assert message in " ".join(capsys.readouterr().err.split())


@pytest.mark.parametrize(("space", "shape"), [(DiscreteSkills(5), (5, 9, 4, 3)), (SphereSkills(5, 2), (48, 1, 4, 3))])
def test_each_path_is_of_its_skill(monkeypatch, space, shape):
    import skill_paths

    class Model:
        """Its actions are its skill."""

        skill_space, n_skills = space, 5

        def __init__(self):
            self.played = []

        def predict(self, observation, *, deterministic, skill):
            self.played.append(skill)
            return np.zeros((len(skill), 8), dtype=np.float32), None

    monkeypatch.setattr(skill_paths, "N_STEPS", 3)
    model = Model()
    paths = skill_paths.paths_of_skills(model, "SkillAnt-v0", seed=0)
    assert paths.shape == shape and np.ptp(paths[..., 0, :2]) < 0.5, "all start near the origin"
    if space.discrete:
        assert model.played[0][:45].tolist() == np.repeat(np.arange(5), 9).tolist()
    else:
        angles = np.arctan2(model.played[0][:, 1], model.played[0][:, 0])
        assert (np.diff(angles) > 0).all(), "in the order of their directions, as colours are"


def in_this_process(runs, run_one, path, n_jobs, *others):
    """Do what is missing without workers, which take long to start."""
    from runs import append_row, keys_of, read_rows, run_missing

    for run in runs:
        if tuple(map(str, run.values())) not in keys_of(read_rows(path), run, {}):
            append_row(path, {**run, **run_one(run)})
    return run_missing(runs, pytest.fail, path, n_jobs, *others)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ("--methods lsd --seeds 1", "train it with python benchmarks/urlb.py --methods lsd --domains SkillAnt-v0"),
        ("--controller dqn --methods scratch", "leave scratch out or pass --controller ppo"),
        ("--eval-freq 500000", "learning ends after 400000 steps, pass no more"),
        ("--steps 120000", "the last one would be before the end, pass a divisor of 120000"),
        ("--steps 300 --eval-freq 30", "a skill takes 25 steps, pass a multiple of that"),
        ("--models . --methods lsd --seeds 1", "--output FOLDER, and pass --models FOLDER"),
        ("--steps 24", "pass 25 or more"),
        ("--seeds 1 2 3", "pass the number of seeds, or the first"),
        ("--models nowhere", "pass a file or folder that exists"),
    ],
)
def test_misuse_names_the_remedy(arguments, message, monkeypatch, capsys, tmp_path):
    with pytest.raises(SystemExit) as end:
        main_of("hierarchical", f"{arguments} --output {tmp_path / 'results'}", monkeypatch)
    assert end.value.code == 2 and message in capsys.readouterr().err and not list(tmp_path.iterdir())


def test_goals_that_are_learned_need_no_models(monkeypatch, capsys, tmp_path):
    from hierarchical import entry_steps

    robot, steps = "SkillAnt-v0", entry_steps("laptop", "SkillAnt-v0")
    run = {"method": "lsd", "domain": robot, "task": "AntMultiGoal", "scale": "laptop", "seed": 0, "pretrain_steps": steps}
    run |= {"controller": "ppo", "n_timesteps": 400_000, "eval_freq": 50_000, "n_eval_episodes": 20}
    pd.DataFrame([run]).to_csv(tmp_path / "hierarchical.csv", index=False)
    main_of("hierarchical", f"--methods lsd --seeds 1 --output {tmp_path}", monkeypatch)
    assert "1 runs, 1 of them done already" in capsys.readouterr().out


def test_domains_without_tasks_need_a_method_that_learns_skills(monkeypatch, capsys):
    with pytest.raises(SystemExit):
        main_of("urlb", "--methods scratch --domains SkillAnt-v0 --dry-run", monkeypatch)
    assert "pass a method that learns skills, or a domain with tasks" in capsys.readouterr().err
