from collections.abc import Sequence
from typing import Any

import torch as th
from torch import nn
from torch.nn import functional as F

from sb3_cesd.common.arguments import Positive, PositiveInt, Share, checked
from sb3_cesd.common.torch_layers import create_orthogonal_mlp, orthogonal_init, polyak_update, sample_categorical
from sb3_cesd.common.type_aliases import SkillReplayBufferSamples
from sb3_cesd.intrinsic.base import IntrinsicReward
from sb3_cesd.intrinsic.prototypes import Prototypes
from sb3_cesd.skill_ddpg import SkillDDPG
from sb3_cesd.skill_ddpg.search_space import Interval, one_hidden_size


class ProtoRLReward(IntrinsicReward):
    """
    Distance of a state to its k-th nearest neighbour among states that represent all prototypes, ``||z - NN_k(z)||`` with
    normalised features z of s' (Yarats et al., "Reinforcement Learning with Prototypical Representations", 2021).

    Features and prototypes learn to predict from s how s' is assigned to the prototypes. They minimise the cross-entropy
    between the Sinkhorn assignment of z(s'), by a target copy of the feature layer, and
    ``softmax(z(s) . c / temperature)``, where z(s) passes through a projector. After that, each prototype c draws a state of
    the batch with probabilities ``softmax_j(z(s'_j) . c)``. The drawn features replace the oldest ones in the queue that
    neighbours are searched in.

    As in URLB, features are a linear layer of the state, the queue starts with zeros, and the features just drawn are searched
    too.

    :param features_dim: size of the features
    :param net_arch: sizes of the hidden layers of the projector
    :param n_prototypes: number of prototypes
    :param temperature: softmax temperature of both assignments
    :param sinkhorn_iterations: Sinkhorn-Knopp iterations
    :param target_tau: soft update coefficient of the target copy, between 0 and 1
    :param queue_size: number of features that neighbours are searched in
    :param k: rank of the neighbour
    :param scale: factor of the reward
    :raises ValueError: if the queue has no room for a state per prototype, or for ``k`` neighbours
    """

    target_weight: th.Tensor
    target_bias: th.Tensor
    queue: th.Tensor
    n_queued: th.Tensor

    @checked
    def __init__(
        self,
        *sizes: Any,
        features_dim: PositiveInt = 128,
        net_arch: Sequence[int] = (256,),
        n_prototypes: PositiveInt = 128,
        temperature: Positive = 0.1,
        sinkhorn_iterations: PositiveInt = 3,
        target_tau: Share = 0.05,
        queue_size: PositiveInt = 512,
        k: PositiveInt = 3,
        scale: Positive = 1.0,
    ) -> None:
        if queue_size < max(n_prototypes, k):
            raise ValueError(f"queue_size={queue_size} is below n_prototypes={n_prototypes} or k={k}: raise queue_size.")
        super().__init__(*sizes)
        self.target_tau = target_tau
        self.k = k
        self.scale = scale
        self.predictor = nn.Linear(self.obs_dim, features_dim).apply(orthogonal_init)
        self.projector = create_orthogonal_mlp(features_dim, features_dim, net_arch)
        self.prototypes = Prototypes(n_prototypes, features_dim, temperature, None, sinkhorn_iterations, "next")
        # Moving average of the predictor
        self.register_buffer("target_weight", self.predictor.weight.detach().clone())
        self.register_buffer("target_bias", self.predictor.bias.detach().clone())
        self.register_buffer("queue", th.zeros(queue_size, features_dim))
        self.register_buffer("n_queued", th.zeros((), dtype=th.long))

    def loss(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        # Cross-entropy between the assignments of s' and those predicted from s, for prototypes of length 1
        predicted_scores = self.prototypes.scores(self.projector(self.predictor(samples.observations)))
        with th.no_grad():
            target_features = F.linear(samples.next_observations, self.target_weight, self.target_bias)
            target_scores = self.prototypes.scores(target_features)  # (batch_size, n_prototypes)
        return self.prototypes.loss(predicted_scores, target_scores)

    def update(self, samples: SkillReplayBufferSamples) -> None:
        self.prototypes.normalize()
        super().update(samples)
        polyak_update(self.predictor.parameters(), [self.target_weight, self.target_bias], self.target_tau)

    def reward(self, samples: SkillReplayBufferSamples) -> th.Tensor:
        features = F.normalize(self.predictor(samples.next_observations), dim=1)  # (batch_size, features_dim)
        if self.training:
            self._enqueue(features)
        # ||q||^2 - 2 z . q orders the queue as ||z - q|| does
        order = self.queue.square().sum(dim=1) - 2 * features @ self.queue.T  # (batch_size, queue_size)
        neighbors = order.topk(self.k, dim=1, largest=False).indices[:, -1]
        return self.scale * (features - self.queue.index_select(0, neighbors)).norm(dim=1)

    @th.no_grad()
    def _enqueue(self, features: th.Tensor) -> None:
        """Draw a state for each prototype, and replace the oldest ones in the queue."""
        probabilities = self.prototypes.similarities(features).T.softmax(dim=1)  # (n_prototypes, batch_size)
        drawn = features.index_select(0, sample_categorical(probabilities))
        places = (self.n_queued + th.arange(len(drawn), device=drawn.device)) % len(self.queue)
        self.queue.index_copy_(0, places, drawn)
        self.n_queued += len(drawn)


class ProtoRL(SkillDDPG):
    """
    Reinforcement learning with prototypical representations (Yarats et al., 2021): visit states far from those that represent
    what was seen.

    The reward is the same for all skills. It is particle entropy, as in :class:`~sb3_cesd.methods.apt.APT`, with the states of
    many batches as neighbours. Fine-tuning takes over the whole critic, as in URLB (whose target critic starts from scratch);
    other methods take over its trunk only.

    Paper: https://arxiv.org/abs/2102.11271. For the arguments see :class:`~sb3_cesd.skill_ddpg.skill_ddpg.SkillDDPG`;
    ``intrinsic_kwargs`` are those of :class:`ProtoRLReward`.
    """

    reward_class = ProtoRLReward
    published_transfer = ("actor", "critic_trunk", "critic_head")
    search_space = {  # noqa: RUF012
        "intrinsic_kwargs": {
            "net_arch": one_hidden_size,
            "features_dim": [64, 128],
            "n_prototypes": [64, 128, 256, 512],
            "queue_size": lambda drawn: 4 * drawn["n_prototypes"],
            "temperature": Interval(0.05, 0.2),
            "k": Interval(1, 12),
        }
    }
