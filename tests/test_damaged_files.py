"""Saved models and replay buffers that are damaged, foreign, of other versions or loaded over other arguments."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from make_fixture import DATA, OBS
from small import arguments
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import DIAYN, CeSD, __version__
from sb3_cesd.common.files import load_pickle
from sb3_cesd.export import import_policy


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    model = CeSD("MlpPolicy", "Pendulum-v1", seed=0, **arguments(policy_kwargs={"net_arch": [4]})).learn(100)
    model.save(folder / "model.zip")
    model.save_replay_buffer(folder / "buffer.pkl")
    return folder


def load(files, env_id="Pendulum-v1", model_class=CeSD, **kwargs):
    return model_class.load(files / "model.zip", env=make_vec_env(env_id), device="cpu", **kwargs)


def test_a_loaded_buffer_is_sampled_with_the_arguments_of_the_model(files):
    model = load(files, gamma=0.5, n_steps=1)
    model.load_replay_buffer(files / "buffer.pkl")
    assert (model.replay_buffer.sample(64).discounts == 0.5).all()
    file = io.BytesIO()
    model.save_replay_buffer(file)
    assert pickle.loads(file.getvalue()).gamma == 0.5


def test_a_flipped_bit_of_a_model_is_named(files):
    damaged = bytearray((files / "model.zip").read_bytes())
    damaged[len(damaged) // 2] ^= 4
    (files / "damaged.zip").write_bytes(damaged)
    with pytest.raises(ValueError, match=r"damaged.zip .*or is damaged .*save it again"):
        CeSD.load(files / "damaged.zip")


@pytest.mark.parametrize(
    ("kwargs", "name"),
    [
        ({"n_skills": 5}, "n_skills"),
        ({"skill_type": "sphere"}, "skill_type"),
        ({"intrinsic_kwargs": {"encoder": "identity"}}, "encoder"),
        ({"env_id": "MountainCarContinuous-v0"}, "spaces"),
        ({"model_class": DIAYN}, "saved by CeSD"),
        ({"policy_kwargs": {"net_arch": [8]}}, "policy kwargs"),
    ],
)
def test_what_a_model_keeps_cannot_change(files, kwargs, name):
    with pytest.raises(ValueError, match=name):
        load(files, **kwargs)
    if "env_id" not in kwargs and "model_class" not in kwargs and "policy_kwargs" not in kwargs:
        kept = {"n_skills": 4, "skill_type": "discrete", "intrinsic_kwargs": {}}
        assert load(files, **{key: kept[key] for key in kwargs}).n_skills == 4


def test_a_buffer_of_another_size_or_algorithm_is_refused(files):
    model = load(files, buffer_size=500)
    before = model.replay_buffer
    sac = SAC("MlpPolicy", "Pendulum-v1", buffer_size=10, device="cpu")
    sac.save_replay_buffer(files / "sac.pkl")
    (files / "damaged.pkl").write_bytes((files / "buffer.pkl").read_bytes()[:-1000])
    for name, said in (("buffer.pkl", "buffer_size"), ("sac.pkl", r"sac\.pkl"), ("damaged.pkl", r"damaged\.pkl")):
        with pytest.raises(ValueError, match=said):
            model.load_replay_buffer(files / name)
    with pytest.raises(FileNotFoundError):
        model.load_replay_buffer(files / "missing.pkl")
    assert model.replay_buffer is before


@pytest.mark.parametrize("name", ["model.zip", "buffer.pkl"])
def test_an_exception_while_saving_keeps_the_file(files, name, monkeypatch, tmp_path):
    def fail(*args, **kwargs):
        raise MemoryError

    model = load(files)
    save = model.save if name == "model.zip" else model.save_replay_buffer
    save(tmp_path / name)
    before = (tmp_path / name).read_bytes()
    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    monkeypatch.setattr(type(model.replay_buffer), "__getstate__", fail)
    with pytest.raises(MemoryError):
        save(tmp_path / name)
    assert (tmp_path / name).read_bytes() == before and os.listdir(tmp_path) == [name]


@pytest.mark.parametrize("version", sorted(path.name for path in DATA.iterdir()))
def test_files_of_each_release_load(version):
    folder = DATA / version
    expected = json.loads((folder / "expected.json").read_text())
    model = CeSD.load(folder / "model.zip", env=make_vec_env("Pendulum-v1"), device="cpu")
    model.load_replay_buffer(folder / "buffer.pkl")
    policy, statistics = import_policy(folder / "policy.safetensors"), load_pickle(folder / "vecnormalize.pkl", VecNormalize)
    assert model.num_timesteps == expected["num_timesteps"]
    # Another version of PyTorch or another processor may round otherwise
    np.testing.assert_allclose(model.predict(OBS, skill=1)[0], expected["actions"], rtol=1e-4, atol=1e-6)
    np.testing.assert_allclose(policy.predict(OBS, skill=1)[0], expected["exported_actions"], rtol=1e-4, atol=1e-6)
    assert model.replay_buffer.rewards[:60, 0].tolist() == expected["rewards"]
    assert statistics.obs_rms.mean.tolist() == expected["mean"]
    model.learn(30, reset_num_timesteps=False)
    assert model.num_timesteps == expected["num_timesteps"] + 30


def test_this_release_has_its_files():
    assert (DATA / __version__ / "model.zip").is_file(), "run python tests/make_fixture.py, and commit the folder"
