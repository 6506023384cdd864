import torch as th

from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.common.type_aliases import SkillPairs, SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward


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
        pairs = SkillPairs.for_all_heads(self.n_heads, skills, samples.rewards)
        return samples._replace(skills=skills, pairs=pairs, actor_skills=skills)
