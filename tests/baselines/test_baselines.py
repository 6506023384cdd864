"""DIAYN, DADS, CIC and APT as users run them."""

import math

import numpy as np
import pytest
import torch as th
import yaml
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy

from sb3_cesd import APT, CIC, DADS, DIAYN, CeSD, zoo
from sb3_cesd.envs.registration import ENVS

SMALL_NETS = {"net_arch": [16]}
INTRINSIC_KWARGS = {
    DIAYN: SMALL_NETS,
    DADS: SMALL_NETS,
    CIC: {**SMALL_NETS, "features_dim": 4, "entropy_kwargs": {"k": 3}},
    APT: {"encoder_kwargs": {**SMALL_NETS, "features_dim": 4}, "entropy_kwargs": {"k": 3}},
}
every_method = pytest.mark.parametrize("model_class", list(INTRINSIC_KWARGS))


def make(model_class, env="Pendulum-v1", **kwargs):
    arguments = {
        "n_skills": 4,
        "learning_starts": 40,
        "batch_size": 32,
        "buffer_size": 1000,
        "policy_kwargs": {"net_arch": [16, 16]},
        "intrinsic_kwargs": INTRINSIC_KWARGS[model_class],
        "seed": 0,
        "device": "cpu",
    }
    return model_class("MlpPolicy", env, **{**arguments, **kwargs})


@every_method
def test_trains_everything_it_has(model_class):
    model = make(model_class)
    before = {name: value.clone() for name, value in model.get_parameters()["policy"].items()}
    intrinsic = {name: value.clone() for name, value in model.intrinsic.named_parameters()}
    model.learn(120)
    after = model.get_parameters()["policy"]
    assert all((after[name] != value).any() for name, value in before.items())
    assert all((value != intrinsic[name]).any() for name, value in model.intrinsic.named_parameters())
    assert {"train/intrinsic_loss", "intrinsic/reward", "train/critic_loss"} <= set(model.logger.name_to_value)


@every_method
@pytest.mark.parametrize("n_envs", [1, 3])
def test_loaded_model_learns_on_to_the_last_bit(model_class, n_envs, tmp_path):
    model = make(model_class, make_vec_env("Pendulum-v1", n_envs)).learn(120)
    model.save(tmp_path / "model")
    model.save_replay_buffer(tmp_path / "buffer")
    loaded = model_class.load(tmp_path / "model", make_vec_env("Pendulum-v1", n_envs))
    loaded.load_replay_buffer(tmp_path / "buffer")
    results = []
    for each in (model, loaded):
        th.manual_seed(3), np.random.seed(3)
        each.env.seed(3)
        each._last_obs = None
        each.learn(60, reset_num_timesteps=False)
        results.append({**each.get_parameters()["policy"], **each.intrinsic.state_dict()})
    assert all((results[0][name] == value).all() for name, value in results[1].items())


@every_method
def test_plays_every_skill_and_evaluates(model_class):
    model = make(model_class).learn(80)
    obs = np.array([1.0, 0.0, 0.5], dtype=np.float32)
    actions = [model.predict(obs, skill=skill)[0].item() for skill in range(4)]
    assert len(set(actions)) == 4
    returns, lengths = evaluate_policy(model, make_vec_env("Pendulum-v1"), 4, return_episode_rewards=True, warn=False)
    assert len(returns) == 4 and lengths == [200] * 4


def test_critic_takes_the_skill_as_an_input():
    critic = make(DIAYN).critic
    obs, actions = th.zeros(4, 3), th.zeros(4, 1)
    for q_values in critic.q_values(obs, actions, th.arange(4)):
        assert len(set(q_values.flatten().tolist())) == 4
    rows = th.tensor([2, 2, 0])
    obs, actions, skills = th.randn(4, 3), th.randn(4, 1), th.tensor([0, 1, 3])
    pairs = critic.q_values(obs, actions, skills, rows)
    singly = critic.q_values(obs[rows], actions[rows], skills)
    for a, b in zip(pairs, singly, strict=True):
        th.testing.assert_close(a, b)


def test_clusters_of_diayn_are_the_guesses_of_its_discriminator_and_others_have_none():
    obs = np.random.default_rng(0).normal(size=(5, 3)).astype(np.float32)
    model = make(DIAYN)
    assert (model.predict_clusters(obs) == model.intrinsic.discriminator(th.as_tensor(obs)).argmax(1).numpy()).all()
    assert make(APT).predict_clusters(obs) is None


@pytest.mark.parametrize(
    ("model_class", "kwargs", "message"),
    [
        (DIAYN, {"intrinsic_kwargs": {"hidden": 3}}, "intrinsic_kwargs has no 'hidden': use some of net_arch, scale"),
        (DIAYN, {"intrinsic_kwargs": {"scale": 0.0}}, "set scale above 0"),
        (DADS, {"intrinsic_kwargs": {"n_experts": 0}}, "set n_experts above 0"),
        (APT, {"intrinsic_kwargs": {"encoder": "pca"}}, "Unknown encoder 'pca': choose one of .*'icm'"),
        (APT, {"batch_size": 3}, "batch_size=3 is not larger than k=3.*: raise batch_size, or lower k"),
        (CIC, {"batch_size": 2}, "batch_size=2 is not larger than k=3.*: raise batch_size, or lower k"),
        (DADS, {"batch_size": 1}, "batch_size=1 .*: raise batch_size"),
    ],
)
def test_bad_arguments(model_class, kwargs, message):
    with pytest.raises(ValueError, match=message):
        make(model_class, **kwargs)


def test_a_model_of_another_method_is_refused(tmp_path):
    make(DIAYN).save(tmp_path / "diayn")
    with pytest.raises(ValueError, match=r"CeSD.*: load it with the class that saved it"):
        CeSD.load(tmp_path / "diayn")


@pytest.mark.parametrize("name", ["diayn", "dads", "cic", "apt"])
def test_tuning_draws_make_models_and_agree_with_their_conversion(name):
    import optuna

    algorithm = zoo.ALGORITHMS[name]
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(6):
        trial = study.ask()
        params = algorithm.sample(trial, 1, 1, {})
        assert params == algorithm.convert(trial.params)
        assert 0.95 <= params["gamma"] <= 0.999 and math.log2(params["n_skills"]) % 1 == 0
        if params["policy_kwargs"]["net_arch"]["pi"] != [1024, 1024]:
            algorithm.model_class("MlpPolicy", "Pendulum-v1", buffer_size=100, **params)


@pytest.mark.parametrize("name", ["diayn", "dads", "cic", "apt"])
@pytest.mark.parametrize("scale", ["", "_laptop"])
def test_hyperparameters_fit_the_constructor(name, scale):
    entries = yaml.safe_load((zoo.hyperparams_folder() / f"{name}{scale}.yml").read_text())
    ids = {env_id for env_id in ENVS if not (scale and env_id.startswith("Maze"))}
    assert set(entries) == {*ids, "default"}
    for entry in {str(entry): entry for entry in entries.values()}.values():
        kwargs = {key: value for key, value in entry.items() if key not in ("policy", "n_timesteps", "n_envs")}
        policy_kwargs = eval(kwargs.pop("policy_kwargs", "None"))
        kwargs["learning_rate"] = float(kwargs["learning_rate"])
        zoo.ALGORITHMS[name].model_class("MlpPolicy", "Pendulum-v1", policy_kwargs=policy_kwargs, **kwargs)
