"""All metrics of the skills of a model at once."""

from typing import Any

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.observations import moving_averages
from sb3_cesd.common.playing import SkillModel
from sb3_cesd.envs.mazes.layouts import MazeLayout
from sb3_cesd.metrics.clusters import cluster_size_entropy, on_cluster_share
from sb3_cesd.metrics.coverage import maze_coverage, torso_coverage
from sb3_cesd.metrics.distinguishability import distinguishability
from sb3_cesd.metrics.motion import gripper_shares, measure_motion, robot_name
from sb3_cesd.metrics.mutual_information import plug_in_mutual_information
from sb3_cesd.metrics.normalization import raw_observations
from sb3_cesd.metrics.particle_entropy import particle_entropy
from sb3_cesd.metrics.places import env_positions, has_places_to_play
from sb3_cesd.metrics.rollouts import SkillRollouts, as_model_observes, collect_rollouts, prepare_to_play
from sb3_cesd.metrics.training_env import has_wrappers

#: Side of the bins of the mutual information in a maze, in cells
MAZE_BIN = 0.25
#: Side of the bins of positions of a robot, and of the hand of an arm [m]
ROBOT_BIN, ARM_BIN = 1.0, 0.1
#: States per rollout for nearest-neighbour metrics: the states in between are nearly the same
N_STATES = 51
#: Number of nearest neighbours for the accuracy, and for the entropy
N_VOTES, N_NEIGHBORS = 5, 16


def env_layout(env: VecEnv) -> MazeLayout | None:
    """
    Return the layout of environments that are mazes.

    :param env: any environments
    :return: the layout; ``None`` for other environments
    """
    layout = env.get_attr("layout", indices=0)[0] if env.has_attr("layout") else None
    return layout if isinstance(layout, MazeLayout) else None


def play_places(model: SkillModel, env: VecEnv, seed: int | None = 0, **kwargs: Any) -> SkillRollouts:
    """
    Play all skills and record their paths: positions (x, y) in a maze or of a robot's torso, positions (x, y, z) of the arm's
    hand, or observations of any other environment.

    :param model: a model
    :param env: environments without skill observations, normalised as the model expects
    :param seed: seed of the rollouts
    :param kwargs: more arguments of :func:`~sb3_cesd.metrics.rollouts.collect_rollouts`
    :return: the rollouts
    """
    check_arguments("play_places", locals())
    return _play(model, env, seed, **kwargs)[0]


def _play(model: SkillModel, env: VecEnv, seed: int | None, **kwargs: Any) -> tuple[SkillRollouts, bool]:
    """
    Play all skills.

    :param model: a model
    :param env: environments
    :param seed: seed of the rollouts
    :param kwargs: see :func:`play_places`
    :return: the rollouts, and whether their states are positions
    :raises ValueError: if the environments are not normalised as the model expects, or it learns in them at the moment
    """
    # Before has_places_to_play resets the environments, in which the model may be learning
    prepare_to_play(model, env)
    # In an unwrapped maze observations are positions, and include those at the end of episodes
    sees_place = env_layout(env) is not None and unwrap_vec_normalize(env) is None and not has_wrappers(env)
    has_position = has_places_to_play(env)
    position_fn = env_positions if has_position and not sees_place else None
    rollouts = collect_rollouts(model, env, seed=seed, position_fn=position_fn, **kwargs)
    if not has_position:
        return rollouts, False
    states = rollouts.states if robot_name(env) == "jaco" else rollouts.states[..., :2]
    return rollouts._replace(states=states, positions=rollouts.states if position_fn else None), True


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
    :return: metrics by name (see :func:`skill_metrics`), outside mazes also ``moving_share``, for a robot ``torso_speed`` (for
        the arm ``hand_speed``), the median over skills [m/s] (see :func:`~sb3_cesd.metrics.motion.skill_motion`), and for the
        arm ``gripper_closing`` and ``gripper_opening``; and the rollouts
    """
    check_arguments("play_places", locals())
    # Random actions are compared with the skills, too
    env = as_model_observes(env, model)
    rollouts, are_places = _play(model, env, seed, **kwargs)
    clusters = None
    if hasattr(model, "predict_clusters"):
        seen = rollouts.as_seen()
        averages = seen._replace(states=moving_averages(seen.states, getattr(model, "cluster_window", 1)))
        clusters = model.predict_clusters(averages.per_state()[0])
    layout, robot = env_layout(env), robot_name(env)
    bin_size = ARM_BIN if robot == "jaco" else ROBOT_BIN
    metrics = skill_metrics(rollouts, clusters, are_places, layout, bin_size)
    if layout is None:
        motion = measure_motion(env, rollouts, seed=seed or 0)
        metrics["moving_share"] = motion.moving_share
        parts = [part for part in ("torso", "hand") if part in motion.speeds]
        metrics |= {f"{part}_speed": float(np.median(motion.speeds[part])) for part in parts}
    if robot == "jaco" and not has_wrappers(env):
        metrics |= gripper_shares(raw_observations(env, rollouts))
    return metrics, rollouts


def skill_metrics(
    rollouts: SkillRollouts,
    clusters: np.ndarray | None,
    in_the_plane: bool,
    layout: MazeLayout | None,
    bin_size: float = ROBOT_BIN,
) -> dict[str, float]:
    """
    Compute the metrics of rollouts.

    :param rollouts: rollouts of all skills
    :param clusters: cluster of each state of ``rollouts.per_state()``, shape ``(n,)``; ``None`` for a model without clusters
    :param in_the_plane: whether states are positions, (x, y) or (x, y, z)
    :param layout: the maze, ``None`` outside mazes
    :param bin_size: side of the bins of positions outside mazes [m]
    :return: ``knn_accuracy`` and ``particle_entropy`` of observations, and outside mazes ``knn_accuracy_standardized``; for
        positions also ``policy_coverage`` (share of the free bins of a maze, or number of bins of ``bin_size``),
        ``mutual_information`` [nats], ``knn_accuracy_places`` and ``particle_entropy_places``; for a model with clusters also
        ``on_cluster_share`` and ``cluster_size_entropy`` [nats]
    """
    check_arguments("skill_metrics", locals())
    states, skills = rollouts.per_state()
    n_skills = len(rollouts.states)
    thinned = rollouts.thinned(N_STATES)
    seen = thinned if thinned.observations is None else thinned.as_seen()
    metrics = {"knn_accuracy": _accuracy(seen)}
    if layout is None:
        metrics["knn_accuracy_standardized"] = _accuracy(seen, standardize=True)
    metrics["particle_entropy"] = _entropy(seen.per_state()[0])
    if in_the_plane:
        are_seen = np.array_equal(seen.states, thinned.states)
        metrics = {
            **metrics,
            "knn_accuracy_places": metrics["knn_accuracy"] if are_seen else _accuracy(thinned),
            "particle_entropy_places": metrics["particle_entropy"] if are_seen else _entropy(thinned.per_state()[0]),
            "policy_coverage": float(torso_coverage(states, bin_size)) if layout is None else maze_coverage(states, layout),
            "mutual_information": plug_in_mutual_information(states, skills, bin_size if layout is None else MAZE_BIN),
        }
    if clusters is not None:
        metrics["on_cluster_share"] = on_cluster_share(clusters, skills)
        metrics["cluster_size_entropy"] = cluster_size_entropy(clusters, n_skills)
    return metrics


def _accuracy(rollouts: SkillRollouts, standardize: bool = False) -> float:
    """Measure the accuracy, with fewer neighbours than usual if there are fewer states."""
    n_known = int((rollouts.lengths[:, : rollouts.lengths.shape[1] // 2] + 1).sum())
    return distinguishability(rollouts.states, max(min(N_VOTES, n_known), 1), rollouts.lengths, standardize)


def _entropy(states: np.ndarray) -> float:
    """Estimate the entropy of states, with fewer neighbours than usual if there are fewer states."""
    return particle_entropy(states, min(N_NEIGHBORS, len(states)))
