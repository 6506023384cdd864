"""Behaviour cloning of the pre-trained skill while it learns a task."""

import torch as th

from sb3_cesd.common.observations import TensorObservation
from sb3_cesd.common.tensors import minimum
from sb3_cesd.skill_ddpg.networks import SkillActor
from sb3_cesd.skill_ddpg.policies import SkillPolicy


def make_reference(policy: SkillPolicy) -> SkillActor:
    """
    Make an actor that does not learn, to hold the pre-trained weights. No random numbers of the training are drawn for it.

    :param policy: policy with the actor that learns
    :return: an actor of the same shape, with weights of its own
    """
    with th.random.fork_rng(devices=[]):
        reference = policy.make_actor()
    reference.requires_grad_(False)
    reference.set_training_mode(False)
    return reference


def cloning_loss(
    policy: SkillPolicy, reference: SkillActor, observations: TensorObservation, skills: th.Tensor
) -> tuple[th.Tensor, th.Tensor]:
    """
    Compute the loss of behaviour cloning with a Q-filter (Nair et al., 2018, "Overcoming Exploration in Reinforcement
    Learning with Demonstrations"): the squared distance to the actions of a reference, where the critic prefers these.

    :param policy: policy with the actor that learns, and the critic that compares
    :param reference: the actor to imitate
    :param observations: observations without skills
    :param skills: skills as stored in the replay buffer
    :return: mean over the batch and the entries of an action, 0 where the own action is at least as good; and the share of
        states where it is not
    """
    actions = policy.actor.act(observations, skills)
    with th.no_grad():
        wanted = reference.act(observations, skills)
        q_values = [minimum(policy.critic.q_values(observations, each, skills)) for each in (wanted, actions)]
        is_better = (q_values[0] > q_values[1]).float()
    errors = (actions - wanted).square().mean(dim=1, keepdim=True)
    return (is_better * errors).mean(), is_better.mean()
