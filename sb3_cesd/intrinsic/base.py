"""What an intrinsic reward is."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch as th
from torch import nn

from sb3_cesd.common.cuda.graphed_function import set_learning_rate
from sb3_cesd.common.gradient_steps import GradientSteps
from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples

MakeOptimizer = Callable[[list[nn.Parameter]], th.optim.Optimizer]


class IntrinsicReward(nn.Module, ABC):
    """
    An intrinsic reward, and what it learns.

    A method brings :meth:`reward`, and :meth:`loss` if it learns something for that. One that learns in another way, with
    several optimizers for instance, overrides :meth:`set_optimizers` and :meth:`update`.

    Parameters, buffers and the optimizers kept as attributes are saved with the model. Parameters that do not require a
    gradient are frozen.

    :param obs_dim: size of the state
    :param action_dim: size of the action
    :param skill_space: space of the skills
    """

    #: Whether batches are to hold the observation after a single step, beside that after the n-step window
    needs_one_step: ClassVar[bool] = False
    #: Arguments that shape what is saved, which a saved model keeps; ``None`` for all of them
    fixed_by_save: ClassVar[tuple[str, ...] | None] = None
    #: Arguments that matter for a task, too, and can be changed when one is learned; the others shaped what is not used then
    used_by_tasks: ClassVar[tuple[str, ...]] = ()
    #: Batches that :meth:`update` learns from per update of actor and critic, which learn from the last of them
    n_batches: int = 1
    #: If above 1, batches are to hold moving averages of the observations over so many steps
    average_window: int = 1

    optimizer: th.optim.Optimizer

    def __init__(self, obs_dim: int, action_dim: int, skill_space: SkillSpace) -> None:
        super().__init__()
        self.obs_dim = obs_dim
        self.action_dim = action_dim
        self.skill_space = skill_space
        #: Scalars of the last batch to log, by name
        self.logs: dict[str, th.Tensor] = {}
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
        Compute what is minimised.

        :param samples: a batch of transitions
        :return: a scalar; ``None`` if nothing is learned
        """
        return None

    def set_optimizers(self, make_optimizer: MakeOptimizer) -> None:
        """
        Make the optimizers, after the parameters are on their device.

        :param make_optimizer: makes the optimizer of parameters; not called if there is nothing to learn
        """
        parameters = [parameter for parameter in self.parameters() if parameter.requires_grad]
        if parameters:
            self.optimizer = make_optimizer(parameters)

    def update(self, samples: SkillReplayBufferSamples) -> None:
        """
        Learn from a batch.

        :param samples: a batch of transitions
        """
        loss = self.loss(samples)
        if loss is not None:
            self.step(self.optimizer, loss)
            self.logs["train/intrinsic_loss"] = loss.detach()

    @th.no_grad()
    def relabel(self, samples: SkillReplayBufferSamples) -> SkillReplayBufferSamples:
        """
        Give transitions their intrinsic rewards.

        Nothing changes but running statistics, in training mode, as those of batch normalisation do.

        :param samples: a batch with extrinsic n-step returns
        :return: the same transitions with intrinsic rewards
        """
        rewards = self.reward(samples)[:, None]  # (batch_size, 1)
        self.logs["intrinsic/reward"] = rewards.mean()
        return samples._replace(rewards=rewards)

    def check_batch_size(self, batch_size: int) -> None:
        """
        Check that a reward can be computed from a batch.

        :param batch_size: transitions of each gradient update
        :raises ValueError: if they are too few
        """

    def predict_clusters(self, observations: th.Tensor) -> th.Tensor | None:
        """
        Tell to which cluster, that is to which skill, states belong.

        :param observations: states, shape ``(n, obs_dim)``
        :return: the most likely cluster of each state, shape ``(n,)``; ``None`` for a method without clusters
        """
        return None

    def goal_skill(self, observations: th.Tensor, goals: th.Tensor) -> th.Tensor | None:
        """
        Tell which skills lead from states to goals, without further training.

        :param observations: states, shape ``(n, obs_dim)``
        :param goals: states to reach, shape ``(n, obs_dim)``
        :return: skills as the replay buffer keeps them: indices, shape ``(n,)``, or vectors, shape ``(n, skill_dim)``;
            ``None`` for a method whose skills have no direction
        """
        return None

    def step(self, optimizer: th.optim.Optimizer, loss: th.Tensor, name: str = "intrinsic loss") -> None:
        """
        Take one gradient step, unless it is not finite.

        :param optimizer: of what is to change
        :param loss: a scalar
        :param name: name of the loss, for messages
        """
        self.gradient_steps.take(name, optimizer, loss)

    @property
    def optimizer_names(self) -> list[str]:
        """Names of the attributes that are optimizers."""
        return [name for name, value in vars(self).items() if isinstance(value, th.optim.Optimizer)]

    def own_learning_rates(self) -> dict[str, float]:
        """
        Tell which optimizers have a learning rate of their own.

        :return: learning rate by name of the optimizer; the others follow that of the algorithm
        """
        return {}

    def scheduled_optimizers(self) -> list[th.optim.Optimizer]:
        """
        List the optimizers that follow the learning rate of the algorithm.

        :return: those without a learning rate of their own
        """
        own = self.own_learning_rates()
        return [getattr(self, name) for name in self.optimizer_names if name not in own]

    def set_own_learning_rates(self) -> None:
        """Give the other optimizers theirs, as loading a model brings back those that it was saved with."""
        for name, learning_rate in self.own_learning_rates().items():
            set_learning_rate(getattr(self, name), learning_rate)
