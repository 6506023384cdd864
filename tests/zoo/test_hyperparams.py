"""The entries of our configs: what they are composed of, and that methods can be trained with them."""

import inspect
import sys

import pytest
import yaml

from sb3_cesd import METHODS, CeSD
from sb3_cesd.cesd.cesd import CeSDReward
from sb3_cesd.cesd.constraint import ClusterConstraint, CriticRelabelling
from sb3_cesd.cesd.policies import CeSDPolicy
from sb3_cesd.envs.registration import ENVS, LOCOMOTION
from sb3_cesd.intrinsic.encoders import ContrastiveEncoder
from sb3_cesd.intrinsic.particle_entropy import ParticleEntropy
from sb3_cesd.intrinsic.prototypes import Prototypes
from sb3_cesd.skill_ddpg.policies import SkillPolicy
from sb3_cesd.zoo import hyperparams
from sb3_cesd.zoo.hyperparams import (
    compose,
    configs,
    entries,
    find_conf_file,
    hyperparams_folder,
    read_entry,
    read_sections,
    with_params,
)

DOMAINS = ("Walker", "Quadruped", "Jaco")


def test_configs():
    names = set(METHODS)
    assert {*names, *(f"{name}_laptop" for name in names), "cesd_released"} == set(configs())


@pytest.mark.parametrize("config", configs())
def test_entries_hold_every_environment_and_a_default(config):
    composed = entries(config)
    assert set(composed) == {"default", *ENVS}
    for env_id, entry in composed.items():
        assert isinstance(entry["learning_rate"], float) and entry["policy"] == "MlpPolicy"
        if env_id.startswith("Maze"):
            assert (entry["n_timesteps"], entry["n_envs"], entry["n_skills"]) == (36000, 20, 10)
            assert entry["skill_duration"] is None and entry.get("skill_type", "discrete") == "discrete"
            continue
        is_task = env_id not in ("default", *LOCOMOTION, *(f"{domain}-v0" for domain in DOMAINS))
        is_robot = env_id != "default"
        n_timesteps = (5e4 if is_task else 3e5 if is_robot else 2e5) if "laptop" in config else (1e5 if is_task else 2e6)
        if "laptop" in config and is_robot and not is_task and env_id not in LOCOMOTION:
            assert (entry["n_envs"], entry["train_freq"]) == (8, 16), "three times the states in half the time"
        if env_id in LOCOMOTION:
            n_timesteps = 2e6
            assert (entry["train_freq"], entry["learning_starts"]) == (32, 10_000), "METRA's ratio of updates"
        assert entry["n_timesteps"] == n_timesteps, env_id
        assert entry.get("reward", "intrinsic") == ("extrinsic" if is_task else "intrinsic"), env_id
        if is_task:
            (domain,) = (each for each in DOMAINS if env_id.startswith(each))
            file, scale = configs()[config]
            own = read_sections(file).get(f"{scale}_task") or {}
            sections = ["base", scale, domain.lower(), f"{scale}_{domain.lower()}"]
            alike = compose([read_sections("common"), read_sections(file)], sections)
            assert {**alike, **own, "n_timesteps": n_timesteps, "reward": "extrinsic"} == entry
            assert "n_envs" not in entry, "a task is learned in one environment"


@pytest.mark.parametrize("config", configs())
def test_entries_fit_the_constructor(config):
    method = METHODS[configs()[config][0].removesuffix("_released")]
    for entry in {str(entry): entry for entry in entries(config).values()}.values():
        kwargs = {name: value for name, value in entry.items() if name not in ("n_timesteps", "n_envs")}
        model = method(env="Pendulum-v1", device="cpu", **kwargs)
        assert model.batch_size == entry["batch_size"] and model.n_skills == entry["n_skills"]


@pytest.mark.parametrize("config", ["cesd", "cesd_laptop", "cesd_released"])
@pytest.mark.parametrize("domain, alpha, iterations", [("Walker", 1.0, 6), ("Quadruped", 1.0, 5), ("Jaco", 0.1, 4)])
def test_published_values_of_domains(config, domain, alpha, iterations):
    own = read_entry(config, f"{domain}-v0").get("intrinsic_kwargs")
    reward = CeSD("MlpPolicy", "Pendulum-v1", buffer_size=100, intrinsic_kwargs=own, device="cpu").intrinsic
    assert (reward.alpha, reward.prototypes.sinkhorn_iterations) == (alpha, iterations)


def test_sections_are_merged_at_any_depth(tmp_path, monkeypatch):
    monkeypatch.setattr(hyperparams, "hyperparams_folder", lambda: tmp_path)
    (tmp_path / "common.yml").write_text(
        "base: {policy_kwargs: {net_arch: [8], n_critics: 2}}\nlaptop: {policy_kwargs: {n_critics: 3}}\n"
        "laptop_task: {tau: 1}\npublished_walker: {tau: 2}\nlaptop_walker: {tau: 3, gamma: 0.7}"
    )
    (tmp_path / "rnd.yml").write_text("base: {gamma: 0.5}\nwalker: {policy_kwargs: {net_arch: [4, 4]}, gamma: 0.6}\nlaptop:")
    composed = entries("rnd_laptop")
    assert composed["default"] == {"policy_kwargs": {"net_arch": [8], "n_critics": 3}, "gamma": 0.5}
    walker = {"policy_kwargs": {"net_arch": [4, 4], "n_critics": 3}, "gamma": 0.7, "tau": 3}
    assert composed["Walker-v0"] == walker and composed["WalkerRun-v0"] == {**walker, "tau": 1}
    assert entries("rnd")["Walker-v0"] == {"policy_kwargs": {"net_arch": [4, 4], "n_critics": 2}, "gamma": 0.6, "tau": 2}
    assert composed["Jaco-v0"] == composed["default"]
    # Entries share nothing that a user could change
    composed["Jaco-v0"]["policy_kwargs"]["net_arch"].append(8)
    assert composed["default"]["policy_kwargs"]["net_arch"] == [8]
    # A method without a file has what is shared
    shared = {"policy_kwargs": {"net_arch": [8], "n_critics": 3}, "gamma": 0.7, "tau": 3}
    assert entries("diayn_laptop")["Walker-v0"] == shared


def test_entry_of_any_environment():
    assert read_entry("diayn", "Pendulum-v1") == entries("diayn")["default"] == read_entry("diayn", "Walker-v0")
    with pytest.raises(ValueError, match=r"no config 'cesd_released_laptop': use one of cesd, "):
        read_entry("cesd_released_laptop", "Walker-v0")


def test_what_a_conf_file_means(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    module = "sb3_cesd.zoo.hyperparams.cesd_laptop"
    for name in ("cesd_laptop.yml", "cesd_laptop", str(hyperparams_folder() / "cesd_laptop.yml")):
        assert find_conf_file(name) == module
    monkeypatch.chdir(hyperparams_folder())
    assert find_conf_file("cesd.yml") == "sb3_cesd.zoo.hyperparams.cesd"
    # Those of the user come first
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cesd.yml").touch()
    for name in ("cesd.yml", str(tmp_path / "cesd.yml"), "sb3_cesd.registry"):
        assert find_conf_file(name) == name
    for name in ("cesd_lptop.yml", "mine.py", "./cesd_labtop", "other/cesd_laptop", "common.yml", "no_such.module"):
        with pytest.raises(ValueError, match="cesd_laptop"):
            find_conf_file(name)


@pytest.mark.parametrize(
    ("kept", "given", "expected"),
    [
        ({"encoder_kwargs": {"net_arch": [8]}, "k": 1}, {"encoder": "contrastive"}, {"net_arch": [8]}),
        ({"encoder_kwargs": {"net_arch": [8]}, "k": 1}, {"encoder": "fourier"}, None),
        (
            {"encoder_kwargs": {"net_arch": [8], "features_dim": 2}},
            {"encoder_kwargs": {"features_dim": 3}},
            {"net_arch": [8], "features_dim": 3},
        ),
    ],
)
def test_params_change_nested_arguments_one_by_one(kept, given, expected):
    """But another encoder takes no arguments of the former."""
    entry = {"gamma": 0.9, "intrinsic_kwargs": kept, "env_kwargs": {"a": 1}}
    changed = with_params(CeSD, entry, {"intrinsic_kwargs": given, "env_kwargs": {"b": 2}})
    assert changed["intrinsic_kwargs"].get("encoder_kwargs") == expected
    assert changed["gamma"] == 0.9 and changed["env_kwargs"] == {"b": 2}


def test_released_setting_is_written_out(monkeypatch):
    """Every choice is named, so that it follows neither the defaults of the constructor nor what methods share."""
    composed = entries("cesd_released")
    read = hyperparams.read_sections
    monkeypatch.setattr(hyperparams, "read_sections", lambda file: {} if file == "common" else read(file))
    assert entries("cesd_released") == composed

    def names(function, *others):
        """Arguments of a constructor but for some."""
        return {name for name in inspect.signature(function).parameters if name not in ("self", *others)}

    of_the_run = {
        "env",
        "cuda_graph",
        "stats_window_size",
        "tensorboard_log",
        "verbose",
        "seed",
        "device",
        "_init_setup_model",
    }
    not_used = {"skill_dim", "action_noise", "replay_buffer_class", "replay_buffer_kwargs", "optimize_memory_usage"}
    sizes = {"observation_space", "action_space", "lr_schedule", "skill_space", "obs_dim", "action_dim", "sizes"}
    torch_defaults = {"activation_fn", "optimizer_class", "optimizer_kwargs", "normalize_images", "share_features_extractor"}
    torch_defaults |= {"features_extractor_class", "features_extractor_kwargs"}
    for env_id, entry in composed.items():
        assert set(entry) - {"n_timesteps", "n_envs"} == names(CeSD, *of_the_run, *not_used), env_id
        policy_kwargs = names(CeSDPolicy, "args", "kwargs", "is_task", "skill", "ent_coef")
        policy_kwargs |= names(SkillPolicy, *sizes, *torch_defaults, "is_task", "skill", "ent_coef")
        assert set(entry["policy_kwargs"]) == policy_kwargs
        assert entry["policy_kwargs"]["task_ensemble_size"] == entry["policy_kwargs"]["ensemble_size"] == entry["n_skills"]
        own = entry["intrinsic_kwargs"]
        assert set(own) == names(CeSDReward, *sizes)
        assert set(own["encoder_kwargs"]) == names(ContrastiveEncoder, *sizes)
        assert set(own["prototype_kwargs"]) == names(Prototypes, "n_prototypes", "features_dim") | {"learning_rate"}
        assert set(own["entropy_kwargs"]) == names(ParticleEntropy)
        assert set(own["constraint_kwargs"]) == names(ClusterConstraint)
        # The others belong to other choices
        assert set(own["relabel_kwargs"]) == names(CriticRelabelling, "n_random_heads", "kappa", "actor_probability")


def test_printed_entries(monkeypatch, capsys):
    for words, expected in (
        (["cesd_laptop"], entries("cesd_laptop")),
        (["cesd_laptop", "Jaco-v0"], {"Jaco-v0": read_entry("cesd_laptop", "Jaco-v0")}),
    ):
        monkeypatch.setattr(sys, "argv", ["hyperparams", *words])
        hyperparams.main()
        assert yaml.safe_load(capsys.readouterr().out) == expected
    monkeypatch.setattr(sys, "argv", ["hyperparams", "template"])
    hyperparams.main()
    assert {"MyEnv-v0", "MyTask-v0"} == yaml.safe_load(capsys.readouterr().out).keys()


@pytest.mark.parametrize("method", ["metra", "lsd", "csd", "csf"])
def test_networks_of_metras_robots_are_the_published_ones(method):
    for scale in ("", "_laptop"):
        composed = entries(method + scale)
        for env_id in LOCOMOTION:
            assert composed[env_id]["policy_kwargs"]["layer_norm"] is False
        assert "layer_norm" not in composed["Walker-v0"].get("policy_kwargs", {})
    assert entries(method + "_laptop")["SkillAnt-v0"]["policy_kwargs"]["net_arch"]["pi"] == [256, 256]
