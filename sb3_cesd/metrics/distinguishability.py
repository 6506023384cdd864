import numpy as np

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.checks import check_lengths
from sb3_cesd.metrics.neighbors import nearest_neighbors
from sb3_cesd.metrics.standardization import scales


def knn_accuracy(
    states: np.ndarray, skills: np.ndarray, held_out_states: np.ndarray, held_out_skills: np.ndarray, k: int = 5
) -> float:
    """
    Measure how well a k-nearest-neighbour classifier predicts the skill from the state.

    :param states: training states of the classifier, shape ``(n, d)``
    :param skills: their skills, shape ``(n,)``
    :param held_out_states: test states, shape ``(n_held_out, d)``
    :param held_out_skills: their skills, shape ``(n_held_out,)``
    :param k: number of nearest states that vote; a tie goes to the skill with the nearest vote
    :return: share of correct predictions, from 0 to 1; 1 / n_skills by chance
    :raises ValueError: if there are fewer than k states, or sizes differ
    """
    check_arguments("knn_accuracy", locals())
    check_lengths(states=states, skills=skills)
    check_lengths(held_out_states=held_out_states, held_out_skills=held_out_skills)
    if states.shape[1] != held_out_states.shape[1]:
        sizes = f"{states.shape[1]} and {held_out_states.shape[1]} entries"
        raise ValueError(f"States and held_out_states have {sizes}: pass states of the same size.")
    _, indices = nearest_neighbors(held_out_states, states, k)
    votes = skills[indices]  # (n_held_out, k), nearest first
    # Number of votes for the skill of each vote; argmax returns the first maximum
    counts = (votes[:, :, None] == votes[:, None, :]).sum(axis=2)
    answers = votes[np.arange(len(votes)), counts.argmax(axis=1)]
    return float(np.mean(answers == held_out_skills))


def distinguishability(states: np.ndarray, k: int = 5, lengths: np.ndarray | None = None, standardize: bool = False) -> float:
    """
    Measure how distinguishable skills are: a k-nearest-neighbour classifier is trained on the first half of the rollouts of
    each skill, and tested on the second.

    All rollouts begin at the start, where skills can't be distinguished, so even perfect skills stay below 1.

    :param states: shape ``(n_skills, n_rollouts, n_states, d)``
    :param k: see :func:`knn_accuracy`
    :param lengths: number of steps of each rollout, shape ``(n_skills, n_rollouts)``: later states, which only repeat the last
        one of the episode, are left out; ``None`` for all states
    :param standardize: divide each entry by its standard deviation over all visited states, so that the result does not depend
        on units; otherwise entries with large values (joint velocities in rad/s) dominate the distances
    :return: see :func:`knn_accuracy`
    :raises ValueError: if there is only one rollout per skill, there are fewer than k states, or lengths do not fit
    """
    check_arguments("distinguishability", locals())
    n_skills, n_rollouts, n_states, _ = states.shape
    if lengths is not None and lengths.shape != (n_skills, n_rollouts):
        raise ValueError(f"lengths has shape {lengths.shape}: pass one per rollout, shape ({n_skills}, {n_rollouts}).")
    if n_rollouts < 2:
        raise ValueError("With one rollout per skill, none can be held out: record at least two.")
    last = np.full((n_skills, n_rollouts), n_states - 1) if lengths is None else lengths
    visited = np.arange(n_states) <= last[..., None]  # (n_skills, n_rollouts, n_states)
    known = visited & (np.arange(n_rollouts) < n_rollouts // 2)[None, :, None]
    held_out = visited & ~known
    if standardize:
        states = states / scales(states[visited])
    skills = np.broadcast_to(np.arange(n_skills)[:, None, None], visited.shape)
    return knn_accuracy(states[known], skills[known], states[held_out], skills[held_out], k)
