"""The command: what it writes, and where."""

import errno
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from moviepy.video.io.VideoFileClip import VideoFileClip
from PIL import Image, ImageSequence
from shown import CLUSTERS, EVERYWHERE, LABELS, PLACES, QUICK, model, saved, show
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import METHODS
from sb3_cesd.callbacks import ResumableCheckpoint
from sb3_cesd.checkpoints.folders import find_checkpoint
from sb3_cesd.common import files
from sb3_cesd.envs.robots.gl import egl_works
from sb3_cesd.export import export_policy
from sb3_cesd.show import __main__ as command
from sb3_cesd.show import html
from sb3_cesd.show.comparison import comparison_page, mark_of
from sb3_cesd.show.find import load_vec_normalize
from sb3_cesd.show.video import even_columns, grid_frames, write_video


def test_robot_without_rendering(tmp_path):
    environment = {**os.environ, "OMP_NUM_THREADS": "1", "MUJOCO_GL": "off"}
    command = ["-m", "sb3_cesd.show", str(saved("Walker-v0")), "--output", str(tmp_path), "--steps", "10", "--frames", "2"]
    result = subprocess.run([sys.executable, *command], env=environment, capture_output=True, text=True, timeout=200)
    assert result.returncode == 0, result.stderr
    assert {file.name for file in tmp_path.iterdir()} == {"skills.html", "skills.png", "metrics.json"}
    columns = json.loads((tmp_path / "metrics.json").read_text())
    assert EVERYWHERE | PLACES | CLUSTERS <= set(columns["skills"]) and columns["skills"]["policy_coverage"] >= 1
    assert EVERYWHERE | PLACES <= set(columns["untrained"]) and columns["chance"]["knn_accuracy"] == 0.25
    assert all(name in result.stdout for name in columns["skills"])
    assert "No images and no video: MuJoCo can't render here" in result.stdout


@pytest.mark.skipif(not egl_works(), reason="this machine has no EGL: install libegl1 libegl-mesa0 libgl1-mesa-dri")
def test_robot_with_images(tmp_path, monkeypatch):
    show(monkeypatch, saved("Walker-v0"), "--output", tmp_path, "--steps", 10, "--frames", 2, "--rollouts", 0, "--skill", 0, 3)
    assert (tmp_path / "skills.png").stat().st_size > 10_000
    with Image.open(tmp_path / "skills.gif") as video:
        assert video.n_frames == 11
    assert (tmp_path / "skills.html").read_text().count("data:image/webp") == 2


def test_maze_has_a_video_on_demand(tmp_path, monkeypatch, capsys):
    path = saved("MazeSquareC-v0")
    show(monkeypatch, path, "--output", tmp_path / "plain", "--rollouts", 2, "--untrained", 0)
    assert {file.name for file in (tmp_path / "plain").iterdir()} == {"skills.html", "skills.png", "metrics.json"}
    show(monkeypatch, path, "--output", tmp_path / "video", *QUICK, "--skill", 1, "--video", "mp4")
    assert (tmp_path / "video" / "skills.mp4").stat().st_size > 1000
    assert f"{tmp_path / 'video' / 'skills.mp4'}" in capsys.readouterr().out


def test_mutual_information_by_mine(tmp_path, monkeypatch):
    from sb3_cesd.show import skills

    drawn = []

    def estimate(states, of_skill):
        drawn.append((states, of_skill))
        return type("Estimate", (), {"mutual_information": 0.7 / len(drawn)})()

    monkeypatch.setattr(skills, "mine_mutual_information", estimate)
    show(monkeypatch, saved("MazeSquareC-v0"), "--output", tmp_path, *QUICK, "--mine")
    (paths, of_skill), (again, shuffled) = drawn
    assert paths.shape == (400, 14) and of_skill.tolist() == sorted(100 * [0, 1, 2, 3]), "7 places of each rollout"
    assert (again == paths).all() and sorted(shuffled) == of_skill.tolist() and (shuffled == of_skill).mean() < 0.5
    columns = json.loads((tmp_path / "metrics.json").read_text())
    estimates = [columns[name]["mutual_information_mine"] for name in ("skills", "chance")]
    assert estimates == [0.7, 0.35], "what the network memorises is what it says by chance"


def test_a_checkpoint_does_not_overwrite_the_final_model(tmp_path, monkeypatch):
    for name in ("Pendulum-v1", "rl_model_200_steps"):
        (tmp_path / f"{name}.zip").write_bytes(saved("Pendulum-v1").read_bytes())
    show(monkeypatch, tmp_path / "Pendulum-v1.zip", *QUICK)
    final = (tmp_path / "Pendulum-v1_skills" / "skills.png").stat()
    show(monkeypatch, tmp_path / "rl_model_200_steps.zip", *QUICK, "--env", "Pendulum-v1")
    assert (tmp_path / "rl_model_200_steps_skills" / "skills.png").is_file()
    assert (tmp_path / "Pendulum-v1_skills" / "skills.png").stat() == final


def test_an_exported_policy_does_not_overwrite_the_pages_of_a_model(tmp_path, monkeypatch):
    path = export_policy(model("Pendulum-v1"), tmp_path / "Pendulum-v1.safetensors")
    show(monkeypatch, path, *QUICK)
    alone = (tmp_path / "Pendulum-v1_skills" / "skills.png").stat()
    (tmp_path / "Pendulum-v1.zip").write_bytes(saved("Pendulum-v1").read_bytes())
    show(monkeypatch, path, *QUICK)
    assert (tmp_path / "Pendulum-v1.safetensors_skills" / "skills.html").is_file()
    assert (tmp_path / "Pendulum-v1_skills" / "skills.png").stat() == alone


def test_a_model_in_a_checkpoint_has_its_page_beside_the_checkpoints(tmp_path, monkeypatch):
    """Checkpoints are deleted."""
    folder = tmp_path / "Pendulum-v1_1" / "checkpoints"
    make_small(METHODS["apt"]).learn(60, ResumableCheckpoint(folder))
    path = find_checkpoint(folder) / "model.zip"
    show(monkeypatch, path, *QUICK, "--env", "Pendulum-v1", "--rollouts", 0)
    assert (folder / "steps_000000000060_skills" / "skills.html").is_file()
    show(monkeypatch, "--compare", path, path, *QUICK, "--env", "Pendulum-v1", "--rollouts", 0)
    assert len(list(folder.glob("steps_000000000060_*compared.html"))) == 1


def test_names_with_dots_are_names(tmp_path, monkeypatch):
    for name, mean in (("lr0.1", 1.0), ("lr0.3", 2.0)):
        model("Pendulum-v1").save(tmp_path / name)
        save_statistics(tmp_path / f"{name}_vecnormalize.pkl", mean)
        found, _ = load_vec_normalize(tmp_path / name, "Pendulum-v1")
        assert found.obs_rms.mean[0] == mean
    for name in ("lr0.1", "lr0.3"):
        show(monkeypatch, tmp_path / name, *QUICK, "--env", "Pendulum-v1", "--rollouts", 0)
        assert (tmp_path / f"{name}_skills" / "skills.html").is_file()
    names = page_names(tmp_path, (["m/lr0.1", "m/lr0.3"], ["CeSD"] * 2))
    assert names == ["lr0.1_cesd_vs_lr0.3_cesd_compared.html"]


def test_statistics_of_another_model_are_left_alone(tmp_path, monkeypatch, capsys):
    make_small(METHODS["apt"]).learn(60).save(tmp_path / "plain.zip")
    save_statistics(tmp_path / "other_vecnormalize.pkl", 3.0)
    show(monkeypatch, tmp_path / "plain.zip", *QUICK, "--env", "Pendulum-v1", "--rollouts", 0)
    assert "normalised by" not in capsys.readouterr().out


def test_vectors_may_begin_with_a_minus():
    words = ["model.zip", "--skill", "-0.6,0.8", "0.6,-0.8", "-.6,-0.8", "--seed", "3"]
    args = command.make_parser().parse_args([command.as_value(word) for word in words])
    assert args.skill == [[-0.6, 0.8], [0.6, -0.8], [-0.6, -0.8]] and args.seed == 3


def test_models_are_compared_side_by_side(tmp_path, monkeypatch, capsys):
    paths = [saved("Pendulum-v1"), saved("Pendulum-v1", "diayn")]
    show(monkeypatch, "--compare", *paths, "--output", tmp_path, *QUICK)
    (page,) = tmp_path.iterdir()
    assert page.name == "Pendulum-v1_cesd_diayn_compared.html"
    text, said = page.read_text(), capsys.readouterr().out
    assert text.count("<section>") == 2 and all(f"<h2>{name} on Pendulum-v1" in text for name in ("CeSD", "DIAYN"))
    assert "1: CeSD on Pendulum-v1" in text and "2: DIAYN on Pendulum-v1" in text
    assert all(str(path) in text and str(path) in said for path in paths)


def test_a_comparison_does_not_overwrite_another(tmp_path, monkeypatch):
    """Models of RL Zoo are named after their environment, whatever the method."""
    cesd, diayn, apt = (saved("Pendulum-v1", method) for method in ("cesd", "diayn", "apt"))
    other = tmp_path / "diayn" / "Pendulum-v1_2" / "Pendulum-v1.zip"
    other.parent.mkdir(parents=True)
    other.write_bytes(diayn.read_bytes())
    compared, pages = [[cesd, diayn], [cesd, apt], [cesd, other], [diayn, other]], {}
    for models in compared:
        show(monkeypatch, "--compare", *models, "--output", tmp_path / "pages", *QUICK, "--rollouts", 0)
        (page,) = set((tmp_path / "pages").iterdir()) - set(pages)
        pages[page] = page.read_text()
        assert all(str(model) in pages[page] for model in models)
    assert [page.name.removesuffix("_compared.html") for page in pages] == [
        "Pendulum-v1_cesd_diayn",
        "Pendulum-v1_cesd_apt",
        "Pendulum-v1_cesd_1_diayn_2",
        "Pendulum-v1_diayn_1_diayn_2",
    ]
    assert all(page.read_text() == text for page, text in pages.items())
    # The same models replace their page, and no other
    show(monkeypatch, "--compare", cesd, other, "--output", tmp_path / "pages", *QUICK, "--rollouts", 0, "--skill", 1)
    assert [page.name for page in pages if page.read_text() != pages[page]] == ["Pendulum-v1_cesd_1_diayn_2_compared.html"]
    assert set((tmp_path / "pages").iterdir()) == set(pages)


def save_statistics(path, mean):
    env = VecNormalize(make_vec_env("Pendulum-v1"))
    env.obs_rms.mean[:] = mean
    env.save(str(path))


def page_names(folder, *compared):
    """Names of the pages of comparisons, in their order."""
    names = []
    for paths, methods in compared:
        page = comparison_page(folder, [Path(path) for path in paths], methods)
        page.write_text(html.document("", "", mark_of([Path(path) for path in paths])))
        names.append(page.name)
    return names


def test_names_of_comparisons(tmp_path):
    runs = ["a/cesd/X_1/X.zip", "a/cesd/X_2/X.zip"]
    assert page_names(tmp_path, (runs, ["CeSD"] * 2)) == ["X_cesd_1_cesd_2_compared.html"]
    mixed = ["a/cesd/X_1/best_model.zip", "a/apt/X_1/X.zip"]
    assert page_names(tmp_path, (mixed, ["CeSD", "APT"])) == ["best_model_cesd_vs_X_apt_compared.html"]
    elsewhere = ["models/first.zip", "models/second.zip"]
    assert page_names(tmp_path, (elsewhere, ["APT"] * 2)) == ["first_apt_vs_second_apt_compared.html"]
    assert page_names(tmp_path, (runs, ["../../etc/x", "A/B"])) == ["X_etcx_ab_compared.html"]


def test_models_that_are_named_alike_do_not_share_a_page(tmp_path):
    compared = [([f"{root}/cesd/X_1/X.zip", f"{root}/apt/X_1/X.zip"], ["CeSD", "APT"]) for root in "abcd"]
    names = page_names(tmp_path, *compared)
    assert len(set(names)) == 4 and all(re.fullmatch(r"X_[0-9a-f]{16}_compared.html", name) for name in names[2:])
    assert page_names(tmp_path, *compared) == names


def test_a_page_about_many_models_has_a_name_that_disks_take(tmp_path):
    many = [[f"{root}/cesd/X_{run}/X.zip" for run in range(60)] for root in "ab"]
    names = page_names(tmp_path, *((paths, ["CeSD"] * 60) for paths in many))
    assert len(set(names)) == 2 and all(len(name) < 40 for name in names)


def test_video_has_a_labelled_tile_for_each_skill(tmp_path):
    colors = [(255, 0, 0), (0, 255, 0), (0, 0, 255)]
    frames = [[np.full((10, 20, 3), color, dtype=np.uint8)] * (index + 1) for index, color in enumerate(colors)]
    images = grid_frames(frames, LABELS[:3])
    assert len(images) == 3 and all(image.shape == images[0].shape for image in images)
    for color in colors:
        assert (images[0] == color).all(axis=2).sum() == 200, "each tile is whole"
    assert (images[0] == 0).all(axis=2).any(), "and has a label"
    assert (images[2] == images[1]).all(), "skills that have ended stay as they were"
    write_video(images, tmp_path / "grid.gif", fps=10)
    with Image.open(tmp_path / "grid.gif") as video:
        assert video.n_frames >= 1 and video.info["duration"] >= 100


def images_in(path):
    """What a player shows of a video, and how many images a second."""
    if path.suffix == ".gif":
        with Image.open(path) as video:
            images = [np.asarray(image.convert("RGB")) for image in ImageSequence.Iterator(video)]
            return images, 1000 / video.info["duration"]
    with VideoFileClip(str(path)) as video:
        return list(video.iter_frames()), video.fps


@pytest.mark.parametrize("suffix", ["gif", "mp4"])
def test_videos_move_until_the_last_skill_has_ended(tmp_path, suffix):
    brightness = [[200, 0, 100], [0, 50, 100, 150, 200]]
    films = [[np.full((24, 32, 3), value, dtype=np.uint8) for value in of_skill] for of_skill in brightness]
    images = grid_frames(films, ["0", "1"])
    tiles = [[image[22:46, 36 * skill : 36 * skill + 32] for skill in range(2)] for image in images]
    expected = [(200, 0), (0, 50), (100, 100), (100, 150), (100, 200)]
    assert [tuple(tile.min() for tile in row) for row in tiles] == expected
    assert [tuple(tile.max() for tile in row) for row in tiles] == expected
    path = tmp_path / f"skills.{suffix}"
    write_video(images, path, fps=10)
    written, fps = images_in(path)
    assert len(written) == 5 and fps == 10
    for image, original in zip(written, images, strict=True):
        assert np.abs(image.astype(int) - original).mean() < 6


@pytest.mark.parametrize(
    ("n_films", "n_columns"), [(1, 1), (5, 5), (7, 4), (8, 4), (10, 5), (12, 4), (16, 4), (20, 7), (32, 8)]
)
def test_rows_of_films_are_even(n_films, n_columns):
    """Not seven films and one below them."""
    assert even_columns(n_films) == n_columns
    (image,) = grid_frames([[np.zeros((10, 20, 3), dtype=np.uint8)]] * n_films, ["0"] * n_films)
    assert image.shape[1] == n_columns * 24 and image.shape[0] == -(-n_films // n_columns) * 36


@pytest.mark.parametrize("suffix", ["gif", "mp4"])
def test_video_is_written_as_a_whole(tmp_path, monkeypatch, suffix):
    path, images = tmp_path / f"skills.{suffix}", [np.zeros((16, 16, 3), dtype=np.uint8)] * 3
    write_video(images, path, fps=10)
    whole = path.read_bytes()
    assert whole.startswith(b"GIF89a") or whole[4:8] == b"ftyp"

    def is_full(_):
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(files.os, "fsync", is_full)
    with pytest.raises(OSError, match=f"skills.{suffix} could not be written .*untouched"):
        write_video(images * 2, path, fps=10)
    assert path.read_bytes() == whole and list(tmp_path.iterdir()) == [path]


def test_mp4_without_moviepy_tells_the_remedy(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "moviepy.video.io.ImageSequenceClip", None)
    with pytest.raises(ValueError, match="pip install moviepy, or pass --video gif"):
        write_video([np.zeros((4, 4, 3), dtype=np.uint8)], tmp_path / "grid.mp4", fps=10)
