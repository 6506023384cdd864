"""Until its constraint starts, CeSD is APT, given the same features and the same scale of the entropy."""

import pytest
import torch as th
from small import make_small

from sb3_cesd import APT, CeSD

ICM = {"features_dim": 4, "net_arch": [16]}
ENTROPY_OF_APT = {"k": 3, "log1p": True, "scale": "mean", "clip": 0.0001}


@pytest.fixture
def models():
    """APT after some training, and a CeSD with its networks and statistics."""
    apt = make_small(APT, intrinsic_kwargs={"encoder_kwargs": ICM, "entropy_kwargs": {"k": 3}}).learn(100)
    own = {"encoder": "identity", "distance_encoder": "icm", "distance_encoder_kwargs": ICM, "entropy_kwargs": ENTROPY_OF_APT}
    cesd = make_small(CeSD, intrinsic_kwargs={**own, "constraint_kwargs": {"start": 1.0}})
    for critic in (cesd.critic, cesd.critic_target):
        critic.use_heads = False
    cesd.actor.load_state_dict(apt.actor.state_dict())
    for theirs, ours in ((apt.critic, cesd.critic), (apt.critic_target, cesd.critic_target)):
        ours.trunk.load_state_dict(theirs.trunk.state_dict())
        ours.shared_networks.load_state_dict(theirs.q_networks.state_dict())
    cesd.intrinsic.distance_encoder.load_state_dict(apt.intrinsic.encoder.state_dict())
    cesd.intrinsic.entropy.load_state_dict(apt.intrinsic.entropy.state_dict())
    return apt, cesd


def loss_and_gradients(model, batch, name):
    """The loss of the critic or the actor, and its gradients by name of the parameter, of those that have any."""
    th.manual_seed(0)
    loss = getattr(model, f"{name}_loss")(batch)
    # The heads of CeSD have none yet
    parameters = {
        key.replace("shared_networks", "q_networks"): value for key, value in getattr(model, name).named_parameters()
    }
    gradients = th.autograd.grad(loss, list(parameters.values()), allow_unused=True)
    return loss.item(), {key: value for key, value in zip(parameters, gradients, strict=True) if value is not None}


def test_exploring_is_apt(models):
    apt, cesd = models
    samples = apt.replay_buffer.sample(32)
    batches = [model.intrinsic.train().relabel(samples) for model in models]
    th.testing.assert_close(batches[1].rewards, batches[0].rewards)

    for name in ("critic", "actor"):
        theirs, expected = loss_and_gradients(apt, batches[0], name)
        ours, found = loss_and_gradients(cesd, batches[1], name)
        # A mean over heads, which the step of Adam does not see
        n_heads = cesd.policy.n_heads
        assert n_heads == 4 and theirs == pytest.approx(n_heads * ours, rel=1e-5)
        assert expected.keys() == found.keys()
        for key, gradient in expected.items():
            assert gradient.abs().max() > 0
            th.testing.assert_close(n_heads * found[key], gradient, rtol=1e-4, atol=1e-7)
