import numpy as np

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.checks import check_lengths
from sb3_cesd.metrics.neighbors import nearest_neighbors
from sb3_cesd.metrics.standardization import scales


def knn_accuracy(
    states: np.ndarray, skills: np.ndarray, held_out_states: np.ndarray, held_out_skills: np.ndarray, k: int = 5
) -> float:
    """
    Measure how well a k-nearest-neighbour classifier tells the skill by the state.

    :param states: what the classifier knows, shape ``(n, d)``
    :param skills: their skills, shape ``(n,)``
    :param held_out_states: what it is asked, shape ``(n_held_out, d)``
    :param held_out_skills: their skills, shape ``(n_held_out,)``
    :param k: number of nearest states that vote; of skills with equal votes, the one of the nearer first vote wins
    :return: share of right answers, from 0 to 1; 1 / n_skills by chance
    :raises ValueError: if there are fewer than k states
    """
    check_arguments("knn_accuracy", locals())
    check_lengths(states=states, skills=skills)
    check_lengths(held_out_states=held_out_states, held_out_skills=held_out_skills)
    _, indices = nearest_neighbors(held_out_states, states, k)
    votes = skills[indices]  # (n_held_out, k), nearest first
    # Votes for the same skill as each vote; argmax takes the first of the largest
    counts = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
    answers = votes[np.arange(len(votes)), counts.argmax(axis=1)]
    return float(np.mean(answers == held_out_skills))


def distinguishability(states: np.ndarray, k: int = 5, lengths: np.ndarray | None = None, standardize: bool = False) -> float:
    """
    Measure how well skills can be told apart: a k-nearest-neighbour classifier knows the first half of the rollouts of each
    skill, and is asked about the second.

    All rollouts begin at the start, where all skills are alike: even perfect skills stay below 1.

    :param states: shape ``(n_skills, n_rollouts, n_states, d)``
    :param k: see :func:`knn_accuracy`
    :param lengths: number of steps of each rollout, shape ``(n_skills, n_rollouts)``: states after these are left out, as
        rollouts repeat the last one after the end of an episode; ``None`` for all states
    :param standardize: divide each entry by its standard deviation over all visited states, so that the answer depends on no
        units: as they are, entries with large numbers (velocities of joints in rad/s) decide alone which states are near
    :return: see :func:`knn_accuracy`
    :raises ValueError: if there is only one rollout per skill, or fewer than k states
    """
    check_arguments("distinguishability", locals())
    n_skills, n_rollouts, n_states, _ = states.shape
    if n_rollouts < 2:
        raise ValueError("With one rollout of each skill none can be held out: record at least two.")
    last = np.full((n_skills, n_rollouts), n_states - 1) if lengths is None else lengths
    visited = np.arange(n_states) <= last[..., None]  # (n_skills, n_rollouts, n_states)
    known = visited & (np.arange(n_rollouts) < n_rollouts // 2)[None, :, None]
    held_out = visited & ~known
    if standardize:
        states = states / scales(states[visited])
    skills = np.broadcast_to(np.arange(n_skills)[:, None, None], visited.shape)
    return knn_accuracy(states[known], skills[known], states[held_out], skills[held_out], k)
