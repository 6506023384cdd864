"""The value that skills share, and what their heads add to it."""

import pytest
import torch as th
from batches import random_samples


@pytest.mark.parametrize("ensemble_size", [4, 2])
def test_heads_add_nothing_before_they_learn(make_model, ensemble_size):
    """Where the constraint sets in, the values that skills have explored with are still there."""
    model = make_model(ensemble_size=ensemble_size)
    batch = random_samples(th.arange(8) % 4, 4)._replace(actor_skills=None)
    for critic in (model.critic.double(), model.critic_target.double()):
        values = []
        for critic.use_heads in (True, False):
            values.append(critic.q_values(batch.observations, batch.actions, batch.skills))
        for with_heads, shared in zip(*values, strict=True):
            assert (with_heads == shared).all() and (shared != 0).any()
