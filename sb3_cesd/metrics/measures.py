"""Measures of recorded states: what they cover, in square bins, and how well skills can be told apart by them."""

from collections import deque

import numpy as np
import torch as th

from sb3_cesd.common.arguments import Positive, PositiveInt, checked
from sb3_cesd.envs.mazes.layouts import MazeLayout

#: Side of the coarse bins, in cells of a maze and in standard deviations under random actions
COARSE_BIN = 0.5
#: Number of planes that observations are projected to, and number of standard deviations they are clipped to
N_PLANES, OUTLIER = 8, 10.0


class TrainingCoverage:
    """
    Coverage accumulated over the positions that training visits, as in TLDR (Bae et al., 2024).

    :param bin_size: side of the bins [m]
    :param queue_size: number of most recent positions that :attr:`queue` counts
    """

    @checked
    def __init__(self, bin_size: Positive = 1.0, queue_size: PositiveInt = 100_000) -> None:
        self.bin_size = bin_size
        self._queue: deque[tuple[int, ...]] = deque(maxlen=queue_size)
        self._visited: set[tuple[int, ...]] = set()

    def add(self, positions: np.ndarray) -> None:
        """Add the positions after a step [m], shape ``(n_envs, d)``."""
        bins = [tuple(row) for row in np.floor(positions / self.bin_size).astype(int).tolist()]
        self._visited.update(bins)
        self._queue.extend(bins)

    @property
    def queue(self) -> int:
        """Number of bins that the most recent steps visited."""
        return len(set(self._queue))

    @property
    def total(self) -> int:
        """Number of bins that all steps visited."""
        return len(self._visited)


def maze_coverage(states: np.ndarray, layout: MazeLayout) -> float:
    """
    Measure the share of the free bins of a maze (side 0.05, in the bottleneck 0.1) that states, shape ``(n, 2)``, visited.

    The paper's policy coverage is that of 20 stochastic rollouts per skill.
    """
    free = layout.is_free(states)
    if not free.all():
        raise ValueError(f"The state {states[~free][0]} can't be reached in this maze: pass (x, y) recorded in the same maze.")
    return len(np.unique(layout.bin_indices(states))) / layout.n_free_bins


def torso_coverage(positions: np.ndarray, bin_size: float = 1.0) -> int:
    """Count the bins that positions, shape ``(n, d)``, occupy."""
    return len(np.unique(np.floor(positions / bin_size), axis=0))


def cell_coverage(states: np.ndarray, layout: MazeLayout) -> float:
    """
    Measure the share of the half cells of a maze that states, shape ``(n, 2)``, visited. No wall crosses such a bin.

    The bins of 0.05 in the literature reward a slow drift from random starts, which visits a new bin at each step.
    """
    return torso_coverage(states, COARSE_BIN) / (layout.n_free_cells / COARSE_BIN**2)


def observation_coverage(observations: np.ndarray, random_observations: np.ndarray) -> float:
    """
    Count the bins of observations, shape ``(n, d)``, with sides of half a standard deviation under random actions, so that
    neither units nor ``VecNormalize`` matter.

    Many dimensions are projected to random planes, the same ones for all models of an environment, and counts averaged, since
    bins in more than a few dimensions would contain one state each.
    """
    mean, std = random_observations.mean(axis=0), random_observations.std(axis=0)
    scaled = np.clip((observations - mean) / (std + 1e-6), -OUTLIER, OUTLIER)  # (n, d)
    dim = scaled.shape[1]
    rng = np.random.default_rng(0)
    planes = [np.eye(dim)] if dim <= 2 else [np.linalg.qr(rng.standard_normal((dim, 2)))[0] for _ in range(N_PLANES)]
    return float(np.mean([torso_coverage(scaled @ plane, COARSE_BIN) for plane in planes]))


def nearest_neighbors(queries: np.ndarray, points: np.ndarray, k: int) -> tuple[np.ndarray, np.ndarray]:
    """Find the distances to the k nearest points, or all if there are fewer, and their indices, ``(n_queries, k)`` each."""
    tensor = th.as_tensor(points, dtype=th.float32, device="cpu")
    nearest = [
        # The inner-product expansion is inaccurate near distance zero
        th.cdist(chunk, tensor, compute_mode="donot_use_mm_for_euclid_dist").topk(min(k, len(points)), largest=False)
        for chunk in th.as_tensor(queries, dtype=th.float32, device="cpu").split(1024)
    ]
    return th.cat([found.values for found in nearest]).numpy(), th.cat([found.indices for found in nearest]).numpy()


def scales(states: np.ndarray) -> np.ndarray:
    """Standard deviations of the entries of states; infinite for a constant one, so that division by it removes the entry."""
    std = states.std(axis=0)
    return np.where(std > 1e-6, std, np.inf)


@checked
def knn_accuracy(
    states: np.ndarray, lengths: np.ndarray | None = None, k: PositiveInt = 5, standardize: bool = False
) -> float:
    """
    Measure how well a k-nearest-neighbour classifier predicts the skill from the state. It knows the first half of the
    rollouts of each skill, and is asked for the states of the second.

    All rollouts begin at the start, where skills can't be distinguished, so even perfect skills stay below 1.

    :param states: shape ``(n_skills, n_rollouts, n_states, d)``
    :param lengths: number of steps of each rollout, shape ``(n_skills, n_rollouts)``: later states, which only repeat the last
        one of the episode, are left out; ``None`` for all states
    :param k: number of nearest states that vote; a tie goes to the skill with the nearest vote
    :param standardize: divide each entry by its standard deviation over all visited states, so that the result does not depend
        on units; otherwise entries with large values (joint velocities in rad/s) dominate the distances
    :return: share of correct predictions, from 0 to 1; 1 / n_skills by chance
    :raises ValueError: if there is only one rollout per skill
    """
    n_skills, n_rollouts, n_states, _ = states.shape
    if n_rollouts < 2:
        raise ValueError("With one rollout per skill, none can be held out: record n_rollouts of at least 2.")
    last = np.full((n_skills, n_rollouts), n_states - 1) if lengths is None else lengths
    visited = np.arange(n_states) <= last[..., None]  # (n_skills, n_rollouts, n_states)
    known = visited & (np.arange(n_rollouts) < n_rollouts // 2)[None, :, None]
    held_out = visited & ~known
    if standardize:
        states = states / scales(states[visited])
    skills = np.broadcast_to(np.arange(n_skills)[:, None, None], visited.shape)
    _, indices = nearest_neighbors(states[held_out], states[known], k)
    votes = skills[known][indices]  # (n_held_out, k), nearest first
    # Number of votes for the skill of each vote; argmax returns the first maximum
    counts = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
    answers = votes[np.arange(len(votes)), counts.argmax(axis=1)]
    return float(np.mean(answers == skills[held_out]))


@checked
def plug_in_mutual_information(states: np.ndarray, skills: np.ndarray, bin_size: Positive = 0.25) -> float:
    """
    Estimate the mutual information I(S; Z) of binned states and skills from the frequencies of their pairs.

    The estimate is too high by about ``(n_bins - 1) (n_skills - 1) / (2 n)``: compare samples of equal size.

    :param states: shape ``(n, d)``
    :param skills: skill that visited each state, shape ``(n,)``
    :param bin_size: side of the bins, in units of the states
    :return: mutual information [nats], from 0 to log(n_skills)
    """
    _, bins = np.unique(np.floor(states / bin_size), axis=0, return_inverse=True)
    _, labels = np.unique(skills, return_inverse=True)
    joint = np.zeros((bins.max() + 1, labels.max() + 1))
    np.add.at(joint, (bins, labels), 1 / len(states))
    # Rounding may make it negative
    return max(_entropy(joint.sum(axis=0)) + _entropy(joint.sum(axis=1)) - _entropy(joint), 0.0)


@checked
def particle_entropy(states: np.ndarray, k: PositiveInt = 16) -> float:
    """
    Estimate the state entropy from particles (as APT does), up to a constant and a scale: only compare sets of equal size.

    The published comparison uses 10 rollouts of each of 10 skills.

    :param states: shape ``(n, d)``
    :param k: number of nearest states; the first is the state itself, as in the intrinsic reward
    :return: mean over states of log(1 + mean distance to the k nearest)
    """
    distances, _ = nearest_neighbors(states, states, k)
    return float(np.log1p(distances.mean(axis=1)).mean())


def on_cluster_share(clusters: np.ndarray, skills: np.ndarray) -> float:
    """Measure the share of states that lie in the cluster of their skill, shape ``(n,)`` each; 1 / n_skills by chance."""
    return float(np.mean(clusters == skills))


def cluster_size_entropy(clusters: np.ndarray) -> float:
    """Entropy of the sizes of clusters [nats]: 0 if all states, shape ``(n,)``, are in one, log(n_clusters) if even."""
    return _entropy(np.bincount(clusters) / len(clusters))


def _entropy(probabilities: np.ndarray) -> float:
    positive = probabilities[probabilities > 0]
    return float(-(positive * np.log(positive)).sum())
