from collections.abc import Sequence
from typing import Any

import torch as th
from torch import nn
from torch.nn import functional as F

from sb3_cesd.common.arguments import Positive, PositiveInt, checked
from sb3_cesd.common.torch_layers import create_orthogonal_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import Interval, hidden_sizes

EPS = 1e-6


class BeCLReward(IntrinsicReward):
    """
    ``exp(-L)`` with the contrastive loss L of a state against the rest of its batch (Yang et al., "Behavior Contrastive
    Learning for Unsupervised Skill Discovery", 2023): high in states that resemble others of the same skill, and no others.

    With normalised features f of s' and ``e_ij = exp(f_i . f_j / temperature)``, the loss of state i is
    ``-log(e_ip / sum_{j != i} e_ij)``, where p is another state of the same skill: the first one in the batch, as in the
    released code. If there is no such p, the state yields no gradient and a reward of 1e-6; in the released code, p is then
    the first other state of the batch, whatever its skill.

    :param features_dim: size of the features
    :param net_arch: sizes of the hidden layers of the features; the projection head after them has one hidden layer, of the
        last of these sizes
    :param temperature: softmax temperature of the loss
    :param n_batches: number of batches that features learn from, one by one, per update of actor and critic
    :param scale: factor of the reward
    """

    @checked
    def __init__(
        self,
        *sizes: Any,
        features_dim: PositiveInt = 16,
        net_arch: Sequence[int] = (256, 256),
        temperature: Positive = 0.5,
        n_batches: PositiveInt = 3,
        scale: Positive = 1.0,
    ) -> None:
        super().__init__(*sizes)
        self.temperature = temperature
        self.n_batches = n_batches
        self.scale = scale
        embedding = create_orthogonal_mlp(self.obs_dim, features_dim, net_arch)
        self.network = nn.Sequential(embedding, create_orthogonal_mlp(features_dim, features_dim, net_arch[-1:]))

    def losses(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        """Compute the contrastive loss of each state, shape ``(batch_size,)``."""
        features = F.normalize(self.network(samples.next_observations), dim=1)
        is_self = th.eye(len(features), dtype=th.bool, device=features.device)
        similarity = (features @ features.T / self.temperature).masked_fill(is_self, -th.inf)  # (batch_size, batch_size)
        exponentials = (similarity - similarity.detach().amax(dim=1, keepdim=True)).exp()
        same_skill = (samples.skills[:, None] == samples.skills) & ~is_self
        # argmax takes the first of equal entries
        first = same_skill.byte().argmax(dim=1, keepdim=True)
        positives = (exponentials.gather(1, first) * same_skill.gather(1, first)).squeeze(1)
        return -(positives / (exponentials.sum(dim=1) + EPS) + EPS).log()

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return self.losses(samples).mean()

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        return self.scale * (-self.losses(samples)).exp()


class BeCL(SkillDDPG):
    """
    Behavior Contrastive Learning (Yang et al., 2023): each skill visits states that resemble each other and differ from those
    of other skills.

    Features learn from 3 batches per update of actor and critic, as in the released code. It is good at skills that each stay
    in a distinct part of the state space; as in DIAYN, these parts need not be far apart.

    Paper: https://arxiv.org/abs/2305.04477. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`BeCLReward`.
    """

    reward_class = BeCLReward
    discrete_because = "as states of equal skills are its positive pairs"
    search_space = {  # noqa: RUF012
        "intrinsic_kwargs": {
            "net_arch": hidden_sizes,
            "features_dim": [8, 16, 32],
            "temperature": Interval(0.1, 1.0),
            "n_batches": Interval(1, 3, log=False),
        }
    }
