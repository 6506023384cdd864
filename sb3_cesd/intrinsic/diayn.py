import math

import torch as th
from torch.nn import functional as F

from sb3_cesd.common.torch_layers import create_orthogonal_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.common.utils import check_positive
from sb3_cesd.intrinsic.transition import TransitionReward


class DIAYNReward(TransitionReward):
    """
    ``log q(z | s') - log p(z)`` with a learned discriminator q and uniform p (Eysenbach et al., "Diversity is All You Need",
    2019, eq. 3): high where a state tells its skill.

    :param obs_dim: size of the state
    :param action_dim: not used
    :param n_skills: number of skills
    :param net_arch: sizes of the hidden layers of the discriminator, ``[1024, 1024]`` by default
    :param scale: factor of the reward
    """

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        n_skills: int,
        net_arch: list[int] | None = None,
        scale: float = 1.0,
    ) -> None:
        super().__init__()
        check_positive(scale=scale)
        self.n_skills = n_skills
        self.scale = scale
        self.discriminator = create_orthogonal_mlp(obs_dim, n_skills, [1024, 1024] if net_arch is None else net_arch)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return F.cross_entropy(self.discriminator(samples.next_observations), samples.skills)

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        log_q = self.discriminator(samples.next_observations).log_softmax(dim=1)  # (batch_size, n_skills)
        log_q = log_q.gather(1, samples.skills[:, None]).squeeze(1)
        return self.scale * (log_q + math.log(self.n_skills))

    @th.no_grad()
    def predict_clusters(self, observations: th.Tensor) -> th.Tensor:
        return self.discriminator(observations).argmax(dim=1)
