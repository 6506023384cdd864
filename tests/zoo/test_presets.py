"""Presets: the settings of the yml files, in Python."""

import inspect

import pytest
import yaml
from rl_zoo import run
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import METHODS, CeSD, preset
from sb3_cesd.envs.registration import ENVS
from sb3_cesd.zoo.hyperparams import configs, entries

NOT_IN_A_PRESET = ("policy", "n_timesteps", "n_envs")


@pytest.mark.parametrize("config", configs())
def test_presets_are_the_entries_of_the_yml_files(config):
    scale = "laptop" if config.endswith("_laptop") else "published"
    method = config.removesuffix("_laptop")
    for env_id, entry in entries(config).items():
        settings = preset(scale, env_id, method)
        assert settings == {name: value for name, value in entry.items() if name not in NOT_IN_A_PRESET}, env_id
        assert settings.n_timesteps == entry["n_timesteps"] and settings.n_envs == entry.get("n_envs", 1)
        assert isinstance(settings.n_timesteps, int)
        assert preset(scale, f"sb3_cesd:{env_id}", method) == settings
    # Of a class, and of an environment that the files don't name
    if method in METHODS:
        assert preset(scale, "Pendulum-v1", METHODS[method]) == preset(scale, method=method)


def test_a_preset_is_what_rl_zoo_passes_to_the_constructor(tmp_path):
    run(tmp_path, "--conf-file", "diayn_laptop", "--eval-freq", -1, "-n", 20, algo="diayn", env="WalkerRun-v0")
    (file,) = tmp_path.rglob("config.yml")
    passed = dict(yaml.unsafe_load(file.read_text()))
    settings = preset("laptop", "WalkerRun-v0", "diayn")
    assert {name: passed[name] for name in settings} == settings
    assert set(passed) - set(settings) == {"policy", "n_timesteps"}


def test_models_of_presets():
    settings = preset("laptop")
    model = CeSD("MlpPolicy", "Pendulum-v1", **{**settings, "buffer_size": 1000}, device="cpu")
    assert (model.batch_size, model.n_skills, settings.n_timesteps) == (256, 8, 200_000)
    # Mazes have one scale
    settings = preset("laptop", "MazeSquareA-v0")
    assert settings == preset("published", "MazeSquareA-v0") and settings.n_envs == 20
    model = CeSD("MlpPolicy", make_vec_env("MazeSquareA-v0", settings.n_envs), **settings, device="cpu")
    assert model.skill_duration is None and model.noise_correlation == 0.85
    assert set(ENVS) < set(entries("cesd_laptop"))


def test_presets_can_be_changed_apart_from_each_other():
    first = preset("laptop", "Walker-v0")
    first["intrinsic_kwargs"]["alpha"] = 7.0
    first["policy_kwargs"]["net_arch"]["pi"].append(1)
    assert "alpha" not in preset("laptop", "Walker-v0")["intrinsic_kwargs"]
    assert preset("laptop", "Walker-v0")["policy_kwargs"]["net_arch"]["pi"] == [256, 256]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"scale": "small"}, "laptop"),
        ({"method": "ppo"}, "method"),
        ({"method": "cesd_released"}, "cesd"),
    ],
)
def test_unknown_presets(arguments, message):
    with pytest.raises(ValueError, match=message):
        preset(**arguments)


def test_keys_of_rl_zoo_alone_are_refused(monkeypatch):
    entry = {"policy": "MlpPolicy", "n_timesteps": 10, "normalize": True}
    monkeypatch.setattr("sb3_cesd.zoo.hyperparams.read_entry", lambda *_: entry)
    with pytest.raises(ValueError, match="normalize"):
        preset("laptop", "Pendulum-v1", "rnd")
    assert "normalize" not in inspect.signature(METHODS["rnd"]).parameters
