"""RL Zoo's enjoy and record_video tell which skill acts, and follow the one that is asked for."""

import re
import runpy
import sys
import warnings
from pathlib import Path

import gymnasium as gym
import numpy as np
import pytest
import yaml
from rl_zoo3.enjoy import enjoy
from small import make_small
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import APT, METRA, CeSD
from sb3_cesd.zoo.patches import register
from sb3_cesd.zoo.playing import PlayedModel, PlayedSkills, show_skills_of

register()


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models in the folders of RL Zoo: skills, and a task that one of them learned."""
    folder = tmp_path_factory.mktemp("playing")
    skills = make_small(CeSD, "MazeSquareC-v0").learn(60)
    task = make_small(CeSD, "MazeTree-v0", reward="extrinsic")
    for model, env_id in ((skills, "MazeSquareC-v0"), (task, "MazeTree-v0")):
        run = folder / "logs" / "cesd" / f"{env_id}_1"
        model.save(run / f"{env_id}.zip")
        (run / env_id).mkdir()
        (run / env_id / "config.yml").write_text(yaml.dump({"normalize": False, "normalize_kwargs": {}}))
    return folder


def play(monkeypatch, capsys, folder, *arguments, env_id="MazeSquareC-v0", module=None):
    """Run a command of RL Zoo in this process."""
    words = ["--algo", "cesd", "--env", env_id, "-f", folder / "logs", "--no-render", *arguments]
    monkeypatch.setattr(sys, "argv", ["zoo", *map(str, words)])
    if module is None:
        enjoy()
    else:
        runpy.run_module(module, run_name="__main__")
    return capsys.readouterr().out


def who_acted(output):
    return [int(skill) for skill in re.findall(r"^Skill (\d+) acts$", output, re.MULTILINE)]


def test_enjoy_tells_who_acts_and_who_did_not(monkeypatch, capsys, folder):
    output = play(monkeypatch, capsys, folder, "-n", 101)
    assert "Each episode follows the next of 4 skills. Choose some with --env-kwargs skill:1" in output
    assert who_acted(output) == [0, 1, 2] and "Skills that did not act: 3. More steps (-n)" in output
    assert output.count("max_episode_steps:25") == 2, "shorter than the 50 steps of an episode"
    lines = output.splitlines()
    assert lines[lines.index("Skill 1 acts") - 1] == "Episode Length 50", "after what RL Zoo says of the episode before"


def test_enjoy_shows_all_skills_in_shorter_episodes(monkeypatch, capsys, folder):
    output = play(monkeypatch, capsys, folder, "-n", 40, "--env-kwargs", "max_episode_steps:10")
    assert who_acted(output) == [0, 1, 2, 3] and "did not act" not in output


@pytest.mark.parametrize(("wanted", "acted"), [("skill:2", [2, 2]), ("skill:[3,1]", [3, 1])])
def test_enjoy_follows_the_skills_that_are_asked_for(monkeypatch, capsys, folder, wanted, acted):
    output = play(monkeypatch, capsys, folder, "-n", 60, "--env-kwargs", wanted)
    assert who_acted(output) == acted and "did not act" not in output


def test_all_skills_can_be_asked_for(monkeypatch, capsys, folder):
    """RL Zoo evaluates the word, which is a function of Python."""
    assert who_acted(play(monkeypatch, capsys, folder, "-n", 60, "--env-kwargs", "skill:all")) == [0, 1]


def test_unknown_skill_is_refused(monkeypatch, capsys, folder):
    with pytest.raises(ValueError, match="Unknown skill 4: the model has 4 skills"):
        play(monkeypatch, capsys, folder, "-n", 5, "--env-kwargs", "skill:4")


@pytest.mark.parametrize("arguments", [{}, {"skill_type": "sphere", "skill_dim": 2}], ids=["discrete", "sphere"])
def test_an_empty_list_of_skills_is_refused(tmp_path, arguments):
    make_small(APT, **arguments).save(tmp_path / "model.zip")
    with pytest.raises(ValueError, match=r"^skill:\[\] names no skill: choose some, .* or leave skill out for all of them\.$"):
        show_skills_of(tmp_path / "model.zip", [], make_vec_env("Pendulum-v1"))


def test_task_is_played_by_the_skill_that_learned_it(monkeypatch, capsys, folder):
    output = play(monkeypatch, capsys, folder, "-n", 5, env_id="MazeTree-v0")
    assert "Skill 0, which learned the task, acts" in output
    with pytest.raises(ValueError, match="learned a task with skill 0 alone: leave skill out of --env-kwargs"):
        play(monkeypatch, capsys, folder, "-n", 5, "--env-kwargs", "skill:1", env_id="MazeTree-v0")


def test_a_task_of_a_continuous_skill_is_played_by_it(tmp_path, capsys):
    path = tmp_path / "task.zip"
    make_small(METRA).learn(60).save(tmp_path / "skills.zip")
    METRA.from_pretrained(tmp_path / "skills.zip", "Pendulum-v1", skill=[0.6, 0.8], device="cpu").save(path)
    env = make_vec_env("Pendulum-v1")
    assert show_skills_of(path, [0.6, 0.8], env) is env and "which learned the task, acts" in capsys.readouterr().out
    for other in ([0.8, 0.6], 1, [[0.6, 0.8]], [1, 0], "all", all, [3.0, 4.0], []):
        with pytest.raises(ValueError, match=r"learned a task with skill \[0\.6.*\] alone: leave skill out of --env-kwargs"):
            show_skills_of(path, other, env)


def test_videos_bear_the_skill(monkeypatch, capsys, folder):
    options = ["-n", 55, "-o", folder / "videos", "--env-kwargs", "skill:[3,1]"]
    written = []
    render = PlayedSkills.render
    monkeypatch.setattr(PlayedSkills, "render", lambda self, mode=None: written.append(self.label()) or render(self, mode))
    output = play(monkeypatch, capsys, folder, *options, module="rl_zoo3.record_video")
    assert who_acted(output)[-2:] == [3, 1]
    assert len(list(Path(folder / "videos").glob("*.mp4"))) == 1
    assert set(written) == {"Skill 3", "Skill 1"} and written[0] == "Skill 3" and written[-1] == "Skill 1"


def test_videos_of_an_environment_that_a_package_registers(monkeypatch, capsys, tmp_path):
    """RL Zoo's record_video has no --gym-packages: args.yml names them."""
    (tmp_path / "package_of_a_maze.py").write_text(
        "import gymnasium as gym\ngym.register('OfPackage-v0', lambda **kwargs: gym.make('MazeSquareC-v0', **kwargs))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    run = tmp_path / "logs" / "cesd" / "OfPackage-v0_1"
    make_small(CeSD, "MazeSquareC-v0").save(run / "OfPackage-v0.zip")
    (run / "OfPackage-v0").mkdir()
    (run / "OfPackage-v0" / "config.yml").write_text(yaml.dump({"normalize": False, "normalize_kwargs": {}}))
    (run / "OfPackage-v0" / "args.yml").write_text(yaml.dump({"gym_packages": ["package_of_a_maze"], "env_kwargs": None}))
    try:
        options = ["-n", 5, "-o", tmp_path / "videos"]
        output = play(monkeypatch, capsys, tmp_path, *options, env_id="OfPackage-v0", module="rl_zoo3.record_video")
        assert who_acted(output) == [0] and len(list((tmp_path / "videos").glob("*.mp4"))) == 1
    finally:
        gym.registry.pop("OfPackage-v0", None)


def test_images_bear_a_label(folder):
    env = make_vec_env("MazeSquareC-v0", env_kwargs={"render_mode": "rgb_array"})
    env.reset()
    plain = env.render()
    labelled = show_skills_of(folder / "logs/cesd/MazeSquareC-v0_1/MazeSquareC-v0.zip", 2, env).render()
    changed = (labelled != plain).any(axis=2)
    assert changed[:30, :150].sum() > 100 and not changed[40:].any()


def test_actions_are_those_of_the_skill(folder, capsys):
    path = folder / "logs/cesd/MazeSquareC-v0_1/MazeSquareC-v0.zip"
    model = CeSD.load(path, device="cpu")
    env = show_skills_of(path, [1, 3], make_vec_env("MazeSquareC-v0", 2))
    observations = env.reset()
    actions, _ = model.predict(observations)
    plain = observations["observation"]
    assert np.allclose(actions, model.predict(plain, skill=np.array([1, 3]))[0]) and env.skills.tolist() == [1, 3]
    assert not np.allclose(actions[0], model.predict(plain, skill=0)[0][0])
    env.step(actions)
    assert "Skills 1, 3 act" in capsys.readouterr().out
    loaded = CeSD.load(path, env=env, device="cpu")
    loaded.env.reset()
    assert loaded.env is env and env.skills.tolist() == [1, 3], "as record_video loads it"


def test_continuous_and_fixed_skills(tmp_path, capsys):
    sphere = make_small(APT, skill_type="sphere", skill_dim=2)
    sphere.save(tmp_path / "sphere.zip")
    for wanted, vectors in (
        ([0.6, 0.8], [[0.6, 0.8]]),
        (1, [[0, 1]]),
        ([1, 2], [[0, 1]]),
        ([1, 0.0], [[1, 0]]),
        ([[1, 0], [0.6, 0.8]], [[1, 0]]),
        ([[0.6, 0.8], [1, 0]], [[0.6, 0.8]]),
    ):
        env = show_skills_of(tmp_path / "sphere.zip", wanted, make_vec_env("Pendulum-v1"))
        assert np.allclose(env.reset()["skill"], vectors, atol=1e-6)
    env.step(np.zeros((1, 1)))
    assert "Skill (0.60, 0.80) acts" in capsys.readouterr().out, "not 0.6000000238418579"
    unit_cube = make_small(APT, skill_type="unit_cube", skill_dim=9)
    unit_cube.save(tmp_path / "cube.zip")
    env = show_skills_of(tmp_path / "cube.zip", None, make_vec_env("Pendulum-v1"))
    env.reset()
    env.step(np.zeros((1, 1)))
    env.close()
    output = capsys.readouterr().out
    assert "Skill 0 acts" in output and "Skills that did not act: 1, 2, 3. " in output and "(skill:1)" in output
    pendulum = make_small(CeSD)
    pendulum.set_skill(3)
    pendulum.save(tmp_path / "fixed.zip")
    assert show_skills_of(tmp_path / "fixed.zip", None, make_vec_env("Pendulum-v1")).reset()["skill"].argmax() == 3
    # Whatever acts is what is named, also once record_video has loaded the model with the environments
    played = show_skills_of(tmp_path / "fixed.zip", [1.0, 0], make_vec_env("Pendulum-v1"))
    CeSD.load(tmp_path / "fixed.zip", env=played)
    assert played.reset()["skill"].argmax() == 1 and played.label() == "Skill 1"


def test_skill_durations_of_training_do_not_matter(tmp_path):
    make_small(APT, skill_duration=7).save(tmp_path / "model.zip")
    played = show_skills_of(tmp_path / "model.zip", None, make_vec_env("Pendulum-v1"))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        APT.load(tmp_path / "model.zip", env=played)


def test_environments_have_the_arguments_of_the_entry(tmp_path):
    """Only enjoy passes on those of the yml file."""
    make_small(CeSD).save(tmp_path / "model.zip")

    def create_test_env(env_id, stats_path=None, hyperparams=None, env_kwargs=None):
        made.append(env_kwargs)
        return make_vec_env(env_id)

    made, played = [], PlayedModel()
    note = played.note_path(lambda algo: ("name", str(tmp_path / "model.zip"), "path"))
    create = played.add_skills(create_test_env)
    for entry, given in (({"g": 9.0, "m": 1.0}, {"g": 3.0}), (None, None)):
        note("cesd")
        create("Pendulum-v1", hyperparams={"env_kwargs": entry}, env_kwargs=given)
    assert made == [{"g": 3.0, "m": 1.0}, {}]


def test_turns_begin_anew_after_a_seed(folder):
    env = show_skills_of(folder / "logs/cesd/MazeSquareC-v0_1/MazeSquareC-v0.zip", [3, 1, 2], make_vec_env("MazeSquareC-v0"))

    def acting_after_reset():
        env.reset()
        env.step(np.zeros((1, 2)))
        return env.skills.tolist()

    assert [acting_after_reset() for _ in range(2)] == [[3], [1]]
    env.seed(0)
    assert acting_after_reset() == [3]
