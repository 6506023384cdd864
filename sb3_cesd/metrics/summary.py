"""All metrics of the skills of a model at once."""

from typing import Any, Protocol

import numpy as np
from stable_baselines3.common.vec_env import VecEnv, unwrap_vec_normalize

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.playing import SkillModel
from sb3_cesd.envs.mazes.layouts import MazeLayout
from sb3_cesd.metrics.clusters import cluster_size_entropy, on_cluster_share
from sb3_cesd.metrics.coverage import maze_coverage, torso_coverage
from sb3_cesd.metrics.distinguishability import distinguishability
from sb3_cesd.metrics.mutual_information import plug_in_mutual_information
from sb3_cesd.metrics.particle_entropy import particle_entropy
from sb3_cesd.metrics.rollouts import SkillRollouts, collect_rollouts, env_positions

#: Side of the bins of the mutual information, in cells of a maze and in metres
MAZE_BIN, ROBOT_BIN = 0.25, 1.0


class ClusterModel(SkillModel, Protocol):
    """A model that may say to which cluster a state belongs."""

    def predict_clusters(self, observations: np.ndarray) -> np.ndarray | None:
        """
        Tell to which cluster states belong.

        :param observations: shape ``(n, obs_dim)``
        :return: cluster of each, shape ``(n,)``; ``None`` for a model without clusters
        """


def env_layout(env: VecEnv) -> MazeLayout | None:
    """
    Tell the maze that environments are.

    :param env: any environments
    :return: the maze; ``None`` if they are something else
    """
    return env.get_attr("layout", indices=0)[0] if env.has_attr("layout") else None


def play_places(model: SkillModel, env: VecEnv, seed: int | None = 0, **kwargs: Any) -> SkillRollouts:
    """
    Play all skills and record where they go: places (x, y) in a maze or of the torso of a robot, else observations.

    :param model: a model
    :param env: environments without skill observations, normalised as the model expects them
    :param seed: seed of the rollouts
    :param kwargs: more arguments of :func:`~sb3_cesd.metrics.rollouts.collect_rollouts`
    :return: the rollouts
    """
    check_arguments("play_places", locals())
    # In a maze the observation is the place, and the end of an episode is among them
    sees_place = env_layout(env) is not None and env.observation_space.shape == (2,) and unwrap_vec_normalize(env) is None
    has_position = env.has_attr("position")
    position_fn = env_positions if has_position and not sees_place else None
    rollouts = collect_rollouts(model, env, seed=seed, position_fn=position_fn, **kwargs)
    return rollouts._replace(states=rollouts.states[..., :2]) if has_position else rollouts


def play_and_measure(
    model: ClusterModel, env: VecEnv, seed: int | None = 0, **kwargs: Any
) -> tuple[dict[str, float], SkillRollouts]:
    """
    Play all skills and measure where they go: in the plane for a maze or a robot (x and y of the torso), else in the space
    of observations.

    :param model: a model
    :param env: environments without skill observations, normalised as the model expects them
    :param seed: seed of the rollouts
    :param kwargs: more arguments of :func:`~sb3_cesd.metrics.rollouts.collect_rollouts`
    :return: metrics by name (see :func:`skill_metrics`), and the rollouts that were measured
    """
    rollouts = play_places(model, env, seed, **kwargs)
    assert rollouts.observations is not None
    clusters = model.predict_clusters(rollouts._replace(states=rollouts.observations).per_state()[0])
    return skill_metrics(rollouts, clusters, env.has_attr("position"), env_layout(env)), rollouts


def skill_metrics(
    rollouts: SkillRollouts, clusters: np.ndarray | None, in_the_plane: bool, layout: MazeLayout | None
) -> dict[str, float]:
    """
    Measure where skills went.

    :param rollouts: of all skills
    :param clusters: cluster of each state of ``rollouts.per_state()``, shape ``(n,)``; ``None`` for a model without clusters
    :param in_the_plane: whether states are places (x, y)
    :param layout: the maze they are in
    :return: by name ``knn_accuracy`` and ``particle_entropy``; of places also ``coverage`` (share of the free bins of a maze,
        or number of bins of 1 m) and ``mutual_information`` [nats]; of a model with clusters also ``on_cluster_share`` and
        ``cluster_size_entropy`` [nats]
    """
    states, skills = rollouts.per_state()
    n_skills = len(rollouts.states)
    metrics = {}
    if layout is not None:
        metrics["coverage"] = maze_coverage(states, layout)
    elif in_the_plane:
        metrics["coverage"] = float(torso_coverage(states))
    if in_the_plane:
        metrics["mutual_information"] = plug_in_mutual_information(
            states, skills, MAZE_BIN if layout is not None else ROBOT_BIN
        )
    metrics["knn_accuracy"] = distinguishability(rollouts.states)
    metrics["particle_entropy"] = particle_entropy(states)
    if clusters is not None:
        metrics["on_cluster_share"] = on_cluster_share(clusters, skills)
        metrics["cluster_size_entropy"] = cluster_size_entropy(clusters, n_skills)
    return metrics
