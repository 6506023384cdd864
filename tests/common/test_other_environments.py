"""Environments of other types than SB3's own, which do not answer, or whose processes die."""

import os
import signal

import gymnasium as gym
import numpy as np
import pytest
from gymnasium.wrappers import TransformObservation
from small import make_small
from stable_baselines3.common.env_util import make_vec_env
from stable_baselines3.common.vec_env import DummyVecEnv, SubprocVecEnv, VecEnvWrapper

from sb3_cesd import DIAYN
from sb3_cesd.callbacks import SkillEvalCallback, SkillMetricsCallback
from sb3_cesd.common.vec_env import VecSkillObservation, attributes, env_spec
from sb3_cesd.metrics import play_and_score
from sb3_cesd.metrics.environments import env_layout, find_positions, robot_name


class Walk(gym.Env):
    """A walk whose info has a key of its own, and which is registered as a lambda."""

    observation_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    action_space = gym.spaces.Box(-1, 1, (2,), np.float32)
    position = property(lambda self: lambda: "can't be sent")
    layout = property(lambda self: 1 / 0)
    robot_name, observation_scale = ["walker"], 3

    def reset(self, *, seed=None, options=None):
        super().reset(seed=seed)
        self.place, self.n_steps = self.np_random.uniform(-1, 1, 2).astype(np.float32), 0
        return self.place, {}

    def step(self, action):
        self.place, self.n_steps = np.clip(self.place + 0.1 * action, -1, 1).astype(np.float32), self.n_steps + 1
        return self.place, 1.0, False, self.n_steps == 8, {"skill": "mine", "is_success": self.place[0] > 0}


gym.register("Walk-v0", entry_point=lambda **kwargs: Walk(**kwargs))


class Converted(VecEnvWrapper):
    """Returns other types."""

    def __init__(self, venv, observations=None, rewards=None, dones=None, infos=None):
        super().__init__(venv)
        self.convert = [each or (lambda values: values) for each in (observations, rewards, dones, infos)]

    def reset(self):
        return self.convert[0](self.venv.reset())

    def step_wait(self):
        return tuple(convert(each) for convert, each in zip(self.convert, self.venv.step_wait(), strict=True))


class Silent(DummyVecEnv):
    """Answers no questions but SB3's own."""

    def get_attr(self, attr_name, indices=None):
        if attr_name == "render_mode":
            return [None] * self.num_envs
        raise NotImplementedError


def changed(change):
    return lambda infos: [change(dict(info)) for info in infos]


def listed(info):
    return {name: value.tolist() if name == "terminal_observation" else value for name, value in info.items()}


def without_last(info):
    return {name: value for name, value in info.items() if name != "terminal_observation"}


TYPES = {
    "uint8": {"dones": lambda dones: dones.astype(np.uint8)},
    "float": {"dones": lambda dones: dones.astype(float)},
    "lists": {**dict.fromkeys(("observations", "rewards", "dones"), np.ndarray.tolist), "infos": changed(listed)},
    "tuples": {"observations": tuple, "rewards": lambda rewards: tuple(map(int, rewards)), "dones": tuple, "infos": tuple},
    "columns": {
        **dict.fromkeys(("rewards", "dones"), lambda values: values[:, None]),
        "infos": changed(lambda info: {**info, "TimeLimit.truncated": np.array([info["TimeLimit.truncated"]])}),
    },
}


def trained(kind=None, around=False):
    env = make_vec_env("Walk-v0", 3, seed=0)
    env = VecSkillObservation(env, 4) if around else env
    env = Converted(env, **({} if kind is None else TYPES[kind]))
    model = make_small(DIAYN, env, noise_correlation=0.95, warm_up="policy").learn(120)
    return [each.tolist() for each in model.policy.state_dict().values()], play_and_score(model, env, 8)[0]


@pytest.mark.parametrize(("kind", "around"), [*((kind, False) for kind in TYPES), ("uint8", True), ("columns", True)])
def test_learning_and_scores_are_the_same_for_all_types(kind, around):
    assert trained(kind, around) == trained(around=around)


@pytest.mark.parametrize(
    "make_env",
    [
        lambda: make_vec_env("Walk-v0", 2, vec_env_cls=SubprocVecEnv, vec_env_kwargs={"start_method": "fork"}),
        lambda: Silent([Walk] * 2),
        lambda: Converted(DummyVecEnv([Walk] * 2), infos=changed(without_last)),
    ],
    ids=["in other processes", "silent", "without last observations"],
)
def test_callbacks_run_where_environments_tell_nothing(make_env, tmp_path):
    env, eval_env, other = make_env(), make_env(), make_env()
    assert env_spec(env) is None and env_layout(env) is None and robot_name(env) is None
    assert find_positions(env, [{}, {}]) is None
    evaluation = SkillEvalCallback(eval_env, eval_freq=20, n_eval_episodes=8, log_path=str(tmp_path))
    model = make_small(DIAYN, env)
    model.learn(80, [evaluation, SkillMetricsCallback(other, eval_freq=20, n_rollouts=2, n_steps=5)])
    with np.load(tmp_path / "evaluations.npz") as file:
        assert file["successes"].shape == (2, 8) and (file["successes"].mean(axis=1) == file["success_rate"]).all()
    env.step_async(np.zeros((2, 2)))
    infos = env.step_wait()[3]
    assert [info["skill"] for info in infos] == ["mine"] * 2
    for each in (env, eval_env, other):
        each.close()


def test_asking_a_process_does_not_end_it():
    """The spec of the outer wrapper holds a lambda, those of the inner ones do not."""
    wrapped = {"wrapper_class": lambda env: TransformObservation(env, lambda observation: observation, None)}
    env = make_vec_env("Pendulum-v1", 2, vec_env_cls=SubprocVecEnv, vec_env_kwargs={"start_method": "fork"}, **wrapped)
    assert env_spec(env) is None and attributes(env, "max_torque") == [2.0, 2.0] and attributes(env, "robot_name") == []
    assert env.reset().shape == (2, 3)
    env.close()


@pytest.mark.parametrize("start_method", ["fork", pytest.param("forkserver", marks=pytest.mark.slow)])
def test_a_process_that_has_died_is_named_and_not_waited_for(start_method):
    env = make_vec_env("Pendulum-v1", 2, vec_env_cls=SubprocVecEnv, vec_env_kwargs={"start_method": start_method})
    model = make_small(DIAYN, env).learn(80)
    os.kill(env.processes[1].pid, signal.SIGKILL)
    with pytest.raises(RuntimeError, match=f"Environment 1 .* has died .process {env.processes[1].pid}, exit code -9"):
        model.learn(80, reset_num_timesteps=False)
    env.close()
