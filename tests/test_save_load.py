import os
import zipfile

import numpy as np
import pytest
from learned import differences, state_of
from small import make_small
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import NormalActionNoise
from tuning import saved

from sb3_cesd import METRA, CeSD, VecSkillObservation
from sb3_cesd.export import export_policy

OBS = np.array([[0.1, -0.5, 2.0], [0.9, 0.3, -1.0]], np.float32)


@pytest.fixture
def trained(make_model):
    return make_model().learn(100)


def test_everything_learned_is_saved(trained, tmp_path):
    trained.save(tmp_path / "model")
    loaded = CeSD.load(tmp_path / "model.zip", device="cpu")
    names = set(trained.get_parameters())
    expected = {"policy", "actor.optimizer", "critic.optimizer", "intrinsic"}
    assert names == expected | {"intrinsic.encoder_optimizer", "intrinsic.prototype_optimizer"}
    assert any("statistics.count" in name for name in state_of(trained))
    assert not differences(trained, loaded)
    counts, arguments = ("num_timesteps", "_n_updates"), ("intrinsic_kwargs", "policy_kwargs", "exploration_noise", "n_steps")
    for name in ("n_skills", *counts, *arguments):
        assert getattr(trained, name) == getattr(loaded, name), name
    assert (trained.predict(OBS)[0] == loaded.predict(OBS)[0]).all()


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("wrapped", [False, True])
def test_load_with_other_environments(trained, tmp_path, n_envs, wrapped):
    trained.save(tmp_path / "model.zip")
    env = make_vec_env("Pendulum-v1", n_envs)
    loaded = CeSD.load(tmp_path / "model.zip", env=VecSkillObservation(env, 4) if wrapped else env, device="cpu")
    assert loaded.n_envs == loaded.replay_buffer.n_envs == loaded.gradient_steps == n_envs
    loaded.learn(90)
    assert loaded.num_timesteps >= 90


@pytest.mark.parametrize("n_envs", [1, 3])
def test_action_noise_of_another_number_of_environments(make_model, n_envs):
    noise = NormalActionNoise(np.zeros(1), np.full(1, 0.1))
    path = saved(make_model(make_vec_env("Pendulum-v1", 2), action_noise=noise).learn(60))
    env = make_vec_env("Pendulum-v1", n_envs)
    for model in (CeSD.load(path, env, device="cpu"), CeSD.from_pretrained(path, env, device="cpu")):
        assert model.learn(60).num_timesteps >= 60


def test_numbers_of_numpy_are_saved_as_those_of_python(tmp_path):
    given = {"n_skills": 4, "skill_duration": 7, "skill_dim": 3, "buffer_size": 500}
    model = make_small(METRA, **{name: np.int64(value) for name, value in given.items()}).learn(60)
    export_policy(model, tmp_path)
    loaded = METRA.load(saved(model), "Pendulum-v1", device="cpu", skill_duration=np.int64(9))
    again = METRA.load(saved(loaded), "Pendulum-v1", device="cpu")
    assert {name: getattr(again, name) for name in given} == {**given, "skill_duration": 9}
    assert all(type(getattr(again, name)) is int for name in given)
    assert METRA.from_pretrained(saved(model), "Pendulum-v1", device="cpu").buffer_size == 500


def test_exclude_and_include(trained, tmp_path):
    trained.exploration_noise = 0.7
    trained.save(tmp_path / "model.zip", exclude=["exploration_noise"])
    assert CeSD.load(tmp_path / "model.zip", device="cpu").exploration_noise == 0.2, "the default"
    trained.save(tmp_path / "larger.zip", include=["replay_buffer"])
    assert os.path.getsize(tmp_path / "larger.zip") > os.path.getsize(tmp_path / "model.zip")


def test_a_buffer_that_was_saved_with_the_model_follows_its_arguments(trained, tmp_path):
    path = tmp_path / "model.zip"
    trained.save(path, include=["replay_buffer"])
    loaded = CeSD.load(path, device="cpu", n_steps=1, gamma=0.5)
    assert loaded.replay_buffer.size() == trained.replay_buffer.size()
    assert (loaded.replay_buffer.n_steps, loaded.replay_buffer.gamma) == (1, 0.5)
    with pytest.raises(ValueError, match="n_envs"):
        CeSD.load(path, make_vec_env("Pendulum-v1", 2), device="cpu")
    other = CeSD.load(path, make_vec_env("Pendulum-v1", 2), device="cpu", custom_objects={"replay_buffer": None})
    assert other.replay_buffer.size() == 0
    assert CeSD.from_pretrained(path, "Pendulum-v1", device="cpu").replay_buffer.size() == 0


def test_arguments_can_change_when_loading(trained, tmp_path):
    trained.save(tmp_path / "model.zip")
    changed = {"alpha": 3.0, "entropy_kwargs": {"scale": "variance"}}
    kwargs = {"learning_rate": 1e-3, "gradient_steps": 5, "intrinsic_kwargs": changed}
    loaded = CeSD.load(tmp_path / "model.zip", device="cpu", **kwargs)
    assert loaded.intrinsic.alpha == 3.0 and loaded.gradient_steps == 5 and loaded.lr_schedule(1) == 1e-3
    kept = trained.intrinsic_kwargs["entropy_kwargs"]
    expected = {**trained.intrinsic_kwargs, "alpha": 3.0, "entropy_kwargs": {**kept, "scale": "variance"}}
    assert loaded.intrinsic_kwargs == expected and loaded.intrinsic.entropy.scale == "variance"


def test_set_env(trained):
    trained.set_env(make_vec_env("Pendulum-v1"))
    assert isinstance(trained.env, VecSkillObservation)
    trained.learn(60)
    with pytest.raises(AssertionError, match=r"load\(path, env\)"):
        trained.set_env(make_vec_env("Pendulum-v1", 2))
    with pytest.raises(ValueError, match="spaces do not match"):
        trained.set_env(make_vec_env("MountainCarContinuous-v0"))


def test_fixed_skill_is_saved(trained, tmp_path):
    trained.set_skill(3)
    trained.save(tmp_path / "model.zip")
    loaded = CeSD.load(tmp_path / "model.zip", env=make_vec_env("Pendulum-v1", 2), device="cpu")
    assert loaded.skill == 3 and (loaded.env.reset()["skill"].argmax(axis=1) == 3).all()
    assert (loaded.predict(OBS)[0] == trained.predict(OBS, skill=3)[0]).all()


# Bad input


def test_foreign_files(tmp_path):
    PPO("MlpPolicy", "Pendulum-v1", n_steps=8, batch_size=8).save(tmp_path / "ppo.zip")
    with pytest.raises(ValueError, match="not by CeSD"):
        CeSD.load(tmp_path / "ppo.zip")
    with zipfile.ZipFile(tmp_path / "other.zip", "w") as archive:
        archive.writestr("hello.txt", "hello")
    with pytest.raises(ValueError, match="saved model"):
        CeSD.load(tmp_path / "other.zip")
    (tmp_path / "text.zip").write_text("no zip at all")
    with pytest.raises(ValueError, match="saved model"):
        CeSD.load(tmp_path / "text.zip")
    with pytest.raises(FileNotFoundError):
        CeSD.load(tmp_path / "missing.zip")
