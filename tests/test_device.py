"""
An update on another device, without one.

Tensors on PyTorch's "meta" device have shapes and no values. As on a GPU, an operation that mixes them with a tensor of the
CPU is an error, and so is reading a value back.
"""

import pytest
import torch as th

from sb3_cesd.common import ensembles
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples

N_SKILLS, BATCH_SIZE = 4, 32


def to_meta(samples):
    moved = {name: value.to("meta") for name, value in samples._asdict().items() if value is not None}
    return SkillReplayBufferSamples(**moved)


@pytest.fixture
def make_meta(make_model):
    """A model whose networks are on the meta device, and a batch there that is not relabelled yet."""

    def make(**kwargs):
        model = make_model(learning_starts=10_000, **kwargs).learn(60)
        samples = to_meta(model.replay_buffer.sample(BATCH_SIZE))
        model.policy.to("meta")
        model.intrinsic.to("meta").eval()
        return model, samples

    return make


@pytest.mark.parametrize(
    ("variant", "encoder", "critic", "ensemble_size"),
    [
        ("released", "contrastive", "cluster", 4),
        ("released", "fourier", "union", 2),
        ("released", "icm", "hindsight", 4),
        ("other", "identity", "hindsight", 2),
        ("other", "temporal", "union", 4),
        ("exploring", "contrastive", "hindsight", 4),
    ],
)
def test_relabelling_and_losses(make_meta, variant, encoder, critic, ensemble_size):
    kwargs = {"encoder": encoder, "ensemble_size": ensemble_size, "relabel_kwargs": {"critic": critic}}
    kwargs["encoder_kwargs"] = {"net_arch": [16], "features_dim": 4} if encoder in ("contrastive", "icm", "temporal") else {}
    if variant == "exploring":
        kwargs["constraint_kwargs"] = {"start": 0.5}
        kwargs["policy_kwargs"] = {"net_arch": [16, 16], "shared_value": True}
    if variant == "other":
        kwargs["distance_encoder"], kwargs["distance_encoder_kwargs"] = "temporal", {"net_arch": [16]}
        kwargs["relabel_kwargs"] |= {"actor": "random", "kappa": 1.0}
        kwargs["entropy_kwargs"] = {"k": 3, "scale": "std", "aggregate": "kth"}
        kwargs["prototype_kwargs"] = {"swap": "self"}
        kwargs["constraint_kwargs"] = {"count": "paper"}
    model, samples = make_meta(**kwargs)
    # What learns in relabelling, but for the steps of optimizers
    for optimizer in model.intrinsic.optimizers.values():
        optimizer.step = lambda: None
    model.intrinsic.train()
    model.intrinsic.update(samples)
    samples = model.intrinsic.relabel(samples)
    model.intrinsic.update_clusters(samples)
    for name, value in samples._asdict().items():
        for tensor in value if name == "pairs" else [value]:
            assert tensor is None or tensor.device.type == "meta", name
    loss = model.critic_loss(samples) + model.actor_loss(samples)
    loss.backward()
    assert loss.device.type == "meta" and loss.shape == ()
    trained = [*model.actor.parameters(), *model.critic.parameters()]
    assert all(parameter.grad is not None and parameter.grad.device.type == "meta" for parameter in trained)
    model._mean_logs.add(model.intrinsic.logs)
    assert all(value.device.type == "meta" and not value.requires_grad for value in model.intrinsic.logs.values())


def test_other_devices_are_tiled_by_default():
    plan = ensembles.route(th.zeros(100, dtype=th.long, device="meta"), N_SKILLS)
    assert plan.counts is None and plan.heads.device.type == "meta"
    assert plan.n_slots == (100 // 64 + N_SKILLS) * 64
    assert ensembles.route(th.zeros(100, dtype=th.long), N_SKILLS).counts == [100, 0, 0, 0]
