"""Arguments of a wrong kind, or set where the constructor does not see them: when a model is loaded."""

import io
import json
import zipfile

import gymnasium as gym
import numpy as np
import pytest
from conftest import OWN, arguments
from gymnasium import spaces
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, VecNormalize

from sb3_cesd import CeSD, VecSkillObservation
from sb3_cesd.common.checks import build
from sb3_cesd.common.skills import is_whole

NAN = float("nan")
BAD = [
    ({"alpha": NAN}, "alpha=nan .* pass 0 or more"),
    ({"alpha": "1.0"}, "alpha='1.0' .* pass 0 or more"),
    ({"exploration_noise": NAN}, "exploration_noise=nan .* pass 0 or more"),
    ({"target_policy_noise": float("inf")}, "target_policy_noise=inf .* pass 0 or more"),
    ({"tau": NAN}, "tau=nan must be a number from 0 to 1: pass such a number"),
    ({"tau": "1e-2"}, "tau='1e-2' must be a number from 0 to 1: pass such a number"),
    ({"tau": -0.1}, "tau=-0.1 must be a number from 0 to 1: pass such a number"),
    ({"actor_learning_starts": 1.5}, "actor_learning_starts=1.5 .* pass a number from 0 to 1, or a whole number above 1"),
    ({"gamma": NAN}, "gamma=nan must be a number from 0 to 1: pass such a number"),
    ({"gamma": 1.01}, "must be a number from 0 to 1: pass such a number"),
    ({"n_steps": 1.5}, "pass a positive integer, e.g. n_steps=2"),
    ({"n_steps": 0}, "set n_steps above 0"),
    ({"batch_size": 32.5}, "pass a positive integer, e.g. batch_size=33"),
    ({"batch_size": 2}, r"raise batch_size, or lower k in entropy_kwargs"),
    ({"entropy_kwargs": {"k": 2.5}}, "pass a positive integer, e.g. k=3"),
    ({"entropy_kwargs": {"k": True}}, "pass a positive integer"),
    ({"entropy_kwargs": {"k": -1}}, "set k above 0"),
    ({"entropy_kwargs": {"k": 3, "clip": -1.0}}, "clip=-1.0 .* pass 0 or more"),
    ({"prototype_kwargs": {"sinkhorn_iterations": 2.5}}, "pass a positive integer, e.g. sinkhorn_iterations=3"),
    ({"prototype_kwargs": {"temperature": NAN}}, "set temperature above 0"),
    ({"constraint_kwargs": {"lambda_": -1.0}}, "set lambda_ above 0"),
    ({"relabel_kwargs": {"kappa": NAN}}, "kappa=nan .* pass 0 or more"),
    ({"relabel_kwargs": {"kappa": -0.5}}, "kappa=-0.5 .* pass 0 or more"),
    ({"noise_correlation": 1.0}, "noise_correlation=1.0 .* to below 1"),
    ({"noise_correlation": -0.5}, "noise_correlation=-0.5 .* to below 1"),
    ({"constraint_kwargs": {"start": 70.5}}, "start=70.5 .* a number from 0 to 1, or a whole number above 1"),
    ({"constraint_kwargs": {"start": -0.1}}, "start=-0.1 .* a number from 0 to 1"),
    ({"constraint_kwargs": {"start": "late"}}, "start='late' .* a number from 0 to 1"),
    ({"relabel_kwargs": {"n_random_heads": 1.5}}, "pass 0 or a positive integer, e.g. n_random_heads=2"),
]


@pytest.fixture(scope="module")
def saved():
    """A saved model, and the bytes of its file."""
    file = io.BytesIO()
    CeSD("MlpPolicy", "Pendulum-v1", seed=0, **arguments()).save(file)
    return file.getvalue()


@pytest.mark.parametrize(("kwargs", "message"), BAD)
def test_in_the_constructor_and_in_load(make_model, saved, kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_model(**kwargs)
    own = {name: value for name, value in kwargs.items() if name in OWN}
    others = {name: value for name, value in kwargs.items() if name not in OWN}
    with pytest.raises(ValueError, match=message):
        CeSD.load(io.BytesIO(saved), device="cpu", intrinsic_kwargs=own, **others)


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"n_skills": None}, "must be a whole number: pass an integer from 2 to 65536"),
        ({"n_skills": "4"}, "must be a whole number: pass an integer from 2 to 65536"),
        ({"n_skills": True}, "must be a whole number: pass an integer from 2 to 65536"),
        ({"skill_duration": 2.5}, "pass a positive integer or None"),
        ({"ensemble_size": 2.0}, "pass a positive integer, e.g. ensemble_size=2"),
        ({"ensemble_size": -2}, "set ensemble_size above 0"),
        ({"encoder_kwargs": {"features_dim": 2.5}}, "pass a positive integer, e.g. features_dim=3"),
        # What the algorithm knows is not the user's to choose
        (
            {"prototype_kwargs": {"n_prototypes": 3}},
            "prototype_kwargs has no 'n_prototypes': use some of learning_rate, sinkhorn_iterations",
        ),
        (
            {"encoder_kwargs": {"obs_dim": 5}},
            "encoder_kwargs has no 'obs_dim': use some of features_dim, net_arch, objective, temperature",
        ),
    ],
)
def test_in_the_constructor(make_model, kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_model(**kwargs)


def test_what_is_allowed(make_model):
    model = make_model(
        n_skills=np.int64(4), alpha=0, batch_size=np.int64(16), entropy_kwargs={"k": np.int32(3), "clip": 0.0}, n_steps=1
    )
    assert model.learn(60).n_skills == 4
    make_model(relabel_kwargs={"critic": "hindsight", "n_random_heads": 0}).learn(60)


@pytest.mark.parametrize(
    ("value", "whole"),
    [(3, True), (3.0, True), (np.int64(3), True), (np.float32(3), True), (3.5, False)]
    + [(value, False) for value in (True, "3", None, NAN, float("inf"), [3])],
)
def test_is_whole(value, whole):
    assert is_whole(value) is whole


def test_build_adds_what_is_given():
    assert build("group", lambda a, b=2, c=3: (a, b, c), {"b": 7}, {"a": 1}) == (1, 7, 3)
    with pytest.raises(ValueError, match="group has no 'a', 'd': use some of b, c"):
        build("group", lambda a, b=2, c=3: (a, b, c), {"a": 7, "d": 1}, {"a": 1})


@pytest.mark.parametrize("skill", ["a", "1", None, NAN, float("inf"), -1, 4, 1.5, True])
def test_unknown_skill_of_any_kind(make_model, skill):
    message = r"Unknown skill .*choose an integer from 0 to 3"
    model = make_model()
    with pytest.raises(ValueError, match=message):
        VecSkillObservation(make_vec_env("Pendulum-v1"), 4).clock.set_skill(skill if skill is not None else "None")
    if skill is not None:
        with pytest.raises(ValueError, match=message):
            model.set_skill(skill)
        with pytest.raises(ValueError, match=message):
            model.predict(np.zeros(3, np.float32), skill=skill)
    assert model.skill is None and model.policy.skill is None


@pytest.mark.parametrize(("n", "skill"), [(2, [0, 1, 2]), (2, [[0], [1]]), (None, [2]), (3, [1])])
def test_number_of_skills_must_be_that_of_the_observations(make_model, n, skill):
    observations = np.zeros(3 if n is None else (n, 3), np.float32)
    with pytest.raises(ValueError, match="pass one skill, or one per observation"):
        make_model().predict(observations, skill=np.array(skill))


def test_fixed_skill_can_be_chosen_when_loading(saved):
    loaded = CeSD.load(io.BytesIO(saved), env=make_vec_env("Pendulum-v1", 3), device="cpu", skill=2)
    assert loaded.policy.skill == 2
    assert (loaded.learn(60).replay_buffer.skills[:20] == 2).all()
    with pytest.raises(ValueError, match="choose an integer from 0 to 3"):
        CeSD.load(io.BytesIO(saved), device="cpu", skill=9)


def test_skill_duration_is_that_of_the_file_unless_another_is_given(make_model, tmp_path):
    make_model(skill_duration=7).save(tmp_path / "model.zip")
    for kwargs, duration in (({}, 7), ({"skill_duration": 3}, 3), ({"skill_duration": None}, None)):
        loaded = CeSD.load(tmp_path / "model.zip", env=make_vec_env("Pendulum-v1"), device="cpu", **kwargs)
        assert loaded.env.clock.duration == loaded.skill_duration == duration


@pytest.mark.parametrize("part", ["policy.pth", "intrinsic.pth", "actor.optimizer.pth", "intrinsic.prototype_optimizer.pth"])
def test_file_without_one_of_its_parts(saved, tmp_path, part):
    with zipfile.ZipFile(io.BytesIO(saved)) as full, zipfile.ZipFile(tmp_path / "part.zip", "w") as archive:
        assert part in full.namelist()
        for name in full.namelist():
            if name != part:
                archive.writestr(name, full.read(name))
    with pytest.raises(ValueError, match=r"part\.zip lacks some of the parameters.*load another checkpoint"):
        CeSD.load(tmp_path / "part.zip", device="cpu")


def test_other_errors_of_a_missing_key_pass():
    from sb3_cesd.skill_ddpg.load_errors import explain_missing_parameters

    with pytest.raises(KeyError, match="other"), explain_missing_parameters("path"):
        raise KeyError("other")


def test_file_of_another_kind(saved, tmp_path):
    with zipfile.ZipFile(tmp_path / "list.zip", "w") as archive:
        archive.writestr("data", json.dumps([1, 2]))
    with pytest.raises(
        ValueError, match=r"list\.zip is not a complete saved model.*save it again, or load another checkpoint"
    ):
        CeSD.load(tmp_path / "list.zip", device="cpu")


def test_learning_without_an_environment_says_so(saved):
    with pytest.raises(ValueError, match=r"no environment to learn in: pass env to load, or call set_env\.$"):
        CeSD.load(io.BytesIO(saved), device="cpu").learn(10)


class Diverging(gym.Env):
    """Observation (or reward) is not a number in the tenth step."""

    observation_space = spaces.Box(-10, 10, (3,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, what):
        self.what, self.time = what, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return self.np_random.normal(size=3).astype(np.float32), {}

    def step(self, action):
        self.time += 1
        obs = self.np_random.normal(size=3).astype(np.float32)
        broken = self.time == 10
        if broken and self.what in ("observation", "terminal"):
            obs[1] = np.nan
        reward = np.nan if broken and self.what == "reward" else 1.0
        return obs, reward, broken and self.what == "terminal", False, {}


@pytest.mark.parametrize("what", ["observation", "terminal", "reward"])
def test_not_finite_under_vec_normalize(make_model, what):
    model = make_model(VecNormalize(DummyVecEnv([lambda: Diverging(what)])))
    kind = "reward" if what == "reward" else "observation"
    with pytest.raises(ValueError, match=rf"^Diverging, environment 0, time step 10: the {kind} is not finite.*not stored"):
        model.learn(30)
    buffer = model.replay_buffer
    assert buffer.pos == 9
    arrays = (buffer.observations["observation"], buffer.next_observations["observation"], buffer.rewards)
    assert all(np.isfinite(array).all() for array in arrays)
