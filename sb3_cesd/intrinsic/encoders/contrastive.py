import math

import torch as th
from torch.nn import functional as F

from sb3_cesd.common.allowed import check_arguments
from sb3_cesd.common.choices import ContrastiveObjective
from sb3_cesd.common.skills import SkillSpace
from sb3_cesd.common.torch_layers import create_orthogonal_mlp
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.encoders.base import Encoder


class ContrastiveEncoder(Encoder):
    """
    Features learned by identifying the skill that led from s to s' (the contrastive encoder of CIC, also used in CeSD's
    released code).

    With query ``= skill_net(z)``, key ``= pred_net([f(s), f(s')])``, both normalised, and ``S = query key^T / temperature``
    the loss is the mean of ``-log(exp S_jj / sum_l exp S_jl)`` (InfoNCE, van den Oord et al., 2018).

    The released code subtracts ``e^(1 / temperature)``, the maximum of a positive, from that sum: it has
    ``max(sum_l exp S_jl - e^(1 / temperature), 1e-6) + 1e-6``. While skills differ little, its minimum is where all cosines
    are -1, and the features collapse to a point.

    :param obs_dim: size of the state
    :param action_dim: not used
    :param skill_space: space of the skills
    :param features_dim: m, size of the features
    :param net_arch: sizes of the hidden layers of the encoder and of both heads
    :param temperature: softmax temperature of the loss
    :param objective: ``"infonce"`` or ``"released"``, that of the released code
    """

    def __init__(
        self,
        obs_dim: int,
        action_dim: int,
        skill_space: SkillSpace,
        features_dim: int = 16,
        net_arch: list[int] | None = None,
        temperature: float = 0.5,
        objective: ContrastiveObjective = "infonce",
    ) -> None:
        check_arguments("ContrastiveEncoder", locals())
        super().__init__(features_dim)
        net_arch = [1024, 1024] if net_arch is None else net_arch
        self.skill_space = skill_space
        self.temperature = temperature
        self.objective = objective
        self.state_net = create_orthogonal_mlp(obs_dim, features_dim, net_arch)
        self.skill_net = create_orthogonal_mlp(skill_space.dim, features_dim, net_arch)
        self.pred_net = create_orthogonal_mlp(2 * features_dim, features_dim, net_arch)

    def forward(self, observations: th.Tensor) -> th.Tensor:
        return self.state_net(observations)

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        batch_size = len(samples.observations)
        features = self.state_net(th.cat([samples.observations, samples.next_observations]))
        keys = self.pred_net(th.cat(features.split(batch_size), dim=1))
        if self.skill_space.discrete:
            # There are only n_skills different queries, whatever the batch size
            skills, vectors = samples.skills, th.eye(self.skill_space.dim, dtype=features.dtype, device=features.device)
        else:
            skills, vectors = th.arange(batch_size, device=features.device), samples.skills
        queries = self.skill_net(vectors)  # (n_queries, features_dim)
        similarity = F.normalize(queries, dim=1) @ F.normalize(keys, dim=1).T / self.temperature  # (n_queries, batch_size)
        positives = similarity.gather(0, skills[None]).squeeze(0)  # (batch_size,)
        return (self._log_denominators(similarity)[skills] - positives).mean()

    def _log_denominators(self, similarity: th.Tensor) -> th.Tensor:
        """
        Compute the logarithms of the denominators in the loss.

        :param similarity: of each query with all keys, over the temperature, shape ``(n_queries, batch_size)``
        :return: shape ``(n_queries,)``
        """
        if self.objective == "infonce":
            return similarity.logsumexp(dim=1)
        eps = 1e-6
        return ((similarity.exp().sum(dim=1) - math.exp(1 / self.temperature)).clamp(min=eps) + eps).log()
