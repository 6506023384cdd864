"""Environments whose observations tell the skill that is to act."""

import gymnasium as gym
import numpy as np
import pytest
from gymnasium import spaces
from gymnasium.wrappers import TransformObservation
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnvWrapper, VecNormalize

from sb3_cesd import DIAYN
from sb3_cesd.callbacks import SkillEvalCallback, SkillMetricsCallback
from sb3_cesd.common.observations import entries_of
from sb3_cesd.common.skill_clock import SkillTurns
from sb3_cesd.common.skills import DiscreteSkills, SphereSkills, make_skill_space
from sb3_cesd.common.vec_env import VecSkillObservation, add_skill_observation, attributes, env_spec
from sb3_cesd.common.vec_normalize import (
    normalize_entries,
    normalize_like_training,
    observation_statistics,
    unnormalize_entries,
)
from sb3_cesd.metrics.environments import env_layout, find_positions, robot_name

SKILLS, SPHERE = DiscreteSkills(4), SphereSkills(3, 4)
each_type = pytest.mark.parametrize("skill_type", ["discrete", "sphere", "cube", "unit_cube"])


class Counter(gym.Env):
    """Observes the time step; an episode lasts five."""

    observation_space = spaces.Box(0, 10, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.time = 0
        return self.observe(), {}

    def step(self, action):
        self.time += 1
        return self.observe(), 1.0, False, self.time == 5, {}

    def observe(self):
        return np.full(2, self.time, np.float32)


class Camera(Counter):
    """Observes an image of one shade, the time step."""

    observation_space = spaces.Box(0, 255, (3, 40, 40), np.uint8)

    def observe(self):
        return np.full((3, 40, 40), self.time, np.uint8)


class Entries(Counter):
    """Observes a vector and an image."""

    observation_space = spaces.Dict({"place": Counter.observation_space, "camera": Camera.observation_space})

    def observe(self):
        return {"place": Counter.observe(self), "camera": Camera.observe(self)}


def counters(n_envs=1, env_class=Counter):
    return DummyVecEnv([env_class] * n_envs)


@each_type
@pytest.mark.parametrize(
    "kwargs", [{}, {"skill_duration": 2}, {"order": "cycle"}, {"skill": 1}, {"turns": True}, {"set_skill": 3}], ids=str
)
def test_observations_and_infos_always_name_who_acts(skill_type, kwargs):
    """With all orders: a policy sees nothing else, so that the skill of the last observation is the one that acts."""
    space = make_skill_space(skill_type, 4, 3)
    kwargs = dict(kwargs)
    turns, set_skill = kwargs.pop("turns", False), kwargs.pop("set_skill", None)
    env = VecSkillObservation(counters(2), space, **kwargs)
    env.seed(0)
    if turns:
        env.clock.turns = SkillTurns(4, 16)
    obs = env.reset()
    seen = []
    for step in range(20):
        if step == 7 and set_skill is not None:
            env.set_skill(set_skill)
        assert obs["skill"].shape == (2, space.dim) and env.observation_space["skill"].contains(obs["skill"][0])
        assert (env.skills == space.decode(obs["skill"])).all()
        acting, (obs, _, dones, infos) = obs["skill"], env.step(np.zeros((2, 1)))
        seen.append(acting)
        for idx in range(2):
            assert (infos[idx]["followed_skill"] == space.decode(acting[idx])).all()
            if dones[idx]:
                assert (infos[idx]["terminal_observation"]["skill"] == acting[idx]).all()
    n_seen = len(np.unique(np.concatenate(seen), axis=0))
    assert n_seen == 1 if "skill" in kwargs else n_seen > 2
    if set_skill is not None:
        assert (np.stack(seen[8:]) == space.vectors[3]).all()


@pytest.mark.parametrize("env_class", [Camera, Entries])
@pytest.mark.parametrize("space", [SKILLS, SPHERE], ids=repr)
def test_images_and_dictionaries_keep_their_entries(env_class, space):
    env = VecSkillObservation(counters(2, env_class), space)
    plain = env_class.observation_space
    entries = dict(plain.spaces) if isinstance(plain, spaces.Dict) else {"observation": plain}
    assert dict(env.observation_space.spaces) == {**entries, "skill": space.box}
    obs = env.reset()
    for time in range(1, 8):
        acting = obs["skill"]
        obs, _, dones, infos = env.step(np.zeros((2, 1)))
        assert obs.keys() == {*entries, "skill"}
        for name, entry in entries.items():
            assert obs[name].dtype == entry.dtype and obs[name].shape == (2, *entry.shape)
            assert (obs[name] == time % 5).all()
            if dones[0]:
                terminal = infos[0]["terminal_observation"]
                assert (terminal[name] == 5).all() and (terminal["skill"] == acting[0]).all()


def test_other_skills_and_a_normalised_skill_are_refused():
    wrapped = add_skill_observation(counters(), SKILLS, 50)
    with pytest.raises(ValueError, match="VecSkillObservation"):
        add_skill_observation(wrapped, DiscreteSkills(5), 50)
    with pytest.raises(ValueError, match="norm_obs_keys"):
        add_skill_observation(VecNormalize(wrapped), SKILLS, 50)


@pytest.mark.parametrize("norm_obs", [True, False])
@pytest.mark.parametrize("around", [False, True])
@pytest.mark.parametrize(("env_class", "name"), [(Counter, "observation"), (Entries, "place")])
def test_entries_are_normalised_and_back_in_either_layout(env_class, name, around, norm_obs):
    env = counters(2, env_class)
    env = VecSkillObservation(env, SKILLS) if around else env
    keys = {"norm_obs_keys": [name]} if isinstance(env.observation_space, spaces.Dict) else {}
    env = VecNormalize(env, norm_obs=norm_obs, **keys)
    env.reset()
    seen = [env.step(np.zeros((2, 1)))[0] for _ in range(4)][-1]
    original, expected = entries_of(env.get_original_obs()), entries_of(seen)
    normalized = normalize_entries(env, original)
    back = unnormalize_entries(env, normalized)
    assert normalized.keys() == expected.keys() == back.keys() == entries_of(original).keys()
    for key, value in expected.items():
        assert (normalized[key] == value).all() and (value != original[key]).any() == (norm_obs and key == name)
        assert back[key] == pytest.approx(original[key], abs=1e-5)


def trained_statistics(env_class, **kwargs):
    """Statistics that were not made of the environments they are to normalise."""
    env = VecNormalize(counters(2, env_class), clip_obs=1.5, **kwargs)
    env.reset()
    for _ in range(4):
        env.step(np.zeros((2, 1)))
    return env


@pytest.mark.parametrize("own", [None, {}, {"norm_obs": False}], ids=str)
@pytest.mark.parametrize(("env_class", "keys"), [(Counter, None), (Entries, ["place"]), (Entries, ["place", "camera"])])
def test_other_environments_are_normalised_as_those_of_training(env_class, keys, own):
    """Whatever normalised them before, and also where nothing did."""
    statistics = trained_statistics(env_class, norm_obs_keys=keys)
    env = counters(2, env_class) if own is None else VecNormalize(counters(2, env_class), **own)
    env = normalize_like_training(env, statistics)
    seen, original = entries_of(env.reset()), entries_of(env.get_original_obs())
    for name, value in normalize_entries(statistics, original).items():
        assert (seen[name] == value).all() and (value != original[name]).any() == (name in (keys or ["observation"]))
    assert observation_statistics(env) == observation_statistics(statistics) and not env.training


def test_statistics_of_other_observations_are_refused():
    with pytest.raises(ValueError, match="statistics"):
        normalize_like_training(counters(2), trained_statistics(Camera))


def test_turns_compare_rewards_that_are_not_normalised():
    env = VecSkillObservation(VecNormalize(counters(2)), SKILLS)
    turns = SkillTurns(4, 16)
    env.clock.turns = turns
    env.reset()
    for _ in range(8):
        env.step(np.zeros((2, 1)))
    assert turns.mean_rewards().tolist() == [1.0] * 4


class Odd(Counter):
    """Has attributes that can't be used or sent, and an entry of info that is a skill of its own."""

    position, layout = property(lambda self: lambda: self), property(lambda self: 1 / 0)
    robot_name, observation_scale = ["walker"], 3

    def step(self, action):
        return (*super().step(action)[:4], {"skill": "mine", "is_success": action[0] > 0})


gym.register("Odd-v0", entry_point=lambda **kwargs: Odd(**kwargs))


class Silent(VecEnvWrapper):
    """Returns lists without the last observations, and answers no question but SB3's own."""

    def get_attr(self, attr_name, indices=None):
        if attr_name != "render_mode":
            raise NotImplementedError
        return [None] * self.venv.num_envs

    def reset(self):
        return self.venv.reset().tolist()

    def step_wait(self):
        *values, infos = self.venv.step_wait()
        return *(value.tolist() for value in values), [{**info, "terminal_observation": None} for info in infos]


FORKED = {"vec_env_cls": SubprocVecEnv, "vec_env_kwargs": {"start_method": "fork"}}


@pytest.mark.parametrize("make_env", [lambda: make_vec_env("Odd-v0", 2, **FORKED), lambda: Silent(DummyVecEnv([Odd] * 2))])
def test_callbacks_run_where_environments_tell_nothing(make_env, tmp_path):
    env, eval_env, other = envs = make_env(), make_env(), make_env()
    assert env_spec(env) is env_layout(env) is robot_name(env) is find_positions(env, [{}, {}]) is None
    evaluation = SkillEvalCallback(eval_env, eval_freq=20, n_eval_episodes=8, log_path=str(tmp_path))
    make_small(DIAYN, env).learn(80, [evaluation, SkillMetricsCallback(other, eval_freq=20, n_rollouts=2, n_steps=5)])
    with np.load(tmp_path / "evaluations.npz") as file:
        assert file["successes"].shape == (2, 8) and (file["successes"].mean(axis=1) == file["success_rate"]).all()
    assert [info["skill"] for info in VecSkillObservation(env, 4).step(np.zeros((2, 1)))[3]] == ["mine"] * 2
    for each in envs:
        each.close()


@pytest.mark.parametrize("start_method", ["fork", pytest.param("forkserver", marks=pytest.mark.slow)])
def test_processes_live_on_when_they_are_asked(start_method):
    """The spec of the outer wrapper holds a lambda, which can't be sent, those of the inner ones do not."""
    kwargs = {**FORKED, "vec_env_kwargs": {"start_method": start_method}}
    env = make_vec_env(
        "Pendulum-v1", 2, wrapper_class=lambda env: TransformObservation(env, lambda seen: seen, None), **kwargs
    )
    assert env_spec(env) is None and attributes(env, "max_torque") == [2.0, 2.0] and attributes(env, "robot_name") == []
    assert make_small(DIAYN, env).learn(80)._n_updates > 0
    env.close()
