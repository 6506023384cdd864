"""The command: what it finds, what it writes, and where."""

import json
import re
import sys

import gymnasium as gym
import numpy as np
import pytest
import yaml
from gymnasium.envs.classic_control import PendulumEnv
from gymnasium.wrappers import RescaleAction, TimeAwareObservation
from PIL import Image
from shown import COMMAND, model, show
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import METHODS
from sb3_cesd.callbacks import ResumableCheckpoint
from sb3_cesd.checkpoints import find_checkpoint
from sb3_cesd.export import export_policy
from sb3_cesd.show import show_skills
from sb3_cesd.show.environments import envs_of_run, envs_to_play, load_model
from sb3_cesd.show.result import make_page

PACKAGE = """
import gymnasium as gym
from gymnasium.envs.classic_control import PendulumEnv
gym.register("FromPackage-v0", PendulumEnv, max_episode_steps=7)
class Double(gym.ObservationWrapper):
    def observation(self, observation):
        return 2 * observation
"""


class Unrecorded(gym.ObservationWrapper):
    """Gymnasium can't make it again."""

    def observation(self, observation):
        return observation


class Moving(PendulumEnv):
    """A pendulum that is drawn without a library: its images grow lighter."""

    shade = 0

    def render(self):
        self.shade += 10
        return np.full((40, 60, 3), self.shade, dtype=np.uint8)


@pytest.fixture(scope="module")
def run(tmp_path_factory):
    """Folder of a run of RL Zoo with a package, a wrapper, arguments and statistics."""
    folder = tmp_path_factory.mktemp("logs") / "cesd" / "FromPackage-v0_1"
    settings = folder / "FromPackage-v0"
    settings.mkdir(parents=True)
    (folder.parents[1] / "shown_package.py").write_text(PACKAGE)
    args = {"algo": "cesd", "env": "FromPackage-v0", "gym_packages": ["shown_package"], "env_kwargs": {"g": 5.0}}
    (settings / "args.yml").write_text(yaml.dump(args))
    config = {"normalize": True, "env_wrapper": "shown_package.Double"}
    (settings / "config.yml").write_text(yaml.dump(config))
    dump_whole(settings / "vecnormalize.pkl", 1.0)
    make_small(METHODS["cesd"], VecNormalize(make_vec_env("Pendulum-v1"))).save(folder / "FromPackage-v0.zip")
    sys.path.insert(0, str(folder.parents[1]))
    yield folder
    sys.path.remove(str(folder.parents[1]))


def dump_whole(path, mean):
    env = VecNormalize(make_vec_env("Pendulum-v1"))
    env.obs_rms.mean[:], env.obs_rms.count = mean, 10.0
    env.save(str(path))


@pytest.fixture
def pendulum(tmp_path):
    """File of a model that was saved from Python."""
    model().save(tmp_path / "pendulum.zip")
    return tmp_path / "pendulum.zip"


def test_a_run_of_rl_zoo_tells_everything(run, monkeypatch, capsys):
    path = run / "FromPackage-v0.zip"
    show(monkeypatch, path, *COMMAND)
    assert {file.name for file in (run / "FromPackage-v0_skills").iterdir()} == {"skills.html", "skills.png", "metrics.json"}
    assert "FromPackage-v0_skills/skills.png" in capsys.readouterr().out
    start = PendulumEnv(g=5.0)
    envs = envs_of_run(path, load_model(path))
    with envs.opened() as env, envs.opened(4, 2) as others:
        assert isinstance(env, VecNormalize) and not env.training and env.get_attr("g") == others.get_attr("g") == [5.0]
        env.seed(0)
        assert np.allclose(env.reset()[0], 2 * start.reset(seed=0)[0] - 1.0, atol=1e-5), "its wrapper and statistics"


def test_checkpoints_have_statistics_of_their_own_and_a_page_beside_them(run, monkeypatch):
    folder = run / "checkpoints"
    training = VecNormalize(make_vec_env("Pendulum-v1"))
    make_small(METHODS["apt"], training).learn(60, ResumableCheckpoint(folder))
    path = find_checkpoint(folder) / "model.zip"
    assert mean_of(path) == training.obs_rms.mean[0]
    dump_whole(run / "told.pkl", 3.0)
    assert mean_of(path, vec_normalize=run / "told.pkl") == 3.0
    show(monkeypatch, path, *COMMAND, "--env", "Pendulum-v1", "--vec-normalize", run / "told.pkl")
    assert (folder / "steps_000000000060_skills" / "skills.html").is_file(), "checkpoints are deleted"


def mean_of(path, **kwargs):
    with envs_of_run(path, load_model(path), **kwargs).opened() as env:
        return env.obs_rms.mean[0]


def test_an_exported_policy_runs_nothing_that_lies_beside_it(run, monkeypatch):
    path = export_policy(model(), run / "policy.safetensors")
    (run / "FromPackage-v0" / "args.yml").rename(run / "args.yml")
    (run / "FromPackage-v0" / "args.yml").write_text("env: !!python/object/apply:os.system ['exit 1']")
    with pytest.raises(SystemExit, match="--env"):
        show(monkeypatch, path, *COMMAND)
    show(monkeypatch, path, *COMMAND, "--env", "Pendulum-v1")
    assert (run / "policy.safetensors_skills" / "skills.html").is_file()
    (run / "args.yml").replace(run / "FromPackage-v0" / "args.yml")


def test_a_model_tells_how_its_environment_was_made(tmp_path, monkeypatch, capsys):
    file = tmp_path / "logs" / "cesd" / "FromTest-v0_2" / "FromTest-v0.zip"
    gym.register("FromTest-v0", PendulumEnv, max_episode_steps=7)
    env = RescaleAction(TimeAwareObservation(gym.make("FromTest-v0", g=5.0, render_mode="rgb_array")), -1.0, 1.0)
    make_small(METHODS["cesd"], env).save(file)
    gym.registry.pop("FromTest-v0")  # as in another process
    with envs_to_play(None, load_model(file)).opened(2, 2) as made:
        assert made.get_attr("g") == [5.0] * 2 and made.get_attr("render_mode")[0] is None
        assert made.observation_space.shape == (4,) and made.get_attr("spec")[0].max_episode_steps == 7
    for arguments in (
        [file.parent],
        [file.with_suffix("")],
        ["--algo", "cesd", "--env", "FromTest-v0", "-f", tmp_path / "logs"],
    ):
        capsys.readouterr()
        show(monkeypatch, *arguments, *COMMAND)
        assert f"Saved {file.parent / 'FromTest-v0_skills' / 'skills.html'}" in capsys.readouterr().out
    make_small(METHODS["cesd"], Unrecorded(gym.make("Pendulum-v1"))).save(file)
    with pytest.raises(SystemExit, match=r"Unrecorded.*--env"):
        show(monkeypatch, file, *COMMAND)


def test_methods_are_told_by_the_file(tmp_path):
    model(method="diayn").save(tmp_path / "model.zip")
    assert type(load_model(tmp_path / "model.zip")) is METHODS["diayn"]


def test_films_and_the_page_that_needs_nothing_else(tmp_path):
    shown = show_skills(model(), Moving(render_mode="rgb_array"), skills=[0, 1], n_steps=4, n_rollouts=2, n_untrained=1)
    files = shown.save(tmp_path / "new")
    assert [file.name for file in files] == ["skills.png", "metrics.json", "skills.gif"]
    assert all(file.stat().st_size > 100 for file in files)
    assert json.loads(files[1].read_text()) == shown.columns
    with Image.open(files[2]) as film:
        assert film.n_frames == 5 and film.info["duration"] == 100
    shown.notes.append("a < b")
    text = make_page([shown, shown], "<b>Models</b> & co", "python -m sb3_cesd.show 'a model.zip'")
    links = re.findall(r'(?:src|href)="([^"]*)', text)
    assert len(links) == 4 and all(re.match(r"data:image/(png|webp);base64,\w", link) for link in links)
    assert not re.search(r"<(script|link|iframe|object)|@import|url\(|https?://", text) and "default-src 'none'" in text
    for part in ("&lt;b&gt;Models&lt;/b&gt; &amp; co", "a &lt; b", "stable_baselines3 2.", "identifies the skill"):
        assert part in text, "what is no HTML is not taken for it"


def test_models_are_compared_side_by_side(tmp_path, monkeypatch, capsys):
    paths = [tmp_path / method / "Pendulum-v1.zip" for method in ("cesd", "diayn")]
    for path in paths:
        model(method=path.parent.name).save(path)
    show(monkeypatch, *paths, *COMMAND, "--env", "Pendulum-v1", "--rollouts", 2)
    page = tmp_path / "cesd" / "Pendulum-v1_cesd_diayn_skills" / "skills.html"
    text, said = page.read_text(), capsys.readouterr().out
    assert text.count("<section>") == 2 and "<h2>CeSD on Pendulum-v1" in text and "<h2>DIAYN on Pendulum-v1" in text
    assert all(str(path) in text for path in paths) and f"Saved {page}" in said


def test_vectors_of_skills_may_begin_with_a_minus(tmp_path, monkeypatch, capsys):
    model(method="metra").save(tmp_path / "metra.zip")
    show(monkeypatch, *COMMAND, "--skill", "0.6,0.8", "-0.6,0.8", "--env", "Pendulum-v1", "--", tmp_path / "metra.zip")
    assert re.search(r"\(0.60, 0.80\).*\n *\(-0.60, 0.80\)", capsys.readouterr().out)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        (["--env", "Pendulum-v1", "--steps", "0"], "n_steps"),
        (["--env", "Pendulum-v1", "--skill", "9"], "skill 9"),
        (["--env", "Pendulum-v1", "--video", "avi"], "avi"),
        (["--env", "Wolker-v0"], "--gym-packages"),
        (["--env", "Quadruped-v0"], "model observes"),
        (["--output", "{file}"], "{file}"),
    ],
)
def test_misuse_ends_in_one_readable_line(monkeypatch, capsys, pendulum, options, message):
    options = [option.format(file=pendulum) for option in options]
    with pytest.raises(SystemExit) as ended:
        show(monkeypatch, *COMMAND, *options, "--", pendulum)
    said = capsys.readouterr().err if ended.value.code == 2 else str(ended.value.code)
    assert message.format(file=pendulum) in said
    with pytest.raises(SystemExit, match="no model"):
        show(monkeypatch, "nothing.zip")
