"""All metrics of the skills of a model at once, and their score: the objective of tuning and of ``best_model.zip``."""

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.common.arguments import PositiveInt, checked
from sb3_cesd.common.observations import moving_averages
from sb3_cesd.common.playing import SkillModel
from sb3_cesd.common.vec_env import episode_length
from sb3_cesd.envs.mazes.layouts import MazeLayout
from sb3_cesd.metrics.coverage import cell_coverage, maze_coverage, observation_coverage, torso_coverage
from sb3_cesd.metrics.distinguishability import (
    cluster_size_entropy,
    knn_accuracy,
    on_cluster_share,
    particle_entropy,
    plug_in_mutual_information,
)
from sb3_cesd.metrics.environments import env_layout, robot_name
from sb3_cesd.metrics.motion import measure_motion
from sb3_cesd.metrics.rollouts import RandomActions, SkillRollouts, as_model_observes, collect_rollouts, play_places

#: Side of the bins of the mutual information in a maze, in cells
MAZE_BIN = 0.25
#: Side of the bins of positions of a robot, and of the hand of an arm [m]
ROBOT_BIN, ARM_BIN = 1.0, 0.1
#: States per rollout for nearest-neighbour metrics: the states in between are nearly the same
N_STATES = 51
#: Number of episodes of a score, whatever the number of skills, and steps of each
N_EPISODES, N_SCORE_STEPS = 64, 200
#: Standard deviation of the action noise for a score, whatever the exploration noise of the model
NOISE_STD = 0.2
#: Episodes of random actions that determine the scale of observations
N_RANDOM_EPISODES = 8


def play_and_measure(
    model: SkillModel, env: VecEnv, seed: int | None = 0, **kwargs: Any
) -> tuple[dict[str, float], SkillRollouts]:
    """
    Play all skills and measure how distinguishable they are, where they go (in mazes and for robots), and whether they move
    (outside mazes).

    :param model: a model
    :param env: environments without skill observations, normalised as the model expects
    :param seed: seed of the rollouts
    :param kwargs: more arguments of :func:`~sb3_cesd.metrics.rollouts.collect_rollouts`
    :return: metrics by name, and the rollouts. Metrics are ``knn_accuracy`` and ``particle_entropy`` of observations; where
        there are positions ``policy_coverage`` (share of the free bins of a maze, or number of bins of 1 m, for an arm 0.1 m),
        ``mutual_information`` [nats] and ``knn_accuracy_places``; for a model with clusters ``on_cluster_share`` and
        ``cluster_size_entropy`` [nats]; outside mazes ``knn_accuracy_standardized`` and ``moving_share``, and for a robot
        ``torso_speed`` (arm: ``hand_speed``), the median over skills [m/s]
    """
    # Random actions are compared with the skills, too
    env = as_model_observes(env, model)
    rollouts = play_places(model, env, seed, **kwargs)
    clusters = None
    if hasattr(model, "predict_clusters"):
        averages = moving_averages(rollouts.observations, getattr(model, "cluster_window", 1))
        clusters = model.predict_clusters(rollouts._replace(states=averages).per_state()[0])
    layout = env_layout(env)
    bin_size = ARM_BIN if robot_name(env) == "jaco" else ROBOT_BIN
    metrics = skill_metrics(rollouts, clusters, layout, bin_size)
    if layout is None:
        motion = measure_motion(env, rollouts, seed=seed or 0)
        metrics["moving_share"] = motion.moving_share
        parts = [part for part in ("torso", "hand") if part in motion.speeds]
        metrics |= {f"{part}_speed": float(np.median(motion.speeds[part])) for part in parts}
    return metrics, rollouts


def skill_metrics(
    rollouts: SkillRollouts, clusters: np.ndarray | None, layout: MazeLayout | None, bin_size: float = ROBOT_BIN
) -> dict[str, float]:
    """
    Compute the metrics of rollouts, see :func:`play_and_measure`. If they have ``positions``, their states are positions.

    Clusters are those of the states of ``rollouts.per_state()``, if the model has any; bins are for positions outside mazes.
    """
    states, skills = rollouts.per_state()
    thinned = rollouts.thinned(N_STATES)
    seen, lengths = thinned.as_seen(), thinned.lengths
    metrics = {"knn_accuracy": knn_accuracy(seen.states, lengths), "particle_entropy": particle_entropy(seen.per_state()[0])}
    if layout is None:
        metrics["knn_accuracy_standardized"] = knn_accuracy(seen.states, lengths, standardize=True)
    if rollouts.positions is not None:
        coverage = float(torso_coverage(states, bin_size)) if layout is None else maze_coverage(states, layout)
        information = plug_in_mutual_information(states, skills, bin_size if layout is None else MAZE_BIN)
        metrics["knn_accuracy_places"] = knn_accuracy(thinned.states, lengths)
        metrics |= {"policy_coverage": coverage, "mutual_information": information}
    if clusters is not None:
        metrics["on_cluster_share"] = on_cluster_share(clusters, skills)
        metrics["cluster_size_entropy"] = cluster_size_entropy(clusters)
    return metrics


def skill_score(knn_accuracy: float, coverage: float, n_skills: int) -> float:
    """
    Combine how distinguishable skills are with how much they cover.

    The product requires both: an untrained network covers little, random actions are indistinguishable, and neither makes up
    for the other.

    :param knn_accuracy: share of states whose skill is predicted correctly, see
        :func:`~sb3_cesd.metrics.distinguishability.knn_accuracy`
    :param coverage: joint coverage of all skills
    :param n_skills: number of skills; the accuracy by chance, 1 / n_skills, counts as 0
    :return: the coverage times the accuracy beyond chance, from 0 to ``coverage``
    """
    chance = 1 / n_skills
    return coverage * max(0.0, (knn_accuracy - chance) / (1 - chance))


def n_rollouts_for(n_episodes: int, n_skills: int) -> int:
    """Share episodes among skills: rollouts of each skill, rounded up, at least 2."""
    return max(2, -(-n_episodes // n_skills))


@checked
def play_and_score(
    model: SkillModel,
    env: VecEnv,
    n_episodes: PositiveInt = N_EPISODES,
    n_steps: PositiveInt = N_SCORE_STEPS,
    seed: int = 0,
    deterministic: bool = True,
) -> tuple[dict[str, float], SkillRollouts]:
    """
    Play all skills and score them.

    All models play the same number of episodes with the same action noise, so that the number of skills and the exploration
    noise that a trial draws don't affect the evaluation.

    :param model: a model
    :param env: see :func:`play_and_measure`
    :param n_episodes: number of episodes, shared among the skills; rounded up to a multiple of ``n_skills``, at least 2 each
    :param n_steps: length of an episode; shorter if it ends
    :param seed: seed of the rollouts
    :param deterministic: take the mean action of a stochastic policy
    :return: ``skill_score``, its factor ``coarse_coverage`` (share of the half cells of a maze, else see
        :func:`~sb3_cesd.metrics.coverage.observation_coverage`) and all metrics of :func:`play_and_measure`; and the rollouts
    """
    # Of the random actions, too
    env = as_model_observes(env, model)
    n_steps = min(n_steps, episode_length(env) or n_steps)
    play: dict[str, Any] = {"n_steps": n_steps, "seed": seed, "deterministic": deterministic}
    n_rollouts = n_rollouts_for(n_episodes, model.n_skills)
    metrics, rollouts = play_and_measure(model, env, n_rollouts=n_rollouts, noise_std=NOISE_STD, **play)
    layout = env_layout(env)
    if layout is not None:
        coverage = cell_coverage(rollouts.per_state()[0], layout)
    else:
        actions = RandomActions(env.action_space, seed)
        random = collect_rollouts(actions, env, N_RANDOM_EPISODES // actions.n_skills, **play)
        coverage = observation_coverage(rollouts.as_seen().per_state()[0], random.per_state()[0])
    score = skill_score(metrics["knn_accuracy"], coverage, model.n_skills)
    return {"skill_score": score, "coarse_coverage": coverage, **metrics}, rollouts
