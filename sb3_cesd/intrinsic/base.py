from abc import ABC, abstractmethod
from collections.abc import Hashable

import torch as th
from torch import nn

from sb3_cesd.common.type_aliases import SkillReplayBufferSamples


class IntrinsicReward(nn.Module, ABC):
    """
    Turns sampled transitions into transitions with intrinsic rewards; what it learns for that is learned here too.

    The replay buffer calls :meth:`relabel` on every batch. As with batch normalisation, a module in training mode also learns
    from the batch (its networks, prototypes and running statistics), in evaluation mode it does not.

    Parameters, buffers and the optimizers kept as attributes are saved with the model.
    """

    def __init__(self) -> None:
        super().__init__()
        #: Scalars of the last batch to log, by name
        self.logs: dict[str, th.Tensor] = {}
        #: From 1 (start of training) to 0 (end), for schedules; set by the algorithm
        self.progress_remaining = 1.0
        #: Environment steps of the training so far; set by the algorithm
        self.num_timesteps = 0

    @abstractmethod
    def relabel(self, samples: SkillReplayBufferSamples) -> SkillReplayBufferSamples:
        """
        :param samples: a batch with extrinsic n-step returns
        :return: the same transitions with intrinsic rewards, clusters, actor skills and critic pairs
        """

    def check_batch_size(self, batch_size: int) -> None:
        """
        :param batch_size: transitions of each gradient update
        :raises ValueError: if a reward can't be computed from so few
        """

    def predict_clusters(self, observations: th.Tensor) -> th.Tensor | None:
        """
        :param observations: states, shape ``(n, obs_dim)``
        :return: the most likely cluster (skill) of each state, shape ``(n,)``; ``None`` for a method without clusters
        """
        return None

    @property
    def phase(self) -> Hashable:
        """What of ``progress_remaining`` and ``num_timesteps`` decides how the reward is computed."""
        return None

    @property
    def optimizer_names(self) -> list[str]:
        """Names of the attributes that are optimizers."""
        return [name for name, value in vars(self).items() if isinstance(value, th.optim.Optimizer)]

    def scheduled_optimizers(self) -> list[th.optim.Optimizer]:
        """Optimizers that follow the learning rate of the algorithm (those without a learning rate of their own)."""
        return [getattr(self, name) for name in self.optimizer_names]
