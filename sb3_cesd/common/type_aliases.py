"""Tuples that travel from the replay buffer through the intrinsic reward into the losses."""

from typing import NamedTuple

import torch as th


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


class SkillReplayBufferSamples(NamedTuple):
    """
    A batch of n-step transitions with the skill that collected each, without the one-hot.

    :param observations: s, shape ``(batch_size, obs_dim)``
    :param actions: a, scaled to [-1, 1], shape ``(batch_size, action_dim)``
    :param next_observations: s' at the end of the n-step window, shape ``(batch_size, obs_dim)``
    :param dones: 1 for a true termination (not a timeout), shape ``(batch_size, 1)``
    :param rewards: n-step extrinsic return, or the intrinsic reward once relabelled, shape ``(batch_size, 1)``
    :param discounts: discount of the bootstrap value, gamma ** window length, shape ``(batch_size, 1)``
    :param skills: skill that collected the transition, shape ``(batch_size,)``
    :param clusters: cluster of s' (the collecting skill for methods without clusters), shape ``(batch_size,)``
    :param actor_skills: skill on which the actor is improved in s, shape ``(batch_size,)``
    :param pairs: what the critic is trained on
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


def one_pair_per_transition(skills: th.Tensor, target_skills: th.Tensor, rewards: th.Tensor) -> SkillPairs:
    """
    Train transition j on ``skills[j]`` alone.

    :param skills: shape ``(batch_size,)``
    :param target_skills: shape ``(batch_size,)``
    :param rewards: shape ``(batch_size, 1)``
    :return: ``batch_size`` pairs, all of weight 1
    """
    rows = th.arange(len(skills), device=skills.device)
    return SkillPairs(rows, skills, target_skills, rewards, th.ones_like(rewards))
