import torch as th

from sb3_cesd.common.type_aliases import SkillReplayBufferSamples, one_pair_per_transition


def make_samples(observations, next_observations, skills, actions=None):
    """A batch of transitions as the replay buffer samples it, with zero extrinsic returns."""
    skills = skills.long()
    rewards = th.zeros(len(observations), 1)
    return SkillReplayBufferSamples(
        observations=observations,
        actions=th.zeros(len(observations), 2) if actions is None else actions,
        next_observations=next_observations,
        dones=th.zeros_like(rewards),
        rewards=rewards,
        discounts=th.full_like(rewards, 0.97),
        skills=skills,
        clusters=skills,
        actor_skills=skills,
        pairs=one_pair_per_transition(skills, skills, rewards),
    )
