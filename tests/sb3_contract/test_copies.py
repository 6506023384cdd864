"""Copies of a model, its policy and its replay buffer, whatever they are made with."""

import copy
import pickle

import cloudpickle
import numpy as np
import pytest
import torch as th
from every_method import every_method, every_method_with
from learned import differences
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import VecNormalize
from tuning import saved

from sb3_cesd import CeSD, VecSkillObservation

OBS = np.array([[0.1, -0.5, 2.0], [0.9, 0.3, -1.0]], np.float32)
COPY = {
    "deepcopy": copy.deepcopy,
    "pickle": lambda value: pickle.loads(pickle.dumps(value)),
    "cloudpickle": lambda value: cloudpickle.loads(cloudpickle.dumps(value)),
}


def learn_on(model):
    """Go on from here, from the same state of all random generators."""
    np.random.seed(7)
    th.manual_seed(7)
    model.action_space.seed(7)
    return model.learn(40, reset_num_timesteps=False)


@every_method_with(how=COPY)
def test_a_copy_learns_on_as_the_model_does(method, how):
    """Environments, clock and replay buffer are copied, too, and nothing is shared."""
    model = make_small(method, make_vec_env("Pendulum-v1", 3), skill_duration=5).learn(90)
    twin = COPY[how](model)
    assert type(twin) is method and not differences(model, twin)
    assert (twin.predict(OBS, deterministic=True)[0] == model.predict(OBS, deterministic=True)[0]).all()
    before = copy.deepcopy(twin.get_parameters())
    learn_on(model)
    assert all((value == before["policy"][name]).all() for name, value in twin.get_parameters()["policy"].items())
    learn_on(twin)
    assert twin.num_timesteps == model.num_timesteps and twin._n_updates == model._n_updates
    for name, array in model.replay_buffer._arrays().items():
        assert (twin.replay_buffer._arrays()[name] == array).all(), name
    assert not differences(model, twin)


@pytest.mark.parametrize("how", COPY)
def test_a_model_that_never_learned_or_was_loaded_without_an_environment(how):
    for model in (make_small(CeSD), CeSD.load(saved(make_small(CeSD)), device="cpu")):
        assert (COPY[how](model).predict(OBS, deterministic=True)[0] == model.predict(OBS, deterministic=True)[0]).all()


@pytest.mark.parametrize("how", COPY)
def test_normalised_environments_are_copied(how):
    env = VecNormalize(make_vec_env("Pendulum-v1", 2))
    model = make_small(CeSD, env).learn(80)
    twin = COPY[how](model)
    copied_env = twin.get_vec_normalize_env()
    assert copied_env is not env and (copied_env.obs_rms.mean == env.obs_rms.mean).all()
    # SB3 leaves out what it normalises
    copied_env.set_venv(make_vec_env("Pendulum-v1", 2))
    twin._last_obs = None
    assert (twin.env.reset()["skill"].sum(axis=1) == 1).all()
    twin.learn(40, reset_num_timesteps=False)
    assert copied_env.obs_rms.count > env.obs_rms.count


@pytest.mark.parametrize("how", COPY)
def test_a_wrapper_is_copied_with_its_clock(how):
    env = VecSkillObservation(make_vec_env("Pendulum-v1", 2), 4, skill_duration=3)
    env.seed(1)
    env.reset()
    twin = COPY[how](env)
    skills = []
    for each in (env, twin):
        observed = [each.step(np.zeros((2, 1), np.float32))[0]["skill"].argmax(axis=1).tolist() for _ in range(12)]
        skills.append(observed)
        assert each.get_attr("spec")[0].id == "Pendulum-v1"
    assert skills[0] == skills[1] and len({tuple(row) for row in skills[0]}) > 2


@pytest.mark.parametrize("skill", ["best", 2])
def test_a_task_is_copied_amid_its_warm_up(skill):
    pretrained = make_small(CeSD).learn(60)
    model = CeSD.from_pretrained(saved(pretrained), "Pendulum-v1", skill=skill, learning_starts=80, seed=1, device="cpu")
    twin = copy.deepcopy(model.learn(30))
    for each in (model, twin):
        each.learn(60, reset_num_timesteps=False)
        assert each.skill_turns.over and each.skill is not None
        assert (each.replay_buffer.skills[:80, 0] == np.repeat(np.arange(4), 20)).all()
        assert (each.replay_buffer.skills[80:90] == each.skill).all()


# The policy


@every_method
def test_a_saved_policy_keeps_the_skill(method, tmp_path):
    """On plain observations, the policy of a task goes on with the skill that learned it."""
    model = make_small(method).learn(60)
    model.set_skill(3)
    model.policy.save(tmp_path / "policy.pkl")
    policy = type(model.policy).load(tmp_path / "policy.pkl")
    actions = model.predict(OBS, skill=3, deterministic=True)[0]
    assert policy.skill == model.skill and policy.skill_space == model.skill_space
    assert (model.predict(OBS, skill=1, deterministic=True)[0] != actions).any()
    for starts in (None, np.ones(2, bool)):
        assert (policy.predict(OBS, episode_start=starts, deterministic=True)[0] == actions).all()
    assert (policy.predict(OBS, skill=1, deterministic=True)[0] == model.predict(OBS, skill=1, deterministic=True)[0]).all()
    policy.set_skill(None)
    expected = [model.predict(OBS[idx], skill=idx, deterministic=True)[0] for idx in range(2)]
    np.testing.assert_allclose(policy.predict(OBS, deterministic=True)[0], expected, atol=1e-5)


@every_method_with(warm_up=["random", "skills"], skill=["best", 2])
def test_a_saved_policy_of_a_task_keeps_its_skill(method, warm_up, skill, tmp_path):
    pretrained = make_small(method).learn(60)
    kwargs = {"skill": skill, "warm_up": warm_up, "learning_starts": 40, "n_eval_episodes": 1, "seed": 1, "device": "cpu"}
    model = method.from_pretrained(saved(pretrained), "Pendulum-v1", **kwargs).learn(60)
    model.policy.save(tmp_path / "policy.pkl")
    policy = type(model.policy).load(tmp_path / "policy.pkl")
    assert policy.skill == model.skill is not None
    state = None
    for _ in range(3):
        actions, state = policy.predict(OBS, state, np.ones(2, bool), deterministic=True)
        assert (actions == model.predict(OBS, skill=model.skill, deterministic=True)[0]).all()


# The replay buffer


@every_method_with(emptied=[True, False])
def test_a_buffer_is_loaded_in_place_of_none(method, emptied, tmp_path):
    model = make_small(method, make_vec_env("Pendulum-v1", 2)).learn(80)
    model.save_replay_buffer(tmp_path / "buffer.pkl")
    arrays = {name: array.copy() for name, array in model.replay_buffer._arrays().items()}
    if emptied:
        model.replay_buffer = None
    model.load_replay_buffer(tmp_path / "buffer.pkl")
    assert model.replay_buffer.size() == 40 and model.replay_buffer.device == model.device
    assert all((model.replay_buffer._arrays()[name] == array).all() for name, array in arrays.items())
    model.learn(20, reset_num_timesteps=False)
    assert model.replay_buffer.size() == 50


def test_a_buffer_that_does_not_fit_is_refused_in_place_of_none_too(tmp_path):
    make_small(CeSD, make_vec_env("Pendulum-v1", 2)).save_replay_buffer(tmp_path / "buffer.pkl")
    model = make_small(CeSD)
    model.replay_buffer = None
    with pytest.raises(ValueError, match=r"its n_envs is 2, the model's is 1.*go on without this buffer"):
        model.load_replay_buffer(tmp_path / "buffer.pkl")
    assert model.replay_buffer is None
