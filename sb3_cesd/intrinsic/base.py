"""Base class of intrinsic rewards."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch as th
from torch import nn

from sb3_cesd.common.cuda import set_learning_rate
from sb3_cesd.common.gradient_steps import GradientSteps
from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.results import check_loss, check_reward

MakeOptimizer = Callable[[list[nn.Parameter]], th.optim.Optimizer]


class IntrinsicReward(nn.Module, ABC):
    """
    Base class of intrinsic rewards, with the networks that they learn.

    A method implements :meth:`reward`, and :meth:`loss` if the reward is learned. One that learns in another way, with several
    optimizers for instance, overrides :meth:`set_optimizers` and :meth:`update`.

    Parameters, buffers and the optimizers kept as attributes are saved with the model. Parameters that do not require a
    gradient are frozen.

    :param obs_dim: size of the state
    :param action_dim: size of the action
    :param skill_space: space of the skills
    """

    #: Whether batches must contain the observation after a single step, besides that after the n-step window
    needs_one_step: ClassVar[bool] = False
    #: Arguments that shape what is saved: a saved model keeps them; ``None`` for all of them
    fixed_by_save: ClassVar[tuple[str, ...] | None] = None
    #: Arguments that also matter for a task, and can be changed in fine-tuning; the others are not used there
    used_by_tasks: ClassVar[tuple[str, ...]] = ()
    #: Number of batches that :meth:`update` learns from per update of actor and critic, which learn from the last of them
    n_batches: int = 1
    #: If above 1, batches must contain moving averages of the observations over this many steps
    average_window: int = 1

    optimizer: th.optim.Optimizer

    def __init__(self, obs_dim: int, action_dim: int, skill_space: SkillSpace) -> None:
        super().__init__()
        self.obs_dim = obs_dim
        self.action_dim = action_dim
        self.skill_space = skill_space
        #: Scalars of the last batch to log, by name: tensors or numbers
        self.logs: dict[str, th.Tensor | float] = {}
        #: Takes the gradient steps; set by the algorithm
        self.gradient_steps = GradientSteps()

    @abstractmethod
    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        """
        Compute the intrinsic reward.

        :param samples: a batch of transitions
        :return: intrinsic rewards, shape ``(batch_size,)``
        """

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor | None:
        """
        Compute the loss to minimise.

        :param samples: a batch of transitions
        :return: a scalar; ``None`` if nothing is learned
        """
        return None

    def set_optimizers(self, make_optimizer: MakeOptimizer) -> None:
        """
        Make the optimizers.

        :param make_optimizer: makes an optimizer of given parameters; not called if there is nothing to learn
        """
        parameters = [parameter for parameter in self.parameters() if parameter.requires_grad]
        if parameters:
            self.optimizer = make_optimizer(parameters)

    def update(self, samples: SkillReplayBufferSamples) -> None:
        """
        Learn from a batch.

        :param samples: a batch of transitions
        :raises ValueError: if :meth:`loss` returns neither a scalar that depends on a parameter nor ``None``
        """
        loss = self.loss(samples)
        if loss is not None:
            check_loss(loss, self)
            self.step(self.optimizer, loss)
            self.logs["train/intrinsic_loss"] = loss.detach().reshape(())

    @th.no_grad()
    def relabel(self, samples: SkillReplayBufferSamples) -> SkillReplayBufferSamples:
        """
        Replace the rewards of transitions by intrinsic rewards.

        Apart from running statistics in training mode, as in batch normalisation, this changes nothing.

        :param samples: a batch with extrinsic n-step returns
        :return: the same transitions with intrinsic rewards
        :raises ValueError: if :meth:`reward` does not return one number per transition
        """
        reward = self.reward(samples)
        check_reward(reward, len(samples.rewards), self)
        rewards = reward[:, None]  # (batch_size, 1)
        self.logs["intrinsic/reward"] = rewards.mean()
        return samples._replace(rewards=rewards)

    def check_batch_size(self, batch_size: int) -> None:
        """
        Check that rewards can be computed from a batch.

        :param batch_size: number of transitions per gradient update
        :raises ValueError: if these are too few
        """

    def predict_clusters(self, observations: th.Tensor) -> th.Tensor | None:
        """
        Predict the cluster of states, that is, the skill they belong to.

        :param observations: states, shape ``(n, obs_dim)``
        :return: the most likely cluster of each state, shape ``(n,)``; ``None`` for a method without clusters
        """
        return None

    def goal_skill(self, observations: th.Tensor, goals: th.Tensor) -> th.Tensor | None:
        """
        Find the skills that lead from states to goals, without further training.

        :param observations: states, shape ``(n, obs_dim)``
        :param goals: states to reach, shape ``(n, obs_dim)``
        :return: skills as stored in the replay buffer: indices, shape ``(n,)``, or vectors, shape ``(n, skill_dim)``;
            ``None`` for a method whose skills have no direction
        """
        return None

    def step(self, optimizer: th.optim.Optimizer, loss: th.Tensor, name: str = "intrinsic loss") -> None:
        """
        Take one gradient step, unless it is not finite.

        :param optimizer: optimizer of the parameters to change
        :param loss: a scalar
        :param name: name of the loss, for messages
        """
        self.gradient_steps.take(name, optimizer, loss)

    @property
    def optimizers(self) -> dict[str, th.optim.Optimizer]:
        """Attributes that are optimizers, by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, th.optim.Optimizer)}

    def own_learning_rates(self) -> dict[str, float]:
        """
        List the optimizers with a learning rate of their own.

        :return: learning rate by name of the optimizer; the other optimizers follow that of the algorithm
        """
        return {}

    def scheduled_optimizers(self) -> list[th.optim.Optimizer]:
        """
        List the optimizers that follow the learning rate of the algorithm.

        :return: those without a learning rate of their own
        """
        own = self.own_learning_rates()
        return [optimizer for name, optimizer in self.optimizers.items() if name not in own]

    def set_own_learning_rates(self) -> None:
        """Set the learning rates of the other optimizers: loading a model restores those that it was saved with."""
        for name, learning_rate in self.own_learning_rates().items():
            set_learning_rate(getattr(self, name), learning_rate)
