"""What every method of the registry has to do, as users run it. A new method is tested here as soon as its file is there."""

import copy
import inspect
import math

import make_method_names
import numpy as np
import pytest
from every_method import every_method
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.evaluation import evaluate_policy
from tuning import saved

import sb3_cesd
from sb3_cesd import SkillDDPG, methods
from sb3_cesd.common.arguments import Range, _allowed
from sb3_cesd.common.skills import SKILL_TYPES, DiscreteSkills
from sb3_cesd.registry import METHODS, find_methods
from sb3_cesd.skill_ddpg.search_space import BACKBONE, draw

#: With all skills that a method has, not only those of its paper
every_skill_type = pytest.mark.parametrize(
    ("method", "skill_type"),
    [
        (method, skill_type)
        for method in METHODS.values()
        for skill_type in SKILL_TYPES
        if skill_type == "discrete" or method.discrete_because is None
    ],
    ids=lambda value: value if isinstance(value, str) else value.__name__,
)


def test_registry_holds_one_method_per_file(tmp_path, monkeypatch):
    """By the name of the class, in lower case; a file that is added is found."""
    assert next(iter(METHODS)) == "cesd" and len(METHODS) == 16
    for name, method in METHODS.items():
        assert issubclass(method, SkillDDPG) and method.__name__.lower() == name
        assert getattr(sb3_cesd, method.__name__) is method and method.__name__ in sb3_cesd.__all__
        assert "Paper: " in method.__doc__ and "https://arxiv.org/abs/" in method.__doc__
        # One list of arguments: a method changes defaults alone
        assert list(inspect.signature(method).parameters) == list(inspect.signature(SkillDDPG).parameters)
    (tmp_path / "added.py").write_text(
        "from sb3_cesd.methods.diayn import DIAYN\n\n\nclass Added(DIAYN):\n    defaults = {'batch_size': 64}\n"
    )
    monkeypatch.setattr(methods, "__path__", [*methods.__path__, str(tmp_path)])
    found = find_methods()
    assert found.pop("added").__module__ == "sb3_cesd.methods.added" and found == METHODS
    with pytest.raises(AttributeError, match="PPO"):
        sb3_cesd.PPO  # noqa: B018


def test_type_checkers_know_all_methods():
    assert make_method_names.FILE.read_text() == make_method_names.method_names(), "run make format"


@every_method
def test_trains_everything_it_has(method):
    model = make_small(method)
    before = copy.deepcopy(model.get_parameters()["policy"])
    intrinsic = {name: value.clone() for name, value in model.intrinsic.named_parameters()}
    model.learn(120)
    after = model.get_parameters()["policy"]
    assert all((after[name] != value).any() for name, value in before.items())
    learned = {name for name, value in model.intrinsic.named_parameters() if value.requires_grad}
    assert {name for name, value in model.intrinsic.named_parameters() if (value != intrinsic[name]).any()} == learned
    logged = set(model.logger.name_to_value)
    assert {"intrinsic/reward", "train/critic_loss", "train/actor_loss"} <= logged
    own_losses = {name for name in logged if name.endswith("_loss")} - {"train/critic_loss", "train/actor_loss"}
    assert bool(own_losses) == bool(learned)


@every_method
def test_plays_every_skill_and_evaluates(method):
    model = make_small(method).learn(80)
    obs = np.array([1.0, 0.0, 0.5], dtype=np.float32)
    actions = [model.predict(obs, skill=skill, deterministic=True)[0].item() for skill in range(4)]
    assert len(set(actions)) == 4
    for skill, vector in enumerate(model.skill_space.vectors):
        assert model.predict({"observation": obs, "skill": vector}, deterministic=True)[0].item() == actions[skill]
    returns, lengths = evaluate_policy(model, make_vec_env("Pendulum-v1"), 4, return_episode_rewards=True, warn=False)
    assert len(returns) == 4 and lengths == [200] * 4
    clusters = model.predict_clusters(np.random.default_rng(0).normal(size=(50, 3)).astype(np.float32))
    assert clusters is None or (clusters.shape == (50,) and 0 <= clusters.min() and clusters.max() < 4)


@every_method
def test_fine_tunes_a_skill_with_all_its_arguments(method):
    changed = {"n_steps": 2, "batch_size": 16, "gamma": 0.9, "exploration_noise": 0.1}
    pretrained = make_small(method, **changed).learn(80)
    model = method.from_pretrained(saved(pretrained), "Pendulum-v1", skill=2, learning_starts=40, device="cpu", seed=1)
    assert all((value == pretrained.actor.state_dict()[name]).all() for name, value in model.actor.state_dict().items())
    for name in ("n_skills", "skill_type", "skill_dim", "intrinsic_kwargs", "policy_kwargs", *changed):
        assert getattr(model, name) == getattr(pretrained, name), name
    before = copy.deepcopy(model.actor.state_dict())
    model.learn(80)
    assert model.skill == model.skill_space.name_of(2) and model._n_updates > 0
    assert any((value != before[name]).any() for name, value in model.actor.state_dict().items())


@every_skill_type
def test_learns_skills_of_every_type_that_it_has(method, skill_type):
    model = make_small(method, make_vec_env("Pendulum-v1", 2), skill_type=skill_type, skill_dim=3, skill_duration=7).learn(100)
    acted = model.replay_buffer.skills[:50]
    assert acted.shape == ((50, 2) if skill_type == "discrete" else (50, 2, 3))
    assert all(np.isfinite(value).all() for value in (parameter.numpy() for parameter in model.policy.state_dict().values()))
    if skill_type != "discrete":
        assert len(np.unique(acted.reshape(-1, 3), axis=0)) == 16, "two at first, and one in each environment every 7 steps"
    loaded = method.load(saved(model), device="cpu")
    assert loaded.skill_space == model.skill_space and loaded.skill_type == skill_type


@pytest.mark.parametrize("method", [method for method in METHODS.values() if method.discrete_because is not None])
def test_continuous_skills_are_refused_where_there_are_none(method):
    with pytest.raises(ValueError, match="skill_type"):
        make_small(method, skill_type="sphere", skill_dim=2)


@pytest.mark.parametrize("method", METHODS.values())
def test_arguments_of_the_reward_out_of_range_or_misspelt_are_refused(method):
    with pytest.raises(ValueError, match="'hidden'"):
        make_small(method, intrinsic_kwargs={"hidden": 3})
    for name, (allowed, _) in _allowed(method.reward_class.__init__).items():
        with pytest.raises(ValueError, match=name):
            method.reward_class(3, 1, DiscreteSkills(4), **{name: allowed.low - 1 if isinstance(allowed, Range) else "?"})


@every_method
def test_tuning_draws_arguments_of_the_reward_within_their_ranges(method):
    optuna = pytest.importorskip("optuna")
    study = optuna.create_study(sampler=optuna.samplers.RandomSampler(seed=0))
    for _ in range(6):
        params = method.convert_hyperparams(draw(study.ask(), {**BACKBONE, **method.search_space}))
        assert 0.95 <= params["gamma"] <= 0.999 and math.log2(params["n_skills"]) % 1 == 0
        method.reward_class(3, 1, DiscreteSkills(4), **params["intrinsic_kwargs"])
