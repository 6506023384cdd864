"""Score of skills as a single number: the objective of hyperparameter tuning and of ``best_model.zip``."""

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.env_specs import episode_length
from sb3_cesd.common.playing import SkillModel
from sb3_cesd.envs.mazes.layouts import MazeLayout
from sb3_cesd.metrics.random_actions import RandomActions
from sb3_cesd.metrics.rollouts import SkillRollouts, as_model_observes, collect_rollouts
from sb3_cesd.metrics.summary import env_layout, play_and_measure

#: Number of episodes of an evaluation, whatever the number of skills, and steps of each
N_EPISODES, N_STEPS = 64, 200
#: Standard deviation of the action noise in an evaluation, whatever the exploration noise of the model
NOISE_STD = 0.2
#: Episodes of random actions that determine the scale of observations
N_RANDOM_EPISODES = 8
#: Side of the bins, in cells of a maze and in standard deviations under random actions
BIN_SIZE = 0.5
#: Number of planes that observations are projected to, and number of standard deviations they are clipped to
N_PLANES, OUTLIER = 8, 10.0


def skill_score(knn_accuracy: float, coverage: float, n_skills: int) -> float:
    """
    Combine how distinguishable skills are with how much they cover.

    The product requires both: an untrained network covers little, random actions are indistinguishable, and neither makes up
    for the other.

    :param knn_accuracy: share of states whose skill is predicted correctly, see
        :func:`~sb3_cesd.metrics.distinguishability.distinguishability`
    :param coverage: joint coverage of all skills
    :param n_skills: number of skills; the accuracy by chance, 1 / n_skills, counts as 0
    :return: the coverage times the accuracy beyond chance, from 0 to ``coverage``
    """
    check_arguments("skill_score", locals())
    chance = 1 / n_skills
    return coverage * max(0.0, (knn_accuracy - chance) / (1 - chance))


def n_rollouts_for(n_episodes: int, n_skills: int) -> int:
    """
    Share episodes among skills.

    :param n_episodes: number of episodes
    :param n_skills: number of skills
    :return: rollouts of each skill, rounded up, at least 2
    """
    return max(2, -(-n_episodes // n_skills))


def play_and_score(
    model: SkillModel,
    env: VecEnv,
    n_episodes: int = N_EPISODES,
    n_steps: int = N_STEPS,
    seed: int = 0,
    deterministic: bool = True,
) -> tuple[dict[str, float], SkillRollouts]:
    """
    Play all skills and score them.

    All models play the same number of episodes with the same action noise, so that the number of skills and the exploration
    noise that a trial draws don't affect the evaluation.

    :param model: a model
    :param env: environments without skill observations, normalised as the model expects
    :param n_episodes: number of episodes, shared among the skills; rounded up to a multiple of ``n_skills``, at least 2 each
    :param n_steps: length of an episode; shorter if it ends
    :param seed: seed of the rollouts
    :param deterministic: take the mean action of a stochastic policy
    :return: ``skill_score``, its factor ``coarse_coverage`` (share of the half cells of a maze, else see
        :func:`observation_coverage`) and all metrics of :func:`~sb3_cesd.metrics.summary.skill_metrics`; and the rollouts
    """
    check_arguments("play_and_score", locals())
    # Of the random actions, too
    env = as_model_observes(env, model)
    n_steps = min(n_steps, episode_length(env) or n_steps)
    metrics, rollouts = play_and_measure(
        model,
        env,
        seed,
        n_rollouts=n_rollouts_for(n_episodes, model.n_skills),
        n_steps=n_steps,
        noise_std=NOISE_STD,
        deterministic=deterministic,
    )
    layout = env_layout(env)
    if layout is not None:
        coverage = cell_coverage(rollouts.per_state()[0], layout)
    else:
        random = collect_rollouts(
            RandomActions(env.action_space, seed), env, N_RANDOM_EPISODES // 2, n_steps, seed=seed, deterministic=deterministic
        )
        coverage = float(observation_coverage(rollouts.as_seen().per_state()[0], random.per_state()[0]))
    score = skill_score(metrics["knn_accuracy"], coverage, model.n_skills)
    return {"skill_score": score, "coarse_coverage": coverage, **metrics}, rollouts


def cell_coverage(states: np.ndarray, layout: MazeLayout) -> float:
    """
    Measure the coverage of a maze in bins of half a cell.

    The bins of 0.05 in the literature reward a slow drift from random starts, which visits a new bin at each step.

    :param states: (x, y), shape ``(n, 2)``
    :param layout: the maze
    :return: share of the bins of half a cell that were visited, from 0 to 1
    """
    check_arguments("cell_coverage", locals())
    n_bins = layout.n_free_cells / BIN_SIZE**2
    return _n_bins(states) / n_bins


def observation_coverage(observations: np.ndarray, random_observations: np.ndarray, seed: int = 0) -> float:
    """
    Measure how much of the observation space skills cover, on the scale of random actions.

    Each coordinate is divided by its standard deviation under random actions, so that neither units nor ``VecNormalize``
    matter. High-dimensional observations are projected to random planes, the same ones for all models of an environment, since
    bins in more than a few dimensions would contain one state each.

    :param observations: observations of the skills, shape ``(n, d)``
    :param random_observations: observations under random actions, shape ``(m, d)``
    :param seed: seed of the planes
    :return: number of occupied bins with sides of half a standard deviation, averaged over 8 planes
    """
    check_arguments("observation_coverage", locals())
    mean, std = random_observations.mean(axis=0), random_observations.std(axis=0)
    scaled = np.clip((observations - mean) / (std + 1e-6), -OUTLIER, OUTLIER)  # (n, d)
    dim = scaled.shape[1]
    rng = np.random.default_rng(seed)
    planes = [np.eye(dim)] if dim <= 2 else [np.linalg.qr(rng.standard_normal((dim, 2)))[0] for _ in range(N_PLANES)]
    return float(np.mean([_n_bins(scaled @ plane) for plane in planes]))


def _n_bins(points: np.ndarray) -> int:
    """Count the occupied bins. Walls of a maze have half-integer coordinates, so no bin crosses a wall."""
    return len(np.unique(np.floor(points / BIN_SIZE), axis=0))
