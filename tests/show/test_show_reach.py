"""How far skills go, and what training had covered by then."""

import json

import gymnasium as gym
import numpy as np
import pytest
from shown import PLACES, QUICK, model, saved, show
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_cesd import APS, METRA, make_batched, show_skills
from sb3_cesd.export import export_policy, import_policy
from sb3_cesd.metrics import draw_goals, policy_coverage, zero_shot_goals
from sb3_cesd.show.choice import UntrainedSkills
from sb3_cesd.show.curves import logged_coverage

FEW = {"n_steps": 4, "n_rollouts": 2, "n_untrained": 0, "n_frames": 0, "video": False}
GOALS = {f"goal_{kind}_{radius}" for kind in ("hit", "end", "stay") for radius in (1, 3)} | {"goal_distance"}


@pytest.mark.parametrize(("method", "env_id"), [("metra", "SkillHalfCheetah-v0"), ("diayn", "SkillAnt-v0")])
def test_robots_of_metra_are_measured_as_in_its_paper(method, env_id):
    shown = show_skills(model(env_id, method), env_id, **{**FEW, "n_untrained": 1})
    assert {"policy_coverage_48"} | GOALS | PLACES <= set(shown.metrics) and "total_coverage" not in shown.metrics
    assert {"policy_coverage_48"} | GOALS <= set(shown.baselines["untrained"])
    assert "on 48 trajectories without noise" in str(shown) and "within 3 m at the end" in str(shown)
    env = make_vec_env(env_id, 50)
    reached = zero_shot_goals(model(env_id, method), env, draw_goals(env), n_steps=4)
    assert shown.metrics["goal_distance"] == reached.metrics()["goal_distance"]
    assert (reached.skills is None) == (method == "metra"), "which knows the way"


@pytest.mark.parametrize("method", ["metra", "aps", "diayn"])
def test_untrained_skills_reach_goals_by_the_same_protocol(method):
    """Before training, the model and what it is compared with are the same."""
    same = model("SkillHalfCheetah-v0", method)
    shown = show_skills(same, "SkillHalfCheetah-v0", goal_range=5, **{**FEW, "n_rollouts": 0, "n_untrained": 1})
    assert set(shown.metrics) == GOALS and shown.baselines["untrained"] == shown.metrics
    env = make_vec_env("SkillHalfCheetah-v0", 50)
    reached = zero_shot_goals(UntrainedSkills(same), env, draw_goals(env), n_steps=4)
    assert (reached.skills is None) == (method != "diayn"), "which does not know the way"


@pytest.mark.parametrize("method", [METRA, APS])
def test_untrained_skills_lead_to_goals_by_untrained_features(method):
    learned = make_small(method, learning_rate=1e-2).learn(150)
    before = {name: value.clone() for name, value in learned.intrinsic.state_dict().items()}
    obs, goals = np.random.default_rng(0).normal(size=(2, 20, 3)).astype(np.float32)
    skills, fresh = UntrainedSkills(learned, seed=3).goal_skill(obs, goals), make_small(method, seed=3).goal_skill(obs, goals)
    assert (skills == fresh).all(), "what training with that seed begins with"
    assert (skills != learned.goal_skill(obs, goals)).any()
    assert all((value == before[name]).all() for name, value in learned.intrinsic.state_dict().items())


def test_an_exported_policy_and_its_untrained_networks_do_not_know_the_way(tmp_path):
    policy = import_policy(export_policy(model("SkillHalfCheetah-v0", "metra"), tmp_path))
    env = make_vec_env("SkillHalfCheetah-v0", 50)
    for each in (policy, UntrainedSkills(policy)):
        assert zero_shot_goals(each, env, draw_goals(env), n_steps=4).skills is not None


def test_other_robots_are_measured_on_demand():
    walker = model("Walker-v0")
    plain = show_skills(walker, "Walker-v0", **FEW)
    assert not {name for name in plain.metrics if name.startswith(("policy_coverage_", "goal_"))}
    far = show_skills(walker, "Walker-v0", n_trajectories=5, goal_range=0.5, **FEW)
    env = make_batched("Walker-v0", 50, n_threads=1)
    assert far.metrics["policy_coverage_5"] == policy_coverage(walker, env, 5, n_steps=4)
    assert far.metrics["goal_hit_3"] == 1 and set(far.metrics) - set(plain.metrics) == {"policy_coverage_5"} | GOALS
    alone = show_skills(walker, "Walker-v0", goal_range=0.5, **{**FEW, "n_rollouts": 0})
    assert set(alone.metrics) == GOALS, "what was asked for"


def test_it_can_be_left_out():
    cheetah = model("SkillHalfCheetah-v0", "metra")
    shown = show_skills(cheetah, "SkillHalfCheetah-v0", n_trajectories=0, goal_range=0, **FEW)
    assert shown.metrics and not {name for name in shown.metrics if name.startswith(("policy_coverage_", "goal_"))}
    assert show_skills(cheetah, "SkillHalfCheetah-v0", **{**FEW, "n_rollouts": 0}).metrics == {}


@pytest.mark.parametrize("env_id", ["MazeSquareC-v0", "Pendulum-v1"])
@pytest.mark.parametrize("wanted", [{"n_trajectories": 2}, {"goal_range": 1.0}])
def test_places_of_a_robot_are_needed(env_id, wanted):
    with pytest.raises(ValueError, match="are for robots with a position: leave them out"):
        show_skills(model(env_id), env_id, **wanted, **FEW)


def test_a_position_that_is_no_place_is_told_by_its_shape():
    env = gym.make("Pendulum-v1").unwrapped
    env.position = np.zeros(4)
    with (
        pytest.warns(UserWarning, match="is ignored"),
        pytest.raises(ValueError, match=r"shape \(4,\), .* no place for n_trajectories and goal_range: let it be \(x, y\) or"),
    ):
        show_skills(model("Pendulum-v1"), DummyVecEnv([lambda: env]), goal_range=1.0, **FEW)


def test_arguments_of_the_command(tmp_path, monkeypatch):
    show(monkeypatch, saved("Walker-v0"), "--output", tmp_path, *QUICK, "--trajectories", 4, "--goal-range", 0.5)
    metrics = json.loads((tmp_path / "metrics.json").read_text())["skills"]
    assert metrics["goal_hit_3"] == 1 and metrics["policy_coverage_4"] >= 1
    with pytest.raises(SystemExit):
        show(monkeypatch, saved("Walker-v0"), "--goal-range", "far")


def test_coverage_of_training_is_that_of_the_log_when_the_model_was_saved(tmp_path, monkeypatch, capsys):
    path = tmp_path / "MazeSquareC-v0.zip"
    learner = model("MazeSquareC-v0", "diayn")
    monkeypatch.setattr(learner, "num_timesteps", 250)
    learner.save(path)
    rows = ["100,0.1,", "200,0.25,7", "210,,", "300,0.5,9"]
    (tmp_path / "progress.csv").write_text(
        "\n".join(["time/total_timesteps,skills/total_coverage,skills/queue_coverage", *rows])
    )
    show(monkeypatch, path, *QUICK)
    columns = json.loads((tmp_path / "MazeSquareC-v0_skills" / "metrics.json").read_text())
    assert (columns["skills"]["total_coverage"], columns["skills"]["queue_coverage"]) == (0.25, 7)
    assert "share of the maze that all of training visited" in capsys.readouterr().out
    assert logged_coverage(tmp_path, 99) == {} and logged_coverage(tmp_path, 199) == {"total_coverage": 0.1}
    assert logged_coverage(tmp_path / "elsewhere", 300) == {}
