"""Rewards and returns of imagined steps."""

from typing import Any

import torch as th

from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward


def lambda_returns(rewards: th.Tensor, values: th.Tensor, discounts: th.Tensor, decay: float) -> th.Tensor:
    """
    Compute the returns of n steps, ``G_t = r_t + d_t ((1 - decay) v_{t+1} + decay G_{t+1})`` with ``G_{n+1} = v_{n+1}``: the
    value of a state includes its own reward, as in DreamerV2.

    :param rewards: rewards of reaching n states, shape ``(n, ...)``
    :param values: values of these, and of the state after them, shape ``(n + 1, ...)``
    :param discounts: discounts of what comes after each of the n, shape ``(n, ...)``
    :param decay: lambda, from 0 (one step) to 1 (all steps)
    :return: shape ``(n, ...)``
    """
    returns = [values[-1]]
    for reward, next_value, discount in zip(rewards.flip(0), values[1:].flip(0), discounts.flip(0), strict=True):
        returns.append(reward + discount * ((1 - decay) * next_value + decay * returns[-1]))
    return th.stack(returns[:0:-1])


def own_rewards(samples: SkillReplayBufferSamples, skills: th.Tensor) -> th.Tensor:
    """
    Look up what relabelled transitions are worth to the skills that acted in them, shape ``(batch_size,)``: nothing where only
    another skill learns from a transition.
    """
    pairs = samples.pairs
    assert pairs is not None
    rows = th.arange(len(skills), device=skills.device) if pairs.rows is None else pairs.rows
    own = (pairs.skills == skills[rows]).reshape(len(rows), -1).all(dim=1)
    nothing = pairs.rewards.new_zeros(len(skills))
    return nothing.index_put((rows[own],), pairs.rewards[own].squeeze(1))


def imagined_rewards(intrinsic: IntrinsicReward, samples: SkillReplayBufferSamples, batch_size: int) -> th.Tensor:
    """
    Compute the intrinsic rewards of imagined steps. Those that compare or count states do so within random subsamples.

    :param intrinsic: the reward
    :param samples: n imagined transitions
    :param batch_size: size of a subsample, at most
    :return: rewards for the skills that act, shape ``(n,)``
    """
    n = len(samples.skills)
    rewards = th.empty(n, device=samples.skills.device)
    for rows in th.randperm(n, device=rewards.device).chunk(-(-n // batch_size)):
        parts: Any = [None if each is None else each[rows] for each in samples]  # type: ignore[index]
        chosen = SkillReplayBufferSamples(*parts)
        rewards[rows] = own_rewards(intrinsic.relabel(chosen), chosen.skills)
    return rewards
