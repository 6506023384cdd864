"""Clusters that stay those of the states that were explored."""

import pytest
import torch as th
from batches import make_samples

CLUSTERS = ("encoder", "prototypes")
TEMPORAL = {"distance_encoder": "temporal", "distance_encoder_kwargs": {"net_arch": [8]}}


@pytest.fixture
def batch():
    th.manual_seed(3)
    skills, actions = th.randint(4, (48,)), th.rand(48, 1) * 2 - 1
    return make_samples(th.randn(48, 3), th.randn(48, 3), skills, actions)


def changed_by(intrinsic, batch):
    """Networks of a reward that learn from a batch, as they do in training."""
    before = {name: value.clone() for name, value in intrinsic.state_dict().items()}
    intrinsic.update(batch)
    intrinsic.update_clusters(intrinsic.relabel(batch))
    changed = {name.split(".")[0] for name, value in intrinsic.state_dict().items() if (value != before[name]).any()}
    return changed & {*CLUSTERS, "distance_encoder"}


@pytest.mark.parametrize("freeze", [False, True])
def test_clusters_learn_until_the_constraint_starts(make_released, batch, freeze):
    intrinsic = make_released(constraint_kwargs={"start": 0.5, "freeze_clusters": freeze}).intrinsic
    assert not intrinsic.is_constrained
    assert changed_by(intrinsic, batch) == set(CLUSTERS)
    assert {"train/encoder_loss", "train/prototype_loss"} <= intrinsic.logs.keys()
    intrinsic.is_constrained = True
    assert changed_by(intrinsic, batch) == (set() if freeze else set(CLUSTERS))
    assert ({"train/encoder_loss", "train/prototype_loss"} <= intrinsic.logs.keys()) != freeze


def test_distances_go_on_learning(make_released, batch):
    intrinsic = make_released(**TEMPORAL, constraint_kwargs={"start": 0.5, "freeze_clusters": True}).intrinsic
    intrinsic.is_constrained = True
    assert changed_by(intrinsic, batch) == {"distance_encoder"}


def test_a_training_leaves_clusters_as_they_were_at_the_start_of_the_constraint(make_model, tmp_path):
    model = make_model(constraint_kwargs={"start": 100, "freeze_clusters": True}).learn(99)
    before = {name: value.clone() for name, value in model.intrinsic.state_dict().items() if name.startswith(CLUSTERS)}
    n_updates = model._n_updates
    model.learn(60, reset_num_timesteps=False)
    assert model.intrinsic.is_constrained and model._n_updates > n_updates
    assert all((model.intrinsic.state_dict()[name] == value).all() for name, value in before.items())
    model.save(tmp_path / "model")
    assert type(model).load(tmp_path / "model").intrinsic.constraint.freeze_clusters
