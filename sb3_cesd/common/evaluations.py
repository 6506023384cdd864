"""Evaluations that a callback of SB3 keeps in ``evaluations.npz``."""

from collections.abc import Sequence


def check_same_number(earlier: Sequence[Sequence[float]], n_episodes: int) -> None:
    """
    Check that evaluations have as many episodes as earlier ones, as ``evaluations.npz`` holds them as one array.

    :param earlier: returns of earlier evaluations
    :param n_episodes: number of episodes of the next ones
    :raises ValueError: if it differs
    """
    if earlier and len(earlier[-1]) != n_episodes:
        raise ValueError(
            f"Evaluations had {len(earlier[-1])} episodes so far, the next ones have {n_episodes}, and evaluations.npz can't "
            "hold both: pass n_eval_episodes (in RL Zoo --eval-episodes) as before, or another callback for another training."
        )
