"""Every message ends in the remedy."""

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from stable_baselines3.common.buffers import ReplayBuffer
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv

from sb3_cesd import VecSkillObservation
from sb3_cesd.common.checks import build
from sb3_cesd.intrinsic.prototypes import Prototypes


class BrokenEnv(gym.Env):
    """Returns something that is not finite in its ``when``-th step (0: at a later reset)."""

    observation_space = spaces.Box(-10, 10, (3,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, what, when, value):
        self.what, self.when, self.value = what, when, value
        self.n_resets, self.time = 0, 0

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.n_resets += 1
        self.time = 0
        obs = np.zeros(3, np.float32)
        if self.what == "reset" and self.n_resets > 1:
            obs[1] = self.value
        if self.what == "first reset":
            obs[2] = self.value
        return obs, {}

    def step(self, action):
        self.time += 1
        obs, reward = np.full(3, 0.1, np.float32), 0.0
        if self.time == self.when and self.what in ("observation", "last observation"):
            obs[[0, 2]] = self.value
        if self.time == self.when and self.what == "reward":
            reward = self.value
        return obs, reward, False, self.time == 30, {}


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize(
    ("what", "when", "message"),
    [
        (
            "observation",
            17,
            r"BrokenEnv, environment 1, time step 34: the observation is not finite \(\[0\] = .*, \[2\] = .*clip",
        ),
        ("last observation", 30, r"environment 1, time step 60: the observation"),
        ("reset", 0, r"environment 1, time step 60: the reset observation is not finite \(\[1\]"),
        ("reward", 12, r"environment 1, time step 24: the reward is not finite.*It was not stored.*clip the reward"),
        ("first reset", 0, r"environment 1, time step 0: the observation is not finite \(\[2\]"),
    ],
)
def test_values_that_are_not_finite_stop_before_they_are_stored(make_model, what, when, message, value):
    env = DummyVecEnv([lambda: BrokenEnv(None, 0, 0), lambda: BrokenEnv(what, when, value)])
    model = make_model(env)
    with pytest.raises(ValueError, match=message):
        model.learn(200)
    buffer = model.replay_buffer
    n_stored = {"reset": 29, "first reset": 0}.get(what, when - 1)
    assert buffer.pos == n_stored
    for array in (buffer.observations["observation"], buffer.next_observations["observation"], buffer.rewards):
        assert np.isfinite(array).all()


@pytest.mark.filterwarnings("ignore:.*obs returned by the `step")
def test_registered_environment_is_named(make_model):
    env = make_vec_env("Pendulum-v1")
    model = make_model(env)
    env.envs[0].unwrapped.state = None

    def step(action):
        return np.array([np.nan, 0, 0], np.float32), 0.0, False, False, {}

    env.envs[0].unwrapped.step = step
    with pytest.raises(ValueError, match=r"^Pendulum-v1, environment 0"):
        model.learn(10)


def test_diverged_policy_stops(make_model):
    model = make_model().learn(60)
    with th.no_grad():
        next(model.actor.parameters()).fill_(th.nan)
    with pytest.raises(ValueError, match=r"training has diverged.*Lower learning_rate"):
        model.learn(100, reset_num_timesteps=False)


def test_hopeless_learning_rate_ends_in_a_value_error_or_finite_actions(make_model):
    """RL Zoo prunes trials that raise ValueError; anything else would end the study."""
    try:
        model = make_model(learning_rate=1e30).learn(300)
    except ValueError as error:
        assert "diverged" in str(error)
    else:
        assert np.isfinite(model.predict(np.zeros(3, np.float32))[0]).all()


class DictEnv(BrokenEnv):
    observation_space = spaces.Dict({"a": spaces.Box(-1, 1, (2,)), "b": spaces.Discrete(3)})


class NestedEnv(BrokenEnv):
    observation_space = spaces.Dict({"a": spaces.Dict({"b": spaces.Box(-1, 1, (2,))})})


class SkillEnv(BrokenEnv):
    observation_space = spaces.Dict({"observation": spaces.Box(-1, 1, (2,)), "skill": spaces.Discrete(3)})


class TupleEnv(BrokenEnv):
    observation_space = spaces.Tuple([spaces.Box(-1, 1, (2,))])


class DiscreteObsEnv(BrokenEnv):
    observation_space = spaces.Discrete(4)


class DiscreteActionEnv(BrokenEnv):
    action_space = spaces.Discrete(4)


@pytest.mark.parametrize(
    ("env_class", "message"),
    [
        (DictEnv, "'b' is none: convert it.*TransformObservation, or leave it out with gymnasium.wrappers.FilterObservation"),
        (SkillEnv, "a key 'skill' of its own.*rename it"),
        (TupleEnv, r"flatten it first.*FlattenObservation\(env\)"),
        (DiscreteObsEnv, r"flatten it first.*FlattenObservation\(env\)"),
        (DiscreteActionEnv, "use an environment with a Box action space"),
    ],
)
def test_spaces(make_model, env_class, message):
    with pytest.raises(ValueError, match=message):
        make_model(env_class(None, 0, 0))
    with pytest.raises(ValueError, match=message):
        make_model(DummyVecEnv([lambda: env_class(None, 0, 0)]))


def test_nested_spaces(make_model):
    """A vectorised environment can't have them at all."""
    with pytest.raises(ValueError, match="'a' is none: convert it"):
        make_model(NestedEnv(None, 0, 0))


@pytest.mark.parametrize(
    ("kwargs", "message"),
    [
        ({"n_skills": 1}, "pass n_skills >= 2"),
        ({"n_skills": 0}, "pass n_skills >= 2"),
        ({"n_skills": 2.5}, "n_skills=2.5 must be a whole number: pass an integer from 2"),
        ({"batch_size": 3}, r"batch_size=3 is not larger than k=3.*raise batch_size, or lower k in entropy_kwargs"),
        ({"ensemble_size": 8}, r"pass a divisor of n_skills"),
        ({"ensemble_size": 3}, r"ensemble_size=3 does not divide n_skills=4"),
        ({"ensemble_size": 0}, "set ensemble_size above 0"),
        ({"alpha": -1.0}, "pass 0 or more"),
        ({"skill_duration": 0}, "pass a positive integer or None"),
        ({"n_steps": 0}, "set n_steps above 0"),
        ({"tau": 1.5}, "from 0 to 1"),
        ({"gamma": -0.1}, "gamma=-0.1 must be a number from 0 to 1: pass such a number"),
        ({"exploration_noise": -0.1}, "pass 0 or more"),
        ({"target_noise_clip": -0.1}, "pass 0 or more"),
        ({"entropy_kwargs": {"k": 0}}, "set k above 0"),
        ({"entropy_kwargs": {"K": 3}}, r"entropy_kwargs has no 'K': use some of .*\bk\b"),
        ({"constraint_kwargs": {"lambda_": 0}}, "set lambda_ above 0"),
        ({"constraint_kwargs": {"lambda": 1}}, "use some of count, freeze_clusters, lambda_"),
        ({"prototype_kwargs": {"temperature": 0}}, "set temperature above 0"),
        ({"prototype_kwargs": {"tau": 0.1}}, "prototype_kwargs has no 'tau'"),
        ({"relabel_kwargs": {"mode": "union"}}, "relabel_kwargs has no 'mode'"),
        ({"distance_encoder": "vae"}, "choose 'same', 'contrastive', 'fourier', 'icm', 'identity' or 'temporal'"),
        ({"distance_encoder": "temporal", "distance_encoder_kwargs": {"horizon": 0}}, "set horizon above 0"),
        (
            {"distance_encoder": "temporal", "distance_encoder_kwargs": {"slak": 1}},
            "distance_encoder_kwargs has no 'slak': use some of .*slack",
        ),
        ({"encoder": "vae"}, "choose one of 'contrastive', 'fourier', 'icm', 'identity', 'temporal'"),
        ({"encoder_kwargs": {"temperature": -1}}, "set temperature above 0"),
        ({"replay_buffer_class": ReplayBuffer}, "leave replay_buffer_class out, or subclass SkillReplayBuffer"),
    ],
)
def test_arguments(make_model, kwargs, message):
    with pytest.raises(ValueError, match=message):
        make_model(**kwargs)


def test_wrapper_with_another_number_of_skills(make_model):
    with pytest.raises(ValueError, match=r"pass the environment without VecSkillObservation.*or wrap it for the skills"):
        make_model(VecSkillObservation(make_vec_env("Pendulum-v1"), 6))


def test_build_passes_on_what_is_known():
    assert build("prototype_kwargs", Prototypes, {"n_prototypes": 3, "features_dim": 2}).vectors.shape == (3, 2)


def test_unknown_policy(tiny):
    from sb3_cesd import CeSD

    with pytest.raises(ValueError, match="Policy CnnPolicy unknown"):
        CeSD("CnnPolicy", "Pendulum-v1", **tiny)
