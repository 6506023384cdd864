"""Playing skills for pictures: from one start, to the end of the episode, with images where there are any."""

import os
import subprocess
import sys
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
from shown import LABELS, model
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.skills import make_skill_space
from sb3_cesd.envs.robots.gl import egl_works
from sb3_cesd.show.environments import PlayEnvs
from sb3_cesd.show.labels import by_chance, meaning, name_label, skill_labels
from sb3_cesd.show.paths import fit_projection
from sb3_cesd.show.play import SkillRollout, play_all, shrunk
from sb3_cesd.show.strips import draw_strips
from sb3_cesd.show.tables import metrics_table, skill_rows, skill_table

NO_EGL = pytest.mark.skipif(not egl_works(), reason="this machine has no EGL: install libegl1 libegl-mesa0 libgl1-mesa-dri")
MUJOCO = ["Ant-v5", "HalfCheetah-v5", "Humanoid-v5", "Hopper-v5", "Reacher-v5"]
#: In a process of its own, as MuJoCo chooses how to render when it is imported
RENDER_MUJOCO = """
import sys
from shown import model
from sb3_cesd import show_skills
for env_id in sys.argv[1:]:
    shown = show_skills(model(env_id), env_id, n_steps=2, n_rollouts=0, n_frames=2, video=False, skills=0)
    assert [len(rollout.frames) for rollout in shown.rollouts] == [2], shown.notes
    assert not (shown.rollouts[0].frames[0] == shown.rollouts[0].frames[0][0, 0]).all(), "an empty image"
    print("shown", env_id)
"""


def envs(env_id, statistics=None, **kwargs):
    return PlayEnvs(env_id, partial(gym.make, env_id, **kwargs), statistics=statistics)


def rollout(n_steps, n_frames=0, **kwargs):
    frames = [np.full((4, 4, 3), index, dtype=np.uint8) for index in range(n_frames)]
    return SkillRollout(0, 1.5, np.random.default_rng(n_steps).normal(size=(n_steps + 1, 3)), kwargs.get("positions"), frames)


def test_skills_start_alike_and_part():
    rollouts, problem = play_all(model("Walker-v0"), envs("Walker-v0").one, range(4), n_steps=30)
    assert [rollout.skill for rollout in rollouts] == [0, 1, 2, 3] and problem is None
    for rollout in rollouts:
        assert rollout.observations.shape == (31, 24) and rollout.positions.shape == (31, 3) and rollout.frames == []
        assert (rollout.observations[0] == rollouts[0].observations[0]).all() and rollout.n_steps == 30
    assert (rollouts[0].observations[-1] != rollouts[1].observations[-1]).any()
    assert len(skill_table(rollouts, LABELS).splitlines()) == 5
    figure = draw_strips(rollouts, LABELS, "title", 3)
    assert [len(panel.axes) for panel in figure.subfigs] == [2], "path and height, no images"


@NO_EGL
def test_images_of_every_skill():
    rollouts, _ = play_all(model("Walker-v0"), envs("Walker-v0").one, range(4), n_steps=10, n_frames=3)
    assert all(len(rollout.frames) == 3 for rollout in rollouts)
    assert (rollouts[0].frames[0] != rollouts[0].frames[2]).any()
    assert [len(panel.axes) for panel in draw_strips(rollouts, LABELS, "title", 3).subfigs] == [12, 2]


@NO_EGL
def test_robots_of_gymnasium_render_without_a_display():
    environment = {
        name: value for name, value in os.environ.items() if name not in ("MUJOCO_GL", "DISPLAY", "WAYLAND_DISPLAY")
    }
    environment |= {"PYTHONPATH": os.pathsep.join(sys.path), "OMP_NUM_THREADS": "1"}
    result = subprocess.run(
        [sys.executable, "-c", RENDER_MUJOCO, *MUJOCO], env=environment, capture_output=True, text=True, timeout=300
    )
    assert result.returncode == 0, result.stderr[-3000:]
    assert result.stdout.split() == [word for env_id in MUJOCO for word in ("shown", env_id)]


def test_film_ends_with_the_episode_and_starts_anew():
    """Each skill is played from the same start, to the end of its episode, and what is normalised is what the model sees."""
    statistics = VecNormalize(make_vec_env("Pendulum-v1", seed=1))
    statistics.reset()
    for _ in range(20):
        statistics.step(np.zeros((1, 1), dtype=np.float32))
    pendulum = model("Pendulum-v1")
    rollouts, _ = play_all(pendulum, envs("Pendulum-v1", statistics, max_episode_steps=8).one, range(4), n_steps=20, seed=5)
    env = gym.make("Pendulum-v1", max_episode_steps=8)
    for skill, rollout in enumerate(rollouts):
        observation, _ = env.reset(seed=5)
        seen, episode_return = [statistics.normalize_obs(observation)], 0.0
        for _ in range(8):
            action, _ = pendulum.predict(seen[-1], skill=skill)
            observation, reward, *_ = env.step(action)
            seen.append(statistics.normalize_obs(observation))
            episode_return += reward
        assert np.array_equal(rollout.observations, seen) and rollout.positions is None and rollout.n_steps == 8
        assert rollout.episode_return == pytest.approx(episode_return, rel=1e-6)


class Silent(gym.Wrapper):
    """Renders as its metadata say, or not at all."""

    def __init__(self, env, modes, error=None):
        super().__init__(env)
        self.metadata, self.error = {"render_modes": modes}, error

    def render(self):
        if self.error is not None:
            raise self.error
        return None


class FatalError(Exception):
    """As that of MuJoCo, which is derived from nothing else."""


@pytest.mark.parametrize(
    ("modes", "error", "message"),
    [
        ([], None, "the environment renders nothing, not 'rgb_array'."),
        (["human", "ansi"], None, "the environment renders human, ansi, not 'rgb_array'."),
        (["rgb_array"], FatalError("no OpenGL here"), "no OpenGL here"),
        (["rgb_array"], None, "the environment returned no image"),
    ],
)
def test_environment_without_images(modes, error, message):
    def make(render_mode=None):
        return Silent(gym.make("Pendulum-v1", render_mode=render_mode), modes, error)

    rollouts, problem = play_all(model("Pendulum-v1"), PlayEnvs("Silent", make).one, range(2), n_steps=3, n_frames=2)
    assert all(rollout.frames == [] for rollout in rollouts) and message in problem
    figure = draw_strips(rollouts, LABELS[:2], "title", 6)
    assert figure.get_size_inches().min() > 4, "not a strip of some pixels"
    (panel,) = figure.subfigs
    assert panel.axes[0].get_title() == "observations, projected" and len(panel.axes[0].lines) >= 2


def test_strips_of_episodes_of_different_lengths_show_the_same_moments():
    figure = draw_strips([rollout(50, 6), rollout(20, 3), rollout(1, 1)], LABELS[:3], "title", 6)
    images, _ = figure.subfigs
    assert len(images.axes) == 6 + 3 + 1, "a row ends where its episode does"
    shown = [int(axes.images[0].get_array().max()) for axes in images.axes]
    assert shown == [0, 1, 2, 3, 4, 5, 0, 1, 2, 0]
    assert images.axes[6].get_ylabel() == "skill 1\nreturn 2\n20 steps"


def test_projection_shows_the_most_of_the_variance():
    rng = np.random.default_rng(0)
    plane, _ = np.linalg.qr(rng.normal(size=(7, 2)))
    points = rng.normal(size=(3000, 2)) * [5.0, 2.0]
    projection = fit_projection(points @ plane.T + 3.0 + 1e-3 * rng.normal(size=(3000, 7)))
    assert projection.shares.sum() == pytest.approx(1.0, abs=1e-4) and projection.shares[0] == pytest.approx(25 / 29, abs=0.05)
    found = projection(points @ plane.T + 3.0)
    assert np.abs(np.corrcoef(found.T, points.T)[:2, 2:]) == pytest.approx(np.eye(2), abs=0.1)
    assert fit_projection(np.ones((5, 1)))(np.ones((5, 1))).shape == (5, 1), "a single number that never changes"


def test_large_images_shrink_and_small_ones_stay():
    assert shrunk(np.zeros((480, 240, 3), dtype=np.uint8), 160).shape == (160, 80, 3)
    small = np.zeros((84, 84, 3), dtype=np.uint8)
    assert shrunk(small, 160) is small


def test_labels_of_skills():
    assert skill_labels(make_skill_space("discrete", 4)) == LABELS
    sphere = make_skill_space("sphere", 4, 2)
    assert skill_labels(sphere) == ["(1.00, 0.00)", "(0.00, 1.00)", "(-1.00, 0.00)", "(0.00, -1.00)"]
    assert skill_labels(make_skill_space("sphere", 8, 2))[1] == "(0.71, 0.71)"
    assert skill_labels(make_skill_space("unit_cube", 4, 64)) == LABELS
    assert all(label.startswith("(") and "," not in label for label in skill_labels(make_skill_space("cube", 4, 1)))
    assert name_label(2, sphere) == "(-1.00, 0.00)" and name_label([0.6, -0.8], sphere) == "(0.60, -0.80)"
    assert name_label([0.1] * 5, make_skill_space("cube", 4, 5)) == "(0.10, 0.10, …)"


def test_skills_are_told_by_their_labels():
    positions = np.arange(12.0).reshape(4, 3)
    rollouts = [rollout(3, positions=positions)] * 4
    labels = skill_labels(make_skill_space("sphere", 4, 2))
    lines = skill_table(rollouts, labels).splitlines()
    assert [line.split("  ")[0].strip() for line in lines[1:]] == labels
    assert len({len(line) for line in lines}) == 1, "columns are aligned"
    assert "moved x [m]" in lines[0] and "mean z [m]" in lines[0]
    legend = draw_strips(rollouts, labels, "title", 0).subfigs[0].axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [f"skill {label}" for label in labels]
    flat = skill_table([rollout(3, positions=positions * [1, 1, 0])], ["0"]).splitlines()
    assert flat[0].split("  ")[-1] == "moved y", "no height and no metres in a maze"


def test_robot_on_a_line_has_no_column_of_zeros():
    on_a_line = np.arange(12.0).reshape(4, 3) * [1, 0, 1]
    header, *rows = skill_rows([rollout(3, positions=on_a_line)] * 2, LABELS[:2])
    assert header == ["skill", "return", "steps", "moved x [m]", "mean z [m]"]
    assert [row[3:] for row in rows] == [["9.00", "6.50"]] * 2
    sideways = rollout(3, positions=on_a_line + np.outer(np.arange(4), [0, 1, 0]))
    assert skill_rows([rollout(3, positions=on_a_line), sideways], LABELS[:2])[0][4] == "moved y [m]", "one of them does"
    still_in_a_maze = [rollout(3, positions=on_a_line * [1, 1, 0])]
    assert skill_rows(still_in_a_maze, ["0"])[0][3:] == ["moved x", "moved y"], "which has two axes all the same"


def test_metrics_are_told_beside_what_they_are_compared_with():
    metrics = {"knn_accuracy": 0.5, "mutual_information": 1.0, "particle_entropy": 2.0}
    chance = by_chance(metrics, 4)
    assert chance == {"knn_accuracy": 0.25, "mutual_information": 0.0}
    lines = metrics_table({"skills": metrics, "chance": chance}, 4, "maze").splitlines()
    assert lines[0].split() == ["metric", "skills", "chance"]
    assert lines[1].split()[:3] == ["knn_accuracy", "0.500", "0.250"] and lines[3].split()[:3] == [
        "particle_entropy",
        "2.000",
        "-",
    ]
    assert "log(n_skills) = 1.39" in lines[2]
    kinds = [meaning("policy_coverage", 4, kind) for kind in ("maze", "arm", "other")]
    assert [text.split(" that")[0] for text in kinds] == [
        "share of the maze",
        "number of bins of 0.1 m",
        "number of bins of 1 m",
    ]
    assert meaning("of_a_method_to_come", 4, "maze") == ""
