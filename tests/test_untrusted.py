"""What lies beside a model, of strangers or damaged: nothing in it is run."""

import json
import os
import pickle
import sys
from collections import OrderedDict

import numpy as np
import pytest
import yaml
from conftest import arguments
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import CeSD
from sb3_cesd.common.untrusted_statistics import load_statistics
from sb3_cesd.common.untrusted_yml import read_entry
from sb3_cesd.export import export_policy
from sb3_cesd.show import __main__ as command
from sb3_cesd.show.find import find_env_kwargs, load_vec_normalize


class Crafted:
    """Makes a file when it is unpickled."""

    def __init__(self, path):
        self.path = str(path)

    def __reduce__(self):
        return os.mkdir, (self.path,)


@pytest.mark.parametrize(
    "entry",
    [
        "env_kwargs: !!python/object/apply:os.mkdir [MADE]",
        "env_kwargs: {reward: !!python/object/apply:os.mkdir [MADE]}",
        "env_kwargs: !!python/object/new:os.mkdir [MADE]",
        "env_kwargs: !!python/name:os.mkdir",
        "!!python/object/apply:collections.OrderedDict [[[env_kwargs, !!python/object/apply:os.mkdir [MADE]]]]",
    ],
)
def test_yml_files_do_not_run_what_env_kwargs_hold(tmp_path, entry):
    folder, made = tmp_path / "MazeSquareA-v0", tmp_path / "made"
    folder.mkdir()
    (folder / "args.yml").write_text(entry.replace("MADE", str(made)))
    with pytest.raises(ValueError, match=r"args\.yml makes Python objects of env_kwargs .*plain numbers"):
        find_env_kwargs(tmp_path / "best_model.zip", "MazeSquareA-v0")
    assert not made.exists()


def test_other_entries_are_not_constructed(tmp_path):
    made, path = tmp_path / "made", tmp_path / "config.yml"
    path.write_text(f"policy_kwargs: !!python/object/apply:os.mkdir [{made}]\nenv_kwargs: {{size: !!python/tuple [1, 2]}}\n")
    assert read_entry(path, "env_kwargs") == {"size": (1, 2)}
    assert read_entry(path, "seed") is None and not made.exists()


def test_yml_files_as_rl_zoo_writes_them(tmp_path):
    path = tmp_path / "config.yml"
    path.write_text(yaml.dump(OrderedDict(n_skills=4, env_kwargs={"goal": [1.5, None]}, train_freq=(1, "step"))))
    assert read_entry(path, "env_kwargs") == {"goal": [1.5, None]} and read_entry(path, "train_freq") == (1, "step")


@pytest.mark.parametrize(
    "content", [b"", b"just text", b"- 1\n- 2\n", b"{a: [1, 2", b"\xff\xfe\x00\x01", b"!!python/object/apply:os.mkdir [x]"]
)
def test_damaged_yml_files(tmp_path, content):
    (tmp_path / "args.yml").write_bytes(content)
    with pytest.raises(ValueError, match=r"args\.yml .*restore or remove it"):
        read_entry(tmp_path / "args.yml", "env_kwargs")


def test_env_kwargs_that_are_no_dictionary(tmp_path):
    (tmp_path / "MazeSquareA-v0").mkdir()
    (tmp_path / "MazeSquareA-v0" / "args.yml").write_text("env_kwargs: [1, 2]")
    with pytest.raises(ValueError, match=r"env_kwargs \[1, 2\]: write a dictionary"):
        find_env_kwargs(tmp_path / "best_model.zip", "MazeSquareA-v0")


@pytest.fixture
def statistics():
    env = VecNormalize(make_vec_env("MazeSquareA-v0"), clip_obs=4.0)
    env.reset()
    for _ in range(20):
        env.step(np.array([env.action_space.sample()]))
    return env


def save_as_rl_zoo_does(statistics, path):
    """With the checksum that RL Zoo writes for our methods."""
    from sb3_cesd.common.vec_normalize import save_statistics

    save_statistics(statistics, path)


@pytest.mark.parametrize("extended", [False, True])
def test_statistics_are_those_that_were_saved(statistics, tmp_path, extended):
    path = tmp_path / "vecnormalize.pkl"
    if extended:
        save_as_rl_zoo_does(statistics, path)
    else:
        statistics.save(str(path))
    for loaded in (load_statistics(path), VecNormalize.load(str(path), make_vec_env("MazeSquareA-v0"))):
        assert (loaded.obs_rms.mean == statistics.obs_rms.mean).all() and (loaded.obs_rms.var == statistics.obs_rms.var).all()
        assert loaded.clip_obs == 4.0 and loaded.norm_obs


def test_statistics_of_dictionaries(tmp_path):
    from test_export import Images

    env = VecNormalize(make_vec_env(Images), norm_obs_keys=["place"])
    env.reset()
    env.save(str(tmp_path / "vecnormalize.pkl"))
    assert (load_statistics(tmp_path / "vecnormalize.pkl").obs_rms["place"].mean == env.obs_rms["place"].mean).all()


def test_no_flipped_bit_of_statistics_loads_other_numbers(statistics, tmp_path):
    path, rng = tmp_path / "vecnormalize.pkl", np.random.default_rng(0)
    save_as_rl_zoo_does(statistics, path)
    content = path.read_bytes()
    for place in rng.integers(0, len(content) - 47, 60):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        with pytest.raises(ValueError, match=r"vecnormalize\.pkl does not hold .*restore it, or remove it"):
            load_statistics(path)
        path.write_bytes(content[:place])
        with pytest.raises(ValueError, match=r"vecnormalize\.pkl does not hold .*restore it, or remove it"):
            load_statistics(path)


def test_crafted_statistics_run_nothing(statistics, tmp_path):
    (tmp_path / "MazeSquareA-v0").mkdir()
    path = tmp_path / "MazeSquareA-v0" / "vecnormalize.pkl"
    statistics.clip_obs = Crafted(tmp_path / "made")
    for value in (statistics, Crafted(tmp_path / "made")):
        path.write_bytes(pickle.dumps(value))
        with pytest.raises(ValueError, match=r"posix\.mkdir is no part of them.*remove it"):
            load_vec_normalize(tmp_path / "best_model.zip", "MazeSquareA-v0")
    path.write_bytes(pickle.dumps([1, 2]))
    with pytest.raises(ValueError, match="does not hold the statistics of a VecNormalize"):
        load_statistics(path)
    assert not (tmp_path / "made").exists()


def test_exported_policies_are_shown_alone(tmp_path, monkeypatch, capsys):
    model = CeSD("MlpPolicy", VecNormalize(make_vec_env("MazeSquareC-v0", 2)), seed=0, **arguments()).learn(60)
    path = export_policy(model, tmp_path / "MazeSquareC-v0.safetensors")
    # Of no use for what holds its statistics, and not opened
    (tmp_path / "MazeSquareC-v0").mkdir()
    (tmp_path / "MazeSquareC-v0" / "vecnormalize.pkl").write_bytes(pickle.dumps(Crafted(tmp_path / "made")))
    monkeypatch.setattr(sys, "argv", ["show", str(path)])
    command.main()
    folder = tmp_path / "MazeSquareC-v0_skills"
    assert "coverage" in capsys.readouterr().out and (folder / "skills.png").stat().st_size > 10_000
    metrics = json.loads((folder / "metrics.json").read_text())["skills"]
    assert "mutual_information" in metrics and "on_cluster_share" not in metrics
    assert not (tmp_path / "made").exists()
