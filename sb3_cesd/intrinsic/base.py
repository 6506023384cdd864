"""Base class of intrinsic rewards."""

from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import ClassVar

import torch as th
from torch import nn

from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.common.type_aliases import SkillPairs, SkillReplayBufferSamples

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
    :param skill_space: space of the skills; methods pass these three on as ``*sizes``
    """

    #: Whether batches must contain the observation after a single step, besides that after the n-step window
    needs_one_step: ClassVar[bool] = False
    #: Arguments that shape what is saved: a saved model keeps them; ``None`` for all of them
    fixed_by_save: ClassVar[tuple[str, ...] | None] = None
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
        Learn from a batch, before its rewards are computed.

        :param samples: a batch of transitions
        """
        loss = self.loss(samples)
        if loss is not None:
            self.step(self.optimizer, loss)
            self.logs["train/intrinsic_loss"] = loss.detach().reshape(())

    @th.no_grad()
    def relabel(self, samples: SkillReplayBufferSamples) -> SkillReplayBufferSamples:
        """
        Replace the rewards of transitions by intrinsic rewards, and choose the skills that learn from them.

        Apart from running statistics in training mode, as in batch normalisation, this changes nothing. By default, each
        transition trains actor and critic of the skill that collected it.

        :param samples: a batch with extrinsic n-step returns
        :return: the same transitions with intrinsic rewards, pairs and skills of the actor
        :raises ValueError: if :meth:`reward` does not return one number per transition
        """
        reward = self.reward(samples)
        if reward.shape != (len(samples.rewards),):  # it would be broadcast to the batch without a word
            raise ValueError(f"{type(self).__name__}.reward returned shape {tuple(reward.shape)}: return (batch_size,).")
        rewards = reward[:, None]  # (batch_size, 1)
        self.logs["intrinsic/reward"] = rewards.mean()
        pairs = SkillPairs(None, samples.skills, samples.skills, rewards)
        return samples._replace(rewards=rewards, pairs=pairs, actor_skills=samples.skills)

    def update_clusters(self, samples: SkillReplayBufferSamples) -> None:
        """Learn from a relabelled batch, after critic and actor; by default, nothing."""

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

    @staticmethod
    def step(optimizer: th.optim.Optimizer, loss: th.Tensor) -> None:
        """Take one gradient step."""
        optimizer.zero_grad()
        loss.backward()
        optimizer.step()

    @property
    def optimizers(self) -> dict[str, th.optim.Optimizer]:
        """Attributes that are optimizers, by name."""
        return {name: value for name, value in vars(self).items() if isinstance(value, th.optim.Optimizer)}

    def own_learning_rates(self) -> dict[str, float]:
        """Learning rates by the name of the optimizer; the other optimizers follow that of the algorithm."""
        return {}


class ExtrinsicReward(IntrinsicReward):
    """
    The reward of the environment, in place of an intrinsic one.

    Rewards are those sampled from the replay buffer. The skill that learns the task learns from all transitions, including
    those that other skills collected in the warm-up.

    :param obs_dim: size of the state
    :param action_dim: size of the action
    :param skill_space: space of the skills
    :param n_heads: number of critic heads, all of which learn the task
    """

    #: Index or vector of the skill that learns the task; ``None`` for that of each transition
    skill: th.Tensor | None = None

    def __init__(self, obs_dim: int, action_dim: int, skill_space: SkillSpace, n_heads: int = 1) -> None:
        super().__init__(obs_dim, action_dim, skill_space)
        self.n_heads = n_heads

    def follow(self, skill: int | list[float], device: th.device) -> None:
        """Set the skill that learns the task, in place, as a CUDA graph reads it by its address."""
        value = th.as_tensor(skill, device=device)
        if self.skill is None:
            self.skill = value
        else:
            self.skill.copy_(value)

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return samples.rewards.squeeze(1)

    def relabel(self, samples: SkillReplayBufferSamples) -> SkillReplayBufferSamples:
        self.logs["train/n_step_return"] = samples.rewards.mean()
        skills = samples.skills if self.skill is None else self.skill.expand_as(samples.skills)
        pairs = SkillPairs(None, skills, skills, samples.rewards)
        if self.n_heads > 1:
            # As in CeSD's released code, all heads learn from every transition with the actions of the skill, and head i is
            # paired with skill i, but that of the skill with this skill, as skills are also an input of the trunk
            rows = th.arange(len(skills), device=skills.device).repeat(self.n_heads)
            heads = th.arange(self.n_heads, device=skills.device).repeat_interleave(len(skills))
            own = skills.repeat(self.n_heads)
            paired = th.where(heads == own % self.n_heads, own, heads)
            pairs = SkillPairs(rows, paired, skills, samples.rewards.repeat(self.n_heads, 1))
        return samples._replace(skills=skills, pairs=pairs, actor_skills=skills)
