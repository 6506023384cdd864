import numpy as np

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.checks import check_lengths


def on_cluster_share(clusters: np.ndarray, skills: np.ndarray) -> float:
    """
    Measure the share of states that lie in the cluster of their skill.

    :param clusters: predicted cluster of each state, shape ``(n,)``
    :param skills: skill that visited each state and owns the cluster of the same index, shape ``(n,)``
    :return: share of the states that lie in the cluster of their skill, from 0 to 1; 1 / n_skills by chance
    """
    check_arguments("on_cluster_share", locals())
    check_lengths(clusters=clusters, skills=skills)
    return float(np.mean(clusters == skills))


def cluster_size_entropy(clusters: np.ndarray, n_clusters: int) -> float:
    """
    Measure how evenly states are spread over clusters.

    :param clusters: predicted cluster of each state, shape ``(n,)``
    :param n_clusters: number of clusters
    :return: entropy of the shares of the clusters [nats], from 0 (all states in one) to log(n_clusters) (all of one size)
    :raises ValueError: if there is no such cluster
    """
    check_arguments("cluster_size_entropy", locals())
    if clusters.min() < 0 or clusters.max() >= n_clusters:
        raise ValueError(f"Clusters are from {clusters.min()} to {clusters.max()}: pass those from 0 to n_clusters - 1.")
    shares = np.bincount(clusters, minlength=n_clusters) / len(clusters)
    used = shares[shares > 0]
    return float((used * np.log(1 / used)).sum())
