from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.playing import SkillModel
from sb3_cesd.metrics.coverage import torso_coverage
from sb3_cesd.metrics.places import check_places_to_play
from sb3_cesd.metrics.rollouts import play_paths

#: Number of trajectories as in METRA, and steps of each
N_TRAJECTORIES, N_STEPS = 48, 200


def policy_coverage(
    model: SkillModel,
    env: VecEnv,
    n_trajectories: int = N_TRAJECTORIES,
    n_steps: int = N_STEPS,
    bin_size: float = 1.0,
    seed: int = 0,
) -> int:
    """
    Measure the policy coverage of a robot as METRA (Park et al., 2024) does.

    :param model: a model; its actions are deterministic
    :param env: environments with a ``position``, without skill observations, normalised as the model expects
    :param n_trajectories: number of trajectories, each with a random continuous skill, or distributed evenly over discrete
        ones
    :param n_steps: length of a trajectory, shorter if the episode ends
    :param bin_size: side of the bins [m]
    :param seed: seed of the skills and the starts
    :return: number of bins of (x, y) that were visited
    :raises ValueError: if the environments have no ``position``, or are not normalised as the model expects
    """
    check_arguments("policy_coverage", locals())
    check_places_to_play(env, "coverage")
    env.seed(int(seed))
    paths = play_paths(model, env, trajectory_skills(model, n_trajectories, seed), n_steps)
    return torso_coverage(paths[..., :2].reshape(-1, 2), bin_size)


def trajectory_skills(model: Any, n_trajectories: int, seed: int = 0) -> np.ndarray:
    """
    Choose the skills of trajectories.

    :param model: a model
    :param n_trajectories: number of trajectories
    :param seed: seed of continuous skills
    :return: random vectors of continuous skills, shape ``(n_trajectories, skill_dim)``; or indices of discrete ones,
        distributed as evenly as possible, shape ``(n_trajectories,)``
    """
    space = getattr(model, "skill_space", None)
    if space is not None and not space.discrete:
        return space.draw(n_trajectories, np.random.default_rng(seed))
    return np.sort(np.arange(n_trajectories) % model.n_skills)
