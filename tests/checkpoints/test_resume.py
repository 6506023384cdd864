"""A resumed run is the uninterrupted one: the same weights, transitions, statistics and logs, to the last bit."""

import random
import warnings
from functools import partial

import gymnasium as gym
import numpy as np
import pytest
import torch as th
from gymnasium import spaces
from learned import differences
from small import make_small
from stable_baselines3.common.callbacks import BaseCallback
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise
from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack, VecMonitor, VecNormalize

from sb3_cesd import DIAYN, METHODS, CeSD, VecSkillObservation
from sb3_cesd.callbacks import ResumableCheckpoint, SkillMetricsCallback
from sb3_cesd.checkpoints import remaining_timesteps, resume
from sb3_cesd.checkpoints.folders import STATISTICS, checkpoints_in
from sb3_cesd.common.untrusted_statistics import load_statistics
from sb3_cesd.common.vec_normalize import observation_statistics
from sb3_cesd.envs import make_batched
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.export import export_policy, import_policy

#: A checkpoint in the midst of episodes of 30 steps, and of skills that act for 7
TOTAL, AT = 240, 130


class NoStateEnv(gym.Env):
    """Can't be pickled; its next observation depends on what it remembers."""

    observation_space = spaces.Box(-9, 9, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self):
        self.handle = lambda: None

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = self.np_random.uniform(-1, 1, 2).astype(np.float32)
        return self.place, {}

    def step(self, action):
        self.place = np.clip(self.place + action + self.np_random.normal(size=2), -9, 9).astype(np.float32)
        return self.place, float(action[0]), False, False, {}


class Ball(gym.Env):
    """Has a position from its first reset on, as many environments do."""

    observation_space = spaces.Box(-9, 9, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (2,), np.float32)

    @property
    def position(self):
        return np.append(self.place, 0.0)

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place = np.zeros(2, np.float32)
        return self.place, {}

    def step(self, action):
        self.place = np.clip(self.place + action, -9, 9)
        return self.place, 0.0, False, False, {}


gym.register("LateBall-v0", Ball)


class Simulation:
    """Drifts, and follows actions."""

    def __init__(self):
        self.place, self.speed = np.zeros(2), 0.0

    def step(self, action):
        self.speed = 0.9 * self.speed + 0.1 * float(action[0])
        self.place = np.clip(self.place + [0.01, self.speed], -9, 9)


class Adapter(gym.Env):
    """Holds simulations as wrappers hold environments, as adapters of other packages do, and is none."""

    observation_space = spaces.Box(-9, 9, (2,), np.float32)
    action_space = spaces.Box(-1, 1, (1,), np.float32)

    def __init__(self, name):
        self.name = name

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        setattr(self, self.name, [Simulation()])
        return np.zeros(2, np.float32), {}

    def step(self, action):
        (simulation,) = getattr(self, self.name)
        simulation.step(action)
        return simulation.place.astype(np.float32), 0.0, False, False, {}


class Looking(gym.Wrapper):
    """Remembers, and has a reference to what it wraps besides ``env``."""

    def __init__(self, env):
        super().__init__(env)
        self.inner = env.unwrapped
        self.memory = []

    def reset(self, **kwargs):
        self.memory.clear()
        return self.env.reset(**kwargs)

    def step(self, action):
        observation, _, *rest = self.env.step(action)
        self.memory.append(float(observation[0]))
        return observation, sum(self.memory) + self.inner.np_random.normal(), *rest


class Recorder(BaseCallback):
    """What a run does to the random numbers of all, and what it logs."""

    def __init__(self):
        super().__init__()
        self.drawn, self.calls, self.logged = [], [], []

    def _on_step(self):
        self.drawn.append((self.num_timesteps, random.random(), np.random.rand(), float(th.rand(1))))
        self.calls.append((self.num_timesteps, self.n_calls))
        return True

    def _on_training_start(self):
        self.model.logger.dump = self._dump(self.model.logger.dump)

    def _dump(self, dump):
        def dump_and_note(step=0):
            values = self.model.logger.name_to_value.items()
            self.logged.append((step, {name: value for name, value in values if not name.startswith("time/fps")}))
            dump(step)

        return dump_and_note


def make_env(env_id, n_envs, seed=0, **kwargs):
    return make_vec_env(env_id, n_envs, seed=seed, env_kwargs={"max_episode_steps": 30}, **kwargs)


def make_batch(env_id, n_envs, seed=0):
    return make_batched(env_id, n_envs, seed, env_kwargs={"max_episode_steps": 30})


def make_maze(n_envs, seed=0):
    return MazeVecEnv("square_a", n_envs, max_episode_steps=30, reward="coverage")


def compare(folder, make, model_class=CeSD, model=None, make_callbacks=list, **kwargs):
    """Train at a stretch, and from a checkpoint on in other environments and with other random numbers around."""
    if model is None:
        settings = {"learning_starts": 60, "skill_duration": 7, "noise_correlation": 0.5, **kwargs}
        model = make_small(model_class, make(), **settings)
    records = Recorder(), Recorder()
    # Drawing is part of the run
    model.learn(TOTAL, [ResumableCheckpoint(folder / "whole", AT, keep=3), records[0], *make_callbacks()], log_interval=1)

    first = checkpoints_in(folder / "whole")[0]
    random.seed(5), np.random.seed(6), th.manual_seed(7)
    resumed = resume(first, make(seed=9), device="cpu")
    start = resumed.num_timesteps
    assert AT <= start < TOTAL and resumed.is_resumed
    callback = [ResumableCheckpoint(folder / "resumed", AT, keep=3), records[1], *make_callbacks()]
    resumed.learn(remaining_timesteps(resumed), callback, log_interval=1, reset_num_timesteps=False)

    assert not differences(model, resumed)
    assert resumed.num_timesteps == model.num_timesteps and resumed._episode_num == model._episode_num
    assert resumed._n_updates == model._n_updates > start // 8
    arrays = (each.replay_buffer._arrays() for each in (model, resumed))
    for (name, ours), theirs in zip(next(arrays).items(), next(arrays).values(), strict=True):
        np.testing.assert_array_equal(ours, theirs, name)
    for name in ("drawn", "calls"):
        assert [entry for entry in getattr(records[0], name) if entry[0] > start] == getattr(records[1], name), name
    later = [(step, without_time(values)) for step, values in records[0].logged if step > start]
    assert later == [(step, without_time(values)) for step, values in records[1].logged]
    return model, resumed


def without_time(values):
    return {name: value for name, value in values.items() if not name.startswith("time/")}


@pytest.mark.parametrize("n_envs", [1, 8])
@pytest.mark.parametrize("make", [partial(make_env, "MazeSquareA-v0"), make_maze], ids=["single", "batched"])
def test_mazes(tmp_path, make, n_envs):
    compare(tmp_path, partial(make, n_envs=n_envs))


@pytest.mark.slow
@pytest.mark.parametrize(("make", "n_envs"), [(make_env, 1), (make_batch, 8)], ids=["single", "batched"])
@pytest.mark.parametrize("env_id", ["Walker-v0", "QuadrupedRun-v0", "JacoReachTopLeft-v0"])
def test_robots(tmp_path, env_id, make, n_envs):
    compare(tmp_path, partial(make, env_id, n_envs))


def test_robot(tmp_path):
    """One of each kind, for the fast tests."""
    compare(tmp_path, partial(make_env, "Walker-v0", 2))
    compare(tmp_path / "batched", partial(make_batch, "QuadrupedRun-v0", 2))


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_methods(tmp_path, method):
    compare(tmp_path, partial(make_maze, 2), METHODS[method])


def test_statistics_and_wrappers(tmp_path):
    """Of VecNormalize, wrappers of each environment and of all."""

    def make(seed=0):
        env = make_env("Pendulum-v1", 2, seed, wrapper_class=Looking)
        return VecNormalize(VecMonitor(VecFrameStack(env, 2)))

    model, resumed = compare(tmp_path, make)
    ours, theirs = model.get_vec_normalize_env(), resumed.get_vec_normalize_env()
    np.testing.assert_array_equal(ours.obs_rms.mean, theirs.obs_rms.mean)
    np.testing.assert_array_equal(ours.ret_rms.var, theirs.ret_rms.var)
    # Of SB3's Monitor
    assert resumed.env.get_attr("episode_returns") == model.env.get_attr("episode_returns") != [[], []]


def normalized(seed=0, **kwargs):
    return VecNormalize(make_env("Pendulum-v1", 2, seed), **kwargs)


def normalized_around(seed=0, **kwargs):
    env = VecSkillObservation(make_env("Pendulum-v1", 2, seed), 4, skill_duration=7)
    return VecNormalize(env, norm_obs_keys=["observation"], **kwargs)


@pytest.mark.parametrize("make", [normalized, normalized_around])
@pytest.mark.parametrize("is_old", [False, True], ids=["new", "old"])
def test_statistics_are_there_before_it_learns(tmp_path, make, is_old):
    """Also those of a checkpoint without a file for them, and however VecNormalize was made."""
    model = make_small(CeSD, make(clip_obs=5.0), skill_duration=7).learn(AT, ResumableCheckpoint(tmp_path))
    trained, file = model.get_vec_normalize_env(), checkpoints_in(tmp_path)[-1] / STATISTICS
    if is_old:
        file.unlink()
    resumed = resume(tmp_path, make(seed=9, training=False, norm_obs=False), device="cpu")
    found = resumed.get_vec_normalize_env()
    for each in (found, *([] if is_old else [load_statistics(file)])):
        (ours,), (theirs,) = (observation_statistics(normalize).values() for normalize in (trained, each))
        assert ours.count == theirs.count > AT and (ours.mean == theirs.mean).all() and (ours.var == theirs.var).all()
        assert each.norm_obs and each.clip_obs == 5.0 and each.ret_rms.var == trained.ret_rms.var
    assert not found.training, "to play in, until it learns"
    exported = [import_policy(export_policy(each, tmp_path / name)) for each, name in ((model, "ours"), (resumed, "theirs"))]
    actions = [policy.predict(np.ones((1, 3), np.float32), skill=1)[0] for policy in exported]
    assert (actions[0] == actions[1]).all()
    compare(tmp_path, make)


def test_environments_without_its_wrappers_are_refused(tmp_path):
    make_small(CeSD, normalized()).learn(60, ResumableCheckpoint(tmp_path))
    for env in (make_env("Pendulum-v1", 2), VecNormalize(make_vec_env(gym.envs.classic_control.PendulumEnv, 2))):
        model = resume(tmp_path, env, device="cpu")
        with pytest.raises(ValueError, match=r"VecNormalize.*as were trained with, in the same wrappers"):
            model.learn(20, reset_num_timesteps=False)


def test_noise_of_the_user(tmp_path):
    noise = OrnsteinUhlenbeckActionNoise(np.zeros(2), np.full(2, 0.3), theta=0.1)
    compare(tmp_path, partial(make_maze, 2), action_noise=noise)


def test_in_the_midst_of_a_warm_up_with_all_skills(tmp_path, make_model):
    make_model(make_maze(2)).learn(100).save(tmp_path / "pretrained")
    task = CeSD.from_pretrained(
        tmp_path / "pretrained", make_maze(2), skill="best", seed=3, device="cpu", learning_starts=160, exploration_noise=0.3
    )
    model, resumed = compare(tmp_path, partial(make_maze, 2), model=task)
    assert resumed.skill == model.skill is not None


def test_environments_without_state_end_their_episodes(tmp_path):
    def make(seed=0):
        return make_vec_env(lambda: gym.wrappers.TimeLimit(NoStateEnv(), 30), 2, seed=seed)

    with pytest.warns(
        UserWarning, match=r"The state of NoStateEnv \(handle\) can't be read .* avoid this, give the env"
    ) as seen:
        compare(tmp_path, make)
    # Once in each run, of two checkpoints
    assert len([warning for warning in seen if "can't be read" in str(warning.message)]) == 2


@pytest.mark.parametrize("name", ["env", "envs", "venv"])
def test_simulations_that_environments_hold_go_on(tmp_path, name):
    def make(seed=0):
        return make_vec_env(lambda: gym.wrappers.TimeLimit(Adapter(name), 30), 2, seed=seed)

    with warnings.catch_warnings():
        warnings.simplefilter("error")
        compare(tmp_path, make)


def test_environments_that_environments_hold_end_their_episodes(tmp_path):
    class Holder(NoStateEnv):
        def __init__(self):
            self.env = gym.make("Pendulum-v1").unwrapped

    def make(seed=0):
        return make_vec_env(lambda: gym.wrappers.TimeLimit(Holder(), 30), 2, seed=seed)

    with pytest.warns(UserWarning, match=r"The state of Holder \(env\) can't be read .* all episodes end"):
        compare(tmp_path, make)


def test_the_last_checkpoint_ends_episodes_once(tmp_path):
    env = make_vec_env(lambda: gym.wrappers.TimeLimit(NoStateEnv(), 30), 1)
    model, resets = make_small(CeSD, env), []
    with pytest.warns(UserWarning, match="can't be read"):
        model.learn(40, ResumableCheckpoint(tmp_path))
    reset, env.reset = env.reset, lambda: resets.append(1) or reset()
    model.learn(10, reset_num_timesteps=False)
    assert not resets


def test_environments_of_other_processes_end_their_episodes(tmp_path):
    with pytest.warns(UserWarning, match="The state of SubprocVecEnv can't be read .* all episodes end"):
        compare(tmp_path, partial(make_env, "Pendulum-v1", 2, vec_env_cls=SubprocVecEnv))


def test_changed_arguments_reach_the_replay_buffer(tmp_path):
    model = make_small(CeSD, make_maze(2), gamma=0.9, n_steps=3)
    model.learn(60, ResumableCheckpoint(tmp_path))
    changes = {"gamma": 0.5, "n_steps": 1, "replay_buffer_kwargs": {"handle_timeout_termination": False}}
    for kwargs, expected in (({}, (0.9, 3, True)), (changes, (0.5, 1, False))):
        buffer = resume(tmp_path, make_maze(2), device="cpu", **kwargs).replay_buffer
        assert (buffer.gamma, buffer.n_steps, buffer.handle_timeout_termination) == expected
    samples = buffer.sample(32)
    assert (samples.discounts == 0.5).all(), "windows of one step"
    with pytest.raises(ValueError, match=r"room for 1000 transitions, .* for 4000: load the model with buffer_size=1000"):
        resume(tmp_path, make_maze(2), device="cpu", buffer_size=4000)


def test_changed_noise_is_that_of_the_rest_of_the_run(tmp_path):
    make_small(DIAYN, make_maze(2)).learn(60, ResumableCheckpoint(tmp_path))
    noise = OrnsteinUhlenbeckActionNoise(np.zeros(2), np.full(2, 0.3))
    learned = []
    for kwargs in ({}, {"noise_correlation": 0.9}, {"action_noise": noise}, {"noise_correlation": 0.0, "seed": 0}):
        learned.append(resume(tmp_path, make_maze(2), device="cpu", **kwargs))
        learned[-1].learn(40, reset_num_timesteps=False)
    as_before, correlated, with_noise, with_the_same = learned
    assert not differences(as_before, with_the_same)
    assert correlated._unit_noise._theta == pytest.approx(0.1) and as_before._unit_noise._theta == 1.0
    assert as_before.action_noise is None and with_noise.action_noise is not None
    assert differences(as_before, correlated) and differences(as_before, with_noise)
    with pytest.raises(ValueError, match="random numbers of its checkpoint, leave it out"):
        resume(tmp_path, make_maze(2), device="cpu", seed=3)


def test_a_training_that_begins_anew_warns(tmp_path):
    make_small(DIAYN, make_maze(2)).learn(60, ResumableCheckpoint(tmp_path))
    model = resume(tmp_path, make_maze(2), device="cpu")
    with pytest.warns(UserWarning, match=r"begins anew.*learn\(remaining_timesteps\(model\), reset_num_timesteps=False\)"):
        model.learn(20)
    assert model.num_timesteps == 20


def test_skills_are_measured_by_the_statistics_of_the_whole_run(tmp_path):
    def make():
        return VecNormalize(make_env("Pendulum-v1", 2))

    make_small(CeSD, make()).learn(100, ResumableCheckpoint(tmp_path))
    model = resume(tmp_path, make(), device="cpu")
    measured = SkillMetricsCallback(make_vec_env("Pendulum-v1"), eval_freq=20, n_rollouts=2, n_steps=5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model.learn(40, measured, reset_num_timesteps=False)
    statistics = model.get_vec_normalize_env()
    assert measured._env.obs_rms is statistics.obs_rms and statistics.obs_rms.count > 140


@pytest.mark.parametrize(
    "make",
    [partial(make_maze, 2), partial(make_env, "Walker-v0", 2), partial(make_env, "LateBall-v0", 2)],
    ids=["maze", "robot", "after a reset"],
)
def test_coverage_is_that_of_the_whole_run(tmp_path, make):
    made = []

    def make_callbacks():
        made.append(SkillMetricsCallback(eval_freq=25, n_rollouts=2, n_steps=5))
        return made[-1:]

    compare(tmp_path, make, make_callbacks=make_callbacks)
    whole, resumed = (vars(each._coverage or each._maze_coverage) for each in made)
    assert len(whole["_visited"]) > 1
    for name, value in whole.items():
        np.testing.assert_array_equal(value, resumed[name], name)


def test_learning_that_waits_goes_on_waiting(tmp_path, make_model):
    model = make_model()
    starts, seen = model.learning_starts, []
    with model.learning_later(80):
        model.learn(160, ResumableCheckpoint(tmp_path, save_freq=100))
    resumed = resume(checkpoints_in(tmp_path)[0], "Pendulum-v1", device="cpu")
    assert resumed.num_timesteps == 100
    resumed.learn(60, lambda *_: seen.append(resumed.learning_starts) or True, reset_num_timesteps=False)
    assert set(seen) == {starts + 80} and resumed.learning_starts == starts
    assert resumed._n_updates == model._n_updates and not differences(model, resumed)
