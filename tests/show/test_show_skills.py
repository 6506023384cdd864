"""Showing skills from Python."""

import gymnasium as gym
import numpy as np
import pytest
from conftest import arguments
from gymnasium.envs.classic_control import PendulumEnv
from gymnasium.wrappers import NormalizeObservation
from shown import CLUSTERS, EVERYWHERE, LABELS, PLACES, model
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_cesd import APT, CeSD, show_skills
from sb3_cesd.metrics.plots import skill_colors
from sb3_cesd.show.choice import ChosenSkills, UntrainedSkills
from sb3_cesd.show.environments import NORMALIZATION

QUICK = {"n_steps": 6, "n_rollouts": 2, "n_frames": 0, "video": False}
NOT_MEASURED = {**QUICK, "n_rollouts": 0}


def seen(shown):
    return [rollout.observations for rollout in shown.rollouts]


def test_notebook_displays_figure_and_metrics():
    shown = show_skills(model("Walker-v0"), "Walker-v0", **QUICK)
    assert shown.title == "CeSD on Walker-v0, 0 steps of training" and shown.labels == LABELS
    assert EVERYWHERE | PLACES | CLUSTERS <= set(shown.metrics)
    assert set(shown.columns) == {"skills", "untrained", "chance"} and shown.columns["chance"]["knn_accuracy"] == 0.25
    html = shown._repr_html_()
    assert html.count("<img") == 1 and all(name in html and name in str(shown) for name in shown.metrics)
    assert repr(shown) == str(shown), "which a notebook stores, too: no arrays"


def test_skills_are_compared_with_the_same_networks_before_training():
    """Trained weights make the difference, and the model keeps them."""
    pendulum = make_small(CeSD, learning_rate=1e-2).learn(150)
    before = {name: value.clone() for name, value in pendulum.policy.state_dict().items()}
    untrained = UntrainedSkills(pendulum, seed=3)
    rows = np.random.default_rng(0).normal(size=(20, 3)).astype(np.float32)
    actions = [
        each.predict(rows, deterministic=True, skill=1)[0] for each in (pendulum, untrained, UntrainedSkills(pendulum, 3))
    ]
    assert (actions[0] != actions[1]).all() and (actions[1] == actions[2]).all()
    fresh = make_small(CeSD, seed=3).predict(rows, skill=1)[0]
    assert (actions[1] == fresh).all(), "what training with that seed begins with"
    assert (actions[1] != UntrainedSkills(pendulum, 4).predict(rows, deterministic=True, skill=1)[0]).all()
    assert all((value == before[name]).all() for name, value in pendulum.policy.state_dict().items())
    assert (pendulum.predict(rows, skill=1)[0] == actions[0]).all()
    shown = show_skills(pendulum, "Pendulum-v1", **QUICK, n_untrained=2)
    assert set(shown.columns["untrained"]) == set(shown.metrics) - CLUSTERS
    assert shown.columns["untrained"]["particle_entropy"] != shown.metrics["particle_entropy"]
    one = show_skills(pendulum, "Pendulum-v1", **QUICK, n_untrained=1)
    assert "--untrained 5 (n_untrained=5) averages five" in str(one) and "averages five" not in str(shown)


def test_some_skills_are_drawn_and_all_are_measured():
    all_of_them = show_skills(model("Pendulum-v1"), "Pendulum-v1", **QUICK)
    some = show_skills(model("Pendulum-v1"), "Pendulum-v1", skills=[3, 1], **QUICK)
    assert some.labels == ["3", "1"] and some.metrics == all_of_them.metrics
    assert all((ours == seen(all_of_them)[skill]).all() for ours, skill in zip(seen(some), [3, 1], strict=True))
    assert show_skills(model("Pendulum-v1"), "Pendulum-v1", skills=np.int64(2), **NOT_MEASURED).labels == ["2"]
    with pytest.raises(ValueError, match="Unknown skill 4: the model has 4 skills"):
        show_skills(model("Pendulum-v1"), "Pendulum-v1", skills=4)
    with pytest.raises(ValueError, match=r"skills=array of shape \(\) .* must be a skill or several"):
        show_skills(model("Pendulum-v1"), "Pendulum-v1", skills=np.array(2))


def test_continuous_skills_are_shown_by_index_or_vector():
    sphere = make_small(APT, skill_type="sphere", skill_dim=2)
    by_index = show_skills(sphere, "Pendulum-v1", skills=[1, 2], **QUICK)
    by_vector = show_skills(sphere, "Pendulum-v1", skills=[[0.0, 1.0], [-1.0, 0.0]], **NOT_MEASURED)
    assert by_index.labels == by_vector.labels == ["(0.00, 1.00)", "(-1.00, 0.00)"]
    assert all(np.allclose(*pair, atol=1e-5) for pair in zip(seen(by_index), seen(by_vector), strict=True))
    one = show_skills(sphere, "Pendulum-v1", skills=[0.6, 0.8], **NOT_MEASURED)
    assert one.labels == ["(0.60, 0.80)"]
    observations = np.zeros((2, 3), dtype=np.float32)
    chosen, _ = ChosenSkills(sphere, [[0.6, 0.8], 3]).predict(observations, deterministic=True, skill=np.array([0, 1]))
    alone = [sphere.predict(observations[0], skill=skill)[0] for skill in ([0.6, 0.8], 3)]
    assert np.allclose(chosen, alone, atol=1e-6) and abs(alone[0] - alone[1]) > 1e-4


def test_skills_of_many_dimensions_are_called_by_their_index():
    """An index is what ``--skill`` takes; the first two of many numbers tell them apart no better."""
    shown = show_skills(make_small(APT, skill_type="sphere", skill_dim=5), "Pendulum-v1", skills=[1, 3], **NOT_MEASURED)
    assert shown.labels == ["1", "3"]


def test_environment_without_an_id_has_to_be_passed():
    unnamed = make_small(APT, env=PendulumEnv())
    with pytest.raises(ValueError, match=r"has no id to make another one from: .*env to show_skills"):
        show_skills(unnamed)
    assert len(show_skills(unnamed, PendulumEnv(), **NOT_MEASURED).rollouts) == 4


class Twice(gym.ObservationWrapper):
    """Does not record its arguments, so Gymnasium can't make it anew."""

    def observation(self, observation):
        return 2 * observation


def test_any_form_of_environment():
    pendulum = model("Pendulum-v1")
    by_id = seen(show_skills(pendulum, "Pendulum-v1", **NOT_MEASURED))
    env = gym.make("Pendulum-v1", max_episode_steps=4)
    assert [len(rows) for rows in seen(show_skills(pendulum, env, **NOT_MEASURED))] == [5] * 4, "as it was made"
    for same in (None, make_vec_env("Pendulum-v1"), DummyVecEnv([lambda: gym.make("Pendulum-v1")]), pendulum.env):
        assert all(
            (ours == theirs).all() for ours, theirs in zip(seen(show_skills(pendulum, same, **QUICK)), by_id, strict=True)
        )
    doubled = seen(show_skills(pendulum, Twice(gym.make("Pendulum-v1")), **QUICK))
    assert (doubled[0][0] == 2 * by_id[0][0]).all()
    with pytest.raises(ValueError, match="env=3 must be an environment or the id of one or None: pass an environment"):
        show_skills(pendulum, 3)
    with pytest.raises(ValueError, match=r"model observes Box\(\(3,\), float32\)"):
        show_skills(pendulum, "Walker-v0")


class OnPlane(gym.Wrapper):
    """A point that has no height."""

    @property
    def position(self):
        return getattr(self.unwrapped, "state", None)


def test_places_in_the_plane_are_drawn_and_tabulated():
    plane = OnPlane(gym.make("Pendulum-v1"))
    shown = show_skills(model("Pendulum-v1"), plane, **QUICK)
    assert shown.metrics["policy_coverage"] >= 1
    for rollout in shown.rollouts:
        assert rollout.positions.shape == (rollout.n_steps + 1, 3)
        assert rollout.positions[:, :2].any() and not rollout.positions[:, 2].any()
    assert "moved x  moved y" in str(shown) and "mean z" not in str(shown)
    assert "<img" in shown._repr_html_()


def test_environments_of_the_caller_stay_as_they_are():
    env = VecNormalize(make_vec_env("Pendulum-v1", 2))
    env.reset()
    for _ in range(5):
        env.step(np.ones((2, 1), dtype=np.float32))
    mean = env.obs_rms.mean.copy()
    shown = show_skills(model("Pendulum-v1"), env, **QUICK)
    assert env.training and env.norm_obs and (env.obs_rms.mean == mean).all()
    env.step(np.ones((2, 1), dtype=np.float32))
    plain = show_skills(model("Pendulum-v1"), "Pendulum-v1", **NOT_MEASURED)
    assert not np.allclose(seen(shown)[0][0], seen(plain)[0][0]), "the model sees what the statistics make of observations"


def normalization(env):
    return {name: value for name, value in vars(env).items() if name in NORMALIZATION}


@pytest.mark.parametrize("own", [{}, {"norm_obs": False}, {"training": False, "clip_obs": 3.0, "epsilon": 0.1}])
def test_environments_of_the_caller_keep_their_statistics_where_others_are_shown(own):
    env, other = VecNormalize(make_vec_env("Pendulum-v1"), **own), VecNormalize(make_vec_env("Pendulum-v1"), clip_obs=2.0)
    for each in (env, other):
        each.reset()
        each.step(np.ones((1, 1), dtype=np.float32))
    before, mean = normalization(env), other.obs_rms.mean.copy()
    trained = make_small(APT, env=VecNormalize(make_vec_env("Pendulum-v1")))
    shown = show_skills(trained, env, vec_normalize=other, **QUICK)
    assert not any("VecNormalize" in note for note in shown.notes)
    after = normalization(env)
    assert after == before and after.get("obs_rms") is before.get("obs_rms")
    env.step(np.ones((1, 1), dtype=np.float32))
    assert (other.obs_rms.mean == mean).all(), "those that were shown do not learn from them"


def test_environments_of_the_caller_stay_as_they_are_where_they_can_not_be_shown():
    env, other = VecNormalize(make_vec_env("Pendulum-v1")), VecNormalize(make_vec_env("CartPole-v1"))
    before = normalization(env)
    with pytest.raises(ValueError, match="statistics of VecNormalize are of observations of shape"):
        show_skills(model("Pendulum-v1"), env, vec_normalize=other, **NOT_MEASURED)
    assert normalization(env) == before
    with pytest.raises(ValueError, match="n_trajectories and goal_range are for robots"):
        show_skills(model("Pendulum-v1"), env, goal_range=1.0, **NOT_MEASURED)
    assert normalization(env) == before


def test_model_shows_the_environment_it_learns_in():
    statistics = VecNormalize(make_vec_env("Pendulum-v1", 2))
    learner = make_small(CeSD, statistics).learn(60)
    shown = show_skills(learner, **QUICK)
    steps, mean = learner.num_timesteps, statistics.obs_rms.mean.copy()
    start, _ = gym.make("Pendulum-v1").reset(seed=0)
    assert np.allclose(seen(shown)[0][0], statistics.normalize_obs(start), atol=1e-5)
    learner.learn(20, reset_num_timesteps=False)
    assert learner.num_timesteps >= steps + 20 and (statistics.obs_rms.mean != mean).any(), "training goes on"
    learner.env = None
    with pytest.raises(ValueError, match=r"loaded without an environment: pass env, e\.g\. show_skills"):
        show_skills(learner)


def test_model_that_learned_a_task_shows_the_skill_that_did(tmp_path):
    pretrained = make_small(CeSD).learn(60)
    pretrained.save(tmp_path / "skills.zip")
    task = CeSD.from_pretrained(tmp_path / "skills.zip", "Pendulum-v1", skill=2, warm_up="random", device="cpu")
    shown = show_skills(task, "Pendulum-v1", **QUICK)
    assert shown.labels == ["2"] and len(shown.rollouts) == 1
    assert set(shown.metrics) == set(shown.columns["untrained"]) == {"mean_return", "mean_length"}
    assert shown.metrics["mean_length"] == 6 and shown.metrics["mean_return"] < 0
    assert show_skills(task, "Pendulum-v1", skills=2, **NOT_MEASURED).labels == ["2"]
    with pytest.raises(ValueError, match="learned a task with skill 2 alone: leave skills out"):
        show_skills(task, "Pendulum-v1", skills=1)
    for ignored in ({"n_trajectories": 4}, {"goal_range": 1.0}, {"mine": True}):
        with pytest.raises(ValueError, match="but the model learned a task with one: leave them out"):
            show_skills(task, "Pendulum-v1", **ignored, **QUICK)


@pytest.mark.parametrize("algo", ["cesd", "diayn", "dads"])
def test_mazes_are_drawn_from_rollouts_with_noise(algo):
    shown = show_skills(model("MazeSquareC-v0", algo), "MazeSquareC-v0", n_steps=20, n_rollouts=3, skills=[0, 2])
    (axes,) = shown.figure.axes
    paths = axes.collections[0]
    assert len(paths.get_segments()) == 2 * 3 and 0 < shown.metrics["policy_coverage"] < 1
    starts = np.array([path[0] for path in paths.get_segments()])
    assert np.ptp(starts, axis=0).max() == 0, "from one start"
    assert not shown.has_films and "share of the maze" in str(shown) and "[m]" not in str(shown)
    legend = shown.figure.legends[0]
    assert [text.get_text() for text in legend.get_texts()] == [shown.labels[0], shown.labels[1]]
    drawn_alone = show_skills(model("MazeSquareC-v0", algo), "MazeSquareC-v0", n_steps=5, n_rollouts=0)
    assert drawn_alone.metrics == {} and len(drawn_alone.figure.axes[0].collections[0].get_segments()) == 4


def test_titles_tell_real_lengths():
    hopper = model("Hopper-v5")
    shown = show_skills(hopper, "Hopper-v5", n_steps=100, n_rollouts=0, n_frames=0, video=False)
    lengths = [rollout.n_steps for rollout in shown.rollouts]
    assert max(lengths) < 100, "it falls"
    assert f"{min(lengths)} to {max(lengths)} steps per skill" in shown.figure.get_suptitle()
    assert [line.split()[2] for line in str(shown).splitlines()[1:5]] == [str(length) for length in lengths]
    short = show_skills(hopper, "Hopper-v5", **NOT_MEASURED)
    assert short.figure.get_suptitle().endswith("6 steps per skill")


def test_observations_that_are_dictionaries():
    class Pair(gym.ObservationWrapper):
        observation_space = gym.spaces.Dict({"a": gym.spaces.Box(-1, 1, (2,)), "b": gym.spaces.Box(-8, 8, (1,))})

        def observation(self, observation):
            return {"a": observation[:2], "b": observation[2:]}

    pair = CeSD("MlpPolicy", Pair(gym.make("Pendulum-v1")), seed=0, **arguments())
    shown = show_skills(pair, Pair(gym.make("Pendulum-v1")), **QUICK)
    assert seen(shown)[0].shape == (7, 3) and EVERYWHERE <= set(shown.metrics) and not PLACES & set(shown.metrics)


def test_images_among_the_entries_of_observations():
    """SB3 moves their channels first, in training and here."""

    class Camera(gym.ObservationWrapper):
        observation_space = gym.spaces.Dict(
            {"a": gym.spaces.Box(-8, 8, (3,)), "image": gym.spaces.Box(0, 255, (36, 36, 3), np.uint8)}
        )

        def observation(self, observation):
            return {"a": observation, "image": np.zeros((36, 36, 3), np.uint8)}

    seeing = CeSD("MlpPolicy", Camera(gym.make("Pendulum-v1")), seed=0, **arguments())
    assert seen(show_skills(seeing, Camera(gym.make("Pendulum-v1")), **NOT_MEASURED))[0].shape[1] == 3 + 36 * 36 * 3


def test_statistics_that_are_missing_are_told(tmp_path):
    trained = make_small(APT, env=VecNormalize(make_vec_env("Pendulum-v1")))
    trained.save(tmp_path / "model.zip")
    for again in (APT.load(tmp_path / "model.zip"), APT.load(tmp_path / "model.zip", env="Pendulum-v1")):
        notes = show_skills(again, "Pendulum-v1", **NOT_MEASURED).notes
        assert any(
            "VecNormalize normalised observations in training" in note and "--vec-normalize FILE" in note for note in notes
        )
        assert not show_skills(again, "Pendulum-v1", **QUICK).metrics
    far = make_small(APT, env=VecNormalize(make_vec_env("SkillAnt-v0")))
    far.save(tmp_path / "far.zip")
    assert not show_skills(
        APT.load(tmp_path / "far.zip"), "SkillAnt-v0", **{**QUICK, "n_trajectories": 4, "goal_range": 5.0}
    ).metrics
    told = show_skills(again, "Pendulum-v1", vec_normalize=trained.get_vec_normalize_env(), **NOT_MEASURED)
    assert not any("VecNormalize" in note for note in told.notes + show_skills(trained, **NOT_MEASURED).notes)


@pytest.mark.parametrize("env", [None, "Pendulum-v1"])
def test_that_training_was_normalised_is_kept_until_it_learns_otherwise(tmp_path, env):
    make_small(APT, env=VecNormalize(make_vec_env("Pendulum-v1"))).learn(10).save(tmp_path / "model.zip")
    APT.load(tmp_path / "model.zip", env).save(tmp_path / "again.zip")
    again = APT.load(tmp_path / "again.zip", "Pendulum-v1")
    assert again.trained_normalized
    with pytest.warns(UserWarning, match="those of its environment are not normalised"):
        again.learn(10)
    again.save(tmp_path / "plain.zip")
    assert not APT.load(tmp_path / "plain.zip").trained_normalized


@pytest.mark.parametrize("n_skills", [2, 10, 20, 21, 64])
def test_every_skill_has_a_colour_of_its_own(n_skills):
    colors = skill_colors(n_skills)
    assert len(set(colors)) == len(colors) == n_skills


@pytest.mark.parametrize("wrong", [{"n_steps": 0}, {"n_rollouts": -1}, {"n_untrained": 1.5}, {"video": "gif"}, {"seed": -1}])
def test_nonsense_is_refused(wrong):
    with pytest.raises(ValueError, match=rf"{next(iter(wrong))}="):
        show_skills(model("Pendulum-v1"), "Pendulum-v1", **wrong)


def test_skills_are_not_measured_by_new_statistics_of_a_wrapper():
    def make():
        return NormalizeObservation(gym.make("Pendulum-v1"))

    trained = make_small(APT, make()).learn(60)
    assert "knn_accuracy" in show_skills(trained, **QUICK).metrics, "its environment has those of training"
    trained.env = None
    shown = show_skills(trained, make(), **QUICK)
    assert not shown.metrics and any("NormalizeObservation are new" in note for note in shown.notes)


def test_one_rollout_is_compared_with_nothing():
    with pytest.raises(ValueError, match=r"n_rollouts=1 .*: pass 2 or more per skill"):
        show_skills(model("Pendulum-v1"), "Pendulum-v1", **{**QUICK, "n_rollouts": 1})
