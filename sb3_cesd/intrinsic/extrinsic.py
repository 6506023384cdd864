import torch as th

from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward


class ExtrinsicReward(IntrinsicReward):
    """
    The reward of the environment, in place of an intrinsic one.

    Rewards are those sampled from the replay buffer. The skill that learns the task learns from all transitions, including
    those that other skills collected in the warm-up.
    """

    #: Index or vector of the skill that learns the task; ``None`` for that of each transition
    skill: th.Tensor | None = None

    def follow(self, skill: int | list[float], device: th.device) -> None:
        """
        Set the skill that learns the task, in place, as a CUDA graph reads it by its address.

        :param skill: its index or vector
        :param device: where updates run
        """
        value = th.as_tensor(skill, device=device)
        if self.skill is None:
            self.skill = value
        else:
            self.skill.copy_(value)

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return samples.rewards.squeeze(1)

    def relabel(self, samples: SkillReplayBufferSamples) -> SkillReplayBufferSamples:
        self.logs["train/n_step_return"] = samples.rewards.mean()
        if self.skill is None:
            return samples
        return samples._replace(skills=self.skill.expand_as(samples.skills))
