import json

import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from safetensors import safe_open
from safetensors.torch import save_file
from small import TINY, arguments
from spaces_to_learn_in import RandomEnv
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.torch_layers import FlattenExtractor
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd import CIC, CeSD
from sb3_cesd.export import ExportedPolicy, export_policy, import_policy

OBS = np.array([[0.1, -0.5, 2.0], [0.9, 0.3, -1.0]], np.float32)


class MyExtractor(FlattenExtractor):
    pass


def rewritten(path, change):
    """Change the description and the tensors of an exported policy."""
    with safe_open(path, framework="pt") as file:
        header, tensors = file.metadata(), {name: file.get_tensor(name) for name in file.keys()}
    description = json.loads(header["sb3_cesd"])
    change(description, tensors)
    save_file(tensors, path, {**header, "sb3_cesd": json.dumps(description)})


@pytest.fixture
def trained(make_model):
    return make_model().learn(60)


def test_the_same_actions_for_every_skill(trained, tmp_path):
    path = export_policy(trained, tmp_path / "policy")
    assert path == tmp_path / "policy.safetensors"
    policy = import_policy(path)
    assert isinstance(policy, ExportedPolicy)
    assert policy.n_skills == 4 and policy.skill_space == trained.skill_space and policy.plain_space == trained.plain_space
    assert policy.action_space == trained.action_space
    assert policy.algorithm == "CeSD" and policy.num_timesteps == 60 and policy.exploration_noise == 0.2
    for skill in (0, 3, [1, 2]):
        assert (policy.predict(OBS, skill=skill)[0] == trained.predict(OBS, skill=skill)[0]).all()
    with_skill = {"observation": OBS, "skill": np.eye(4, dtype=np.float32)[[2, 0]]}
    assert (policy.predict(with_skill)[0] == trained.predict(with_skill)[0]).all()
    # One skill per episode in turn, as the model does
    assert (policy.predict(OBS)[0] == trained.predict(OBS)[0]).all()
    with pytest.raises(ValueError, match="Unknown skill 4"):
        policy.predict(OBS, skill=4)


def test_continuous_skills_and_a_fixed_one(tmp_path):
    kwargs = {**TINY, "intrinsic_kwargs": {}, "skill_dim": 5}
    model = CIC("MlpPolicy", "Pendulum-v1", seed=0, **kwargs)
    vector = np.linspace(0, 1, 5, dtype=np.float32)
    model.set_skill(vector)
    policy = import_policy(export_policy(model, tmp_path))
    assert (policy.predict(OBS)[0] == model.predict(OBS, skill=vector)[0]).all()
    assert policy.skill == model.skill


def test_images_and_vectors(tmp_path):
    seen = {"camera": spaces.Box(0, 255, (36, 36, 3), np.uint8), "place": spaces.Box(-np.inf, np.inf, (2,), np.float64)}
    acting = spaces.Box(np.array([-2, 0], np.float32), np.array([1, 5], np.float32))
    env = make_vec_env(lambda: RandomEnv(spaces.Dict(seen), acting), 2)
    model = CeSD("MlpPolicy", env, seed=0, **arguments(buffer_size=100))
    observations = env.reset()
    policy = import_policy(export_policy(model, tmp_path))
    assert (policy.predict(observations, skill=1)[0] == model.predict(observations, skill=1)[0]).all()
    assert policy.plain_space == model.plain_space


@pytest.mark.parametrize("kwargs", [{"layer_norm": False}, {"layer_norm": True}, {"net_arch": []}], ids=str)
@pytest.mark.parametrize("ent_coef", [None, "auto_0.1"])
def test_layers_are_those_of_the_model(make_model, tmp_path, kwargs, ent_coef):
    """Of the entries of METRA's robots among others, which have no LayerNorm."""
    model = make_model(ent_coef=ent_coef, policy_kwargs={"net_arch": [8, 8], "activation_fn": th.nn.ELU, **kwargs})
    policy = import_policy(export_policy(model, tmp_path))
    expected, _ = model.predict(OBS, skill=[1, 3], deterministic=True)
    # The mean alone, and so of another size and rounding
    np.testing.assert_allclose(policy.predict(OBS, skill=[1, 3])[0], expected, atol=1e-6)
    assert str(policy.actor.mu[:-1]) == str(model.actor.mu[:-1])


@pytest.mark.parametrize("given", [False, True])
def test_statistics_of_vec_normalize_are_inside(make_model, tmp_path, given):
    env = VecNormalize(make_vec_env("Pendulum-v1", 2), clip_obs=1.5)
    model = make_model(env).learn(100)
    statistics = model.get_vec_normalize_env()
    if given:
        model.save(tmp_path / "model.zip")
        policy = import_policy(export_policy(CeSD.load(tmp_path / "model.zip", device="cpu"), tmp_path, statistics))
    else:
        policy = import_policy(export_policy(model, tmp_path))
    normalized = env.normalize_obs(OBS)
    assert (normalized != OBS).any()
    assert (policy.predict(th.as_tensor(OBS), skill=1)[0] == policy.predict(OBS, skill=1)[0]).all()
    assert (policy.predict(OBS, skill=1)[0] == model.predict(normalized, skill=1)[0]).all()
    with_skill = {"observation": OBS, "skill": np.eye(4, dtype=np.float32)[[2, 0]]}
    assert (policy.predict(with_skill)[0] == model.predict(normalized, skill=[2, 0])[0]).all()


def test_the_skill_of_a_task_acts_whatever_the_observation_says(trained, tmp_path):
    trained.save(tmp_path / "model.zip")
    task = CeSD.from_pretrained(tmp_path / "model.zip", "Pendulum-v1", skill=1, seed=0, device="cpu").learn(60)
    policy = import_policy(export_policy(task, tmp_path))
    with_skill = {"observation": OBS, "skill": np.eye(4, dtype=np.float32)[[2, 0]]}
    for observation in (OBS, with_skill):
        assert (policy.predict(observation)[0] == task.predict(OBS, skill=1)[0]).all()
    assert (policy.predict(with_skill, skill=2)[0] != task.predict(OBS, skill=1)[0]).any()


@pytest.mark.parametrize(
    "policy_kwargs", [{"features_extractor_class": MyExtractor}, {"activation_fn": type("Mine", (th.nn.ReLU,), {})}]
)
def test_code_is_refused_with_a_reason(make_model, tmp_path, policy_kwargs):
    model = make_model(policy_kwargs={"net_arch": [16, 16], **policy_kwargs})
    with pytest.raises(ValueError, match="is code"):
        export_policy(model, tmp_path)
    assert not list(tmp_path.iterdir())


def test_a_policy_of_the_user_is_refused(tmp_path):
    class MyPolicy(CeSD.policy_aliases["MlpPolicy"]):
        def _predict(self, observation, deterministic=False):
            return 0 * super()._predict(observation, deterministic)

    with pytest.raises(ValueError, match=r"MyPolicy\._predict is code"):
        export_policy(CeSD(MyPolicy, "Pendulum-v1", **arguments()), tmp_path)


def test_incomplete_files(make_model, tmp_path):
    model = make_model(policy_kwargs={"net_arch": [4]})
    content = export_policy(model, tmp_path).read_bytes()
    damaged_file = tmp_path / "damaged.safetensors"
    rng = np.random.default_rng(0)
    for byte in rng.integers(0, len(content), 20):
        damaged_file.write_bytes(content[:byte])
        with pytest.raises(ValueError, match="is not an exported policy, or is damaged"):
            import_policy(damaged_file)


@pytest.mark.parametrize(
    "change",
    [
        lambda description, tensors: description.update(activation_fn="Linear"),
        lambda description, tensors: description.update(features_extractor_class="eval"),
        lambda description, tensors: description.update(format=99),
        lambda description, tensors: description.update(net_arch=[20000, 20000]),
        lambda description, tensors: tensors["actor.mu.0.weight"][0].fill_(np.nan),
        lambda description, tensors: tensors.update({"mean.observation": th.zeros(3), "var.observation": -th.ones(3)}),
        lambda description, tensors: description.pop("skill_type"),
        lambda description, tensors: tensors.pop("actor.mu.0.weight"),
        lambda description, tensors: tensors.update({"actor.mu.0.weight": th.zeros(3, 3)}),
    ],
)
def test_crafted_files(trained, tmp_path, change):
    path = export_policy(trained, tmp_path)
    assert import_policy(path)
    rewritten(path, change)
    with pytest.raises(ValueError, match="is not an exported policy, or is damaged"):
        import_policy(path)
