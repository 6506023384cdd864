import json
import os
import subprocess
import sys
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import yaml
from PIL import Image
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.skills import make_skill_space
from sb3_cesd.envs.robots.gl import egl_works
from sb3_cesd.metrics.plots import draw_maze_panels
from sb3_cesd.registry import METHODS
from sb3_cesd.show import __main__ as command
from sb3_cesd.show.find import find_algorithm, find_env_id, find_env_kwargs, load_model
from sb3_cesd.show.labels import skill_labels
from sb3_cesd.show.robots import draw, play_all, table
from sb3_cesd.show.video import grid_frames, write_video

METRICS = {
    "coverage", "mutual_information", "knn_accuracy", "particle_entropy", "on_cluster_share", "cluster_size_entropy",
}  # fmt: skip
#: Of four discrete skills
LABELS = ["0", "1", "2", "3"]


@pytest.fixture(scope="module")
def walker_model(tmp_path_factory):
    from conftest import TINY

    from sb3_cesd import CeSD

    path = tmp_path_factory.mktemp("show") / "Walker-v0_3"
    path.mkdir()
    model = CeSD("MlpPolicy", "Walker-v0", seed=0, **TINY)
    model.save(path / "best_model.zip")
    return model, path / "best_model.zip"


@pytest.mark.parametrize("name", ["best_model.zip", "rl_model_200_steps.zip"])
def test_environment_is_told_by_the_folder_of_rl_zoo(tmp_path, name):
    assert find_env_id(tmp_path / "logs/cesd/QuadrupedRun-v0_12" / name) == "QuadrupedRun-v0"


def test_environment_is_told_by_the_file_or_not_at_all(tmp_path):
    assert find_env_id(tmp_path / "Pendulum-v1.zip") == "Pendulum-v1"
    with pytest.raises(ValueError, match="pass --env"):
        find_env_id(tmp_path / "model.zip")


def test_skills_start_alike_and_part(walker_model):
    rollouts = play_all(walker_model[0], partial(gym.make, "Walker-v0"), n_steps=30, seed=0, n_frames=0, vec_normalize=None)
    assert [rollout.skill for rollout in rollouts] == [0, 1, 2, 3]
    for rollout in rollouts:
        assert rollout.observations.shape == (31, 24) and rollout.positions.shape == (31, 3) and rollout.frames == []
        assert (rollout.observations[0] == rollouts[0].observations[0]).all()
    assert (rollouts[0].observations[-1] != rollouts[1].observations[-1]).any()
    assert len(table(rollouts, LABELS).splitlines()) == 5
    figure = draw(rollouts, LABELS, "title", 3)
    assert len(figure.subfigs[1].axes) == 2 and figure.subfigs[0].axes == []


@pytest.mark.skipif(not egl_works(), reason="this machine has no EGL: install libegl1 libegl-mesa0 libgl1-mesa-dri")
def test_images_of_every_skill(walker_model):
    rollouts = play_all(walker_model[0], partial(gym.make, "Walker-v0"), n_steps=10, seed=0, n_frames=3, vec_normalize=None)
    assert all(len(rollout.frames) == 3 for rollout in rollouts)
    assert (np.array(rollouts[0].frames[0]) != np.array(rollouts[0].frames[2])).any()
    assert len(draw(rollouts, LABELS, "title", 3).subfigs[0].axes) == 12


def run(model_path, output, *arguments, gl=None):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", **({} if gl is None else {"MUJOCO_GL": gl})}
    command = [sys.executable, "-m", "sb3_cesd.show", str(model_path), "--output", str(output), *arguments]
    return subprocess.run(command, env=environment, capture_output=True, text=True, timeout=200)


@pytest.mark.parametrize("gl", [None, "off"])
def test_robot(walker_model, tmp_path, gl):
    if gl is None and not egl_works():
        pytest.skip("this machine has no EGL: install libegl1 libegl-mesa0 libgl1-mesa-dri")
    result = run(walker_model[1], tmp_path, "--steps", "10", "--frames", "2", gl=gl)
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "skills.png").stat().st_size > 10_000
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    assert set(metrics) == METRICS and metrics["coverage"] >= 1
    assert all(name in result.stdout for name in METRICS)
    assert (tmp_path / "skills.gif").exists() == (gl is None)
    if gl == "off":
        assert "No images and no video: MuJoCo can't render here" in result.stdout
    else:
        with Image.open(tmp_path / "skills.gif") as video:
            assert video.n_frames == 11


@pytest.mark.skipif(not egl_works(), reason="this machine has no EGL: install libegl1 libegl-mesa0 libgl1-mesa-dri")
def test_mp4(walker_model, tmp_path):
    result = run(walker_model[1], tmp_path, "--steps", "5", "--video", "mp4")
    assert result.returncode == 0, result.stderr
    assert (tmp_path / "skills.mp4").stat().st_size > 1000


@pytest.mark.parametrize("algo", ["cesd", "apt"])
def test_maze_of_any_method_in_the_folders_of_rl_zoo(tiny, tmp_path, algo):
    from sb3_cesd import APT, CeSD

    path = tmp_path / f"logs/{algo}/MazeSquareC-v0_1/MazeSquareC-v0.zip"
    if algo == "cesd":
        model = CeSD("MlpPolicy", "MazeSquareC-v0", seed=0, **tiny)
    else:
        model = APT("MlpPolicy", "MazeSquareC-v0", seed=0, **tiny)
    model.save(path)
    result = run(path, tmp_path, *(["--mine"] if algo == "cesd" else []))
    assert result.returncode == 0, result.stderr
    metrics = json.loads((tmp_path / "metrics.json").read_text())
    if algo == "cesd":
        assert 0 < metrics.pop("mutual_information_mine") < np.log(4) + 0.1
    assert set(metrics) == (METRICS if algo == "cesd" else METRICS - {"on_cluster_share", "cluster_size_entropy"})
    assert 0 < metrics["coverage"] < 1
    assert (tmp_path / "skills.png").stat().st_size > 10_000 and not (tmp_path / "skills.gif").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.zip"], "There is no file nothing.zip: pass that of a model"),
        (["{model}", "--algo", "apt"], "was not saved by APT"),
        (["{model}", "--video", "avi"], "invalid choice: 'avi'"),
        (["{model}", "--steps", "0"], "'0': pass an integer above 0"),
        (["{model}", "--frames", "-1"], "pass 0 or an integer above"),
        (["{model}", "--env", "Wolker-v0"], "There is no environment 'Wolker-v0'"),
        (["{model}", "--env", "no_such_module:Walker-v0"], "There is no environment 'no_such_module:Walker-v0'"),
        (["{model}", "--env", "Quadruped-v0"], "The model observes Box(-inf, inf, (24,), float32)"),
        (["{model}", "--mine"], "--mine is for mazes"),
    ],
)
def test_misuse_ends_in_one_readable_line(walker_model, arguments, message):
    command = [argument.format(model=walker_model[1]) for argument in arguments]
    result = subprocess.run([sys.executable, "-m", "sb3_cesd.show", *command], capture_output=True, text=True, timeout=100)
    assert result.returncode != 0 and message in result.stderr and "Traceback" not in result.stderr


def test_a_model_of_a_task_is_refused(tiny, tmp_path):
    from sb3_cesd import CeSD

    path = tmp_path / "WalkerRun-v0.zip"
    CeSD("MlpPolicy", "WalkerRun-v0", reward="extrinsic", seed=0, **tiny).save(path)
    with pytest.raises(ValueError, match=r"learned a task with skill .* show the pre-trained model"):
        load_model(path, "cesd")


def test_damaged_file_is_refused(tmp_path):
    (tmp_path / "model.zip").write_bytes(b"PK nothing")
    with pytest.raises(ValueError, match="not a complete saved model"):
        load_model(tmp_path / "model.zip", "cesd")


def test_env_kwargs_of_rl_zoo(tmp_path):
    from collections import OrderedDict

    folder = tmp_path / "MazeSquareA-v0"
    folder.mkdir()
    model_path = tmp_path / "best_model.zip"
    assert find_env_kwargs(model_path, "MazeSquareA-v0") == {}
    (folder / "config.yml").write_text(yaml.dump(OrderedDict(n_skills=4, env_kwargs={"reward": "none"})))
    (folder / "args.yml").write_text(yaml.dump(OrderedDict(algo="cesd", env_kwargs=None)))
    assert find_env_kwargs(model_path, "MazeSquareA-v0") == {"reward": "none"}
    (folder / "args.yml").write_text(yaml.dump(OrderedDict(env_kwargs={"reward": "coverage", "render_mode": "human"})))
    assert find_env_kwargs(model_path, "module:MazeSquareA-v0") == {"reward": "coverage"}


def test_labels_of_skills():
    assert skill_labels(make_skill_space("discrete", 4)) == LABELS
    assert skill_labels(make_skill_space("sphere", 4, 2)) == ["(1.00, 0.00)", "(0.00, 1.00)", "(-1.00, 0.00)", "(0.00, -1.00)"]
    assert skill_labels(make_skill_space("sphere", 8, 2))[1] == "(0.71, 0.71)"
    assert skill_labels(make_skill_space("unit_cube", 4, 64)) == LABELS
    assert all(label.startswith("(") and "," not in label for label in skill_labels(make_skill_space("cube", 4, 1)))


def test_skills_are_told_by_their_labels(walker_model):
    rollouts = play_all(walker_model[0], partial(gym.make, "Walker-v0"), n_steps=3, seed=0, n_frames=0, vec_normalize=None)
    labels = skill_labels(make_skill_space("sphere", 4, 2))
    lines = table(rollouts, labels).splitlines()
    assert [line.split("  ")[0].strip() for line in lines[1:]] == labels
    assert len({len(line) for line in lines}) == 1, "columns are aligned"
    legend = draw(rollouts, labels, "title", 0).subfigs[1].axes[0].get_legend()
    assert [text.get_text() for text in legend.get_texts()] == [f"skill {label}" for label in labels]


@pytest.mark.parametrize(
    ("algo", "skills"), [("apt", {"skill_type": "sphere", "skill_dim": 2}), ("dads", {}), ("cic", {}), ("apt", {})]
)
def test_continuous_skills_in_a_maze_and_of_a_robot(tiny, tmp_path, monkeypatch, algo, skills):
    arguments = {**tiny, "intrinsic_kwargs": {}, **skills}
    drawn = []

    def draw_panels(layout, panels, **kwargs):
        drawn.append(kwargs["labels"])
        return draw_maze_panels(layout, panels, **kwargs)

    monkeypatch.setattr(command, "draw_maze_panels", draw_panels)
    for env_id in ("MazeTree-v0", "Walker-v0"):
        path = tmp_path / algo / env_id / f"{env_id}.zip"
        path.parent.mkdir(parents=True)
        model = METHODS[algo]("MlpPolicy", env_id, seed=0, **arguments)
        model.save(path)
        monkeypatch.setattr(sys, "argv", ["show", str(path), "--steps", "20", "--frames", "0", "--video", "none"])
        command.main()
        metrics = json.loads((path.parent / "metrics.json").read_text())
        assert set(metrics) == METRICS - {"on_cluster_share", "cluster_size_entropy"}
        assert (path.parent / "skills.png").stat().st_size > 5_000
    assert drawn == [skill_labels(model.skill_space)]


def test_observations_that_are_dictionaries(tiny, tmp_path, monkeypatch):
    from sb3_cesd import CeSD

    class Pair(gym.ObservationWrapper):
        observation_space = gym.spaces.Dict({"a": gym.spaces.Box(-1, 1, (2,)), "b": gym.spaces.Box(-8, 8, (1,))})

        def observation(self, observation):
            return {"a": observation[:2], "b": observation[2:]}

    gym.register("Pair-v0", lambda **kwargs: Pair(gym.make("Pendulum-v1", **kwargs)))
    path = tmp_path / "Pair-v0.zip"
    CeSD("MlpPolicy", "Pair-v0", seed=0, **tiny).save(path)
    monkeypatch.setattr(sys, "argv", ["show", str(path), "--steps", "9", "--frames", "0", "--video", "none"])
    try:
        command.main()
    finally:
        del gym.registry["Pair-v0"]
    assert set(json.loads((tmp_path / "metrics.json").read_text())) == METRICS - {"coverage", "mutual_information"}


def test_film_ends_with_the_episode_and_starts_anew(make_model):
    """Each skill is played from the same start, to the end of its episode, and what is normalised is what the model sees."""
    model = make_model()
    statistics = VecNormalize(make_vec_env("Pendulum-v1", seed=1))
    statistics.reset()
    for _ in range(20):
        statistics.step(np.zeros((1, 1), dtype=np.float32))
    make = partial(gym.make, "Pendulum-v1", max_episode_steps=8)
    rollouts = play_all(model, make, n_steps=20, seed=5, n_frames=0, vec_normalize=statistics)
    env = make()
    for skill, rollout in enumerate(rollouts):
        observation, _ = env.reset(seed=5)
        seen, episode_return = [statistics.normalize_obs(observation)], 0.0
        for _ in range(8):
            action, _ = model.predict(seen[-1], skill=skill)
            observation, reward, *_ = env.step(action)
            seen.append(statistics.normalize_obs(observation))
            episode_return += reward
        assert np.array_equal(rollout.observations, seen) and rollout.positions is None
        assert rollout.episode_return == pytest.approx(episode_return, rel=1e-6)


def test_environment_that_renders_nothing(walker_model, capsys):
    class Dark(gym.Wrapper):
        metadata = {"render_modes": []}  # noqa: RUF012

    def make(render_mode=None):
        assert render_mode is None
        return Dark(gym.make("Walker-v0"))

    rollouts = play_all(walker_model[0], make, n_steps=3, seed=0, n_frames=2, vec_normalize=None)
    assert all(rollout.frames == [] for rollout in rollouts)
    assert "No images and no video: the environment renders nothing, not 'rgb_array'." in capsys.readouterr().out


def test_algorithm_is_told_by_the_folders(tmp_path):
    assert find_algorithm(tmp_path / "logs/diayn/Walker-v0_1/best_model.zip") == "diayn"
    assert find_algorithm(tmp_path / "model.zip") == "cesd"


def test_video_has_a_labelled_tile_for_each_skill(tmp_path):
    colors = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    frames = [[np.full((10, 20, 3), color, dtype=np.uint8)] * (index + 1) for index, color in enumerate(colors)]
    images = grid_frames(frames, ["a", "b", "c"])
    assert len(images) == 3 and all(image.shape == images[0].shape for image in images)
    for color in colors:
        assert (images[0] == color).all(axis=2).sum() == 200, "each tile is whole"
    assert (images[0] == 0).all(axis=2).any(), "and has a label"
    assert (images[2] == images[1]).all(), "skills that have ended stay as they were"
    write_video(images, tmp_path / "grid.gif", fps=10)
    with Image.open(tmp_path / "grid.gif") as video:
        assert video.n_frames >= 1 and video.info["duration"] >= 100


def test_mp4_without_moviepy_tells_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "moviepy.video.io.ImageSequenceClip", None)
    with pytest.raises(ValueError, match="pip install moviepy, or pass --video gif"):
        write_video([np.zeros((4, 4, 3), dtype=np.uint8)], tmp_path / "grid.mp4", fps=10)
