"""Showing skills from Python."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.envs.classic_control import PendulumEnv
from shown import CLUSTERS, EVERYWHERE, NOT_MEASURED, PLACES, QUICK, model
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_cesd import APT, CeSD, show_skills
from sb3_cesd.envs.robots.gl import egl_works
from sb3_cesd.show.figures import draw_strips, grid_frames
from sb3_cesd.show.play import SkillRollout, UntrainedSkills

NO_EGL = pytest.mark.skipif(not egl_works(), reason="this machine has no EGL: install libegl1 libegl-mesa0 libgl1-mesa-dri")


def seen(shown):
    return [rollout.observations for rollout in shown.rollouts]


def labels(shown):
    return [rollout.label for rollout in shown.rollouts]


class Painted(PendulumEnv):
    """A pendulum that is drawn without a library."""

    def render(self):
        assert self.render_mode == "rgb_array"
        return np.full((36, 36, 3), 50, dtype=np.uint8)


class Twice(gym.ObservationWrapper):
    """Does not record its arguments, so Gymnasium can't make it anew."""

    def observation(self, observation):
        return 2 * observation


gym.register("Painted-v0", entry_point=Painted, max_episode_steps=20)


def test_robots_have_paths_and_metrics_beside_those_of_untrained_skills():
    shown = show_skills(model("Walker-v0"), "Walker-v0", **{**QUICK, "n_untrained": 1})
    assert shown.title == "CeSD on Walker-v0, 0 steps of training" and labels(shown) == ["0", "1", "2", "3"]
    assert EVERYWHERE | PLACES | CLUSTERS <= set(shown.metrics)
    assert set(shown.columns) == {"skills", "untrained", "chance"} and shown.columns["chance"]["knn_accuracy"] == 0.25
    starts = [rollout.observations[0] for rollout in shown.rollouts]
    assert (np.array(starts) == starts[0]).all() and (seen(shown)[0][-1] != seen(shown)[1][-1]).any()
    assert all(rollout.positions.shape == (7, 3) and rollout.n_steps == 6 for rollout in shown.rollouts)
    assert [axes.get_title() for panel in shown.figure.subfigs for axes in panel.axes] == ["path", "height"]
    html = shown._repr_html_()
    assert html.count("<img") == 1 and all(name in html and name in str(shown) for name in shown.metrics)
    assert repr(shown) == str(shown), "which a notebook stores, too: no arrays"
    assert "n_untrained=5" in str(shown), "one untrained network says little"


def test_report_opens_with_how_well_skills_can_be_told_apart_and_shows_nothing_that_is_always_zero():
    shown = show_skills(model("MazeSquareA-v0"), "MazeSquareA-v0", **{**QUICK, "n_untrained": 1})
    shown.metrics["knn_accuracy"], shown.baselines["untrained"]["knn_accuracy"] = 0.884, 0.39
    said = "Skills can be told apart: 88 %, untrained 39 %, chance 25 %."
    assert str(shown).startswith(said) and shown._repr_html_().index(said) < shown._repr_html_().index("<img")
    assert shown.skill_rows()[0] == ["skill", "steps", "moved x [m]", "moved y [m]"], "no return, no height"
    assert "knn_accuracy_places" not in shown.metrics, "a maze is observed by positions"
    flat = draw_strips([rollout._replace(frames=[]) for rollout in shown.rollouts], "", 0)
    assert [axes.get_title() for panel in flat.subfigs for axes in panel.axes] == ["path"]


@NO_EGL
@pytest.mark.slow
@pytest.mark.parametrize("env_id", ["Walker-v0", "Ant-v5"])
def test_robots_are_filmed(env_id, tmp_path):
    shown = show_skills(model(env_id), env_id, n_steps=5, n_rollouts=0, n_frames=2, skills=[1, 3])
    assert len(shown.notes) == 1 and "Nothing was learned" in shown.notes[0]
    assert all(len(rollout.frames) == 6 for rollout in shown.rollouts)
    first, *_, last = shown.rollouts[0].frames
    assert (first != last).any() and max(first.shape) <= 320
    images, paths = shown.figure.subfigs
    assert len(images.axes) == 4 and len(paths.axes) == (2 if env_id == "Walker-v0" else 1)
    assert shown._repr_html_().count("data:image/") == 2 and "skills.gif" in map(lambda file: file.name, shown.save(tmp_path))


def test_a_machine_that_can_not_render_says_so():
    class Broken(Painted):
        def render(self):
            raise RuntimeError("no display")

    env = Broken(render_mode="rgb_array")
    shown = show_skills(model(), env, **{**NOT_MEASURED, "n_frames": 2, "video": True})
    assert not shown.film and any("no display" in note for note in shown.notes)


@pytest.mark.parametrize("algo", ["cesd", "dads"])
def test_mazes_are_drawn_from_rollouts_with_noise(algo):
    shown = show_skills(model("MazeSquareC-v0", algo), "MazeSquareC-v0", n_steps=20, n_rollouts=3, skills=[0, 2])
    (axes,) = shown.figure.axes
    paths = axes.collections[0].get_segments()
    assert len(paths) == 2 * 3 and np.ptp([path[0] for path in paths], axis=0).max() == 0, "from one start"
    assert not shown.film and 0 < shown.metrics["policy_coverage"] < 1
    assert [text.get_text() for text in shown.figure.legends[0].get_texts()] == labels(shown)


def test_skills_are_compared_with_the_same_networks_before_training():
    """Trained weights make the difference, and the model keeps them."""
    pendulum = make_small(CeSD, learning_rate=1e-2).learn(150)
    before = {name: value.clone() for name, value in pendulum.policy.state_dict().items()}
    rows = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    trained, untrained = (
        each.predict(rows, deterministic=True, skill=1)[0] for each in (pendulum, UntrainedSkills(pendulum, seed=3))
    )
    assert (trained != untrained).all()
    assert (untrained == make_small(CeSD, seed=3).predict(rows, skill=1)[0]).all(), "what training with that seed begins with"
    assert all((value == before[name]).all() for name, value in pendulum.policy.state_dict().items())
    shown = show_skills(pendulum, "Pendulum-v1", **{**QUICK, "n_untrained": 2})
    assert set(shown.columns["untrained"]) == set(shown.metrics) - CLUSTERS
    assert shown.columns["untrained"]["particle_entropy"] != shown.metrics["particle_entropy"]


def test_some_skills_are_drawn_and_all_are_measured():
    everything = show_skills(model(), "Pendulum-v1", **QUICK)
    some = show_skills(model(), "Pendulum-v1", skills=[3, 1], **QUICK)
    assert labels(some) == ["3", "1"] and some.metrics == everything.metrics
    # Rounded differently in batches of other sizes
    assert all(np.allclose(ours, seen(everything)[skill], atol=1e-5) for ours, skill in zip(seen(some), [3, 1], strict=True))
    with pytest.raises(ValueError, match="skill 4"):
        show_skills(model(), "Pendulum-v1", skills=4)


def test_continuous_skills_are_shown_by_index_or_vector():
    sphere = make_small(APT, skill_type="sphere", skill_dim=2)
    by_index = show_skills(sphere, "Pendulum-v1", skills=[1, 2], **NOT_MEASURED)
    by_vector = show_skills(sphere, "Pendulum-v1", skills=[[0.0, 1.0], [-1.0, 0.0]], **NOT_MEASURED)
    assert labels(by_index) == labels(by_vector) == ["(0.00, 1.00)", "(-1.00, 0.00)"]
    assert all(np.allclose(*pair, atol=1e-5) for pair in zip(seen(by_index), seen(by_vector), strict=True))
    long = make_small(APT, skill_type="sphere", skill_dim=5)
    assert labels(show_skills(long, "Pendulum-v1", skills=[1, 3], **NOT_MEASURED)) == ["1", "3"], "what --skill takes"


def test_any_form_of_environment():
    by_id = seen(show_skills(model(), "Pendulum-v1", **NOT_MEASURED))
    env = gym.make("Pendulum-v1", max_episode_steps=4)
    assert [len(rows) for rows in seen(show_skills(model(), env, **NOT_MEASURED))] == [5] * 4, "as it was made"
    for same in (
        None,
        make_vec_env("Pendulum-v1"),
        DummyVecEnv([lambda: gym.make("Pendulum-v1")]),
        PendulumEnv(),
        model().env,
    ):
        # Skills act one by one in one environment, and together in several: sums may round differently
        np.testing.assert_allclose(seen(show_skills(model(), same, **QUICK)), by_id, atol=1e-5)
    doubled = seen(show_skills(model(), Twice(gym.make("Pendulum-v1")), **QUICK))
    assert (doubled[0][0] == 2 * by_id[0][0]).all()
    with pytest.raises(ValueError, match="model observes"):
        show_skills(model(), "Walker-v0")


def test_environments_without_an_id_or_a_model_without_one_have_to_be_told():
    unnamed = make_small(APT, env=PendulumEnv())
    for _ in range(2):
        with pytest.raises(ValueError, match=r"pass .*env"):
            show_skills(unnamed)
        unnamed.env = None


def test_what_was_made_is_closed_and_what_was_given_is_not(monkeypatch):
    made, closed = [], []
    reset = Painted.reset
    monkeypatch.setattr(Painted, "reset", lambda self, **kwargs: made.append(self) or reset(self, **kwargs))
    monkeypatch.setattr(Painted, "close", lambda self: closed.append(self))
    training_env = Twice(gym.make("Painted-v0"))
    learner = make_small(APT, training_env)
    for env in (None, training_env, "Painted-v0"):
        show_skills(learner, env, **QUICK)
        assert set(made) - set(closed) <= {training_env.unwrapped} and training_env.unwrapped not in closed
    assert len(set(made)) > 1


def test_model_shows_the_environment_it_learns_in(tmp_path):
    statistics = VecNormalize(make_vec_env("Pendulum-v1", 2))
    learner = make_small(CeSD, statistics).learn(60)
    steps, mean = learner.num_timesteps, statistics.obs_rms.mean.copy()
    start, _ = gym.make("Pendulum-v1").reset(seed=0)
    for env in (None, "Pendulum-v1", gym.make("Pendulum-v1"), make_vec_env("Pendulum-v1")):
        shown = show_skills(learner, env, **QUICK)
        assert np.allclose(seen(shown)[0][0], statistics.normalize_obs(start), atol=1e-5)
    learner.learn(20, reset_num_timesteps=False)
    assert learner.num_timesteps >= steps + 20 and (statistics.obs_rms.mean != mean).any(), "training goes on"
    learner.save(tmp_path / "model.zip")
    with pytest.raises(ValueError, match="VecNormalize"):
        show_skills(CeSD.load(tmp_path / "model.zip"), "Pendulum-v1", **QUICK)


def test_model_that_learned_a_task_shows_the_skill_that_did(tmp_path):
    make_small(CeSD).learn(60).save(tmp_path / "skills.zip")
    task = CeSD.from_pretrained(tmp_path / "skills.zip", "Pendulum-v1", skill=2, warm_up="random", device="cpu")
    shown = show_skills(task, "Pendulum-v1", **{**QUICK, "n_steps": None, "n_untrained": 1})
    assert labels(shown) == ["2"] and "learned the task" in shown._repr_html_()
    assert set(shown.metrics) == set(shown.columns["untrained"]) == {"mean_return", "mean_length"}
    assert shown.metrics["mean_length"] == 200 and shown.metrics["mean_return"] < 0, "whole episodes"


@pytest.mark.parametrize("wrong", [{"n_steps": 0}, {"n_rollouts": -1}, {"seed": -1}])
def test_nonsense_is_refused(wrong):
    with pytest.raises(ValueError, match=f"{next(iter(wrong))}="):
        show_skills(model(), "Pendulum-v1", **{**QUICK, **wrong})


@pytest.mark.parametrize(("n_films", "n_columns"), [(1, 1), (5, 5), (8, 4), (10, 5), (12, 4), (16, 4), (32, 8)])
def test_films_stand_side_by_side_and_those_that_have_ended_stay(n_films, n_columns):
    """Not seven films and one below them."""
    frames = [
        [np.full((10, 20, 3), value, dtype=np.uint8) for value in (0, 100)[: 1 + (index == 0)]] for index in range(n_films)
    ]
    rollouts = [SkillRollout(str(index), 0.0, np.zeros((3, 1)), None, each) for index, each in enumerate(frames)]
    images = [np.asarray(image) for image in grid_frames(rollouts)]
    assert len(images) == 2 and images[0].shape == (36 * -(-n_films // n_columns), 24 * n_columns, 3)
    tiles = [[image[22:32, 24 * column : 24 * column + 20] for column in range(min(n_films, n_columns))] for image in images]
    assert (np.array(tiles[0]) == 0).all() and (tiles[1][0] == 100).all() and (np.array(tiles[1][1:]) == 0).all()
    assert (images[0][:22] != 255).any(), "and have labels"
