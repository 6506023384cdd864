"""What SB3's own tests found: small batches, edges of arguments, warnings of evaluations, files of other classes."""

import warnings

import numpy as np
import pytest
import torch as th
from every_method import every_method, every_method_with
from small import make_small
from stable_baselines3 import DDPG, PPO, TD3
from stable_baselines3.common.callbacks import CallbackList, EvalCallback, EveryNTimesteps
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import SubprocVecEnv, VecNormalize
from tuning import saved

from sb3_cesd import APT, DIAYN, CeSD, SkillDDPG, VecSkillObservation
from sb3_cesd.registry import METHODS

OBS = np.array([[0.1, -0.5, 2.0], [0.9, 0.3, -1.0]], np.float32)


# Small batches


@every_method_with(batch_size=[1, 2, 3, 5])
def test_any_number_of_transitions_can_be_sampled(method, batch_size):
    model = make_small(method).learn(60)
    samples = model.replay_buffer.sample(batch_size)
    assert len(samples.observations) == len(samples.rewards) == len(samples.skills) == batch_size
    assert (samples.rewards < 0).all(), "rewards of the environment"


@pytest.mark.parametrize("batch_size", [1, 2, 3])
@pytest.mark.parametrize("method", [CeSD, APT, METHODS["cic"]])
def test_too_few_transitions_for_the_neighbours_are_refused(method, batch_size):
    """Before anything has changed; one more is enough."""
    model = make_small(method).learn(60)
    n_updates, before = model._n_updates, [parameter.clone() for parameter in model.policy.parameters()]
    with pytest.raises(ValueError, match=rf"batch_size={batch_size} is not larger than k=3.*raise batch_size, or lower k"):
        model.train(1, batch_size=batch_size)
    assert model._n_updates == n_updates
    assert all((new == old).all() for new, old in zip(model.policy.parameters(), before, strict=True))
    model.train(1, batch_size=4)
    assert model._n_updates == n_updates + 1


@pytest.mark.parametrize("name", ["rnd", "dads"])
def test_a_batch_without_variance_is_refused(name):
    model = make_small(METHODS[name]).learn(60)
    with pytest.raises(ValueError, match="batch_size=1 has no variance to normalise by: raise batch_size"):
        model.train(1, batch_size=1)
    model.train(1, batch_size=2)


@pytest.mark.parametrize("batch_size", [1, 2])
def test_a_method_without_neighbours_learns_from_any_batch(batch_size):
    model = make_small(DIAYN).learn(60)
    model.train(2, batch_size=batch_size)
    assert all(th.isfinite(parameter).all() for parameter in model.policy.parameters())


# Edges of arguments


@every_method
def test_without_a_discount_values_are_rewards(method):
    """``gamma=0``: the n-step return is the first reward, and nothing is bootstrapped."""
    model = make_small(method, gamma=0).learn(60)
    samples = model.replay_buffer.sample(50)
    assert (samples.discounts == 0).all()
    stored = model.replay_buffer.rewards[:60]
    assert np.isin(samples.rewards.numpy(), stored).all()
    assert all(th.isfinite(parameter).all() for parameter in model.policy.parameters()) and model._n_updates > 0


@every_method
def test_without_soft_updates_the_target_stays(method):
    """``tau=0``."""
    model = make_small(method, tau=0)
    target = [parameter.clone() for parameter in model.critic_target.parameters()]
    critic = [parameter.clone() for parameter in model.critic.parameters()]
    model.learn(60)
    assert all((new == old).all() for new, old in zip(model.critic_target.parameters(), target, strict=True))
    assert any((new != old).any() for new, old in zip(model.critic.parameters(), critic, strict=True))


@every_method
def test_with_full_updates_the_target_is_the_critic(method):
    """``tau=1`` and ``gamma=1``."""
    model = make_small(method, tau=1, gamma=1).learn(60)
    assert all((a == b).all() for a, b in zip(model.critic_target.parameters(), model.critic.parameters(), strict=True))
    assert (model.replay_buffer.sample(50).discounts == 1).all()


# Types of environments


WARNING = "Training and eval env are not of the same type"


@pytest.mark.parametrize("nested", [False, True])
@pytest.mark.parametrize(
    ("train", "evaluate", "warns"),
    [
        ("dummy", "dummy", False),
        ("dummy", "normalized", True),
        ("normalized", "normalized", False),
        ("normalized", "wrapped normalized", False),
        ("wrapped", "dummy", False),
        ("dummy", "wrapped", False),
        ("wrapped", "wrapped", False),
        ("wrapped", "normalized", True),
        ("subprocess", "dummy", True),
        ("subprocess", "wrapped", True),
    ],
)
def test_evaluation_on_another_type_of_environment_is_warned_of(train, evaluate, warns, nested):
    """As SB3 does, whether or not a skill was added to one of them."""
    make = {
        "dummy": lambda: make_vec_env("Pendulum-v1"),
        "normalized": lambda: VecNormalize(make_vec_env("Pendulum-v1")),
        "wrapped": lambda: VecSkillObservation(make_vec_env("Pendulum-v1"), 4),
        "wrapped normalized": lambda: VecSkillObservation(VecNormalize(make_vec_env("Pendulum-v1")), 4),
        "subprocess": lambda: make_vec_env("Pendulum-v1", vec_env_cls=SubprocVecEnv),
    }
    model = make_small(DIAYN, make[train]())
    callback = EvalCallback(make[evaluate](), eval_freq=10_000, verbose=0)
    if nested:
        callback = CallbackList([EveryNTimesteps(50, callback)])
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            model._setup_learn(10, callback)
        finally:
            model.env.close()
    assert any(WARNING in str(warning.message) for warning in caught) == warns
    if warns:
        (message,) = [str(warning.message) for warning in caught if WARNING in str(warning.message)]
        assert "VecSkillObservation" not in message, "it names what the user passed"


# Files of other classes


class Variant(DIAYN):
    """A method that is a variant of another one."""

    defaults = {"batch_size": 16}  # noqa: RUF012


class Further(Variant):
    pass


@every_method
def test_a_file_of_another_method_names_the_class_to_load_with(method):
    other = APT if method is not APT else DIAYN
    with pytest.raises(
        ValueError, match=rf"not saved by {other.__name__} but by {method.__name__}.*{method.__name__}\.load\(path\)"
    ):
        other.load(saved(make_small(method)))
    with pytest.raises(ValueError, match=rf"not saved by {other.__name__} but by {method.__name__}"):
        other.from_pretrained(saved(make_small(method).learn(60)), "Pendulum-v1")


@every_method_with(algorithm=[TD3, DDPG])
def test_algorithms_of_sb3_say_what_loads_our_files(method, algorithm):
    model = make_small(method)
    for env in (None, VecSkillObservation(make_vec_env("Pendulum-v1"), model.skill_space)):
        with pytest.raises(ValueError, match=r"policy with skills.*load a saved model with the class that saved it"):
            algorithm.load(saved(model), env=env)


@pytest.mark.parametrize("algorithm", [TD3, PPO])
def test_files_of_sb3_are_refused(algorithm):
    kwargs = {"n_steps": 8, "batch_size": 8} if algorithm is PPO else {"buffer_size": 10}
    file = saved(algorithm("MlpPolicy", "Pendulum-v1", device="cpu", **kwargs))
    for method in (CeSD, DIAYN, SkillDDPG):
        with pytest.raises(
            ValueError, match=rf"not saved by {method.__name__} but by another algorithm: load it with the class"
        ):
            method.load(file)


@pytest.mark.parametrize("saved_by", [DIAYN, Variant, Further])
@pytest.mark.parametrize("loaded_by", [DIAYN, Variant, Further])
def test_variants_of_a_method_load_each_other(saved_by, loaded_by):
    model = make_small(saved_by).learn(60)
    loaded = loaded_by.load(saved(model), make_vec_env("Pendulum-v1"), device="cpu")
    assert (
        type(loaded) is loaded_by
        and (loaded.predict(OBS, skill=2, deterministic=True)[0] == model.predict(OBS, skill=2, deterministic=True)[0]).all()
    )
    assert loaded.learn(60)._n_updates > 0
    task = loaded_by.from_pretrained(saved(model), "Pendulum-v1", skill=1, learning_starts=40, device="cpu").learn(60)
    assert task._n_updates > 0 and task.batch_size == model.batch_size == 32


def test_what_is_no_method_says_what_loads_the_file():
    """The backbone has no reward of its own."""
    with pytest.raises(ValueError, match=r"not saved by SkillDDPG but by CeSD.*CeSD\.load\(path\)"):
        SkillDDPG.load(saved(make_small(CeSD)), device="cpu")
    with pytest.raises(ValueError, match=r"CeSD\.load\(path\)"):
        SkillDDPG.from_pretrained(saved(make_small(CeSD).learn(60)), "Pendulum-v1", device="cpu")


def test_the_backbone_alone_learns_tasks_only():
    kwargs = {
        "learning_starts": 40,
        "batch_size": 32,
        "buffer_size": 100,
        "device": "cpu",
        "policy_kwargs": {"net_arch": [16]},
    }
    model = SkillDDPG("MlpPolicy", "Pendulum-v1", reward="extrinsic", **kwargs).learn(60)
    assert (
        SkillDDPG.load(saved(model), device="cpu").predict(OBS, deterministic=True)[0]
        == model.predict(OBS, deterministic=True)[0]
    ).all()
    with pytest.raises(ValueError, match="not saved by DIAYN but by SkillDDPG"):
        DIAYN.load(saved(model))
    with pytest.raises(
        ValueError, match="no intrinsic reward: use a method that has one, such as CeSD, or pass reward='extrinsic'"
    ):
        SkillDDPG("MlpPolicy", "Pendulum-v1")
