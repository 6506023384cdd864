"""Types shared by replay buffer, intrinsic rewards and losses."""

from typing import Any, NamedTuple

import torch as th


class SkillPairs(NamedTuple):
    """
    The (transition, skill) pairs that the critic learns from; ``n_pairs`` may differ from ``batch_size``.

    :param rows: index of the transition in the batch, shape ``(n_pairs,)``; ``None`` for each transition once
    :param skills: skill whose value is regressed (in an ensemble, it selects the head), shape ``(n_pairs,)``, or
        ``(n_pairs, skill_dim)`` for vectors
    :param target_skills: skill whose policy acts in the TD target, as ``skills``; or that of each transition, if one action
        serves all of its pairs
    :param rewards: reward of the pair, shape ``(n_pairs, 1)``
    :param weights: 1 for a pair that counts, 0 for padding, shape ``(n_pairs, 1)``; ``None`` if all count
    """

    rows: th.Tensor | None
    skills: th.Tensor
    target_skills: th.Tensor
    rewards: th.Tensor
    weights: th.Tensor | None = None


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
    :param pairs: once relabelled, the pairs that the critic learns from
    :param actor_skills: once relabelled, the skills for which the actor is improved in s, as ``skills``
    :param clusters: for rewards with clusters, the cluster of s', shape ``(batch_size,)``
    :param features: the features of s that are clustered, shape ``(batch_size, features_dim)``
    :param next_features: the same of s'
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
    pairs: SkillPairs | None = None
    actor_skills: th.Tensor | None = None
    clusters: th.Tensor | None = None
    features: th.Tensor | None = None
    next_features: th.Tensor | None = None

    def all_observations(self) -> dict[str, Any]:
        """List the observations that the batch holds, by name."""
        return {name: value for name, value in self._asdict().items() if name.endswith("observations") and value is not None}
