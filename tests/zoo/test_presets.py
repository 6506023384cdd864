"""Presets: the settings of the yml files, in Python."""

import pytest
import yaml
from rl_zoo import run
from stable_baselines3.common.env_util import make_vec_env

from sb3_cesd import CeSD, preset
from sb3_cesd.presets import OF_RL_ZOO, hyperparams_folder
from sb3_cesd.registry import ALGORITHMS


@pytest.mark.parametrize("path", sorted(hyperparams_folder().glob("*.yml")), ids=lambda path: path.stem)
def test_presets_are_the_entries_of_the_yml_files(path):
    scale = "laptop" if path.stem in ALGORITHMS else "published"
    method = path.stem.removesuffix("_published")
    entries = yaml.safe_load(path.read_text())
    for env_id, entry in entries.items():
        settings = preset(scale, env_id, method)
        assert settings == {name: value for name, value in entry.items() if name not in OF_RL_ZOO}, env_id
        assert settings.n_timesteps == entry["n_timesteps"] and settings.n_envs == entry.get("n_envs", 1)
        assert isinstance(settings.n_timesteps, int) and settings.policy == entry["policy"]
        assert settings.frame_stack == entry.get("frame_stack", 1) and settings.env_kwargs == entry.get("env_kwargs", {})
    assert preset(scale, "sb3_cesd:Walker-v0", method) == preset(scale, "Walker-v0", method)
    # Of a class, and of an environment that the files don't name
    if method in ALGORITHMS:
        assert preset(scale, "Pendulum-v1", ALGORITHMS[method]) == preset(scale, method=method)


def test_a_preset_is_what_rl_zoo_passes_to_the_constructor(tmp_path):
    run(tmp_path, "--eval-freq", -1, "-n", 20, algo="diayn", env="WalkerRun-v0")
    (file,) = tmp_path.rglob("config.yml")
    passed = dict(yaml.unsafe_load(file.read_text()))
    settings = preset("laptop", "WalkerRun-v0", "diayn")
    assert {name: passed[name] for name in settings} == settings
    assert set(passed) - set(settings) == {"policy", "n_timesteps"}


def test_models_of_presets():
    settings = preset()
    assert settings == {} and settings.n_timesteps == 200_000, "the defaults of the constructor"
    settings = preset("published")
    model = CeSD("MlpPolicy", "Pendulum-v1", **{**settings, "buffer_size": 1000}, device="cpu")
    assert (model.batch_size, model.n_skills, settings.n_timesteps) == (1024, 16, 2_000_000)
    settings = preset("laptop", "MazeSquareA-v0")
    model = CeSD("MlpPolicy", make_vec_env("MazeSquareA-v0", settings.n_envs), **settings, device="cpu")
    assert model.skill_duration is None and model.noise_correlation == 0.85 and model.n_envs == 20


@pytest.mark.parametrize(
    ("arguments", "message"),
    [({"scale": "small"}, "laptop"), ({"method": "ppo"}, "method"), ({"method": "cesd_released"}, "cesd")],
)
def test_unknown_presets(arguments, message):
    with pytest.raises(ValueError, match=message):
        preset(**arguments)
