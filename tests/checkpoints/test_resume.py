"""A resumed run is the uninterrupted one: the same weights, transitions, statistics and counts, to the last bit."""

import random
from functools import partial

import numpy as np
import pytest
import torch as th
from learned import differences
from pictures import make_pictures
from small import make_small
from stable_baselines3.common.callbacks import BaseCallback, EvalCallback, EveryNTimesteps
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.noise import OrnsteinUhlenbeckActionNoise
from stable_baselines3.common.vec_env import SubprocVecEnv, VecFrameStack, VecMonitor, VecNormalize

from sb3_cesd import METHODS, CeSD, VecSkillObservation
from sb3_cesd.callbacks import ResumableCheckpoint, SkillMetricsCallback
from sb3_cesd.checkpoints import checkpoints_in, remaining_timesteps, resume
from sb3_cesd.envs import make_batched
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv

#: A checkpoint in the midst of episodes of 30 steps, and of skills that act for 7
TOTAL, AT = 240, 130


class Recorder(BaseCallback):
    """What random numbers a run draws, and how often it calls."""

    def __init__(self):
        super().__init__()
        self.drawn = []

    def _on_step(self):
        self.drawn.append((self.num_timesteps, self.n_calls, random.random(), np.random.rand(), float(th.rand(1))))
        return True


class Counter(BaseCallback):
    """Counts events, and tells."""

    def __init__(self):
        super().__init__()
        self.count = 0

    def get_state(self):
        return self.count

    def set_state(self, state):
        self.count = state

    def _on_step(self):
        self.count += 1
        return True


def make_env(env_id, n_envs, seed=0, **kwargs):
    return make_vec_env(env_id, n_envs, seed=seed, env_kwargs={"max_episode_steps": 30}, **kwargs)


def make_maze(n_envs, seed=0):
    return MazeVecEnv("square_a", n_envs, max_episode_steps=30)


def make_wrapped(seed=0):
    return VecNormalize(VecMonitor(VecFrameStack(make_env("Pendulum-v1", 2, seed), 2)))


def make_normalized_around(seed=0):
    env = VecSkillObservation(make_env("Pendulum-v1", 2, seed), 4, skill_duration=7)
    return VecNormalize(env, norm_obs_keys=["observation"])


def compare(folder, make, model_class=CeSD, model=None, make_callbacks=list, **kwargs):
    """Train at a stretch, and from a checkpoint on in other environments and with other random numbers around."""
    if model is None:
        settings = {"learning_starts": 60, "skill_duration": 7, "noise_correlation": 0.5, **kwargs}
        model = make_small(model_class, make(), **settings)
    recorders = Recorder(), Recorder()
    model.learn(TOTAL, [ResumableCheckpoint(folder / "whole", AT, keep=3), recorders[0], *make_callbacks()])

    first = checkpoints_in(folder / "whole")[0]
    resumed = resume(first, make(seed=9), "cpu", model_class if model_class is MyMethod else None)
    random.seed(5), np.random.seed(6), th.manual_seed(7)
    start = resumed.num_timesteps
    assert AT <= start < TOTAL
    callbacks = [ResumableCheckpoint(folder / "resumed", AT, keep=3), recorders[1], *make_callbacks()]
    resumed.learn(remaining_timesteps(resumed), callbacks, reset_num_timesteps=False)

    assert not differences(model, resumed)
    assert (resumed.num_timesteps, resumed._n_updates) == (model.num_timesteps, model._n_updates)
    arrays = [each.replay_buffer._arrays() for each in (model, resumed)]
    for name, array in arrays[0].items():
        np.testing.assert_array_equal(array, arrays[1][name], name)
    assert [entry for entry in recorders[0].drawn if entry[0] > start] == recorders[1].drawn
    statistics = [each.get_vec_normalize_env() for each in (model, resumed)]
    if statistics[0] is not None:
        assert str(vars(statistics[0].ret_rms)) == str(vars(statistics[1].ret_rms))
        assert str(statistics[0].obs_rms) != "" and statistics[0].norm_obs == statistics[1].norm_obs
    return model, resumed


@pytest.mark.parametrize(
    "make",
    [
        partial(make_env, "MazeSquareA-v0", 1),
        partial(make_maze, 8),
        make_wrapped,
        make_normalized_around,
        pytest.param(partial(make_env, "Walker-v0", 2), marks=pytest.mark.slow),
        pytest.param(lambda seed=0: make_batched("Quadruped-v0", 2, seed), marks=pytest.mark.slow),
        pytest.param(partial(make_env, "JacoReachTopLeft-v0", 1), marks=pytest.mark.slow),
        pytest.param(partial(make_env, "Pendulum-v1", 2, vec_env_cls=SubprocVecEnv), marks=pytest.mark.slow),
    ],
    ids=["maze", "batched mazes", "wrapped", "normalized", "robot", "batched robots", "arm", "processes"],
)
def test_environments(tmp_path, make):
    compare(tmp_path, make)


@pytest.mark.slow
@pytest.mark.parametrize("method", METHODS)
def test_methods(tmp_path, method):
    compare(tmp_path, partial(make_maze, 2), METHODS[method])


def test_stacks_of_pictures(tmp_path):
    model, _ = compare(tmp_path, lambda seed=0: make_pictures(2, 2, seed=seed), policy="CnnPolicy", buffer_size=180)
    assert model.replay_buffer.full and model.replay_buffer.overwritten["observation"].any()
    # A checkpoint at the end of training ends the episodes, too
    callback = ResumableCheckpoint(tmp_path / "again")
    n_steps = model.learn(31, callback).num_timesteps
    assert model.learn(32, callback, reset_num_timesteps=False).num_timesteps > n_steps


class MyMethod(CeSD):
    """A method of the user, which is not known by its name."""


def test_a_method_of_the_user(tmp_path):
    _, resumed = compare(tmp_path, partial(make_maze, 2), MyMethod)
    assert type(resumed) is MyMethod
    with pytest.raises(ValueError, match=r"is of MyMethod.*pass it as model_class"):
        resume(tmp_path / "whole", make_maze(2))


def test_noise_of_the_user(tmp_path):
    compare(tmp_path, partial(make_maze, 2), action_noise=OrnsteinUhlenbeckActionNoise(np.zeros(2), np.full(2, 0.3)))


def test_in_the_midst_of_a_warm_up_with_all_skills(tmp_path, make_model):
    make_model(make_maze(2)).learn(100).save(tmp_path / "pretrained")
    task = CeSD.from_pretrained(
        tmp_path / "pretrained", make_maze(2), skill="best", seed=3, device="cpu", learning_starts=160, exploration_noise=0.3
    )
    model, resumed = compare(tmp_path, partial(make_maze, 2), model=task)
    assert resumed.skill == model.skill is not None


def test_callbacks_go_on(tmp_path):
    made = []

    def make_callbacks():
        made.append(
            [
                EvalCallback(make_maze(2), n_eval_episodes=4, eval_freq=25, log_path=str(tmp_path / "log"), verbose=0),
                EveryNTimesteps(50, Counter()),
                SkillMetricsCallback(eval_freq=25, n_rollouts=2, n_steps=5),
            ]
        )
        return made[-1]

    compare(tmp_path, partial(make_maze, 2), make_callbacks=make_callbacks)
    (evaluation, every, metrics), (evaluation_2, every_2, metrics_2) = made
    assert evaluation.evaluations_timesteps == evaluation_2.evaluations_timesteps == [50, 100, 150, 200]
    assert every.callback.count == every_2.callback.count == 4 and every.last_time_trigger == every_2.last_time_trigger
    assert metrics._coverage.total == metrics_2._coverage.total > 0


def test_arguments_may_change(tmp_path):
    make_small(CeSD, make_maze(2), gamma=0.9, n_steps=3).learn(60, ResumableCheckpoint(tmp_path))
    for kwargs, expected in (({}, (0.9, 3)), ({"gamma": 0.5, "n_steps": 1}, (0.5, 1))):
        buffer = resume(tmp_path, make_maze(2), device="cpu", **kwargs).replay_buffer
        assert (buffer.gamma, buffer.n_steps) == expected
    with pytest.raises(ValueError, match="buffer_size"):
        resume(tmp_path, make_maze(2), device="cpu", buffer_size=4000)


def test_a_model_without_seed_draws_other_numbers_each_time(tmp_path):
    make_small(CeSD, make_maze(2), seed=None).learn(60, ResumableCheckpoint(tmp_path))
    first, second = (resume(tmp_path, make_maze(2), device="cpu") for _ in range(2))
    for model in (first, second):
        model.learn(60, ResumableCheckpoint(tmp_path / "other" / str(id(model))), reset_num_timesteps=False)
    assert (first.replay_buffer.actions[:60] != second.replay_buffer.actions[:60]).any()
