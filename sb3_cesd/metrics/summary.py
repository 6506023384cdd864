"""All metrics of the skills of a model at once, and their score: the objective of tuning and of ``best_model.zip``."""

from typing import Any, NamedTuple

import numpy as np
from stable_baselines3.common.vec_env import VecEnv

from sb3_cesd.common.arguments import PositiveInt, checked
from sb3_cesd.common.observations import moving_averages
from sb3_cesd.common.playing import SkillModel
from sb3_cesd.common.vec_env import attribute, episode_length
from sb3_cesd.envs.mazes.layouts import MazeLayout
from sb3_cesd.metrics.environments import env_layout, has_wrappers, robot_name, unnormalize
from sb3_cesd.metrics.measures import (
    cell_coverage,
    cluster_size_entropy,
    knn_accuracy,
    maze_coverage,
    observation_coverage,
    on_cluster_share,
    particle_entropy,
    plug_in_mutual_information,
    scales,
    torso_coverage,
)
from sb3_cesd.metrics.rollouts import (
    RandomActions,
    SkillRollouts,
    collect_rollouts,
    encoder_of,
    play_places,
    policy_of,
)

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
#: Entries of a robot's observation that are the velocities of its joints [rad/s]
JOINT_VELOCITIES = {
    "walker": slice(18, 24),
    "quadruped": slice(16, 32),
    "jaco": slice(18, 24),
    "ant": slice(21, 29),
    "half_cheetah": slice(12, 18),
}
#: Number of initial steps that are ignored, in which robots fall into their pose, and of steps over which speed is measured
SETTLE, WINDOW = 50, 10
#: A skill moves if its speeds are at least these shares of those of random actions, which swing joints more than a gait does
MOVING = {"joints": 0.25, "torso": 0.5, "hand": 0.5, "observation": 0.5}
#: Number of rollouts of random actions, whose speeds vary a lot
N_RANDOM = 16


class SkillMotion(NamedTuple):
    """
    Speeds of skills.

    :param speeds: speed of each skill by the part that moves, shape ``(n_skills,)`` each: ``"torso"`` [m/s] and ``"joints"``
        [rad/s] of a robot (for an arm ``"hand"`` instead of the torso), otherwise ``"observation"`` [standard deviations under
        random actions per step]
    :param random_speeds: the same for random actions
    :param moves: whether each skill moves, shape ``(n_skills,)``
    """

    speeds: dict[str, np.ndarray]
    random_speeds: dict[str, float]
    moves: np.ndarray


def mean_speeds(paths: np.ndarray, lengths: np.ndarray, dt: float = 1.0) -> np.ndarray:
    """
    Measure the mean speed of each skill, ``|x_{t + 10} - x_t| / (10 dt)``, after the first 50 steps, or half of a rollout,
    from paths ``(n_skills, n_rollouts, n_states, d)``. Windows are shorter in rollouts of less than 20 steps.
    """
    first = np.minimum(SETTLE, lengths // 2)
    windows = np.minimum(WINDOW, lengths - first)  # (n_skills, n_rollouts)
    sums, counts = np.zeros(len(paths)), np.zeros(len(paths), dtype=np.int64)
    for window in np.unique(windows[windows > 0]).tolist():
        distances = np.linalg.norm(paths[:, :, window:] - paths[:, :, :-window], axis=-1)
        time = np.arange(distances.shape[2])
        counted = (time >= first[..., None]) & (time + window <= lengths[..., None]) & (windows[..., None] == window)
        sums += (distances * counted).sum(axis=(1, 2)) / window
        counts += counted.sum(axis=(1, 2))
    return sums / np.maximum(counts, 1) / dt


def skill_motion(
    rollouts: SkillRollouts, random_rollouts: SkillRollouts, robot: str | None = None, dt: float = 1.0
) -> SkillMotion:
    """Determine which skills move, from observations that are not normalised; see :func:`measure_motion`."""
    both = rollouts, random_rollouts
    if robot is None:
        # Entries that random actions don't change are ignored
        scale = scales(random_rollouts.as_seen().per_state()[0])
        paths = {"observation": [each.observations / scale for each in both]}
    else:
        joints = JOINT_VELOCITIES[robot]
        paths = {
            "hand" if robot == "jaco" else "torso": [each.positions for each in both],  # type: ignore[misc]
            "joints": [np.cumsum(each.observations[..., joints], axis=2) * dt for each in both],
        }
    speeds, random_speeds = {}, {}
    for name, (of_skills, at_random) in paths.items():
        speeds[name] = mean_speeds(of_skills, rollouts.lengths, dt)
        random_speeds[name] = float(mean_speeds(at_random, random_rollouts.lengths, dt).mean())
    fast = [speeds[name] >= MOVING[name] * random_speeds[name] for name in speeds]
    # If random actions move nothing, a skill still has to move something
    return SkillMotion(speeds, random_speeds, np.logical_and.reduce(fast) & (sum(speeds.values()) > 0))


def measure_motion(env: VecEnv, rollouts: SkillRollouts, seed: int = 0, policy: Any = None) -> SkillMotion:
    """
    Determine which skills move, compared with random actions that are played for as many steps.

    A skill moves if its torso (or hand, or observation) is at least half as fast as with random actions, and its joints at
    least a quarter as fast, after the first 50 steps and over windows of 10 steps (see :func:`mean_speeds`). A robot that
    holds a pose, even if it trembles, does not move; nor does one that lies on its back and kicks, as its torso stays.

    :param env: environments that the skills were played in
    :param rollouts: rollouts of all skills
    :param seed: seed of the random actions and their starts
    :param policy: the policy, if it observes images, by whose features they are compared
    :return: speeds, and which skills move
    """
    model, n_steps = RandomActions(env.action_space, seed, policy), rollouts.states.shape[2] - 1
    # Wrappers may change observations in unknown ways
    robot = None if has_wrappers(env) or encoder_of(model) is not None else robot_name(env)
    random = collect_rollouts(model, env, N_RANDOM // model.n_skills, n_steps, seed=seed)
    raw, raw_random = (each._replace(observations=unnormalize(env, each.observations)) for each in (rollouts, random))
    return skill_motion(raw, raw_random, robot, 1.0 if robot is None else float(attribute(env, "dt")))


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
    :return: metrics by name, and the rollouts. Metrics are ``knn_accuracy`` and ``particle_entropy`` of observations (with
        ``CnnPolicy`` of positions, or of features where there are none); where
        there are positions ``policy_coverage`` (share of the free bins of a maze, or number of bins of 1 m, for an arm 0.1 m),
        ``mutual_information`` [nats] and, outside mazes, ``knn_accuracy_places``; for a model with clusters
        ``on_cluster_share`` and ``cluster_size_entropy`` [nats]; outside mazes ``knn_accuracy_standardized`` and
        ``moving_share``, and for a robot ``torso_speed`` (arm: ``hand_speed``), the median over skills [m/s]
    """
    rollouts = play_places(model, env, seed, **kwargs)
    clusters = None
    if hasattr(model, "predict_clusters"):
        averages = moving_averages(rollouts.observations, getattr(model, "cluster_window", 1))
        clusters = model.predict_clusters(rollouts._replace(states=averages).per_state()[0])
    layout = env_layout(env)
    bin_size = ARM_BIN if robot_name(env) == "jaco" else ROBOT_BIN
    metrics = skill_metrics(rollouts, clusters, layout, bin_size, sees_places=encoder_of(model) is not None)
    if layout is None:
        motion = measure_motion(env, rollouts, seed or 0, policy_of(model))
        metrics["moving_share"] = float(motion.moves.mean())
        parts = [part for part in ("torso", "hand") if part in motion.speeds]
        metrics |= {f"{part}_speed": float(np.median(motion.speeds[part])) for part in parts}
    return metrics, rollouts


def skill_metrics(
    rollouts: SkillRollouts,
    clusters: np.ndarray | None,
    layout: MazeLayout | None,
    bin_size: float = ROBOT_BIN,
    sees_places: bool = False,
) -> dict[str, float]:
    """
    Compute the metrics of rollouts, see :func:`play_and_measure`. If they have ``positions``, their states are positions.

    Clusters are those of the states of ``rollouts.per_state()``, if the model has any; bins are for positions outside mazes.
    With ``sees_places`` positions replace observations, where there are some.
    """
    states, skills = rollouts.per_state()
    thinned = rollouts.thinned(N_STATES)
    seen, lengths = thinned if sees_places and rollouts.positions is not None else thinned.as_seen(), thinned.lengths
    metrics = {"knn_accuracy": knn_accuracy(seen.states, lengths), "particle_entropy": particle_entropy(seen.per_state()[0])}
    if layout is None:
        metrics["knn_accuracy_standardized"] = knn_accuracy(seen.states, lengths, standardize=True)
    if rollouts.positions is not None:
        coverage = float(torso_coverage(states, bin_size)) if layout is None else maze_coverage(states, layout)
        if layout is None:
            metrics["knn_accuracy_places"] = knn_accuracy(thinned.states, lengths)
        information = plug_in_mutual_information(states, skills, bin_size if layout is None else MAZE_BIN)
        metrics |= {"policy_coverage": coverage, "mutual_information": information}
    if clusters is not None:
        metrics["on_cluster_share"] = on_cluster_share(clusters, skills)
        metrics["cluster_size_entropy"] = cluster_size_entropy(clusters)
    return metrics


def skill_score(knn_accuracy: float, coverage: float, n_skills: int) -> float:
    """
    Combine how distinguishable skills are with how much they cover: the coverage times the accuracy beyond chance.

    The product requires both: an untrained network covers little, random actions are indistinguishable, and neither makes up
    for the other.
    """
    chance = 1 / n_skills
    return coverage * max(0.0, (knn_accuracy - chance) / (1 - chance))


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
        :func:`~sb3_cesd.metrics.measures.observation_coverage`) and all metrics of :func:`play_and_measure`; and the rollouts
    """
    n_steps = min(n_steps, episode_length(env) or n_steps)
    play: dict[str, Any] = {"n_steps": n_steps, "seed": seed, "deterministic": deterministic}
    n_rollouts = max(2, -(-n_episodes // model.n_skills))
    metrics, rollouts = play_and_measure(model, env, n_rollouts=n_rollouts, noise_std=NOISE_STD, **play)
    layout = env_layout(env)
    if layout is not None:
        coverage = cell_coverage(rollouts.per_state()[0], layout)
    else:
        actions = RandomActions(env.action_space, seed, policy_of(model))
        random = collect_rollouts(actions, env, N_RANDOM_EPISODES // actions.n_skills, **play)
        coverage = observation_coverage(rollouts.as_seen().per_state()[0], random.per_state()[0])
    score = skill_score(metrics["knn_accuracy"], coverage, model.n_skills)
    return {"skill_score": score, "coarse_coverage": coverage, **metrics}, rollouts
