"""What a saved model is, told by the file and what lies beside it."""

import sys
from collections import OrderedDict

import gymnasium as gym
import numpy as np
import pytest
import yaml
from gymnasium.envs.classic_control import PendulumEnv
from shown import QUICK, model, saved, show
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import SkillDDPG, show_skills
from sb3_cesd.export import export_policy
from sb3_cesd.methods.diayn import DIAYNReward
from sb3_cesd.show.find import (
    find_algorithm,
    find_env_id,
    find_env_kwargs,
    find_wrappers,
    import_packages,
    load_model,
    load_vec_normalize,
)
from sb3_cesd.show.saved import envs_of_run

PACKAGE = """
import gymnasium as gym
gym.register("FromPackage-v0", lambda **kwargs: gym.make("Pendulum-v1", **kwargs))
"""


def write_yml(folder, **files):
    folder.mkdir(exist_ok=True)
    for name, entries in files.items():
        (folder / f"{name}.yml").write_text(yaml.dump(OrderedDict(entries)))


@pytest.mark.parametrize("name", ["best_model.zip", "rl_model_200_steps.zip", "checkpoints/steps_200/model.zip"])
def test_environment_is_told_by_the_folder_of_rl_zoo(tmp_path, name):
    assert find_env_id(tmp_path / "logs/cesd/QuadrupedRun-v0_12" / name) == "QuadrupedRun-v0"


def test_environment_is_told_by_the_file_or_not_at_all(tmp_path):
    assert find_env_id(tmp_path / "Pendulum-v1.zip") == "Pendulum-v1"
    with pytest.raises(ValueError, match=r"pass --env, and --gym-packages if"):
        find_env_id(tmp_path / "model.zip")


def test_environment_is_told_by_the_folder_of_its_settings(tmp_path):
    write_yml(tmp_path / "Walker-v0", args={"algo": "cesd"})
    assert find_env_id(tmp_path / "anything.zip") == "Walker-v0"


def test_algorithm_is_told_by_the_file_then_by_the_folders(tmp_path):
    model("Pendulum-v1", "diayn").save(tmp_path / "cesd" / "model.zip")
    assert find_algorithm(tmp_path / "cesd" / "model.zip") == "diayn"
    assert type(load_model(tmp_path / "cesd" / "model.zip")).__name__ == "DIAYN"
    assert find_algorithm(tmp_path / "logs/diayn/Walker-v0_1/best_model.zip") == "diayn"
    assert find_algorithm(tmp_path / "model.zip") == "cesd"


class Own(SkillDDPG):
    """A method of the user."""

    reward_class = DIAYNReward


def test_a_method_of_the_user_is_shown_by_other_means(tmp_path, monkeypatch):
    own, path = make_small(Own), tmp_path / "Pendulum-v1.zip"
    own.save(path)
    message = (
        r"saved by Own, .*: call show_skills\(Own\.load\(path\), env\) in Python, or pass a policy that export_policy wrote"
    )
    with pytest.raises(SystemExit, match=message):
        show(monkeypatch, path, *QUICK)
    shown = show_skills(Own.load(path, device="cpu"), "Pendulum-v1", n_steps=6, n_rollouts=2, n_untrained=0, n_frames=0)
    assert shown.method == "Own" and shown.metrics
    show(monkeypatch, export_policy(own, tmp_path / "Pendulum-v1.safetensors"), *QUICK)
    assert (tmp_path / "Pendulum-v1.safetensors_skills" / "skills.html").is_file()


def test_damaged_file_is_refused(tmp_path):
    (tmp_path / "model.zip").write_bytes(b"PK nothing")
    with pytest.raises(ValueError, match="not a complete saved model"):
        load_model(tmp_path / "model.zip", "cesd")


def test_env_kwargs_of_rl_zoo(tmp_path):
    model_path = tmp_path / "best_model.zip"
    assert find_env_kwargs(model_path, "MazeSquareA-v0") == {}
    write_yml(tmp_path / "MazeSquareA-v0", config={"n_skills": 4, "env_kwargs": {"reward": "none"}}, args={"env_kwargs": None})
    assert find_env_kwargs(model_path, "MazeSquareA-v0") == {"reward": "none"}
    write_yml(tmp_path / "MazeSquareA-v0", args={"env_kwargs": {"reward": "coverage", "render_mode": "human"}})
    assert find_env_kwargs(model_path, "module:MazeSquareA-v0") == {"reward": "coverage"}


def test_packages_of_rl_zoo_register_the_environment(tmp_path, monkeypatch):
    (tmp_path / "package_of_an_env.py").write_text(PACKAGE)
    monkeypatch.syspath_prepend(tmp_path)
    write_yml(tmp_path / "FromPackage-v0", args={"gym_packages": ["package_of_an_env"], "env_kwargs": None})
    path = tmp_path / "FromPackage-v0.zip"
    model("Pendulum-v1").save(path)
    try:
        show(monkeypatch, path, *QUICK)
        assert (tmp_path / "FromPackage-v0_skills" / "skills.png").stat().st_size > 10_000
        sys.modules.pop("package_of_an_env")
        assert import_packages(tmp_path / "FromPackage-v0.safetensors") == [], "an exported policy imports nothing"
        assert "package_of_an_env" not in sys.modules
    finally:
        gym.registry.pop("FromPackage-v0", None)


class WithoutArguments(PendulumEnv):
    """An environment that takes no render_mode."""

    def __init__(self):
        super().__init__()


def test_environments_that_take_no_arguments(tmp_path, monkeypatch, capsys):
    gym.register("NoArguments-v0", WithoutArguments, max_episode_steps=50)
    try:
        path = tmp_path / "NoArguments-v0.zip"
        model("Pendulum-v1").save(path)
        show(monkeypatch, path, *QUICK[:-4], "--frames", "2", "--video", "none")
        assert "refused" not in capsys.readouterr().err
        assert (tmp_path / "NoArguments-v0_skills" / "skills.png").stat().st_size > 10_000
    finally:
        gym.registry.pop("NoArguments-v0", None)


def test_missing_package_is_named(tmp_path):
    with pytest.raises(ValueError, match=r"comes from the package 'no_such_package' .*, which can't be imported"):
        import_packages(tmp_path / "model.zip", ["no_such_package"])


def test_wrappers_of_rl_zoo(tmp_path):
    path = tmp_path / "Pendulum-v1.zip"
    wrapper = {"gymnasium.wrappers.RescaleObservation": {"min_obs": -2.0, "max_obs": 2.0}}
    write_yml(tmp_path / "Pendulum-v1", config={"env_wrapper": [wrapper], "frame_stack": 2, "normalize": False})
    env = envs_of_run(path, "Pendulum-v1", None).one()
    assert env.reset().shape == (1, 6), "two observations are stacked"
    low = env.observation_space.low
    assert np.allclose(low, -2.0), "each of them rescaled"
    with pytest.raises(ValueError, match=r"names wrappers.*call show_skills\(policy, env\)"):
        find_wrappers(tmp_path / "Pendulum-v1.safetensors", "Pendulum-v1")
    refused = {"os.system": "which is not a subclass of Wrapper: .* as a class", "nowhere.Wrapper": "which can't be imported"}
    for name, message in refused.items():
        write_yml(tmp_path / "Pendulum-v1", config={"env_wrapper": name})
        with pytest.raises(ValueError, match=message):
            envs_of_run(path, "Pendulum-v1", None)


def save_statistics(path, mean):
    env = VecNormalize(make_vec_env("Pendulum-v1"))
    env.obs_rms.mean[:] = mean
    path.parent.mkdir(exist_ok=True)
    env.save(str(path))


def test_statistics_are_found_beside_the_model(tmp_path):
    def mean(name, given=None):
        found = load_vec_normalize(tmp_path / name, "Pendulum-v1", given)
        return None if found is None else found[0].obs_rms.mean[0]

    assert mean("model.zip") is None
    save_statistics(tmp_path / "vec_normalize.pkl", 1.0)
    assert mean("model.zip") == 1.0, "any in the folder"
    save_statistics(tmp_path / "other_vecnormalize.pkl", 2.0)
    with pytest.raises(ValueError, match=r"other_vecnormalize\.pkl, vec_normalize\.pkl\): choose one of them with --vec-norm"):
        mean("model.zip")
    assert mean("model.zip", tmp_path / "vec_normalize.pkl") == 1.0
    save_statistics(tmp_path / "model_vecnormalize.pkl", 3.0)
    assert mean("model.zip") == 3.0, "that of the model's name"
    save_statistics(tmp_path / "Pendulum-v1" / "vecnormalize.pkl", 4.0)
    assert mean("model.zip") == 4.0 and mean("rl_model_200_steps.zip") == 4.0, "that of RL Zoo"
    save_statistics(tmp_path / "rl_model_vecnormalize_200_steps.pkl", 5.0)
    assert mean("rl_model_200_steps.zip") == 5.0, "that of the checkpoint"
    assert mean("model.safetensors") is None, "an exported policy holds its own"
    with pytest.raises(ValueError, match="There is no file"):
        mean("model.zip", tmp_path / "nothing.pkl")


def test_statistics_of_a_checkpoint_are_its_own(tmp_path):
    """Those of the run are of another step."""
    path = tmp_path / "checkpoints/steps_000000000060/model.zip"
    path.parent.mkdir(parents=True)
    write_yml(tmp_path / "Pendulum-v1", args={"algo": "cesd"})
    save_statistics(tmp_path / "Pendulum-v1" / "vecnormalize.pkl", 1.0)
    save_statistics(path.with_name("vecnormalize.pkl"), 2.0)
    (path.parent / "checkpoint.json").write_text("{}")
    found, file = load_vec_normalize(path, "Pendulum-v1")
    assert found.obs_rms.mean[0] == 2.0 and file.samefile(path.with_name("vecnormalize.pkl"))
    file.unlink()
    found, file = load_vec_normalize(path, "Pendulum-v1")
    assert found.obs_rms.mean[0] == 1.0 and file.samefile(tmp_path / "Pendulum-v1" / "vecnormalize.pkl"), "an older checkpoint"


def test_model_sees_what_the_statistics_make_of_observations(tmp_path, monkeypatch, capsys):
    """A Python model whose statistics were saved beside it, and told by --vec-normalize."""
    returns = {}
    path = tmp_path / "Pendulum-v1.zip"
    model("Pendulum-v1").save(path)
    save_statistics(tmp_path / "elsewhere" / "statistics.pkl", 50.0)
    for name, options in {"plain": [], "told": ["--vec-normalize", tmp_path / "elsewhere/statistics.pkl"]}.items():
        show(monkeypatch, path, *QUICK, "--rollouts", 0, *options)
        returns[name] = capsys.readouterr().out
    save_statistics(tmp_path / "vecnormalize.pkl", 50.0)
    show(monkeypatch, path, *QUICK, "--rollouts", 0)
    returns["beside"] = capsys.readouterr().out
    rows = {name: [line for line in text.splitlines() if line[:7].strip().isdecimal()] for name, text in returns.items()}
    assert rows["told"] == rows["beside"] != rows["plain"] and len(rows["plain"]) == 4
    assert f"normalised by {tmp_path / 'vecnormalize.pkl'}" in returns["beside"] and "normalised" not in returns["plain"]


def test_exported_policy_is_shown(tmp_path, monkeypatch):
    path = export_policy(model("Pendulum-v1"), tmp_path / "Pendulum-v1.safetensors")
    show(monkeypatch, path, *QUICK, "--untrained", 1)
    assert (tmp_path / "Pendulum-v1_skills" / "skills.html").is_file()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nothing.zip"], "There is no file nothing.zip: pass that of a model"),
        (["{model}", "--algo", "apt"], "was not saved by APT"),
        (["{model}", "--video", "avi"], "invalid choice: 'avi'"),
        (["{model}", "--steps", "0"], "'0' is not an integer of at least 1: pass 1 or more"),
        (["{model}", "--frames", "-1"], "'-1' is not an integer of at least 0: pass 0 or more"),
        (["{model}", "--skill", "first"], "'first' is not a skill: pass the index of one, or a vector"),
        (["{model}", "--skill", "nan"], "'nan' is not a skill"),
        (["{model}", "--output", "{model}"], "can't be written to: pass a folder that exists or can be created"),
        (["{model}", "--skill", "9"], "Unknown skill 9: the model has 4 skills"),
        (["{model}", "--env", "Wolker-v0"], "There is no environment 'Wolker-v0'"),
        (["{model}", "--env", "no_such_module:Walker-v0"], "There is no environment 'no_such_module:Walker-v0'"),
        (["{model}", "--env", "Quadruped-v0"], "The model observes Box(-inf, inf, (24,), float32)"),
        (["{model}", "--mine"], "mine is only for mazes"),
        (["{model}", "--goal-range", "-1"], "'-1' is not a distance: pass a number of metres, 0 for none"),
        ([], "pass one model, or several after --compare"),
        (["{model}", "--compare", "{model}"], "pass one model, or several after --compare"),
        (["--compare", "{model}"], "--compare takes at least two models"),
    ],
)
def test_misuse_ends_in_one_readable_line(monkeypatch, capsys, arguments, message):
    with pytest.raises(SystemExit) as ended:
        show(monkeypatch, *(argument.format(model=saved("Walker-v0")) for argument in arguments))
    said = capsys.readouterr().err if ended.value.code == 2 else str(ended.value.code)
    assert message in said


def test_a_missing_package_ends_in_one_readable_line(monkeypatch, tmp_path):
    (tmp_path / "lacks_a_package.py").write_text("import not_installed")
    monkeypatch.syspath_prepend(str(tmp_path))
    with pytest.raises(SystemExit, match="No module named 'not_installed'"):
        show(monkeypatch, saved("Walker-v0"), "--env", "lacks_a_package:Walker-v0")
