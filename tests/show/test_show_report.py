"""The page: it needs no other file, and a browser shows it."""

import base64
import io
import re
import shutil
import subprocess
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image, ImageSequence
from small import make_small
from stable_baselines3.common.callbacks import EvalCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.logger import configure

from sb3_cesd import DIAYN
from sb3_cesd.show.curves import draw_curves, find_curves
from sb3_cesd.show.play import SkillRollout
from sb3_cesd.show.report import write_report
from sb3_cesd.show.result import SkillShow

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
COLORS = [(220, 20, 20), (20, 200, 20)]
#: Elements without an end
VOID = {"meta", "img", "br"}


class Page(HTMLParser):
    """Reads a page strictly: every element is closed where it has to be."""

    def __init__(self, text):
        super().__init__()
        self.open, self.images, self.attributes, self.text = [], [], [], []
        self.feed(text)
        self.close()
        assert self.open == [], f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        assert len(dict(attrs)) == len(attrs), "an attribute twice"
        self.attributes += attrs
        if tag == "img":
            self.images.append(dict(attrs))
        if tag not in VOID:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open and self.open.pop() == tag

    def handle_data(self, data):
        self.text.append(data)


def film(color, n_frames):
    """A moving picture: a bar grows on a ground of one colour."""
    frames = [np.full((40, 60, 3), color, dtype=np.uint8) for _ in range(n_frames)]
    for index, frame in enumerate(frames):
        frame[:4, : 10 * index + 1] = 0
    return frames


@pytest.fixture
def shown():
    """What two skills do, one of them for a shorter time."""
    rollouts = [
        SkillRollout(skill, 1.0, np.zeros((n_frames + 1, 3)), None, film(COLORS[skill], n_frames))
        for skill, n_frames in enumerate((3, 5))
    ]
    figure = Figure(figsize=(4, 3))
    figure.add_subplot().plot([0, 1])
    columns = {"untrained": {"knn_accuracy": 0.4}, "chance": {"knn_accuracy": 0.5}}
    return SkillShow("<b>Model</b> & co", ["0", "1"], rollouts, figure, {"knn_accuracy": 0.75}, columns, 2, notes=["a < b"])


def decoded(image):
    kind, data = re.fullmatch(r"data:image/(\w+);base64,(.+)", image["src"]).groups()
    picture = Image.open(io.BytesIO(base64.b64decode(data, validate=True)))
    assert picture.format.lower() == kind
    return picture


def test_page_is_whole_and_needs_nothing_else(shown, tmp_path):
    path = tmp_path / "new" / "skills.html"
    write_report(path, [shown], command=["python", "-m", "sb3_cesd.show", "a model.zip"])
    text = path.read_text(encoding="utf-8")
    page = Page(text)
    links = [value for name, value in page.attributes if name in ("src", "href", "srcset", "data", "poster", "action")]
    assert links and all(value.startswith("data:image/") for value in links)
    assert not re.search(r"<(script|link|iframe|object)|@import|url\(|https?://", text)
    assert "default-src 'none'; img-src data:" in dict(page.attributes)["content"]
    words = "".join(page.text)
    assert "<b>Model</b> & co" in words and "a < b" in words, "what is no HTML is not taken for it"
    assert "python -m sb3_cesd.show 'a model.zip'" in words and "stable_baselines3 2." in words
    for part in ("knn_accuracy", "0.750", "0.400", "0.500", "share of states whose observation identifies the skill"):
        assert part in words
    assert all(image["alt"] for image in page.images)


def test_films_of_all_skills_begin_anew_together(shown):
    figure, *films = (decoded(image) for image in Page(shown.html()).images)
    assert figure.size == (400, 300) and len(films) == 2
    for picture, color in zip(films, COLORS, strict=True):
        frames, duration = [], 0
        for frame in ImageSequence.Iterator(picture):
            frames.append(np.asarray(frame.convert("RGB")))
            duration += frame.info["duration"]
        assert duration == 5 * 80 and np.abs(frames[-1][20:].mean(axis=(0, 1)) - color).max() < 20
        assert len(frames) > 1, "it moves"


@pytest.mark.skipif(BROWSER is None, reason="no Chromium or Chrome is on this machine")
def test_a_browser_shows_figure_and_films(shown, tmp_path):
    write_report(tmp_path / "skills.html", [shown, shown])
    options = ["--headless", "--no-sandbox", "--disable-gpu", "--hide-scrollbars", "--window-size=1000,1400"]
    subprocess.run(
        [BROWSER, *options, f"--user-data-dir={tmp_path / 'profile'}", f"--screenshot={tmp_path / 'page.png'}", "skills.html"],
        cwd=tmp_path,
        check=True,
        capture_output=True,
        timeout=120,
    )
    seen = np.asarray(Image.open(tmp_path / "page.png").convert("RGB")).astype(int)
    for color in COLORS:
        there = (np.abs(seen - color).max(axis=2) < 25).nonzero()
        assert len(there[0]) > 2000, "each film is there"
        assert np.ptp(there[1]) > 450, "for both models, side by side"
    line = (np.abs(seen - [31, 119, 180]).max(axis=2) < 25).sum()
    assert line > 100, "and the figure"


def test_curves_of_single_skills_come_last(tmp_path):
    names = [f"{kind}_{skill:02d}" for kind in ("skills/share", "rollout/ep_rew_skill") for skill in range(16)]
    names += ["train/actor_loss", "skills/policy_coverage_48", "skills/knn_accuracy", "eval/ok"]
    rows = [[100 * step, *[step] * (len(names) - 1), True] for step in (1, 2)]
    lines = [["time/total_timesteps", *names], *rows]
    (tmp_path / "progress.csv").write_text("\n".join(",".join(map(str, line)) for line in lines) + "\n")
    curves = find_curves(tmp_path)
    assert curves["train/actor_loss"].values.tolist() == [1.0, 2.0] and "eval/ok" not in curves
    titles = [axes.get_title() for axes in draw_curves(curves).axes]
    assert {"train/actor_loss", "skills/policy_coverage_48", "skills/knn_accuracy"} < set(titles)
    again = draw_curves(dict(reversed(curves.items()))).axes
    assert [axes.get_title() for axes in again] == titles


def test_curves_of_the_training_beside_the_model(shown, tmp_path):
    learner = make_small(DIAYN)
    learner.set_env(make_vec_env("Pendulum-v1", monitor_dir=str(tmp_path)))
    learner.set_logger(configure(str(tmp_path), ["csv"]))
    evaluation = EvalCallback(make_vec_env("Pendulum-v1"), eval_freq=200, n_eval_episodes=1, log_path=str(tmp_path))
    learner.learn(600, callback=evaluation, log_interval=1)
    curves = find_curves(tmp_path)
    assert {"eval/mean_reward", "eval/mean_ep_length", "rollout/ep_rew_mean", "train/actor_loss"} <= set(curves)
    assert curves["eval/mean_reward"].steps.tolist() == [200, 400, 600]
    with np.load(tmp_path / "evaluations.npz") as logged:
        assert np.allclose(curves["eval/mean_reward"].values, logged["results"].mean(axis=1), rtol=1e-4)
    assert any(name.startswith("rollout/return, mean of") for name in curves), "of Monitor"
    titles = [axes.get_title() for axes in draw_curves(curves).axes]
    assert titles[0].startswith("eval/") and len(titles) == min(len(curves), 16)
    write_report(tmp_path / "skills.html", [shown], [tmp_path / "model.zip"])
    page = Page((tmp_path / "skills.html").read_text())
    assert "Training" in page.text and len(page.images) == 1 + 2 + 1


def test_curves_of_evaluations_of_skills(tmp_path):
    steps, results = [100, 200], [[1.0, 2.0], [3.0, 4.0]]
    np.savez(tmp_path / "evaluations.npz", timesteps=steps, results=results, ep_lengths=results, skill_score=[0.1, 0.7])
    curves = find_curves(tmp_path)
    assert list(curves) == ["eval/skill_score", "eval/mean_reward", "eval/mean_ep_length"], "what they are judged by first"
    assert curves["eval/skill_score"].values.tolist() == [0.1, 0.7] and curves["eval/mean_reward"].values.tolist() == [
        1.5,
        3.5,
    ]


def test_compared_models_may_have_other_skills(shown, tmp_path):
    few, many = (replace(shown, n_skills=n_skills, metrics={"mutual_information": 1.0}) for n_skills in (4, 16))
    write_report(tmp_path / "page.html", [few, many])
    text = "".join(Page((tmp_path / "page.html").read_text()).text)
    assert "log(n_skills) = 1.39; or of position and skill [nats], at most log(n_skills) = 2.77" in text


def test_metrics_of_a_task_are_not_those_of_all_skills(shown):
    task = replace(shown, metrics={"mean_return": 5.0}, baselines={"untrained": {"mean_return": 1.0}})
    assert "Metrics of the skill that learned the task" in task.html() and "Metrics of all skills" not in task.html()
    assert "Chance" not in task.html() and "Metrics of all skills" in shown.html()


def test_logs_that_can_not_be_read_are_left_out(tmp_path):
    assert find_curves(tmp_path) == {}
    (tmp_path / "progress.csv").write_text("time/total_timesteps,train/loss\n10,\n20,1.5\n30,2.5\n")
    (tmp_path / "evaluations.npz").write_bytes(b"nothing")
    (tmp_path / "0.monitor.csv").write_text('#{"t_start": 0}\nr,l,t\n1,10,0.5\n')
    ((name, curve),) = find_curves(tmp_path).items()
    assert name == "train/loss" and curve.steps.tolist() == [20, 30] and curve.values.tolist() == [1.5, 2.5]


@pytest.mark.parametrize("save", [np.savez, np.savez_compressed])
def test_damaged_evaluations_are_left_out(tmp_path, save):
    path = tmp_path / "evaluations.npz"
    save(path, timesteps=[1, 2], results=np.ones((2, 3)), ep_lengths=np.ones((2, 3)))
    whole = path.read_bytes()
    assert len(find_curves(tmp_path)) == 2
    for size in (0, 3, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:size])
        assert find_curves(tmp_path) == {}, size
    for place in range(0, len(whole), 5):
        path.write_bytes(whole[:place] + bytes([whole[place] ^ 1]) + whole[place + 1 :])
        find_curves(tmp_path)
