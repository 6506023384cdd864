"""Returns of skills in the tasks of a robot, without further training."""

from collections.abc import Mapping
from typing import Annotated

import numpy as np
from stable_baselines3.common.vec_env import VecNormalize

from sb3_cesd.common.arguments import PositiveInt, Range, checked
from sb3_cesd.common.playing import SkillModel
from sb3_cesd.common.vec_normalize import check_statistics_fit, normalize_like_training
from sb3_cesd.envs.registration import HORIZONS, ROBOTS, TASK_IDS
from sb3_cesd.envs.robots.vec_env import make_batched
from sb3_cesd.metrics.rollouts import collect_rollouts

#: Returns of experts, by which the Unsupervised Reinforcement Learning Benchmark normalises scores, in the order of the tasks
EXPERT_RETURNS = dict(zip(TASK_IDS, (984, 971, 796, 799, 920, 866, 888, 888, 191, 223, 193, 203), strict=True))


def tasks_of(env_id: str) -> dict[str, str]:
    """List the tasks of a robot: task -> id of the environment."""
    env_id = env_id.rpartition(":")[2]  # without the module that registers it
    if env_id not in ROBOTS:
        known = ", ".join(name for name in ROBOTS if name not in TASK_IDS)
        raise ValueError(f"The environment {env_id!r} is not a robot with tasks: pass one of {known}.")
    domain, _ = ROBOTS[env_id]
    return {task: name for name, (of_domain, task) in TASK_IDS.items() if of_domain == domain}


@checked
def task_returns(
    model: SkillModel,
    env_id: str,
    n_episodes: PositiveInt = 2,
    seed: int = 0,
    vec_normalize: VecNormalize | None = None,
    n_threads: PositiveInt | None = None,
) -> dict[str, np.ndarray]:
    """
    Play all skills of a robot in all of its tasks, without learning.

    :param model: a model that was pre-trained on this robot; its actions are deterministic
    :param env_id: id of the robot
    :param n_episodes: number of whole episodes per skill and task
    :param seed: seed of the episodes, the same for all tasks
    :param vec_normalize: training statistics, if observations were normalised
    :param n_threads: threads of the simulation; ``None`` for one per core
    :return: task -> returns of the skills, shape ``(n_skills, n_episodes)``
    :raises ValueError: if the environment is not a robot with tasks, or the statistics are missing
    """
    check_statistics_fit(model, vec_normalize, "pass its statistics as vec_normalize.")
    returns = {}
    for task, task_id in tasks_of(env_id).items():
        plain = make_batched(task_id, model.n_skills * n_episodes, n_threads=n_threads)
        env = normalize_like_training(plain, vec_normalize)
        returns[task] = collect_rollouts(model, env, n_episodes, HORIZONS[ROBOTS[task_id][0]], seed=seed).returns
        env.close()
    return returns


@checked
def best_skill_scores(
    model: SkillModel,
    env_id: str,
    n_episodes: Annotated[int, Range(2)] = 2,
    seed: int = 0,
    vec_normalize: VecNormalize | None = None,
    n_threads: int | None = None,
) -> dict[str, float]:
    """
    Measure the return of the best skill in each task of a robot, without further training.

    The best skill of a task is the one with the largest return in the first half of the episodes. Its score is its mean return
    in the second half, so that it is not chosen by luck.

    The other arguments are those of :func:`task_returns`.

    :param n_episodes: number of episodes per skill and task, at least 2
    :return: ``best_skill_<task>`` by name: the return as a share of an expert's (URLB's normalisation)
    """
    return score_best_skills(task_returns(model, env_id, n_episodes, seed, vec_normalize, n_threads), env_id)


def score_best_skills(returns: Mapping[str, np.ndarray], env_id: str) -> dict[str, float]:
    """Score the best skill in each task as :func:`best_skill_scores`, by what :func:`task_returns` found."""
    experts = {task: EXPERT_RETURNS[task_id] for task, task_id in tasks_of(env_id).items()}
    return {f"best_skill_{task}": held_out_best(of_task) / experts[task] for task, of_task in returns.items()}


def held_out_best(returns: np.ndarray) -> float:
    """Choose the best skill by the first half of the episodes, ``(n_skills, n_episodes)``, and measure it in the second."""
    chosen, measured = np.split(returns, [returns.shape[1] // 2], axis=1)
    return float(measured[chosen.mean(axis=1).argmax()].mean())
