"""Types shared by replay buffer, intrinsic rewards and losses."""

from typing import NamedTuple

import torch as th


class SkillReplayBufferSamples(NamedTuple):
    """
    A batch of n-step transitions with the skill that collected each.

    :param observations: s, shape ``(batch_size, *obs_shape)``; for a Dict space, a dictionary of such tensors
    :param actions: a, scaled to [-1, 1], shape ``(batch_size, action_dim)``
    :param next_observations: s' at the end of the n-step window, as ``observations``
    :param dones: 1 for a true termination (not a timeout), shape ``(batch_size, 1)``
    :param rewards: n-step extrinsic return, or the intrinsic reward once relabelled, shape ``(batch_size, 1)``
    :param discounts: discount of the bootstrap value, gamma ** window length, shape ``(batch_size, 1)``
    :param skills: skill that collected the transition: its index, shape ``(batch_size,)``, or its vector, shape
        ``(batch_size, skill_dim)``
    :param one_step_observations: the observation after a single step, as ``observations``, for rewards that need it
        (:attr:`~sb3_cesd.intrinsic.base.IntrinsicReward.needs_one_step`)
    :param average_observations: moving averages up to s, as ``observations``, for rewards that need them
        (:attr:`~sb3_cesd.intrinsic.base.IntrinsicReward.average_window`)
    :param average_next_observations: the same up to s'
    """

    observations: th.Tensor
    actions: th.Tensor
    next_observations: th.Tensor
    dones: th.Tensor
    rewards: th.Tensor
    discounts: th.Tensor
    skills: th.Tensor
    one_step_observations: th.Tensor | None = None
    average_observations: th.Tensor | None = None
    average_next_observations: th.Tensor | None = None
