"""Environments to play skills in, separate from those of training."""

from functools import partial
from typing import Any

import gymnasium as gym
from stable_baselines3.common.vec_env import DummyVecEnv, VecEnv

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.checks import explain_arguments, explain_unknown_env
from sb3_cesd.envs.mazes.env import MazeEnv
from sb3_cesd.envs.mazes.ids import HORIZON
from sb3_cesd.envs.mazes.vec_env import MazeVecEnv
from sb3_cesd.envs.robots.env import RobotEnv
from sb3_cesd.envs.robots.vec_env import batch_envs

#: Length of the episodes of a maze without a time limit, in steps
NO_LIMIT = 2**31 - 1


def make_env(env_id: str, **env_kwargs: Any) -> gym.Env:
    """
    Make an environment.

    :param env_id: id of an environment
    :param env_kwargs: its arguments
    :return: the environment
    :raises ValueError: if there is no environment with this id
    """
    check_arguments("make_env", locals())
    with explain_unknown_env(env_id), explain_arguments("env_kwargs", env_kwargs):
        return gym.make(env_id, **env_kwargs)


def make_play_env(env_id: str, n_skills: int, n_rollouts: int, env_kwargs: dict[str, Any] | None = None) -> VecEnv:
    """
    Create environments in which :func:`~sb3_cesd.metrics.rollouts.collect_rollouts` is fast.

    :param env_id: id of an environment
    :param n_skills: number of skills
    :param n_rollouts: number of rollouts per skill
    :param env_kwargs: arguments of the environment
    :return: one maze per rollout, one robot per skill, or a single environment of any other kind
    :raises ValueError: if there is no environment with this id
    """
    check_arguments("make_play_env", locals())
    make = partial(make_env, env_id, **(env_kwargs or {}))
    env = make()
    plain = env.unwrapped
    if isinstance(plain, MazeEnv):
        horizon = HORIZON if env.spec is None else env.spec.max_episode_steps or NO_LIMIT
        return MazeVecEnv(plain.layout.name, n_skills * n_rollouts, max_episode_steps=horizon, reward=plain.reward)
    if hasattr(plain, "robot_name"):
        env.close()
        return (batch_envs if isinstance(plain, RobotEnv) else DummyVecEnv)([make] * n_skills)
    return DummyVecEnv([lambda: env])
