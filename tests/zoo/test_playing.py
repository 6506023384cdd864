"""RL Zoo's enjoy and record_video tell which skill acts, and follow the one that is asked for."""

import re

import gymnasium as gym
import numpy as np
import pytest
import yaml
from rl_zoo import MAZE, run
from small import make_small
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import APT, METRA, CeSD
from sb3_cesd.zoo.patches import with_skills


def save_run(folder, model, env_id, args=None):
    """Write what RL Zoo writes of a run."""
    run_folder = folder / "logs" / "cesd" / f"{env_id}_1"
    model.save(run_folder / f"{env_id}.zip")
    (run_folder / env_id).mkdir()
    (run_folder / env_id / "config.yml").write_text(yaml.dump({"normalize": False, "normalize_kwargs": {}}))
    if args is not None:
        (run_folder / env_id / "args.yml").write_text(yaml.dump(args))
    return run_folder / f"{env_id}.zip"


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """Models in the folders of RL Zoo: skills, and a task that one of them learned."""
    folder = tmp_path_factory.mktemp("playing")
    save_run(folder, make_small(CeSD, MAZE), MAZE)
    save_run(folder, make_small(CeSD, "MazeTree-v0", reward="extrinsic"), "MazeTree-v0")
    return folder


def play(folder, *arguments, module="rl_zoo3.enjoy", env=MAZE):
    return run(folder, "-f", folder / "logs", "--no-render", *arguments, module=module, env=env)


def who_acted(output):
    return [int(skill) for skill in re.findall(r"^Skill (\d+) acts$", output, re.MULTILINE)]


def test_skills_act_in_turn(folder):
    output = play(folder)
    assert "--env-kwargs skill:1" in output and who_acted(output) == [0, 1, 2, 3] * 5
    lines = output.splitlines()
    assert lines[lines.index("Skill 1 acts") - 1] == "Episode Length 50", "after what RL Zoo says of the episode before"
    output = play(folder, "-n", 101)
    assert who_acted(output) == [0, 1, 2, 3] and output.count("Episode Length 26") == 3
    assert who_acted(play(folder, "-n", 40, "--env-kwargs", "max_episode_steps:20")) == [0, 1]


def test_one_skill_acts(folder):
    assert who_acted(play(folder, "-n", 60, "--env-kwargs", "skill:2")) == [2, 2]
    with pytest.raises(ValueError, match="skill"):
        play(folder, "-n", 5, "--env-kwargs", "skill:4")


def test_task_is_played_by_the_skill_that_learned_it(folder):
    assert "Skill 0, which learned the task, acts" in play(folder, "-n", 5, env="MazeTree-v0")
    with pytest.raises(ValueError, match="leave skill out"):
        play(folder, "-n", 5, "--env-kwargs", "skill:1", env="MazeTree-v0")


def test_videos_of_an_environment_that_a_package_registers(tmp_path, monkeypatch):
    """RL Zoo's record_video has no --gym-packages: args.yml names them."""
    (tmp_path / "package_of_a_maze.py").write_text(
        "import gymnasium as gym\ngym.register('OfPackage-v0', lambda **kwargs: gym.make('MazeSquareC-v0', **kwargs))\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    args = {"gym_packages": ["package_of_a_maze"], "env_kwargs": None}
    save_run(tmp_path, make_small(CeSD, MAZE), "OfPackage-v0", args)
    try:
        output = play(tmp_path, "-n", 5, "-o", tmp_path / "videos", module="rl_zoo3.record_video", env="OfPackage-v0")
        assert who_acted(output) == [0, 1, 2] and len(list((tmp_path / "videos").glob("*.mp4"))) == 1
    finally:
        gym.registry.pop("OfPackage-v0", None)


def test_images_bear_a_label(folder):
    env = make_vec_env(MAZE, env_kwargs={"render_mode": "rgb_array"})
    env.reset()
    plain = env.render()
    labelled = with_skills(folder / f"logs/cesd/{MAZE}_1/{MAZE}.zip", 2, env).render()
    changed = (labelled != plain).any(axis=2)
    assert changed[:30, :150].sum() > 100 and not changed[40:].any()


def test_continuous_and_fixed_skills(tmp_path, capsys):
    make_small(APT, skill_type="sphere", skill_dim=2).save(tmp_path / "sphere.zip")
    env = with_skills(tmp_path / "sphere.zip", [0.6, 0.8], make_vec_env("Pendulum-v1"))
    assert np.allclose(env.reset()["skill"], [[0.6, 0.8]])
    env.step(np.zeros((1, 1)))
    assert "Skill [0.6 0.8] acts" in capsys.readouterr().out
    skills = make_small(CeSD)
    skills.set_skill(3)
    skills.save(tmp_path / "fixed.zip")
    assert with_skills(tmp_path / "fixed.zip", None, make_vec_env("Pendulum-v1")).reset()["skill"].argmax() == 3
    # record_video loads the model with the environments
    make_small(CeSD).save(tmp_path / "all.zip")
    env = with_skills(tmp_path / "all.zip", 2, make_vec_env("Pendulum-v1"))
    assert CeSD.load(tmp_path / "all.zip", env, device="cpu").env.reset()["skill"].argmax() == 2
    make_small(METRA).learn(60).save(tmp_path / "skills.zip")
    METRA.from_pretrained(tmp_path / "skills.zip", "Pendulum-v1", skill=[0.6, 0.8], device="cpu").save(tmp_path / "task.zip")
    env = make_vec_env("Pendulum-v1")
    assert with_skills(tmp_path / "task.zip", None, env) is env
