from abc import abstractmethod
from collections.abc import Callable

import torch as th
from torch import nn

from sb3_cesd.common.type_aliases import SkillReplayBufferSamples, one_pair_per_transition
from sb3_cesd.intrinsic.base import IntrinsicReward

MakeOptimizer = Callable[[list[nn.Parameter]], th.optim.Optimizer]


class TransitionReward(IntrinsicReward):
    """
    A reward of each transition for the skill that collected it, as most skill discovery methods have one.

    A method brings :meth:`reward`, and :meth:`loss` if it learns something for that.
    """

    optimizer: th.optim.Optimizer

    def set_optimizer(self, make_optimizer: MakeOptimizer) -> None:
        """
        :param make_optimizer: makes the optimizer of parameters; not called if there is nothing to learn
        """
        parameters = list(self.parameters())
        if parameters:
            self.optimizer = make_optimizer(parameters)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor | None:
        """
        :param samples: a batch of transitions
        :return: what is minimised, a scalar; ``None`` if nothing is learned
        """
        return None

    @abstractmethod
    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        """
        :param samples: a batch of transitions
        :return: intrinsic rewards, shape ``(batch_size,)``
        """

    def relabel(self, samples: SkillReplayBufferSamples) -> SkillReplayBufferSamples:
        loss = self.loss(samples) if self.training else None
        if loss is not None:
            self.optimizer.zero_grad()
            loss.backward()
            self.optimizer.step()
            self.logs["train/intrinsic_loss"] = loss.detach()
        with th.no_grad():
            rewards = self.reward(samples)[:, None]  # (batch_size, 1)
        self.logs["intrinsic/reward"] = rewards.mean()
        return samples._replace(rewards=rewards, pairs=one_pair_per_transition(samples.skills, samples.skills, rewards))
