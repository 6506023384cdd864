"""Mistakes that users make raise a ``ValueError`` that names the argument, or what is wrong."""

from typing import Annotated, Literal

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from small import make_small
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.vec_env import DummyVecEnv
from tuning import saved

from sb3_cesd import APT, DIAYN, CeSD, make_batched, preset
from sb3_cesd.callbacks import SkillMetricsCallback
from sb3_cesd.common.arguments import Positive, PositiveInt, Range, Share, build, check_changes, check_names, checked
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv


@checked
def function(n: PositiveInt = 1, share: Share | None = None, width: Positive = 1.0, odd: Annotated[float, Range(-1, 1)] = 0):
    return n


@checked
def chosen(kind: Literal["same", "other"] = "same", maybe: Literal["a", 2] | None = None, other: float | str = 0):
    return kind


@pytest.mark.parametrize(
    ("called", "kwargs"),
    [(function, {"n": 3, "share": None, "width": 1e-9, "odd": -1}), (function, {"n": np.int64(2), "share": 1})]
    + [(chosen, {"kind": "other", "maybe": 2, "other": "anything"}), (chosen, {"maybe": None})],
)
def test_what_fits_is_passed_on(called, kwargs):
    assert called(**kwargs) == kwargs.get("n", kwargs.get("kind", "same"))


@pytest.mark.parametrize(
    ("called", "name", "value"),
    [(function, "n", value) for value in (0, -1, None, "3", float("nan"))]
    + [(function, "share", 1.1), (function, "width", 0), (function, "odd", 2)]
    + [(chosen, "kind", value) for value in ("sane", 1, None)]
    + [(chosen, "maybe", "2")],
)
def test_what_does_not_fit_is_named(called, name, value):
    with pytest.raises(ValueError, match=name):
        called(**{name: value})


def test_unknown_keys_have_a_proposal():
    with pytest.raises(ValueError, match=r"net_kwargs.*'widht'.*'width'"):
        check_names("net_kwargs", ["widht"], ["width", "depth"])
    assert build("group", lambda a, b=2, c=3: (a, b, c), {"b": 7}, a=1) == (1, 7, 3)
    for unknown in ("a", "d"):  # the first is not the user's to choose
        with pytest.raises(ValueError, match=unknown):
            build("group", lambda a, b=2, c=3: (a, b, c), {unknown: 7}, a=1)


#: Arguments of CeSD -> what the message names
MISTAKES = {
    "n_skills": {"n_skills": 1},
    "skill_duration": {"skill_duration": 0},
    "warm_up.*'skills'": {"warm_up": "skill"},
    "gamma": {"gamma": 1.5},
    "noise_correlation": {"noise_correlation": 1.0},
    "SkillReplayBuffer": {"replay_buffer_class": ReplayBuffer},
    "alhpa": {"intrinsic_kwargs": {"alhpa": 1.0}},
    "encoder": {"intrinsic_kwargs": {"encoder": "vae"}},
    "K": {"intrinsic_kwargs": {"entropy_kwargs": {"K": 3}}},
    "features_dim": {"intrinsic_kwargs": {"encoder": "icm", "encoder_kwargs": {"features_dim": -1}}},
    "net_arch": {"intrinsic_kwargs": {"encoder": "fourier", "encoder_kwargs": {"net_arch": [4]}}},
    "freeze_clusters": {"intrinsic_kwargs": {"constraint_kwargs": {"start": 0.0, "freeze_clusters": True}}},
    "lambda": {"intrinsic_kwargs": {"constraint_kwargs": {"lambda": 1}}},
    "ensemble_size": {"policy_kwargs": {"ensemble_size": 3}},
    "did you mean 'net_arch'": {"policy_kwargs": {"netarch": [3]}},
    "did you mean 'n_steps'": {"replay_buffer_kwargs": {"nsteps": 2}},
}


@pytest.mark.parametrize("name", MISTAKES)
def test_mistakes_in_the_constructor(name):
    with pytest.raises(ValueError, match=name):
        make_small(CeSD, **MISTAKES[name])


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("n_skil", "did you mean 'n_skills'"),
        ("entropy_kwargs", r"pass intrinsic_kwargs=dict\(entropy_kwargs=\.\.\.\)"),
        ("k", r"pass intrinsic_kwargs=dict\(entropy_kwargs=dict\(k=\.\.\.\)\)"),
        ("net_arch", r"pass policy_kwargs=dict\(net_arch=\.\.\.\)"),
        ("shared_value", r"pass policy_kwargs=dict\(shared_value=\.\.\.\)"),
        ("n_channels", r"pass policy_kwargs=dict\(encoder_kwargs=dict\(n_channels=\.\.\.\)\)"),
        ("skill", r"pass it to from_pretrained \(in RL Zoo, with -i\)"),
    ],
)
def test_an_unknown_argument_is_told_where_it_belongs(name, remedy):
    with pytest.raises(TypeError, match=rf"CeSD.__init__\(\) got .*'{name}': {remedy}"):
        CeSD("MlpPolicy", "Pendulum-v1", **{name: 3})
    with pytest.raises(ValueError, match=remedy):
        check_changes(CeSD, "load()", {name: 3})


def test_an_argument_in_the_wrong_dictionary_is_told_where_it_belongs():
    with pytest.raises(ValueError, match=r"intrinsic_kwargs has no 'k': pass entropy_kwargs=dict\(k=\.\.\.\)"):
        make_small(APT, intrinsic_kwargs={"k": 3})
    with pytest.raises(ValueError, match=r"policy_kwargs has no 'shift': pass encoder_kwargs=dict\(shift=\.\.\.\)"):
        make_small(CeSD, policy_kwargs={"shift": 3})


class Broken(gym.Env):
    """Observes or rewards something that is not finite in its tenth step."""

    def __init__(self, what="", observation_space=None, action_space=None):
        self.observation_space = observation_space or spaces.Box(-10, 10, (3,), np.float32)
        self.action_space = action_space or spaces.Box(-1, 1, (1,), np.float32)
        self.what, self.time = what, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        return np.zeros(3, np.float32), {}

    def step(self, action):
        self.time += 1
        bad = {name: np.nan if self.what == name and self.time == 10 else 0.1 for name in ("observation", "reward")}
        return np.full(3, bad["observation"], np.float32), bad["reward"], False, False, {}


BOX = spaces.Box(-1, 1, (2,))
CALLS = {
    "laptop": lambda model: preset("lap"),
    "square_a": lambda model: MazeVecEnv("squre_a", 2),
    "CartPole": lambda model: make_batched("CartPole-v1", 2),
    "CnPolicy": lambda model: CeSD("CnPolicy", "Pendulum-v1"),
    "mps": lambda model: CeSD("MlpPolicy", "Pendulum-v1", device="mps"),
    "action": lambda model: make_small(CeSD, Broken(action_space=spaces.Discrete(4))),
    "action space": lambda model: make_small(CeSD, Broken("", spaces.Discrete(9), spaces.Discrete(4))),
    "FlattenObservation": lambda model: make_small(CeSD, Broken(observation_space=spaces.Discrete(4))),
    "bounds": lambda model: make_small(CeSD, Broken(action_space=spaces.Box(-1, np.float32([1, np.inf])))),
    "rename": lambda model: make_small(CeSD, Broken(observation_space=spaces.Dict({"observation": BOX, "skill": BOX}))),
    "eval_freq": lambda model: SkillMetricsCallback(eval_freq=0),
    "skill": lambda model: model.predict(np.zeros(3, np.float32), skill=9),
    "finite": lambda model: model.predict(np.full(3, np.nan, np.float32), skill=1),
    "observation": lambda model: make_small(CeSD, DummyVecEnv([lambda: Broken("observation")])).learn(60),
    "the reward": lambda model: make_small(CeSD, DummyVecEnv([lambda: Broken("reward")])).learn(60),
    "from 0 to 3": lambda model: CeSD.from_pretrained(saved(model), "Pendulum-v1", skill=9),
    "saved by CeSD": lambda model: DIAYN.load(saved(model)),
    "gama": lambda model: CeSD.load(saved(model), gama=0.9),
}


@pytest.mark.parametrize("name", CALLS)
def test_mistakes_elsewhere(pretrained, name):
    with pytest.raises(ValueError, match=name):
        CALLS[name](pretrained)
