"""The yml files: plain files of RL Zoo, whose entries make models of every method."""

import inspect

import pytest
import yaml

from sb3_cesd import METHODS, CeSD
from sb3_cesd.cesd.cesd import CeSDReward
from sb3_cesd.cesd.constraint import ClusterConstraint, CriticRelabelling
from sb3_cesd.cesd.policies import CeSDPolicy
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.envs.registration import ENVS, LOCOMOTION, PIXEL_ENVS, ROBOTS, TASK_IDS, pixels_id
from sb3_cesd.intrinsic.encoders import ContrastiveEncoder
from sb3_cesd.intrinsic.particle_entropy import ParticleEntropy
from sb3_cesd.intrinsic.prototypes import Prototypes
from sb3_cesd.presets import OF_RL_ZOO, hyperparams_folder
from sb3_cesd.skill_ddpg.policies import SkillPolicy
from sb3_cesd.zoo.manager import SkillExperimentManager, find_conf_file
from sb3_cesd.zoo.tuning import build_reward, leaves, value_of, with_params

FILES = {path.stem: path for path in sorted(hyperparams_folder().glob("*.yml")) if not path.stem.endswith("_dreamer")}
DOMAINS = ("Walker", "Quadruped", "Jaco")


def all_entries(config):
    return yaml.safe_load(FILES[config].read_text())


def entries(config):
    """Entries of environments that observe vectors."""
    return {env_id: entry for env_id, entry in all_entries(config).items() if env_id not in PIXEL_ENVS}


def test_files():
    assert set(FILES) == {*METHODS, *(f"{name}_published" for name in METHODS), "cesd_paper", "cesd_released"}


@pytest.mark.parametrize("config", FILES)
def test_files_have_entries_for_every_environment(config):
    is_laptop = config in METHODS
    assert set(entries(config)) == {"default", *ENVS}
    for env_id, entry in entries(config).items():
        assert entry["policy"] == "MlpPolicy"
        if env_id.startswith("Maze"):
            assert (entry["n_timesteps"], entry["n_envs"], entry["n_skills"]) == (36000, 20, 10)
            assert entry.get("skill_duration") is None and entry.get("skill_type", "discrete") == "discrete"
            continue
        is_task = env_id not in ("default", *LOCOMOTION, *(f"{domain}-v0" for domain in DOMAINS))
        n_timesteps = 1e5 if is_task else (2e5 if env_id == "default" else 3e5) if is_laptop else 2e6
        if env_id in LOCOMOTION:
            n_timesteps = 2e6
            assert (entry["train_freq"], entry["learning_starts"]) == (32, 10_000), "METRA's ratio of updates"
        elif is_laptop and env_id != "default" and not is_task:
            assert (entry["n_envs"], entry["train_freq"]) == (8, 16), "three times the states in half the time"
        assert entry["n_timesteps"] == n_timesteps, env_id
        assert entry.get("reward", "intrinsic") == ("extrinsic" if is_task else "intrinsic"), env_id
        if is_task:
            assert "n_envs" not in entry and entry.get("train_freq", 2) == 2, "a task is learned in one environment"


@pytest.mark.parametrize("config", [name for name in FILES if name not in ("cesd_paper", "cesd_released")])
def test_entries_for_pictures(config):
    of_pictures, is_laptop = {k: v for k, v in all_entries(config).items() if k in PIXEL_ENVS}, config in METHODS
    assert set(of_pictures) == set(PIXEL_ENVS) and {entry["policy"] for entry in of_pictures.values()} == {"CnnPolicy"}
    for env_id in ROBOTS:
        entry, is_task = of_pictures[pixels_id(env_id)], env_id in TASK_IDS
        n_timesteps = (2.5e4 if is_task else 1e5) if is_laptop else 5e4 if is_task else 1e6
        assert (entry["n_timesteps"], entry["frame_stack"]) == (n_timesteps, 3)
        assert (entry["batch_size"], entry.get("env_kwargs")) == ((128, {"image_size": 48}) if is_laptop else (256, None))
        assert entry.get("n_envs", 1) == (8 if is_laptop and not is_task else 1)
        assert entry.get("reward", "intrinsic") == ("extrinsic" if is_task else "intrinsic")
    env = MazeVecEnv("tree", 1, image_size=32)
    for entry in {str(entry): entry for entry in of_pictures.values()}.values():
        kwargs = {name: value for name, value in entry.items() if name not in OF_RL_ZOO}
        METHODS[config.partition("_")[0]]("CnnPolicy", env, device="cpu", **{**kwargs, "buffer_size": 100})
    of_positions = {**entries(config)["MazeTree-v0"], "policy": "CnnPolicy", "batch_size": 128}
    of_positions["policy_kwargs"] = of_positions["policy_kwargs"] | {"encoder_kwargs": {"shift": 0}}
    if config.startswith("cesd"):
        of_reward = {name: value for name, value in of_positions["intrinsic_kwargs"].items() if name != "constraint_kwargs"}
        of_features = {"encoder_kwargs": {"length_scale": 2.0}, "distance_encoder": "identity"}
        of_positions |= {"learning_rate": 1e-3, "intrinsic_kwargs": of_reward | of_features}
        of_positions["policy_kwargs"]["encoder_kwargs"] |= {"subtract_mean": True}
    assert of_pictures["MazeTreePixels-v0"] == of_positions


@pytest.mark.parametrize("config", FILES)
def test_entries_fit_the_constructor(config):
    method = METHODS[config.partition("_")[0]]
    for entry in {str(entry): entry for entry in entries(config).values()}.values():
        kwargs = {name: value for name, value in entry.items() if name not in ("n_timesteps", "n_envs")}
        model = method(env="Pendulum-v1", device="cpu", **{**kwargs, "buffer_size": 100})
        assert model.batch_size == entry.get("batch_size", 256) and model.n_skills == entry.get("n_skills", model.n_skills)


@pytest.mark.parametrize("name", METHODS)
def test_entries_at_laptop_scale_state_what_differs_from_the_constructor(name):
    method, (laptop, published) = METHODS[name], (entries(each) for each in (name, f"{name}_published"))
    reward = build_reward(method, {})
    assert set(laptop["default"]) == {"policy", "n_timesteps"}
    for env_id, entry in laptop.items():
        for path, value in leaves(entry):
            if path[-1] not in ("policy", "n_timesteps", "n_envs"):
                assert value_of(method, {}, reward, path) != value, (env_id, path)
        if env_id.startswith("Maze"):
            assert entry == published[env_id], "mazes have one scale"


@pytest.mark.parametrize("config", ["cesd", "cesd_paper", "cesd_published", "cesd_released"])
def test_rl_zoo_reads_the_files_without_us(config, tmp_path):
    of_rl_zoo = SkillExperimentManager.__base__
    for env_id, name in (("Walker-v0", "Walker-v0"), ("Pendulum-v1", "default")):
        manager = of_rl_zoo(None, "cesd", env_id, str(tmp_path), config=str(FILES[config]))
        assert manager.read_hyperparameters()[0] == entries(config)[name]


@pytest.mark.parametrize("config", ["cesd", "cesd_paper", "cesd_published", "cesd_released"])
@pytest.mark.parametrize("domain, alpha, iterations", [("Walker", 1.0, 6), ("Quadruped", 1.0, 5), ("Jaco", 0.1, 4)])
def test_published_values_of_domains(config, domain, alpha, iterations):
    reward = build_reward(CeSD, entries(config)[f"{domain}-v0"])
    assert (reward.alpha, reward.prototypes.sinkhorn_iterations) == (alpha, iterations)


def test_what_a_conf_file_means(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = str(FILES["cesd_published"])
    for name in ("cesd_published.yml", "cesd_published", path):
        assert find_conf_file(name) == path
    # Those of the user come first
    (tmp_path / "cesd.yml").touch()
    for name in ("cesd.yml", str(tmp_path / "cesd.yml"), "sb3_cesd.registry"):
        assert find_conf_file(name) == name
    for name in ("cesd_publshed.yml", "mine.py", "./cesd_laptop", "other/cesd.yml", "cesd_laptop.yml", "no_such.module"):
        with pytest.raises(ValueError, match="cesd, cesd_dreamer, cesd_paper, cesd_published, cesd_released"):
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


@pytest.mark.parametrize("config", ["cesd_paper", "cesd_released"])
def test_settings_of_others_are_written_out(config):
    """Every choice is named, so that it does not follow the defaults of the constructor."""

    def names(function, *others):
        """Arguments of a constructor but for some."""
        return {name for name in inspect.signature(function).parameters if name not in ("self", *others)}

    of_the_run = {"env", "cuda_graph", "stats_window_size", "tensorboard_log"}
    of_the_run |= {"verbose", "seed", "device", "_init_setup_model"}
    not_used = {"skill_dim", "action_noise", "replay_buffer_class", "replay_buffer_kwargs"}
    sizes = {"observation_space", "action_space", "lr_schedule", "skill_space", "obs_dim", "action_dim", "sizes"}
    torch_defaults = {"activation_fn", "optimizer_class", "optimizer_kwargs", "normalize_images"}
    torch_defaults |= {"features_extractor_class", "features_extractor_kwargs", "encoder_learns_from", "encoder_kwargs"}
    for env_id, entry in entries(config).items():
        assert set(entry) - {"n_timesteps", "n_envs"} == names(CeSD, *of_the_run, *not_used), env_id
        policy_kwargs = names(CeSDPolicy, "args", "kwargs", "is_task", "skill", "ent_coef")
        policy_kwargs |= names(SkillPolicy, *sizes, *torch_defaults, "is_task", "skill", "ent_coef")
        assert set(entry["policy_kwargs"]) == policy_kwargs
        # One head per skill, whatever n_skills is
        assert entry["policy_kwargs"]["ensemble_size"] is None
        assert entry["policy_kwargs"]["task_ensemble_size"] == (1 if config == "cesd_paper" else None)
        own = entry["intrinsic_kwargs"]
        assert set(own) == names(CeSDReward, *sizes)
        assert set(own["encoder_kwargs"]) == names(ContrastiveEncoder, *sizes)
        assert set(own["prototype_kwargs"]) == names(Prototypes, "n_prototypes", "features_dim") | {"learning_rate"}
        assert set(own["entropy_kwargs"]) == names(ParticleEntropy)
        assert set(own["constraint_kwargs"]) == names(ClusterConstraint)
        # The others belong to other choices
        assert set(own["relabel_kwargs"]) == names(CriticRelabelling, "n_random_heads", "kappa", "actor_probability")


@pytest.mark.parametrize("method", ["metra", "lsd", "csd", "csf"])
def test_networks_of_metras_robots_are_the_published_ones(method):
    for config in (method, f"{method}_published"):
        for env_id in LOCOMOTION:
            assert entries(config)[env_id]["policy_kwargs"]["layer_norm"] is False
        assert "layer_norm" not in entries(config)["Walker-v0"].get("policy_kwargs", {})
