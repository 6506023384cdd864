"""A corridor that turns back on itself, so that its ends are close to each other as the crow flies."""

import torch as th
from batches import make_samples

ARM = 10.0
LENGTH = 2 * ARM + 1


def place(way):
    """Positions, shape ``(n, 2)``, at distances ``way`` from the entrance: along one arm, across, and back along the other."""
    x = th.where(way < ARM, way, th.where(way < ARM + 1, ARM, LENGTH - way))
    return th.stack([x, (way - ARM).clamp(0, 1)], dim=1)


def follow(skills, dtype=th.float32):
    """A batch in which the second of two skills goes on by 1 and the first one goes back, as far as there is a way."""
    way = th.rand(len(skills), dtype=dtype) * LENGTH
    positions, next_positions = place(way), place((way + 2 * skills - 1).clamp(0, LENGTH))
    return make_samples(positions, next_positions, skills)._replace(one_step_observations=next_positions)


@th.no_grad()
def correlations(reward, n_pairs=500):
    """How the distance along the corridor correlates with that of features, and with that of positions."""
    ways = th.rand(2, n_pairs) * LENGTH
    start, end = map(place, ways)
    distances = th.stack([(ways[1] - ways[0]).abs(), reward.displacements(start, end).norm(dim=1), (end - start).norm(dim=1)])
    return th.corrcoef(distances)[0, 1:].tolist()
