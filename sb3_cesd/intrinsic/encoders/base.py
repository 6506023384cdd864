from abc import ABC, abstractmethod

import torch as th
from torch import nn

from sb3_cesd.common.type_aliases import SkillReplayBufferSamples


class Encoder(nn.Module, ABC):
    """
    A map from states to features.

    :param features_dim: size of the features
    """

    def __init__(self, features_dim: int) -> None:
        super().__init__()
        self.features_dim = features_dim

    @abstractmethod
    def forward(self, observations: th.Tensor) -> th.Tensor:
        """
        Compute the features of states.

        :param observations: shape ``(n, obs_dim)``
        :return: features, shape ``(n, features_dim)``
        """

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor | None:
        """
        Compute the loss of the encoder.

        :param samples: transitions from s to s' with the skill that was followed
        :return: a scalar; ``None`` if it does not learn
        """
        return None
