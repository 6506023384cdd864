"""Batches of CeSD, with clusters and pairs."""

from typing import Any, NamedTuple

import torch as th

from sb3_cesd.common.type_aliases import SkillReplayBufferSamples


class SkillPairs(NamedTuple):
    """
    The (transition, skill) pairs the critic is trained on; ``n_pairs`` may differ from ``batch_size``.

    :param rows: index of the transition in the batch, shape ``(n_pairs,)``
    :param skills: skill whose value is regressed (it selects the critic head), shape ``(n_pairs,)``
    :param target_skills: skill whose policy acts in the TD target, shape ``(n_pairs,)``
    :param rewards: reward of the pair, shape ``(n_pairs, 1)``
    :param weights: 1 for a pair that counts, 0 for padding, shape ``(n_pairs, 1)``
    """

    rows: th.Tensor
    skills: th.Tensor
    target_skills: th.Tensor
    rewards: th.Tensor
    weights: th.Tensor

    @classmethod
    def one_per_transition(cls, skills: th.Tensor, target_skills: th.Tensor, rewards: th.Tensor) -> "SkillPairs":
        """
        Train only the value of ``skills[j]`` on transition j.

        :param skills: shape ``(batch_size,)``
        :param target_skills: shape ``(batch_size,)``
        :param rewards: shape ``(batch_size, 1)``
        :return: ``batch_size`` pairs, all of weight 1
        """
        rows = th.arange(len(skills), device=skills.device)
        return cls(rows, skills, target_skills, rewards, th.ones_like(rewards))

    @classmethod
    def for_all_heads(cls, n_heads: int, skills: th.Tensor, rewards: th.Tensor) -> "SkillPairs":
        """
        Train all heads on every transition, with the actions of the skill that learns the task (the released code).

        Head i is paired with skill i, except that the head of the skill that learns the task is paired with that skill, as
        skills are also an input of the trunk.

        :param n_heads: number of heads
        :param skills: the skill that learns the task, for each transition, shape ``(batch_size,)``
        :param rewards: shape ``(batch_size, 1)``
        :return: ``n_heads * batch_size`` pairs, all of weight 1
        """
        rows = th.arange(len(skills), device=skills.device).repeat(n_heads)
        heads = th.arange(n_heads, device=skills.device).repeat_interleave(len(skills))
        skills, rewards = skills.repeat(n_heads), rewards.repeat(n_heads, 1)
        pair_skills = th.where(heads == skills % n_heads, skills, heads)
        return cls(rows, pair_skills, skills, rewards, th.ones_like(rewards))


class CeSDSamples(NamedTuple):
    """
    A relabelled batch: a :class:`~sb3_cesd.common.type_aliases.SkillReplayBufferSamples` with clusters and pairs added.

    :param observations: s
    :param actions: a, scaled to [-1, 1], shape ``(batch_size, action_dim)``
    :param next_observations: s' at the end of the n-step window
    :param dones: 1 for a true termination (not a timeout), shape ``(batch_size, 1)``
    :param rewards: reward of the transition on its own cluster, shape ``(batch_size, 1)``
    :param discounts: discount of the bootstrap value, shape ``(batch_size, 1)``
    :param skills: skill that collected the transition, shape ``(batch_size,)``
    :param clusters: cluster of s', shape ``(batch_size,)``
    :param actor_skills: skill for which the actor is improved in s, shape ``(batch_size,)``
    :param pairs: pairs that the critic is trained on
    :param features: features of s', shape ``(batch_size, features_dim)``; ``None`` for a task
    """

    observations: th.Tensor
    actions: th.Tensor
    next_observations: th.Tensor
    dones: th.Tensor
    rewards: th.Tensor
    discounts: th.Tensor
    skills: th.Tensor
    clusters: th.Tensor
    actor_skills: th.Tensor
    pairs: SkillPairs
    features: th.Tensor | None = None

    @classmethod
    def from_batch(cls, batch: SkillReplayBufferSamples, **added: Any) -> "CeSDSamples":
        """
        Add the fields of CeSD to a batch.

        :param batch: a batch of transitions
        :param added: the fields that it lacks
        :return: the same transitions with these fields, without those that the losses of CeSD do not use
        """
        shared = {name: value for name, value in batch._asdict().items() if name in cls._fields}
        return cls(**shared, **added)
