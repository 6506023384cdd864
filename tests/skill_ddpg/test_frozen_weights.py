"""Weights that a user has frozen stay as they are, e.g. those of a features extractor that was trained before."""

import pytest
import torch as th
from small import make_small
from stable_baselines3.common.torch_layers import BaseFeaturesExtractor
from tuning import saved

from sb3_cesd import DIAYN, CeSD


class HalfFrozen(BaseFeaturesExtractor):
    """The first layer was trained before, the second one learns."""

    def __init__(self, observation_space, features_dim=4):
        super().__init__(observation_space, features_dim)
        self.old, self.new = th.nn.Linear(3, features_dim).requires_grad_(False), th.nn.Linear(features_dim, features_dim)

    def forward(self, observations):
        return self.new(self.old(observations))


def layers_of(model, layer):
    """Weights of a layer of the extractors of actor and critic, and whether they are trainable, by name."""
    return {
        f"{name}.{path}": (parameter.clone(), parameter.requires_grad)
        for name in ("actor", "critic")
        for path, parameter in getattr(model.policy, name).features_extractor.get_submodule(layer).named_parameters()
    }


@pytest.mark.parametrize("share", [False, True])
@pytest.mark.parametrize("method", [DIAYN, CeSD])
def test_frozen_weights_of_an_extractor_are_never_trained(method, share):
    """Also after the first step of the actor, in a loaded model and in one that learns a task."""
    kwargs = {"net_arch": [16, 16], "features_extractor_class": HalfFrozen, "share_features_extractor": share}
    model = make_small(method, policy_kwargs=kwargs)
    for learner in (
        model,
        method.load(saved(model), "Pendulum-v1", device="cpu"),
        method.from_pretrained(saved(make_small(method, policy_kwargs=kwargs).learn(60)), "Pendulum-v1", device="cpu"),
    ):
        old, new = layers_of(learner, "old"), layers_of(learner, "new")
        assert old and new and learner.learn(100)._n_updates > 0
        for name, (value, trainable) in layers_of(learner, "old").items():
            assert not trainable and (value == old[name][0]).all()
        for name, (value, trainable) in layers_of(learner, "new").items():
            assert trainable and (value != new[name][0]).any()
