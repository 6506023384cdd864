"""Saved models and replay buffers that are damaged, foreign, of other versions or loaded over other arguments."""

import io
import json
import os
import pickle
import zipfile

import numpy as np
import pytest
from conftest import arguments
from make_fixture import DATA, OBS
from stable_baselines3 import SAC
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.save_util import save_to_pkl

from sb3_cesd import CeSD, __version__
from sb3_cesd.common import versions
from sb3_cesd.common.untrusted_statistics import load_statistics
from sb3_cesd.export import import_policy

REMEDY = "Save it again with save_replay_buffer"


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("saved")
    model = CeSD("MlpPolicy", "Pendulum-v1", seed=0, **arguments(policy_kwargs={"net_arch": [4]})).learn(100)
    model.save(folder / "model.zip")
    model.save_replay_buffer(folder / "buffer.pkl")
    return folder


def load(files, **kwargs):
    return CeSD.load(files / "model.zip", env=make_vec_env("Pendulum-v1"), device="cpu", **kwargs)


# Arguments of load() count


def test_a_loaded_buffer_is_sampled_with_the_arguments_of_the_model(files):
    model = load(files, gamma=0.5, n_steps=1)
    model.load_replay_buffer(files / "buffer.pkl")
    batch = model.replay_buffer.sample(64)
    assert (batch.discounts == 0.5).all()
    plain = load(files)
    plain.load_replay_buffer(files / "buffer.pkl")
    assert (plain.replay_buffer.sample(64).discounts < 0.99).any(), "three steps"
    # Saved again, they are those of the model
    file = io.BytesIO()
    model.save_replay_buffer(file)
    assert pickle.loads(file.getvalue()).gamma == 0.5


def test_one_step_follows_the_model(files):
    model = load(files)
    model.replay_buffer_kwargs["one_step"] = True
    model.replay_buffer_kwargs["handle_timeout_termination"] = False
    model.load_replay_buffer(files / "buffer.pkl")
    assert model.replay_buffer.one_step and model.replay_buffer.sample(4).one_step_observations is not None
    assert not model.replay_buffer.handle_timeout_termination


def test_a_buffer_of_another_size_is_refused(files):
    model = load(files, buffer_size=500)
    before = model.replay_buffer
    with pytest.raises(ValueError, match=r"room for 1000 transitions, that of the model for 500: load .* buffer_size=1000"):
        model.load_replay_buffer(files / "buffer.pkl")
    assert model.replay_buffer is before


# Damage


def test_no_flipped_bit_of_a_buffer_loads(files):
    content = (files / "buffer.pkl").read_bytes()
    model, rng = load(files), np.random.default_rng(0)
    before = model.replay_buffer
    for place in rng.integers(0, len(content), 50):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        (files / "damaged.pkl").write_bytes(damaged)
        with pytest.raises(ValueError, match=rf"damaged\.pkl is (damaged|not complete).*{REMEDY}"):
            model.load_replay_buffer(files / "damaged.pkl")
        (files / "damaged.pkl").write_bytes(content[:place])
        with pytest.raises(ValueError, match=rf"damaged\.pkl is not complete.*{REMEDY}"):
            model.load_replay_buffer(files / "damaged.pkl")
    assert model.replay_buffer is before


def test_no_flipped_bit_of_a_model_loads_other_weights(files):
    content, rng = (files / "model.zip").read_bytes(), np.random.default_rng(0)
    expected, refused = load(files).predict(OBS, skill=1)[0], 0
    for place in rng.integers(0, len(content), 50):
        damaged = bytearray(content)
        damaged[place] ^= 1 << int(rng.integers(8))
        (files / "damaged.zip").write_bytes(damaged)
        try:
            # What zip does not check is of no use to us: dates, rights, padding
            assert (CeSD.load(files / "damaged.zip", device="cpu").predict(OBS, skill=1)[0] == expected).all()
        except ValueError as error:
            assert "damaged.zip is not a complete saved model" in str(error) and "load another checkpoint" in str(error)
            refused += 1
    assert refused > 40


def test_foreign_buffers(files):
    model = load(files)
    for content in (b"", b"text", pickle.dumps([1, 2])):
        (files / "foreign.pkl").write_bytes(content)
        with pytest.raises(ValueError, match=rf"foreign\.pkl is not complete, or was written by another.*{REMEDY}"):
            model.load_replay_buffer(files / "foreign.pkl")
    sac = SAC("MlpPolicy", "Pendulum-v1", buffer_size=10, device="cpu")
    save_to_pkl(files / "foreign.pkl", sac.replay_buffer)
    with pytest.raises(ValueError, match="written by another program"):
        model.load_replay_buffer(files / "foreign.pkl")
    with pytest.raises(FileNotFoundError):
        model.load_replay_buffer(files / "missing.pkl")


def test_a_model_without_what_is_needed_to_build_it(files):
    load(files).save(files / "part.zip", exclude=["skill_type"])
    with pytest.raises(ValueError, match=r"part\.zip lacks skill_type.*without excluding"):
        CeSD.load(files / "part.zip")
    with zipfile.ZipFile(files / "list.zip", "w") as archive:
        archive.writestr("data", "[1, 2]")
    with pytest.raises(ValueError, match="not a complete saved model"):
        CeSD.load(files / "list.zip")


def test_names_without_a_suffix(files, tmp_path):
    model = load(files)
    model.save(tmp_path / "new" / "model")
    model.save_replay_buffer(str(tmp_path / "new" / "buffer"))
    assert sorted(os.listdir(tmp_path / "new")) == ["buffer.pkl", "model.zip"]
    model.load_replay_buffer(tmp_path / "new" / "buffer")
    assert CeSD.load(tmp_path / "new" / "model", device="cpu").n_skills == 4


@pytest.mark.parametrize("name", ["model.zip", "buffer.pkl"])
def test_an_exception_while_saving_keeps_the_file(files, name, monkeypatch, tmp_path):
    model = load(files)
    model.load_replay_buffer(files / "buffer.pkl")
    save = model.save if name == "model.zip" else model.save_replay_buffer
    save(tmp_path / name)
    before = (tmp_path / name).read_bytes()

    def fail(*args, **kwargs):
        raise MemoryError

    monkeypatch.setattr(zipfile.ZipFile, "writestr", fail)
    monkeypatch.setattr(type(model.replay_buffer), "__getstate__", fail)
    with pytest.raises(MemoryError):
        save(tmp_path / name)
    assert (tmp_path / name).read_bytes() == before and os.listdir(tmp_path) == [name]


# Versions


def test_versions_are_saved_and_compared(files, monkeypatch, recwarn):
    with zipfile.ZipFile(files / "model.zip") as archive:
        assert json.loads(archive.read("data"))["saved_with"] == versions.installed_versions()
    load(files)
    assert not [warning for warning in recwarn if "was saved with" in str(warning.message)]
    here = versions.installed_versions()
    monkeypatch.setattr(versions, "installed_versions", lambda: {**here, "torch": "99.1.0"})
    with pytest.warns(UserWarning, match=rf"was saved with torch {here['torch'].split('+')[0]}.* \(here 99.1.0\)"):
        load(files)


@pytest.mark.parametrize("version", sorted(path.name for path in DATA.iterdir()))
def test_files_of_each_release_load(version):
    folder = DATA / version
    expected = json.loads((folder / "expected.json").read_text())
    model = CeSD.load(folder / "model.zip", env=make_vec_env("Pendulum-v1"), device="cpu")
    model.load_replay_buffer(folder / "buffer.pkl")
    policy, statistics = import_policy(folder / "policy.safetensors"), load_statistics(folder / "vecnormalize.pkl")
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
