import copy
import os
import zipfile

import numpy as np
import pytest
import torch as th
from learned import differences, state_of
from small import make_small
from stable_baselines3 import PPO
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.utils import set_random_seed
from tuning import saved as saved_file

from sb3_cesd import DIAYN, CeSD, VecSkillObservation
from sb3_cesd.cesd.policies import CeSDPolicy
from sb3_cesd.methods.diayn import DIAYNReward

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
    for name in (
        "n_skills",
        "num_timesteps",
        "_n_updates",
        "intrinsic_kwargs",
        "policy_kwargs",
        "exploration_noise",
        "n_steps",
    ):
        assert getattr(trained, name) == getattr(loaded, name), name
    assert (trained.predict(OBS)[0] == loaded.predict(OBS)[0]).all()


def test_a_learning_rate_of_the_prototypes_can_be_changed_on_load(make_model, tmp_path):
    make_model(prototype_kwargs={"learning_rate": 1e-3}).learn(100).save(tmp_path / "model")
    intrinsic_kwargs = {"prototype_kwargs": {"learning_rate": 0.5}}
    loaded = CeSD.load(tmp_path / "model.zip", "Pendulum-v1", device="cpu", intrinsic_kwargs=intrinsic_kwargs).learn(100)
    assert loaded.intrinsic.prototype_optimizer.param_groups[0]["lr"] == 0.5


def test_training_goes_on_as_if_it_had_never_stopped(trained, tmp_path):
    trained.save(tmp_path / "model.zip")
    trained.save_replay_buffer(tmp_path / "buffer.pkl")
    loaded = CeSD.load(tmp_path / "model.zip", env=make_vec_env("Pendulum-v1"), device="cpu")
    loaded.load_replay_buffer(tmp_path / "buffer.pkl")
    for model in (trained, loaded):
        model.set_logger(trained.logger)
        set_random_seed(5)
        model.train(20, 32)
    assert not differences(trained, loaded)


def test_changing_a_nested_argument_keeps_those_beside_it(make_model, tmp_path):
    kept = {"k": 2, "scale": "variance", "log1p": True}
    make_model(entropy_kwargs=kept, alpha=0.1).save(tmp_path / "model.zip")
    model = CeSD.load(tmp_path / "model.zip", device="cpu", intrinsic_kwargs={"entropy_kwargs": {"k": 3}})
    entropy = model.intrinsic.entropy
    assert (entropy.k, entropy.scale, entropy.log1p, model.intrinsic.alpha) == (3, "variance", True, 0.1)
    assert model.intrinsic_kwargs["entropy_kwargs"] == {**kept, "k": 3}


@pytest.mark.parametrize("n_envs", [1, 3])
@pytest.mark.parametrize("wrapped", [False, True])
def test_load_with_other_environments(trained, tmp_path, n_envs, wrapped):
    trained.save(tmp_path / "model.zip")
    env = make_vec_env("Pendulum-v1", n_envs)
    loaded = CeSD.load(tmp_path / "model.zip", env=VecSkillObservation(env, 4) if wrapped else env, device="cpu")
    assert loaded.n_envs == loaded.replay_buffer.n_envs == loaded.gradient_steps == n_envs
    loaded.learn(90)
    assert loaded.num_timesteps >= 90


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
    loaded = CeSD.load(
        tmp_path / "model.zip",
        device="cpu",
        intrinsic_kwargs={"alpha": 3.0},
        learning_rate=1e-3,
        gradient_steps=5,
        batch_size=16,
    )
    assert loaded.intrinsic.alpha == 3.0 and loaded.gradient_steps == 5 and loaded.lr_schedule(1) == 1e-3
    assert loaded.intrinsic_kwargs == {**trained.intrinsic_kwargs, "alpha": 3.0}, "the others stay"


def test_set_parameters(trained, make_model):
    other = make_model(seed=9)
    assert (other.predict(OBS)[0] != trained.predict(OBS)[0]).any()
    other.set_parameters(trained.get_parameters())
    assert not differences(trained, other)
    with pytest.raises(ValueError, match="Names of parameters"):
        other.set_parameters({"policy": trained.policy.state_dict()})
    kept = copy.deepcopy(other.get_parameters())
    trained.learn(100)
    assert str(other.get_parameters()) == str(kept), "moments of an optimizer are not shared"


def test_policy_alone(trained, tmp_path):
    trained.policy.save(tmp_path / "policy.pkl")
    policy = CeSDPolicy.load(tmp_path / "policy.pkl")
    assert (policy.predict(OBS, skill=2)[0] == trained.predict(OBS, skill=2)[0]).all()


def test_set_env(trained):
    trained.set_env(make_vec_env("Pendulum-v1"))
    assert isinstance(trained.env, VecSkillObservation)
    trained.learn(60)
    with pytest.raises(AssertionError, match=r"load\(path, env\)"):
        trained.set_env(make_vec_env("Pendulum-v1", 2))
    with pytest.raises(ValueError, match="spaces do not match"):
        trained.set_env(make_vec_env("MountainCarContinuous-v0"))


class ActivatedReward(DIAYNReward):
    """Its arguments are not all plain."""

    fixed_by_save = ("net_arch", "activation_fn")

    def __init__(self, obs_dim, action_dim, skill_space, activation_fn=th.nn.ReLU, net_arch=(16,), scale=1.0):
        super().__init__(obs_dim, action_dim, skill_space, net_arch, scale)
        self.activation_fn = activation_fn


class Activated(DIAYN):
    """Must be importable, as rewards are pickled by name."""

    reward_class = ActivatedReward


def test_arguments_that_are_not_plain_can_be_changed():
    file = saved_file(make_small(Activated, intrinsic_kwargs={"net_arch": [16], "activation_fn": th.nn.Tanh}))
    loaded = Activated.load(file, intrinsic_kwargs={"scale": 3.0}, device="cpu")
    assert loaded.intrinsic.activation_fn is th.nn.Tanh and loaded.intrinsic.scale == 3
    with pytest.raises(ValueError, match=r"trained with activation_fn=<class 'torch.*Tanh'> and can't change it"):
        Activated.load(file, intrinsic_kwargs={"activation_fn": th.nn.ReLU}, device="cpu")


def test_objects_that_replace_saved_ones_reach_the_environment(trained, tmp_path):
    trained.save(tmp_path / "model.zip")
    env = make_vec_env("Pendulum-v1", 2)
    loaded = CeSD.load(tmp_path / "model.zip", env, device="cpu", custom_objects={"skill_duration": 7, "skill": 2})
    assert loaded.skill_duration == loaded.env.clock.duration == 7 and trained.skill_duration != 7
    assert loaded.skill == 2 and (loaded.env.reset()["skill"].argmax(axis=1) == 2).all()
    task = CeSD.from_pretrained(tmp_path / "model.zip", env, device="cpu", custom_objects={"buffer_size": 78})
    assert task.buffer_size == 78


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


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"n_skills": 8}, r"n_skills=8 does not fit.*pass n_skills=4 or leave it out"),
        ({"policy_kwargs": {"net_arch": [16, 16], "ensemble_size": 2}}, "policy kwargs"),
        (
            {"intrinsic_kwargs": {"encoder": "fourier"}},
            "encoder='fourier' does not fit .*encoder='contrastive' or leave it out",
        ),
        ({"intrinsic_kwargs": {"encoder_kwargs": {"features_dim": 5}}}, "encoder_kwargs={'features_dim': 5} .*leave it out"),
        ({"skill_type": "sphere", "skill_dim": 2}, "pass skill_type='discrete' or leave it out"),
    ],
)
def test_what_shapes_the_networks_can_not_change(trained, tmp_path, kwargs, message):
    trained.save(tmp_path / "model.zip")
    with pytest.raises(ValueError, match=message):
        CeSD.load(tmp_path / "model.zip", **kwargs)


def test_other_dimensions(trained, tmp_path):
    trained.save(tmp_path / "model.zip")
    with pytest.raises(ValueError, match="spaces do not match"):
        CeSD.load(tmp_path / "model.zip", env=make_vec_env("MountainCarContinuous-v0"))


def test_replay_buffer_that_does_not_fit(trained, make_model, tmp_path):
    trained.save_replay_buffer(tmp_path / "buffer.pkl")
    other = make_model(make_vec_env("Pendulum-v1", 2))
    before = other.replay_buffer
    with pytest.raises(ValueError, match="n_envs"):
        other.load_replay_buffer(tmp_path / "buffer.pkl")
    assert other.replay_buffer is before
